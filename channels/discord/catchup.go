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

const (
	pageSize   = 100  // messages in one answer; Discord allows no more
	maxCatchUp = 1000 // chats that are read back at once after a gap; the others when somebody writes there
	maxLookups = 4    // chats that are read back at a time
)

// addReadBack queues reading back what was missed in the chat.
func (in *intake) addReadBack(id, guild string, e *event) {
	readBack := func(ctx context.Context) error { return in.readBack(ctx, id, guild, nil, "") }
	in.queues.add(id, e, readBack, func(ctx context.Context) error {
		in.state.resetChecked(id) // before what is missed from now on was written
		return readBack(ctx)
	})
}

// catchUp reads back what was missed in the chats whose position is known (P3). If
// they are very many, it does so in the most recent ones, and in the others when
// somebody writes there. Messages that arrive from now on wait until then.
func (in *intake) catchUp(e *event) {
	chats := in.state.chatsByRecency()
	for _, c := range chats[:min(len(chats), maxCatchUp)] {
		in.addReadBack(c.id, c.guild, e)
	}
}

// A guild is a server, as Discord describes it when a session begins and when the
// bot joins it.
type guild struct {
	ID          string         `json:"id"`
	Unavailable bool           `json:"unavailable"`
	Joined      time.Time      `json:"joined_at"`
	Channels    []guildChannel `json:"channels"`
	Threads     []guildChannel `json:"threads"`
}

type guildChannel struct {
	ID   string `json:"id"`
	Type int    `json:"type"`
	Last string `json:"last_message_id"`
}

// silentTypes are the types of channels that have no messages of their own:
// categories, stores, directories, forums and galleries.
var silentTypes = []int{4, 6, 14, 15, 16}

// catchUpGuild reads back those channels and threads of a server where somebody
// wrote after we last received anything.
func (in *intake) catchUpGuild(e *event, data json.RawMessage) {
	var g guild
	if err := json.Unmarshal(data, &g); err != nil {
		in.log.Warn("server not understood", "err", err)
		return
	}
	if g.Unavailable || !snowflake.MatchString(g.ID) {
		return
	}
	in.tracker.noteDescribed(g.ID, e)
	for _, c := range in.state.missedIn(g) {
		in.addReadBack(c.id, c.guild, e)
	}
}

// readBack delivers what was missed in the chat, once in a session. If e is of
// this session, messages from until on, which e brings, are left to the events.
func (in *intake) readBack(ctx context.Context, id, guild string, e *event, until string) error {
	session, after := in.state.missed(id, guild)
	if after == "" {
		return nil
	}
	if e == nil || e.session != session {
		until = ""
	}
	if until == "" || compareIDs(after, previousID(until)) < 0 {
		if err := in.fetchMissed(ctx, id, guild, after, until); err != nil {
			return err
		}
	}
	in.state.setChecked(id, session)
	return nil
}

// fetchMissed delivers the messages of the chat after one message and before
// another, or all that follow if until is "".
func (in *intake) fetchMissed(ctx context.Context, id, guild, after, until string) error {
	in.lookups <- struct{}{}
	defer func() { <-in.lookups }()
	for {
		page, err := in.fetchPage(ctx, id, after)
		if err != nil {
			return err
		}
		messages, err := in.decodePage(ctx, page)
		if err != nil {
			return err
		}
		last := after
		for _, w := range messages {
			if until != "" && compareIDs(w.ID, until) >= 0 {
				return nil
			}
			w.Guild = guild
			if err := in.deliverMessage(ctx, w, nil, false); err != nil {
				return err
			}
			in.state.noteReadBack(w.ID)
			after = w.ID
		}
		if len(page) < pageSize || after == last {
			return nil
		}
	}
}

// fetchPage requests the messages of the chat after one message. There are none if
// the chat is gone, or hidden from the bot.
func (in *intake) fetchPage(ctx context.Context, id, after string) (page []json.RawMessage, err error) {
	const doing = "read back missed messages"
	path := fmt.Sprintf("/channels/%s/messages?limit=%d&after=%s", id, pageSize, after)
	err = in.api.call(ctx, "GET", path, nil, &page)
	if err == nil {
		return page, nil
	}
	if hasCode(err, codeUnknownChannel) {
		in.state.forget(in.ctx, id)
		return nil, nil
	}
	refused, _ := errors.AsType[*channels.Error](in.api.channelError(doing, err))
	notFound := hasCode(err, 404) // which may be the answer of a proxy
	if refused != nil && refused.Permanent && !notFound {
		in.state.noteDenied(id, refused)
		return nil, nil
	}
	return nil, fmt.Errorf("%s: %w", doing, err)
}

// decodePage decodes the messages of page, oldest first. What cannot be understood
// becomes a dead letter (P4).
func (in *intake) decodePage(ctx context.Context, page []json.RawMessage) (messages []message, err error) {
	for _, raw := range page {
		w, unreadable := decodeMessage(raw)
		if unreadable == nil {
			messages = append(messages, w)
			continue
		}
		if err := in.keepDeadLetter(ctx, raw, unreadable); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(messages, func(a, b message) int { return compareIDs(a.ID, b.ID) })
	return messages, nil
}
