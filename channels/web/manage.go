package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"parley/chat"
	"parley/response"
)

const maxSearchHits = 50

// searchConversations returns the conversations in all, which are person's, whose
// title contains words, followed by the messages that do.
func (c *Channel) searchConversations(ctx context.Context, all []listItem, person, words string) ([]listItem, error) {
	found := []listItem{}
	for _, item := range all {
		if strings.Contains(strings.ToLower(item.Title), strings.ToLower(words)) {
			item.Time = item.Last
			found = append(found, item)
		}
	}
	if c.cfg.Search == nil {
		return found, nil
	}
	hits, err := c.cfg.Search(ctx, person, words)
	if err != nil {
		return nil, err
	}
	for _, hit := range hits[:min(len(hits), maxSearchHits)] {
		for _, item := range all {
			if c.address(person, item.ID).Session() == hit.Session {
				item.Snippet = hit.Entry.Text
				item.Time = hit.Entry.Time
				found = append(found, item)
			}
		}
	}
	return found, nil
}

// createConversation creates a conversation, unless the latest one is empty.
func (c *Channel) createConversation(req request) error {
	var in struct{}
	if err := req.readJSON(&in); err != nil {
		return err
	}
	ctx := req.r.Context()
	person := req.who.ID
	all, err := c.conversations.of(ctx, person)
	if err != nil {
		return err
	}
	id := all[0].ID
	if all[0].used {
		id = newID()
		if err := c.conversations.set(ctx, c.address(person, id), conversation{Last: time.Now()}); err != nil {
			return err
		}
	}
	return req.writeJSON(http.StatusCreated, map[string]string{"id": id})
}

func (c *Channel) renameConversation(req request) error {
	var in struct{ Title string }
	if err := req.readJSON(&in); err != nil {
		return err
	}
	title := chat.Shorten(chat.OneLine(in.Title), 200)
	if title == "" {
		return response.BadRequest("A title cannot be empty.")
	}
	req.room.writeMu.Lock()
	defer req.room.writeMu.Unlock()
	conv, err := c.conversations.get(req.r.Context(), req.room.address)
	if err != nil {
		return err
	}
	conv.Title = title
	conv.TitledBy = titledByPerson
	if conv.Last.IsZero() {
		conv.Last = time.Now()
	}
	if err := c.conversations.set(req.r.Context(), req.room.address, conv); err != nil {
		return err
	}
	return req.writeJSON(http.StatusOK, map[string]string{"id": req.room.address.Thread, "title": title})
}

// pinConversation keeps a conversation above the others, or does so no more.
func pinConversation(req request) error {
	list := req.room.c.conversations
	var in struct{ Pinned bool }
	if err := req.readJSON(&in); err != nil {
		return err
	}
	req.room.writeMu.Lock()
	defer req.room.writeMu.Unlock()
	conv, err := list.get(req.r.Context(), req.room.address)
	if err != nil {
		return err
	}
	conv.Pinned = in.Pinned
	if conv.Last.IsZero() {
		conv.Last = time.Now()
	}
	if err := list.set(req.r.Context(), req.room.address, conv); err != nil {
		return err
	}
	return req.writeJSON(http.StatusOK, map[string]bool{"pinned": conv.Pinned})
}

func (c *Channel) deleteConversation(req request) error {
	if err := c.checkBlocked(req, blockDelete); err != nil {
		return err
	}
	if err := req.room.delete(req.r.Context()); err != nil {
		return err
	}
	c.publishListChange(req.who.ID)
	req.w.WriteHeader(http.StatusNoContent)
	return nil
}

// findConversations lists all conversations, or those where q is found.
func (c *Channel) findConversations(req request) error {
	all, err := c.conversations.of(req.r.Context(), req.who.ID)
	if err != nil {
		return err
	}
	pinnedFirst(all)
	if q := strings.TrimSpace(req.r.FormValue("q")); q != "" {
		all, err = c.searchConversations(req.r.Context(), all, req.who.ID, q)
		if err != nil {
			return err
		}
	}
	return req.writeJSON(http.StatusOK, all)
}
