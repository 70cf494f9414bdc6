package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley/channels"
)

// addReadBack adds to the chat's lane the job to read back what was missed.
func (in *intake) addReadBack(id, guild string, e *event) {
	look := func(ctx context.Context) error { return in.readBack(ctx, id, guild, nil, "") }
	in.add(id, e, look, func(ctx context.Context) error {
		in.mu.Lock()
		delete(in.asked, id) // before what is missed now was said
		in.mu.Unlock()
		return look(ctx)
	})
}

// catchUp asks what was said in the chats that have a session since they were
// last read (P3), of very many only in those where somebody spoke last: in the
// others when somebody does. What is said from now on waits behind it.
func (in *intake) catchUp(e *event) {
	in.mu.Lock()
	var ids []string
	guilds := map[string]string{}
	for id, s := range in.seen {
		ids = append(ids, id)
		guilds[id] = s.Guild
	}
	slices.SortFunc(ids, func(a, b string) int { return older(in.seen[b].Last, in.seen[a].Last) })
	in.mu.Unlock()
	for _, id := range ids[:min(len(ids), maxSeen)] {
		in.addReadBack(id, guilds[id], e)
	}
}

// A guild is a server, as it is described when a session begins and when we join it.
type guild struct {
	ID          string    `json:"id"`
	Unavailable bool      `json:"unavailable"`
	Joined      time.Time `json:"joined_at"`
	Channels    []place   `json:"channels"`
	Threads     []place   `json:"threads"`
}

type place struct {
	ID   string `json:"id"`
	Type int    `json:"type"`
	Last string `json:"last_message_id"`
}

// silent are the types of channels that have no messages of their own:
// categories, stores, directories, forums and galleries.
var silent = []int{4, 6, 14, 15, 16}

// catchUpGuild looks into those channels and threads of a server where something
// was said after we last listened.
func (in *intake) catchUpGuild(e *event, data json.RawMessage) {
	var g guild
	if err := json.Unmarshal(data, &g); err != nil {
		in.c.log.Warn("server not understood", "err", err)
		return
	}
	if g.Unavailable || !snowflake.MatchString(g.ID) {
		return
	}
	in.tracker.noteDescribed(g.ID, e)
	var missed []string
	in.mu.Lock()
	if !g.Joined.IsZero() {
		in.joined[g.ID] = idAt(g.Joined)
	}
	for _, p := range slices.Concat(g.Channels, g.Threads) {
		after := in.missedAfter(p.ID, g.ID)
		switch {
		case after == "" || in.denied[p.ID] || slices.Contains(silent, p.Type):
		case snowflake.MatchString(p.Last) && older(p.Last, after) > 0:
			missed = append(missed, p.ID)
		default:
			in.asked[p.ID] = in.session
		}
	}
	in.mu.Unlock()
	for _, id := range missed {
		in.addReadBack(id, g.ID, e)
	}
}

// missedAfter returns the id of the message after which something may have been
// missed in the chat, "" if nothing was. in.mu is held.
func (in *intake) missedAfter(id, guild string) string {
	if in.session == "" || in.asked[id] == in.session {
		return ""
	}
	if s := in.seen[id]; s != nil {
		return s.Last
	}
	private, server := in.tracker.bounds()
	switch {
	case guild == "":
		return private
	case in.c.cfg.Groups == "none":
		return ""
	}
	return later(server, in.joined[guild])
}

// readBack takes what was missed in the chat, once in a session. Messages from
// until on are not taken, if e, which brings that one, is of this session.
func (in *intake) readBack(ctx context.Context, id, guild string, e *event, until string) error {
	in.mu.Lock()
	session, after := in.session, in.missedAfter(id, guild)
	if e == nil || e.session != session {
		until = ""
	}
	in.mu.Unlock()
	if after == "" {
		return nil
	}
	if until == "" || older(after, before(until)) < 0 {
		if err := in.ask(ctx, id, guild, after, until); err != nil {
			return err
		}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.session == session {
		in.asked[id] = session
	}
	return nil
}

// ask takes what was said in the chat after one message and before another, or
// all if that is "".
func (in *intake) ask(ctx context.Context, id, guild, after, until string) error {
	in.looking <- struct{}{}
	defer func() { <-in.looking }()
	for last := ""; after != last; {
		var page []json.RawMessage
		err := in.c.call(ctx, "GET", fmt.Sprintf("/channels/%s/messages?limit=%d&after=%s", id, pageSize, after), nil, &page)
		no, _ := errors.AsType[*channels.Error](in.c.refused("ask what was said meanwhile", err))
		switch {
		case said(err, noSuchChannel):
			in.forget(id)
			return nil
		case no != nil && no.Permanent && !said(err, 404): // which may be the answer of a proxy
			in.noteDenied(id, no)
			return nil
		case err != nil:
			return fmt.Errorf("ask what was said meanwhile: %w", err)
		}
		last = after
		ms, err := in.inOrder(ctx, page)
		for _, w := range ms {
			if err == nil && until != "" && older(w.ID, until) >= 0 {
				return nil
			}
			if w.Guild = guild; err == nil {
				err, after = in.take(ctx, w, nil, false), w.ID
			}
			if err == nil {
				in.noteReadBack(w.ID)
			}
		}
		if err != nil || len(page) < pageSize {
			return err
		}
	}
	return nil
}

// noteReadBack notes that the message was read back. Its event may still come.
func (in *intake) noteReadBack(id string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if madeAt(id).After(in.began.Add(-floorMargin)) {
		in.back[id] = true
	}
}

// noteDenied notes that Discord does not show what is said in the chat.
func (in *intake) noteDenied(id string, why error) {
	in.mu.Lock()
	in.denied[id] = true
	known := in.seen[id] != nil
	in.mu.Unlock()
	if known {
		in.c.log.Warn("discord does not show what was said meanwhile", "chat", id, "err", why)
	}
}

// inOrder reads the messages of page, oldest first. What is none is kept in Dead (P4).
func (in *intake) inOrder(ctx context.Context, page []json.RawMessage) (ms []message, err error) {
	for _, raw := range page {
		w, bad := messageIn(raw)
		if bad == nil {
			ms = append(ms, w)
		} else if err = in.keepDeadLetter(ctx, raw, bad); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(ms, func(a, b message) int { return older(a.ID, b.ID) })
	return ms, nil
}
