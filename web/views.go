package web

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"parley/audit"
	"parley/channels"
	"parley/chat"
)

func (s *Server) views() []view {
	return []view{
		{"/owner", "/api/status", "overview", "Overview", s.overview},
		{"/owner/talks", "/api/sessions", "talks", "Conversations", s.talks},
		{"/owner/talks/{id}", "/api/sessions/{id}", "talk", "Conversation", s.talk},
		{"/owner/usage", "/api/usage", "usage", "Usage", s.usage},
		{"/owner/tools", "/api/tools", "tools", "Tools", s.toolbox},
		{"/owner/cron", "/api/cron", "cron", "Clock", s.jobs},
		{"/owner/memory", "/api/memory", "memory", "Memory", s.memory},
		{"/owner/memory/changes", "/api/memory/changes", "changes", "Changes of memory", s.changes},
		{"/owner/memory/changes/{id}", "/api/memory/changes/{id}", "changed", "Change of memory", s.changed},
		{"/owner/people", "/api/people", "people", "People and keys", s.peopleAndKeys},
		{"/owner/errors", "/api/errors", "errors", "Errors", func(*http.Request) (any, error) { return s.House.Errors(), nil }},
		{"/owner/audit", "/api/audit", "audit", "Audit", s.events},
	}
}

// An Overview is how the house does, and what waits for the owner.
type Overview struct {
	Version  string             `json:"version"`
	Began    time.Time          `json:"began"`
	Model    string             `json:"model"`
	Page     string             `json:"page"`    // where the web page is
	Reasons  []string           `json:"reasons"` // why it is not ready
	Warnings []string           `json:"warnings"`
	Damaged  []string           `json:"damaged,omitempty"` // what cannot be read in the store
	Channels []Channel          `json:"channels"`
	Pairings []channels.Pairing `json:"pairings"`
	Parked   []Held             `json:"parked"`
	Aside    []Held             `json:"aside"`
}

func (s *Server) overview(r *http.Request) (any, error) {
	ctx, h := r.Context(), s.House
	o := Overview{Version: s.Version, Began: s.began, Model: h.Model(), Page: s.Home(), Reasons: h.Reasons(ctx), Warnings: h.Warnings()}
	if h.Damaged != nil {
		o.Damaged = h.Damaged()
	}
	var errs [4]error
	o.Channels, errs[0] = h.Channels(ctx)
	o.Pairings, errs[1] = h.Pairings(ctx)
	o.Parked, errs[2] = h.Parked(ctx)
	o.Aside, errs[3] = h.Aside(ctx)
	return o, errors.Join(errs[:]...)
}

const (
	mostFound   = 50   // places that a search shows
	mostTalks   = 200  // conversations on a page; the rest is found by searching
	mostEntries = 1000 // of a conversation on a page
	mostEvents  = 200  // of the audit log
)

// talks are conversations: all of them, or where Words were said.
type talks struct {
	Words string      `json:"words,omitempty"`
	Found []chat.Find `json:"found"`
	Talks []chat.Talk `json:"talks"`
}

// Latest are those that fit on a page.
func (t talks) Latest() []chat.Talk { return t.Talks[:min(len(t.Talks), mostTalks)] }

// Older counts the rest.
func (t talks) Older() int { return len(t.Talks) - len(t.Latest()) }

func (s *Server) talks(r *http.Request) (any, error) {
	t := talks{Words: r.FormValue("q")}
	var err error
	if t.Words != "" {
		t.Found, err = s.House.Search(r.Context(), nil, t.Words, mostFound)
	} else {
		t.Talks, err = s.House.List(r.Context(), "")
	}
	return t, err
}

// events are the newest of the audit log, and whether all of it is as it was
// written, if that is asked: it takes its time.
func (s *Server) events(r *http.Request) (any, error) {
	type verdict struct {
		Whole bool   `json:"whole"`
		Why   string `json:"why,omitempty"`
	}
	var d struct {
		Events  []audit.Event `json:"events"`
		Verdict *verdict      `json:"verdict,omitempty"`
	}
	var err error
	if r.FormValue("verify") != "" {
		d.Verdict = &verdict{Whole: true}
		if err := s.House.Events.Verify(r.Context()); err != nil {
			d.Verdict = &verdict{Why: err.Error()}
		}
	}
	d.Events, err = s.House.Events.Tail(r.Context(), mostEvents)
	return d, err
}

func (s *Server) peopleAndKeys(r *http.Request) (any, error) {
	all, err := list[invited](r.Context(), s.people.invited, "")
	passes, err2 := list[pass](r.Context(), s.people.passes, kept(keys, ""))
	return struct {
		People []invited `json:"people"`
		Keys   []pass    `json:"keys"`
	}{slices.DeleteFunc(all, func(p invited) bool { return !p.Removed.IsZero() }), passes}, errors.Join(err, err2)
}
