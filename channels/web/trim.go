package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/chat"
	"parley/store"
)

// trimBatch is how many entries of a conversation are removed at a time. Nobody writes
// there meanwhile.
const trimBatch = 500

// Trim removes what was said on c before t.Before, and the conversations of which
// nothing is left then, here or in the session: hasSession reports whether there is one.
func Trim(
	ctx context.Context, c *Channel, t store.Trimming, hasSession func(context.Context, chat.SessionID) (bool, error),
) error {
	var failed []error
	for key, err := range c.conversations.table.Keys(ctx, "") {
		if err != nil {
			return errors.Join(append(failed, err)...)
		}
		person, id, _ := strings.Cut(key, "\x00")
		rm, leave := c.openRoom(c.address(person, id))
		if err := rm.trim(ctx, t, hasSession); err != nil {
			failed = append(failed, fmt.Errorf("trim conversation %s of %s: %w", id, person, err))
		}
		leave()
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failed...)
}

// trim removes old entries of the conversation, and the conversation if it is over.
func (rm *room) trim(
	ctx context.Context, t store.Trimming, hasSession func(context.Context, chat.SessionID) (bool, error),
) error {
	for removed := trimBatch; removed == trimBatch; {
		var err error
		if removed, err = rm.trimEntries(ctx, t); err != nil {
			return err
		}
		if err := t.Step(removed); err != nil {
			return err
		}
	}
	if has, err := hasSession(ctx, rm.address.Session()); has || err != nil {
		return err
	}
	rm.writeMu.Lock()
	defer rm.writeMu.Unlock()
	conv, err := rm.c.conversations.get(ctx, rm.address)
	if errors.Is(err, errGone) {
		return nil
	}
	for _, err := range rm.entriesAfter(ctx, 0) {
		return err // something is left
	}
	if err != nil || conv.Last.IsZero() || !conv.Last.Before(t.Before) {
		return err
	}
	if err := rm.c.conversations.table.Delete(ctx, storeKey(rm.address.Chat, rm.address.Thread)); err != nil {
		return err
	}
	rm.reset()
	return nil
}

// An archivedMessage is a line of the archive.
type archivedMessage struct {
	Person       string `json:"person"`
	Conversation string `json:"conversation"`
	logEntry
}

// trimEntries removes the first old entries, trimBatch at most, with their files.
func (rm *room) trimEntries(ctx context.Context, t store.Trimming) (removed int, err error) {
	rm.writeMu.Lock()
	defer rm.writeMu.Unlock()
	var last uint64
	var files, titles []string
	lines := map[string][][]byte{}
	for e, err := range rm.entriesAfter(ctx, 0) {
		if err != nil {
			return 0, err
		}
		if removed == trimBatch || !e.Time.Before(t.Before) {
			break
		}
		removed++
		last = e.Seq
		for _, f := range e.Files {
			files = append(files, f.ID)
		}
		switch e.Who {
		case whoPage, whoSwitch: // it is damaged, or says nothing
			continue
		case whoPerson:
			titles = append(titles, titleOf(e))
		}
		line, err := json.Marshal(archivedMessage{rm.address.Chat, rm.address.Thread, e})
		if err != nil {
			return 0, err
		}
		file := rm.address.Chat + "/" + rm.address.Thread + "@" + e.Time.UTC().Format("2006-01")
		lines[file] = append(lines[file], line)
	}
	if removed == 0 {
		return 0, nil
	}
	for file, all := range lines {
		if err := t.Save(file, all...); err != nil {
			return 0, err
		}
	}
	for _, id := range files {
		if err := rm.c.files.Delete(ctx, storeKey(rm.address.Chat, id)); err != nil {
			return 0, err
		}
	}
	if err := rm.updateAskCount(ctx, last); err != nil && !errors.Is(err, errGone) {
		return 0, err
	}
	if err := rm.retitle(ctx, titles, last); err != nil && !errors.Is(err, errGone) {
		return 0, err
	}
	rm.seqs = nil
	return removed, rm.log.Trim(ctx, last)
}

// retitle gives the conversation the title of what comes after number seq, if its title is made of
// entries that are removed. One that the person has given it stays. The caller holds writeMu.
func (rm *room) retitle(ctx context.Context, removed []string, seq uint64) error {
	conv, err := rm.c.conversations.get(ctx, rm.address)
	isWords := conv.TitledBy == "" && slices.Contains(removed, conv.Title)
	if err != nil || conv.Title == "" || !isWords && conv.TitledBy != titledByModel {
		return err
	}
	conv.Title = ""
	conv.TitledBy = ""
	conv.TitleTries = 0
	for e, err := range rm.entriesAfter(ctx, seq) {
		if err != nil {
			return err
		}
		if e.Who == whoPerson {
			conv.Title = titleOf(e)
		}
		if conv.Title != "" {
			break
		}
	}
	return rm.c.conversations.set(ctx, rm.address, conv)
}
