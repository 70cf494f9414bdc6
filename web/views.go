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

// admin serves the owner's pages and the same as JSON.
type admin struct {
	cfg    *Config
	access *access
	pages  pages
	began  time.Time
}

func (a *admin) views() []view {
	return []view{
		{"/owner", "/api/status", "overview", "Overview", a.overview},
		{"/owner/talks", "/api/sessions", "talks", "Conversations", a.talks},
		{"/owner/talks/{id}", "/api/sessions/{id}", "talk", "Conversation", a.talk},
		{"/owner/usage", "/api/usage", "usage", "Usage", a.usage},
		{"/owner/tools", "/api/tools", "tools", "Tools", a.toolbox},
		{"/owner/cron", "/api/cron", "cron", "Clock", a.jobs},
		{"/owner/memory", "/api/memory", "memory", "Memory", a.memory},
		{"/owner/memory/changes", "/api/memory/changes", "changes", "Changes of memory", a.changes},
		{"/owner/memory/changes/{id}", "/api/memory/changes/{id}", "changed", "Change of memory", a.changed},
		{"/owner/people", "/api/people", "people", "People and keys", a.peopleAndKeys},
		{"/owner/errors", "/api/errors", "errors", "Errors", func(*http.Request) (any, error) { return a.cfg.House.Errors(), nil }},
		{"/owner/audit", "/api/audit", "audit", "Audit", a.events},
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

func (a *admin) overview(r *http.Request) (any, error) {
	ctx, h := r.Context(), a.cfg.House
	o := Overview{Version: a.cfg.Version, Began: a.began, Model: h.Model(), Page: a.access.names.home, Reasons: h.Reasons(ctx), Warnings: h.Warnings()}
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

func (a *admin) talks(r *http.Request) (any, error) {
	t := talks{Words: r.FormValue("q")}
	var err error
	if t.Words != "" {
		t.Found, err = a.cfg.House.Search(r.Context(), nil, t.Words, mostFound)
	} else {
		t.Talks, err = a.cfg.House.List(r.Context(), "")
	}
	return t, err
}

// events are the newest of the audit log, and whether all of it is as it was
// written, if that is asked: it takes its time.
func (a *admin) events(r *http.Request) (any, error) {
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
		if err := a.cfg.House.Events.Verify(r.Context()); err != nil {
			d.Verdict = &verdict{Why: err.Error()}
		}
	}
	d.Events, err = a.cfg.House.Events.Tail(r.Context(), mostEvents)
	return d, err
}

func (a *admin) peopleAndKeys(r *http.Request) (any, error) {
	all, err := list[invited](r.Context(), a.access.people.invited, "")
	passes, err2 := list[pass](r.Context(), a.access.people.passes, kept(keys, ""))
	return struct {
		People []invited `json:"people"`
		Keys   []pass    `json:"keys"`
	}{slices.DeleteFunc(all, func(p invited) bool { return !p.Removed.IsZero() }), passes}, errors.Join(err, err2)
}
