// Package schedule has the owner's pages of scheduled jobs: the coming week, what each
// job takes and how its runs ended, forms that read plain words, and the rehearsal.
package schedule

import (
	"cmp"
	"context"
	"embed"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/chat"
	"parley/response"
	"parley/scheduler"
	"parley/scheduler/rehearsal"
	"parley/web/layout"
	"parley/when"
)

//go:embed assets
var assets embed.FS

const (
	pagePath      = "/owner/cron"
	rehearsalPath = "/owner/cron/rehearsal"
)

// Pages are the pages of scheduled jobs, and what they ask of the owner's API.
type Pages struct {
	Jobs      func(context.Context) ([]scheduler.Job, error) // the next one first
	NextTimes func(j scheduler.Job, n int) []time.Time
	Preview   func(s scheduler.Schedule, n int) ([]time.Time, error)
	Forecast  func(ctx context.Context, days int) (rehearsal.Report, error)
	// Ask has each job asked once of its model, with everything that it does kept back.
	// nil: that cannot be done.
	Ask   func(ctx context.Context, days int) (rehearsal.Report, error)
	Audit func(kind, who, what string)
	Zone  *time.Location

	asking sync.Mutex // held while jobs are asked of their models
	mu     sync.Mutex
	asked  *rehearsal.Report // the latest that Ask made; guarded by mu
}

// Routes implements [layout.Pages].
func (p *Pages) Routes() []layout.Route {
	return append(layout.Assets(assets),
		layout.Route{Pattern: "GET " + pagePath, Handle: p.page},
		layout.Route{Pattern: "GET " + rehearsalPath, Handle: p.rehearsalPage},
		layout.Route{Pattern: "GET /api/cron/preview", Handle: p.preview},
		layout.Route{Pattern: "GET /api/cron/rehearsal", Handle: p.forecast},
		layout.Route{Pattern: "POST /api/cron/rehearsal", Handle: p.ask},
	)
}

const weekDays = 7

// page answers with the week and the jobs.
func (p *Pages) page(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	all, err := p.Jobs(r.Context())
	if err != nil {
		return err
	}
	week, err := p.Forecast(r.Context(), weekDays)
	if err != nil {
		return err
	}
	v := view{zone: p.Zone, now: week.From, week: week, next: p.NextTimes}
	v.number(all)
	items := g.Map(all, v.job)
	return layout.Frame{
		Path: pagePath, Title: "Schedule", Lead: "What Parley does by itself, and when.",
		Actions: g.Group{
			h.A(h.Class("button main"), h.Href("#new"), g.Text("Add a job")),
			layout.LinkButton(rehearsalPath, "Rehearse the week"),
		},
		Assets: []string{"schedule.css", "schedule.js"},
		Content: g.Group{
			v.figures(),
			v.timeline(),
			v.newJob(),
			h.H2(g.Text("Jobs")),
			h.Ul(h.Class("jobs"), h.Aria("label", "Scheduled jobs, the next one first"), items),
		},
	}.Write(w)
}

// A preview is what plain words stand for, and when a job would run.
type preview struct {
	Words string      `json:"words"`
	Every int         `json:"every_seconds,omitempty"`
	Cron  string      `json:"cron_expr,omitempty"`
	At    string      `json:"at,omitempty"`
	Times []time.Time `json:"times"`
	Shown []string    `json:"shown"` // Times for people
	Note  string      `json:"note,omitempty"`
}

const previewTimes = 5

// preview answers with the next times of what is written in plain words.
func (p *Pages) preview(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	read, err := when.Parse(r.FormValue("when"), time.Now().In(p.Zone))
	if err != nil {
		return response.BadRequest(err.Error())
	}
	s := scheduler.Schedule{Every: read.Every, Cron: read.Cron, Zone: r.FormValue("tz")}
	if read.At != "" {
		if s.At, err = scheduler.ParseAt(read.At, p.Zone); err != nil {
			return response.BadRequest(err.Error())
		}
	}
	times, err := p.Preview(s, previewTimes)
	if err != nil {
		return response.BadRequest(plainly(err))
	}
	told := preview{
		Words: s.Words(), Every: int(read.Every / time.Second), Cron: read.Cron, At: read.At, Times: times,
	}
	zones := map[string]bool{}
	for _, t := range times {
		told.Shown = append(told.Shown, t.Format("Mon 2 Jan 2006, 15:04 MST"))
		zones[t.Format("MST")] = true
	}
	if len(zones) > 1 && s.Every > 0 {
		told.Note = "Clocks change in between; the time between two runs stays the same."
	} else if len(zones) > 1 {
		told.Note = "Clocks change in between; the job goes by the clock."
	}
	response.JSON(w, http.StatusOK, told)
	return nil
}

// plainly words a refusal for somebody who did not write cron fields.
func plainly(err error) string {
	return strings.NewReplacer("tz can only be used with cron_expr",
		"a time zone can only be given with days and times of day",
		"every_seconds must be at least", "it must be at least this many seconds:",
		"cron_expr", "the schedule").Replace(err.Error())
}

// days returns for how many days a rehearsal is asked.
func days(text string) (int, error) {
	n, err := strconv.Atoi(cmp.Or(text, strconv.Itoa(weekDays)))
	if err != nil || n < 1 || n > rehearsal.MaxDays {
		return 0, response.BadRequest("days must be a number from 1 to " + strconv.Itoa(rehearsal.MaxDays))
	}
	return n, nil
}

// forecast answers with the rehearsal by what runs took before.
func (p *Pages) forecast(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	n, err := days(r.FormValue("days"))
	if err != nil {
		return err
	}
	report, err := p.Forecast(r.Context(), n)
	if err != nil {
		return err
	}
	response.JSON(w, http.StatusOK, report)
	return nil
}

// ask has each job asked of its model, one rehearsal at a time.
func (p *Pages) ask(w http.ResponseWriter, r *http.Request, who chat.Sender) error {
	n, err := days(r.URL.Query().Get("days"))
	if err != nil {
		return err
	}
	if p.Ask == nil || !p.asking.TryLock() {
		return response.Problem{Status: http.StatusConflict, Text: "a rehearsal is under way, or cannot be made here"}
	}
	defer p.asking.Unlock()
	report, err := p.Ask(r.Context(), n)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.asked = &report
	p.mu.Unlock()
	p.Audit("cron", who.ID, "rehearsal: each job was asked once of its model")
	response.JSON(w, http.StatusOK, report)
	return nil
}

// rehearsalPage answers with the forecast, or with what was asked last.
func (p *Pages) rehearsalPage(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	n, err := days(r.FormValue("days"))
	if err != nil {
		return err
	}
	p.mu.Lock()
	report := p.asked
	p.mu.Unlock()
	if r.FormValue("asked") == "" || report == nil {
		made, err := p.Forecast(r.Context(), n)
		if err != nil {
			return err
		}
		report = &made
	}
	return p.rehearsalFrame(*report, n).Write(w)
}
