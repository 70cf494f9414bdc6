package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/channels"
	"parley/chat"
	"parley/response"
	"parley/store"
)

// The conversations that everybody has without making them, so that looking at
// the page writes nothing (R-S5).
const (
	first   = "first"   // the one to begin with
	notices = "notices" // where somebody finds what nobody asked for
)

// A held is what the list knows of a conversation.
type held struct {
	Title string    `json:"title,omitempty"`
	Last  time.Time `json:"last"`           // when somebody spoke last, to within a minute, or it was made
	Used  bool      `json:"used,omitempty"` // something was said in it
	Asks  int       `json:"asks,omitempty"` // questions that wait for an answer
}

var errGone = errors.New("there is no such conversation")

func key(person, id string) string { return person + "\x00" + id }

// held returns what the list knows of a conversation, or errGone.
func (c *Channel) held(ctx context.Context, at chat.Address) (h held, err error) {
	h, _, err = c.talks.Get(ctx, key(at.Chat, at.Thread))
	switch {
	case errors.Is(err, store.ErrNotFound) && (at.Thread == first || at.Thread == notices):
		return held{}, nil
	case errors.Is(err, store.ErrNotFound):
		return held{}, errGone
	}
	return h, err
}

// hold makes h what the list knows of a conversation. Of one that is there, the
// caller holds writing.
func (c *Channel) hold(ctx context.Context, at chat.Address, h held) error {
	err := c.talks.Set(ctx, key(at.Chat, at.Thread), h)
	if err == nil {
		c.tell(at.Chat)
	}
	return err
}

// touch notes that s is about to be said in a conversation, which the list knows as h.
func (c *Channel) touch(ctx context.Context, at chat.Address, h held, s said) error {
	title := h.Title
	if title == "" && s.Who == you {
		title = channels.Line(s.Text, 60)
	}
	if h.Used && title == h.Title && s.Time.Sub(h.Last) < time.Minute {
		return nil
	}
	return c.hold(ctx, at, held{Title: title, Last: s.Time, Used: true, Asks: h.Asks})
}

// list returns the conversations of person, the latest first. There is always one.
func (c *Channel) list(ctx context.Context, person string) ([]talk, error) {
	all := []talk{}
	for k, err := range c.talks.Keys(ctx, key(person, "")) {
		if err != nil {
			return nil, err
		}
		id := k[len(key(person, "")):]
		h, err := c.held(ctx, c.address(person, id))
		if errors.Is(err, errGone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, talk{ID: id, Title: called(id, h), Last: h.Last, Asks: h.Asks, used: h.Used || h.Title != ""})
	}
	if !slices.ContainsFunc(all, func(t talk) bool { return t.ID != notices }) {
		all = append(all, talk{ID: first, Title: called(first, held{})})
	}
	slices.SortStableFunc(all, func(a, b talk) int { return b.Last.Compare(a.Last) })
	return all, nil
}

// called returns the title of a conversation as it is shown.
func called(id string, h held) string {
	if id == notices && h.Title == "" {
		return "Notices"
	}
	return cmp.Or(h.Title, "New conversation")
}

const maxFinds = 50

// search returns those of all conversations of person that have words in their
// title, then the places where the words were said.
func (c *Channel) search(ctx context.Context, all []talk, person, words string) ([]talk, error) {
	found := []talk{}
	for _, t := range all {
		if strings.Contains(strings.ToLower(t.Title), strings.ToLower(words)) {
			t.Time = t.Last
			found = append(found, t)
		}
	}
	if c.cfg.Search == nil {
		return found, nil
	}
	finds, err := c.cfg.Search(ctx, person, words)
	if err != nil {
		return nil, err
	}
	for _, f := range finds[:min(len(finds), maxFinds)] {
		for _, t := range all {
			if c.address(person, t.ID).Session() == f.Session {
				t.Snippet, t.Time = f.Entry.Text, f.Entry.Time
				found = append(found, t)
			}
		}
	}
	return found, nil
}

// make makes a conversation, unless the latest is an empty one.
func (c *Channel) make(k call) error {
	var in struct{}
	if err := k.read(&in); err != nil {
		return err
	}
	ctx, person := k.r.Context(), k.who.ID
	all, err := c.list(ctx, person)
	if err != nil {
		return err
	}
	id := all[0].ID
	if all[0].used {
		id = newID()
		if err := c.hold(ctx, c.address(person, id), held{Last: time.Now()}); err != nil {
			return err
		}
	}
	return k.answer(http.StatusCreated, map[string]string{"id": id})
}

func (c *Channel) rename(k call) error {
	var in struct{ Title string }
	if err := k.read(&in); err != nil {
		return err
	}
	title := channels.Line(in.Title, 200)
	if title == "" {
		return response.BadRequest("A title has words in it.")
	}
	k.room.writing.Lock()
	defer k.room.writing.Unlock()
	h, err := c.held(k.r.Context(), k.room.at)
	if err != nil {
		return err
	}
	if h.Title = title; h.Last.IsZero() {
		h.Last = time.Now()
	}
	if err := c.hold(k.r.Context(), k.room.at, h); err != nil {
		return err
	}
	return k.answer(http.StatusOK, map[string]string{"id": k.room.at.Thread, "title": title})
}

func (c *Channel) remove(k call) error {
	if err := k.room.clear(k.r.Context()); err != nil {
		return err
	}
	c.tell(k.who.ID)
	k.w.WriteHeader(http.StatusNoContent)
	return nil
}

// find lists the conversations, or those where q is found.
func (c *Channel) find(k call) error {
	all, err := c.list(k.r.Context(), k.who.ID)
	if q := strings.TrimSpace(k.r.FormValue("q")); err == nil && q != "" {
		all, err = c.search(k.r.Context(), all, k.who.ID, q)
	}
	if err != nil {
		return err
	}
	return k.answer(http.StatusOK, all)
}
