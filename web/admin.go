package web

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"parley/audit"
	"parley/channels/admission"
	"parley/chat"
)

// admin serves the owner's pages and the same as JSON.
type admin struct {
	cfg    *Config
	access *access
	pages  pages
	began  time.Time
}

// views returns the owner's pages.
func (a *admin) views() []view {
	return []view{
		{"/owner", "/api/status", "overview", "Overview", a.overview},
		{"/owner/talks", "/api/sessions", "talks", "Conversations", a.conversations},
		{"/owner/talks/{id}", "/api/sessions/{id}", "talk", "Conversation", a.conversation},
		{"/owner/usage", "/api/usage", "usage", "Usage", a.usage},
		{"/owner/tools", "/api/tools", "tools", "Tools", a.listTools},
		{"/owner/cron", "/api/cron", "cron", "Scheduled jobs", a.jobs},
		{"/owner/memory", "/api/memory", "memory", "Memory", a.memory},
		{"/owner/memory/changes", "/api/memory/changes", "changes", "Memory changes", a.changes},
		{"/owner/memory/changes/{id}", "/api/memory/changes/{id}", "changed", "Memory change", a.changed},
		{"/owner/people", "/api/people", "people", "People and keys", a.listPeople},
		{"/owner/errors", "/api/errors", "errors", "Errors", a.errors},
		{"/owner/audit", "/api/audit", "audit", "Audit", a.events},
	}
}

// An Overview is the gateway's state, and what waits for the owner.
type Overview struct {
	Version  string              `json:"version"`
	Began    time.Time           `json:"began"`
	Model    string              `json:"model"`
	Page     string              `json:"page"`    // where the web page is
	Reasons  []string            `json:"reasons"` // why it is not ready
	Warnings []string            `json:"warnings"`
	Damaged  []string            `json:"damaged,omitempty"` // what cannot be read in the store
	Channels []Channel           `json:"channels"`
	Pairings []admission.Pairing `json:"pairings"`
	Parked   []DeadLetter        `json:"parked"`
	Aside    []DeadLetter        `json:"aside"`
}

func (a *admin) overview(r *http.Request) (any, error) {
	ctx := r.Context()
	gateway := a.cfg.Gateway
	o := Overview{
		Version:  a.cfg.Version,
		Began:    a.began,
		Model:    gateway.Model(),
		Page:     a.access.names.home,
		Reasons:  gateway.Reasons(ctx),
		Warnings: gateway.Warnings(),
	}
	if gateway.Damaged != nil {
		o.Damaged = gateway.Damaged()
	}
	var errs [4]error
	o.Channels, errs[0] = gateway.Channels(ctx)
	o.Pairings, errs[1] = gateway.Pairings(ctx)
	o.Parked, errs[2] = gateway.DeadLetters.Replies(ctx)
	o.Aside, errs[3] = gateway.DeadLetters.Messages(ctx)
	return o, errors.Join(errs[:]...)
}

const (
	maxFound   = 50   // places that a search shows
	maxListed  = 200  // conversations on a page; the rest is found by searching
	maxEntries = 1000 // of a conversation on a page
	maxEvents  = 200  // of the audit log
)

// conversations are conversations: all of them, or where Words were said.
type conversations struct {
	Words string      `json:"words,omitempty"`
	Found []chat.Find `json:"found"`
	Talks []chat.Talk `json:"talks"`
}

// Latest returns those that fit on a page.
func (t conversations) Latest() []chat.Talk { return t.Talks[:min(len(t.Talks), maxListed)] }

// Older returns how many do not fit on a page.
func (t conversations) Older() int { return len(t.Talks) - len(t.Latest()) }

func (a *admin) conversations(r *http.Request) (any, error) {
	t := conversations{Words: r.FormValue("q")}
	var err error
	if t.Words != "" {
		t.Found, err = a.cfg.Gateway.Conversations.Search(r.Context(), nil, t.Words, maxFound)
	} else {
		t.Talks, err = a.cfg.Gateway.Conversations.List(r.Context(), "")
	}
	return t, err
}

// events returns the newest entries of the audit log. With ?verify=1 it also
// verifies the whole log, which takes a while.
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
		if err := a.cfg.Gateway.Events.Verify(r.Context()); err != nil {
			d.Verdict = &verdict{Why: err.Error()}
		}
	}
	d.Events, err = a.cfg.Gateway.Events.Tail(r.Context(), maxEvents)
	return d, err
}

// errors returns the latest warnings and errors of the log.
func (a *admin) errors(*http.Request) (any, error) { return a.cfg.Gateway.Errors(), nil }

func (a *admin) listPeople(r *http.Request) (any, error) {
	all, err := list(r.Context(), a.access.people.invited, "")
	passes, err2 := list(r.Context(), a.access.people.passes, passKey(keys, ""))
	return struct {
		People []invited `json:"people"`
		Keys   []pass    `json:"keys"`
	}{slices.DeleteFunc(all, func(p invited) bool { return !p.Removed.IsZero() }), passes}, errors.Join(err, err2)
}
