// Package memorypages has the pages on which owners read, search and correct what the agent remembers, and see
// where each line of it comes from.
package memorypages

import (
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"parley/chat"
	"parley/memory"
	"parley/response"
	"parley/store"
	"parley/web/layout"
)

//go:embed assets
var assets embed.FS

// Pages serves the pages and their API.
type Pages struct {
	Notes *memory.Notes
	Zone  *time.Location               // of times that people are shown
	Audit func(kind, who, what string) // receives events for the audit log (R-S27)
}

const (
	pagePath = "/owner/memory"
	editPath = pagePath + "/edit"
	apiPath  = "/api/memory"

	maxBody  = 256 << 10 // bytes of a correction
	maxFound = 40        // lines that a search shows
)

// Routes implements layout.Pages.
func (p *Pages) Routes() []layout.Route {
	return append(layout.Assets(assets),
		layout.Route{Pattern: "GET " + pagePath, Handle: p.page},
		layout.Route{Pattern: "GET " + editPath, Handle: p.editPage},
		layout.Route{Pattern: "GET " + apiPath + "/lines", Handle: p.list},
		layout.Route{Pattern: "POST " + apiPath + "/corrections", Handle: p.correct},
		layout.Route{Pattern: "POST " + apiPath + "/changes/{id}/accept", Handle: p.accept},
	)
}

// personOf returns the person whom r is about, or the owner if it names none. The error is store.ErrNotFound if the
// person has no memory.
func (p *Pages) personOf(r *http.Request) (who chat.Person, all []chat.Person, err error) {
	who = cmp.Or(chat.Person(r.URL.Query().Get("who")), chat.TheOwner)
	all, err = p.Notes.People(r.Context())
	if err != nil {
		return who, nil, err
	}
	if !slices.Contains(all, who) {
		return who, nil, store.ErrNotFound
	}
	return who, all, nil
}

// about returns the query by which personOf finds who.
func about(who chat.Person) string { return "?who=" + url.QueryEscape(string(who)) }

// list answers with the lines of a person's memory: those that have the words q, the best first, or all.
func (p *Pages) list(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	who, _, err := p.personOf(r)
	if err != nil {
		return err
	}
	lines, err := p.Notes.Lines(r.Context(), who)
	if err != nil {
		return err
	}
	if words := r.URL.Query().Get("q"); words != "" {
		lines.Lines = append([]memory.Line{}, lines.Matching(words, maxFound)...)
	}
	response.JSON(w, http.StatusOK, lines)
	return nil
}

// A correction is a memory.Correction as pages and programs send it: a form has texts only.
type correction struct {
	File string      `json:"file"`
	Base string      `json:"base"`
	Line json.Number `json:"line"`
	Was  string      `json:"was"`
	Text string      `json:"text"`
}

// correct changes a line or a file.
func (p *Pages) correct(w http.ResponseWriter, r *http.Request, by chat.Sender) error {
	who, _, err := p.personOf(r)
	if err != nil {
		return err
	}
	var ask correction
	if err := response.ReadJSON(w, r, maxBody, &ask); err != nil {
		return err
	}
	line, err := cmp.Or(ask.Line, "0").Int64()
	if err != nil || line < 0 {
		return response.BadRequest("line must be the number of a line")
	}
	to := memory.Correction{File: ask.File, Base: ask.Base, Line: int(line), Was: ask.Was, Text: ask.Text}
	c, err := p.Notes.Correct(r.Context(), who, to)
	if err != nil {
		return explain(err)
	}
	if c.ID != "" {
		p.Audit("memory", by.ID, "corrected "+ask.File+" of "+string(who)+", change "+c.ID)
	}
	response.JSON(w, http.StatusOK, c)
	return nil
}

// accept makes the edits that a dream proposed.
func (p *Pages) accept(w http.ResponseWriter, r *http.Request, by chat.Sender) error {
	who, _, err := p.personOf(r)
	if err != nil {
		return err
	}
	c, err := p.Notes.Versions.Accept(r.Context(), who, r.PathValue("id"), "")
	if errors.Is(err, memory.ErrGone) {
		return response.Problem{
			Status: http.StatusConflict,
			Text:   "this change proposes nothing, its proposal was accepted before, or later changes are in the way",
		}
	}
	if err != nil {
		return err
	}
	p.Audit("memory", by.ID, c.By+": "+string(who))
	response.JSON(w, http.StatusOK, c)
	return nil
}

// explain makes err a Problem if the owner can do something about it.
func explain(err error) error {
	refusal, refused := errors.AsType[*chat.Refusal](err)
	switch {
	case refused:
		return response.BadRequest(refusal.Text)
	case errors.Is(err, store.ErrConflict):
		return response.Problem{
			Status: http.StatusConflict,
			Text:   "this was changed in the meantime, so nothing was saved: reload the page to see what it says now",
		}
	}
	return err
}

// formatTime returns t for people.
func (p *Pages) formatTime(t time.Time) string {
	zone := p.Zone
	if zone == nil {
		zone = time.Local
	}
	return t.In(zone).Format("2006-01-02 15:04")
}
