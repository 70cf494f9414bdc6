package web

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"parley/channels/web/titles"
	"parley/chat"
	"parley/store"
)

// Whose the title of a conversation is; "": the first words of the person.
const (
	titledByPerson = "person"
	titledByModel  = "model"
)

const (
	maxTitle      = 60 // characters of a title that nobody chose
	maxTitleTries = 2  // to have a model make one
)

// awaitsTitle reports whether a model may still name the conversation.
func (c conversation) awaitsTitle() bool {
	return c.Used && c.TitledBy == "" && c.TitleTries < maxTitleTries
}

// wantTitle has the conversation named, in which the agent has said r. Whatever goes wrong costs the title only.
func (rm *room) wantTitle(ctx context.Context, r chat.Reply) {
	t := rm.c.cfg.Titles
	if t == nil || !isAnswer(r.Text, r.Ask) || r.Failed || rm.address.Thread == noticesID {
		return
	}
	conv, err := rm.c.conversations.get(ctx, rm.address)
	if err != nil || !conv.awaitsTitle() {
		return // the next answer asks for it
	}
	if err := t.Want(store.Deferred(ctx), rm.address, r.ID); err != nil {
		rm.c.cfg.Log.Warn("a conversation keeps its first words as title", "chat", rm.address.Session(), "err", err)
	}
}

// isAnswer reports whether text says something, and ask, if any, only proposes what to say next.
func isAnswer(text string, ask *chat.Question) bool {
	return strings.TrimSpace(text) != "" && (ask == nil || ask.Say)
}

// A titledPage is what the service that makes titles sees of a Channel. It implements [titles.Page].
type titledPage struct{ c *Channel }

// BeginTitle implements [titles.Page].
func (p titledPage) BeginTitle(ctx context.Context, at chat.Address) (*titles.Beginning, error) {
	rm, leave := p.c.openRoom(at)
	defer leave()
	rm.writeMu.Lock()
	defer rm.writeMu.Unlock()
	conv, err := p.c.conversations.get(ctx, at)
	if errors.Is(err, errGone) || err == nil && !conv.awaitsTitle() {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read a conversation without a title: %w", err)
	}
	b, isOwn, err := rm.beginning(ctx, conv.Title)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read how a conversation began: %w", err)
	case b == nil:
		return nil, nil
	case isOwn:
		conv.TitledBy = titledByPerson
		b = nil
	default:
		conv.TitleTries++
	}
	return b, p.c.conversations.table.Set(ctx, storeKey(at.Chat, at.Thread), conv)
}

// beginning returns what the person asked first, commands aside, and what was answered; nil if nothing was. isOwn
// reports that title is none of what the person wrote until then: they chose it.
func (rm *room) beginning(ctx context.Context, title string) (b *titles.Beginning, isOwn bool, err error) {
	isOwn = title != ""
	for e, err := range rm.entriesAfter(ctx, 0) {
		switch {
		case err != nil:
			return nil, false, err
		case e.Who == whoPerson && b != nil && b.Answered != "":
			return b, isOwn, nil
		case e.Who == whoPerson:
			isOwn = isOwn && title != titleOf(e)
			if b == nil && !chat.IsShortCommand(e.Text) {
				b = &titles.Beginning{At: rm.address, Asked: e.Text}
			}
		case e.Who == whoAgent && b != nil && isAnswer(e.Text, e.Ask):
			b.Answered = e.Text // the last one, in case that others announced or excused it
		}
	}
	if b == nil || b.Answered == "" {
		return nil, false, nil
	}
	return b, isOwn, nil
}

// SetTitle implements [titles.Page].
func (p titledPage) SetTitle(ctx context.Context, at chat.Address, title string) error {
	rm, leave := p.c.openRoom(at)
	defer leave()
	rm.writeMu.Lock()
	defer rm.writeMu.Unlock()
	conv, err := p.c.conversations.get(ctx, at)
	if errors.Is(err, errGone) || err == nil && (conv.TitledBy != "" || conv.TitleTries == 0) {
		return nil // it was deleted, or somebody has named it
	}
	if err != nil {
		return fmt.Errorf("name a conversation: %w", err)
	}
	conv.Title = chat.Shorten(chat.OneLine(title), maxTitle)
	conv.TitledBy = titledByModel
	return p.c.conversations.set(ctx, at, conv)
}
