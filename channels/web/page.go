package web

import (
	"fmt"
	"html"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/channels/markdown"
	"parley/channels/web/cards"
	"parley/response"
)

// size formats a number of bytes.
func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprint(n, " bytes")
	case n < 1<<20:
		return fmt.Sprint((n+1<<10-1)>>10, " KB")
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/(1<<20)), ".0") + " MB"
}

// writeBody responds with body.
func (req request) writeBody(kind string, body []byte) {
	req.w.Header().Set("Content-Type", kind)
	_, _ = req.w.Write(body) // an error means that the client is gone
}

// redirectHome redirects to the latest conversation.
func (c *Channel) redirectHome(req request) error {
	all, err := c.conversations.of(req.r.Context(), req.who.ID)
	if err != nil {
		return err
	}
	http.Redirect(req.w, req.r, "/c/"+all[0].ID, http.StatusSeeOther)
	return nil
}

// servePage sends the page of a conversation.
func (c *Channel) servePage(req request) error {
	ctx := req.r.Context()
	id := req.room.address.Thread
	p := page{
		Who:     req.who,
		ID:      id,
		Title:   displayTitle(id, req.conversation),
		Assets:  "/assets/" + c.assets.Digest,
		MaxFile: c.cfg.MaxFile,
		Blocked: c.blockedParts(req),
		Hears:   c.cfg.Hears,
	}
	var err error
	p.Entries, p.More, p.Last, err = req.room.pageBefore(ctx, math.MaxUint64)
	if err != nil {
		return err
	}
	if slices.Contains(p.Blocked, blockSteps) {
		hideSteps(p.Entries)
	}
	p.Conversations, err = c.conversations.of(ctx, req.who.ID)
	if err != nil {
		return err
	}
	pinnedFirst(p.Conversations)
	models, err := c.menus.models(req)
	if err != nil {
		return err
	}
	p.Pinned = req.conversation.Pinned
	p.HasModels = len(models) > 1
	for i := range p.Conversations {
		item := &p.Conversations[i]
		item.Current = item.ID == id
		if item.Asks > 0 && !item.Current && p.Elsewhere.ID == "" {
			p.Elsewhere = *item
		}
	}
	for _, e := range p.Entries {
		if p.First == 0 || e.Seq < p.First {
			p.First = e.Seq
		}
	}
	req.w.Header().Set("Cache-Control", "no-store")
	return response.Page(req.w, http.StatusOK, p.html())
}

// hideSteps removes from entries what tells which tools were at work (B-071).
func hideSteps(es []renderedEntry) {
	for i := range es {
		es[i].logEntry = es[i].withoutSteps()
		es[i].StepsLabel = ""
	}
}

// serveOlder sends the entries before a number.
func (c *Channel) serveOlder(req request) error {
	seq, err := strconv.ParseUint(req.r.FormValue("seq"), 10, 64)
	if err != nil || seq == 0 {
		return response.BadRequest("Invalid event number.")
	}
	es, more, _, err := req.room.pageBefore(req.r.Context(), seq)
	if err != nil {
		return err
	}
	if c.cfg.Blocked(req.r.Context(), req.who, blockSteps) {
		hideSteps(es)
	}
	return req.writeJSON(http.StatusOK, map[string]any{"entries": append([]renderedEntry{}, es...), "more": more})
}

// A renderedEntry is an entry as the page shows it. One that Edits another replaces
// it and is not shown by itself.
type renderedEntry struct {
	logEntry
	HTML    safeHTML `json:"html"` // the person's text is escaped and keeps its line breaks
	AskHTML safeHTML `json:"askHTML,omitempty"`
	AskHead safeHTML `json:"askHead,omitempty"`
	IsCard  bool     `json:"isCard,omitempty"`
	// StepsLabel is what the steps fold into.
	StepsLabel string `json:"stepsLabel,omitempty"`

	FilesHTML safeHTML `json:"filesHTML,omitempty"`

	Answered bool `json:"answered,omitempty"` // a message of the person that has an answer

	Versions []uint64 `json:"versions,omitempty"` // numbers of all versions of it; none: there is one only
	Version  int      `json:"version,omitempty"`  // which of them it is
}

// card returns the question that e asks.
func (e logEntry) card() cards.Card { return cards.Card{Question: e.Ask, Outcome: e.Outcome} }

// safeHTML is HTML without anything active. Only render makes it, with what renderNode writes.
type safeHTML string

// withoutSteps returns e without what tells which tools were at work.
func (e logEntry) withoutSteps() logEntry {
	e.Steps = ""
	e.Taken = nil
	e.StepsOf = ""
	return e
}

// render returns e as the page shows it.
func (e logEntry) render() renderedEntry {
	rendered := renderedEntry{logEntry: e, HTML: safeHTML(html.EscapeString(e.Text))}
	if e.Who == whoAgent {
		rendered.HTML = safeHTML(markdown.HTML(e.Text))
	}
	rendered.Branch = nil // of no use there
	if e.Taken != nil && e.Taken.All > 0 {
		rendered.StepsLabel = e.Taken.Label()
	}
	if e.Ask != nil {
		rendered.AskHTML = renderNode(e.card().Body())
		rendered.IsCard = e.card().IsCard()
	}
	if rendered.IsCard {
		rendered.AskHead = renderNode(e.card().Head())
	}
	if len(e.Files) > 0 {
		rendered.FilesHTML = renderNode(fileList(e.Files))
	}
	return rendered
}

// A listItem is an item in the list of conversations.
type listItem struct {
	ID      string    `json:"id"`
	Title   string    `json:"title"`
	Last    time.Time `json:"last,omitzero"`  // time of the last message, to within a minute; zero: none
	Current bool      `json:"-"`              // it is the one shown
	Asks    int       `json:"asks,omitempty"` // open questions
	Pinned  bool      `json:"pinned,omitempty"`
	Unread  int       `json:"unread,omitempty"`  // messages that were not seen yet
	Snippet string    `json:"snippet,omitempty"` // of a message found by search
	Time    time.Time `json:"time,omitzero"`     // of a search hit
	used    bool      // it has messages or a title
}
