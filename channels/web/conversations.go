package web

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"parley/chat"
	"parley/store"
)

// Every person has these conversations without creating them, so that looking at
// the page writes nothing (R-S5).
const (
	firstID   = "first"   // the first one
	noticesID = "notices" // for messages that answer nothing, such as those of jobs
)

// A conversation is what the list knows of a conversation.
type conversation struct {
	Title string    `json:"title,omitempty"`
	Last  time.Time `json:"last"`           // time of the last message, to within a minute, or of its creation
	Used  bool      `json:"used,omitempty"` // it has messages
	Asks  int       `json:"asks,omitempty"` // open questions

	TitledBy   string `json:"titledBy,omitempty"`   // whose Title is: see naming.go
	TitleTries int    `json:"titleTries,omitempty"` // to have a model make it

	Pinned bool `json:"pinned,omitempty"` // the person wants it above the others

	Seen   uint64 `json:"seen,omitempty"`   // number of the entry up to which the person has seen it; 0: not known
	Unread int    `json:"unread,omitempty"` // what the agent said after that, about
}

var errGone = errors.New("there is no such conversation")

func storeKey(person, id string) string { return person + "\x00" + id }

// A conversationList keeps the conversations of all people.
type conversationList struct {
	table   store.Table[conversation] // by person and conversation
	changed func(person string)       // called after a change
}

// replaceDamaged replaces a damaged entry of the list. The messages of the
// conversation are in its log (P21).
func replaceDamaged(string, error) (conversation, error) { return conversation{Used: true}, nil }

// get returns the conversation at address, or errGone.
func (l *conversationList) get(ctx context.Context, at chat.Address) (conversation, error) {
	conv, _, err := l.table.Get(ctx, storeKey(at.Chat, at.Thread))
	switch {
	case errors.Is(err, store.ErrNotFound) && (at.Thread == firstID || at.Thread == noticesID):
		return conversation{}, nil
	case errors.Is(err, store.ErrNotFound):
		return conversation{}, errGone
	}
	return conv, err
}

// set stores the conversation at address. If there is one already, the caller holds
// writeMu of its room.
func (l *conversationList) set(ctx context.Context, at chat.Address, conv conversation) error {
	err := l.table.Set(ctx, storeKey(at.Chat, at.Thread), conv)
	if err != nil {
		return err
	}
	l.changed(at.Chat)
	return nil
}

// noteActivity updates conv, the conversation at address, for an entry that is about
// to be appended to its log.
func (l *conversationList) noteActivity(ctx context.Context, at chat.Address, conv conversation, e logEntry) error {
	title := conv.Title
	if title == "" && e.Who == whoPerson && !chat.IsShortCommand(e.Text) { // the model may be chosen first
		title = titleOf(e)
	}
	unread := conv.Unread + 1
	if e.Who == whoPerson { // who writes has read
		unread = 0
	}
	if conv.Used && title == conv.Title && unread == conv.Unread && e.Time.Sub(conv.Last) < time.Minute {
		return nil
	}
	conv.Title = title
	conv.Last = e.Time
	conv.Used = true
	conv.Unread = unread
	return l.set(ctx, at, conv)
}

// titleOf returns the title of a conversation that begins with the entry e.
func titleOf(e logEntry) string { return chat.Shorten(chat.OneLine(e.Text), maxTitle) }

// of returns the conversations of person, the latest first. There is at least one.
func (l *conversationList) of(ctx context.Context, person string) ([]listItem, error) {
	all := []listItem{}
	for key, err := range l.table.Keys(ctx, storeKey(person, "")) {
		if err != nil {
			return nil, err
		}
		id := key[len(storeKey(person, "")):]
		conv, err := l.get(ctx, chat.Address{Chat: person, Thread: id})
		if errors.Is(err, errGone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, listItem{
			ID:     id,
			Title:  displayTitle(id, conv),
			Last:   conv.Last,
			Asks:   conv.Asks,
			Unread: conv.Unread,
			Pinned: conv.Pinned,
			used:   conv.Used || conv.Title != "",
		})
	}
	if !slices.ContainsFunc(all, func(i listItem) bool { return i.ID != noticesID }) {
		all = append(all, listItem{ID: firstID, Title: displayTitle(firstID, conversation{})})
	}
	slices.SortStableFunc(all, func(a, b listItem) int { return b.Last.Compare(a.Last) })
	return all, nil
}

// pinnedFirst puts the conversations first that the person has pinned.
func pinnedFirst(all []listItem) {
	slices.SortStableFunc(all, func(a, b listItem) int {
		switch {
		case a.Pinned == b.Pinned:
			return 0
		case a.Pinned:
			return -1
		}
		return 1
	})
}

// displayTitle returns the title that people see.
func displayTitle(id string, conv conversation) string {
	if id == noticesID && conv.Title == "" {
		return "Notices"
	}
	return cmp.Or(conv.Title, "New conversation")
}
