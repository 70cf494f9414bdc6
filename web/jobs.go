package web

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/chat"
	"parley/response"
	"parley/scheduler"
	"parley/scheduler/jobs"
	"parley/web/layout"
)

// A Scheduler lists and changes scheduled jobs.
type Scheduler struct {
	Jobs      func(context.Context) ([]scheduler.Job, error) // the next one first
	NextTimes func(j scheduler.Job, n int) []time.Time       // when it is due next
	// Order changes the job of that ID, or makes one if it is "".
	Order func(ctx context.Context, id string, o Order) (scheduler.Job, error)
	// Fire runs a job now, once for each key.
	Fire   func(ctx context.Context, id, key string, force bool) error
	Remove func(ctx context.Context, id string) error
}

// An Order makes a job, or changes one.
type Order struct {
	jobs.Change
	When    string `json:"when,omitempty"` // in plain words, in place of every_seconds, cron_expr and at
	Enabled *bool  `json:"enabled,omitempty"`

	// To is the session that gets the output; "" is the first one in which an owner can be reached.
	To string `json:"to,omitempty"`
}

// A Job is a job as programs see it: what can be set, and what the scheduler adds.
type Job struct {
	Order
	ID      string          `json:"id"`
	System  bool            `json:"system,omitempty"` // built in
	Created time.Time       `json:"created"`
	Next    time.Time       `json:"next,omitzero"` // when it is due, and Soon up to three such times
	Soon    []time.Time     `json:"soon"`
	Why     string          `json:"why,omitempty"` // it is off, if nobody switched it off
	Runs    []scheduler.Run `json:"runs"`          // latest last
	Record  scheduler.Job   `json:"-"`
}

// job returns j as programs see it.
func (a *admin) job(j scheduler.Job) Job {
	on := !j.Off
	told := Job{
		Order: Order{Enabled: &on, Change: jobs.Change{
			Name:     j.Name,
			Message:  j.Text,
			Every:    int(j.Schedule.Every / time.Second),
			Cron:     j.Schedule.Cron,
			Zone:     j.Schedule.Zone,
			Isolated: &j.Isolated,
			Quiet:    &j.Quiet,
			Model:    j.Model,
			Missed:   cmp.Or(string(j.Missed), "once"),
			Tool:     j.Tool,
		}},
		ID:      j.ID,
		System:  j.System,
		Created: j.Created,
		Next:    j.Next,
		Why:     j.Why,
		Record:  j,
		Soon:    append([]time.Time{}, a.cfg.Gateway.Scheduler.NextTimes(j, 3)...), // JSON writes nil as null
		Runs:    append([]scheduler.Run{}, j.Runs...),
	}
	if !j.Schedule.At.IsZero() {
		told.At = j.Schedule.At.Format(time.RFC3339)
	}
	if j.At != (chat.Address{}) {
		told.To = string(j.At.Session())
	}
	if j.Args != "" {
		_ = json.Unmarshal([]byte(j.Args), &told.Args) // the scheduler accepts objects only
	}
	return told
}

// A jobList is all jobs, the next one first.
type jobList struct {
	Jobs []Job `json:"jobs"`
}

func (a *admin) jobs(r *http.Request) (jobList, error) {
	all, err := a.cfg.Gateway.Scheduler.Jobs(r.Context())
	told := make([]Job, len(all))
	for i, j := range all {
		told[i] = a.job(j)
	}
	return jobList{told}, err
}

// order adds a job, or changes the one that the path names.
func (a *admin) order(w http.ResponseWriter, r *http.Request) (any, string, error) {
	var o Order
	if err := body(w, r, &o); err != nil {
		return nil, "", err
	}
	if o.When != "" {
		if err := o.SetWhen(o.When, time.Now().In(a.pages.zone)); err != nil {
			return nil, "", markUserError(err)
		}
	}
	id, done := r.PathValue("id"), "changed: "
	if id == "" {
		done = "added: "
	}
	j, err := a.cfg.Gateway.Scheduler.Order(r.Context(), id, o)
	return a.job(j), done + j.ID, markUserError(err)
}

func (p pages) jobs(l jobList) g.Group {
	items := g.Map(l.Jobs, p.jobItem)
	if len(items) == 0 {
		items = g.Group{h.Li(g.Text("There are none."))}
	}
	return g.Group{
		h.Ul(h.Class("list jobs"), h.Aria("label", "Scheduled jobs, the next one first"), items),
		p.newJobForm(),
	}
}

func (p pages) jobItem(j Job) g.Node {
	record := j.Record
	place := " in " + string(record.At.Session())
	if j.System {
		place = ", built in"
	}
	runs := slices.Clone(j.Runs)
	slices.Reverse(runs)
	return h.Li(
		h.Div(
			h.H2(g.Text(j.Name+" "), h.Small(g.Text(j.ID+place))),
			h.Dl(
				h.Dt(g.Text("When")), h.Dd(g.Text(record.Schedule.String())),
				h.Dt(g.Text("Next")), h.Dd(nextRuns(j)),
				h.Dt(g.Text("Last")), h.Dd(p.lastRun(runs)),
			),
		),
		jobButtons(j),
		h.Details(
			h.Summary(g.Text("Details of "+j.Name)),
			jobDetails(j),
			h.Ul(h.Aria("label", "Runs of "+j.Name+", the latest first"), p.runItems(runs)),
		),
	)
}

// nextRuns says when a job runs next, in the zone of the job.
func nextRuns(j Job) g.Node {
	if j.Record.Off {
		why := ""
		if j.Why != "" {
			why = ": " + j.Why
		}
		return g.Group{layout.Coloured("bad", "off"), g.Text(why)}
	}
	if len(j.Soon) == 0 {
		return g.Text("never")
	}
	var times g.Group
	for i, at := range j.Soon {
		if i > 0 {
			times = append(times, g.Text(", "))
		}
		times = append(times, h.Span(h.Class("times"), g.Text(at.Format("2006-01-02 15:04 MST"))))
	}
	return times
}

func (p pages) lastRun(runs []scheduler.Run) g.Node {
	if len(runs) == 0 {
		return g.Text("never")
	}
	failed := runs[0].Outcome == scheduler.Failed
	return g.Group{
		h.Span(g.If(failed, h.Class("bad")), g.Text(string(runs[0].Outcome))),
		g.Text(" "),
		h.Span(h.Class("times"), g.Text(p.formatTime(runs[0].Due))),
	}
}

func jobButtons(j Job) g.Node {
	at := layout.Path("api", "cron", j.ID)
	run := layout.PostButton(at+"/run", "Run now", "")
	toggle := h.Button(h.Data("patch", at), h.Data("body", `{"enabled":false}`), g.Text("Switch off"))
	if j.Record.Off {
		run = layout.PostButton(at+"/run?force=1", "Run now", j.Name+" is switched off. Run it once anyway?")
		toggle = h.Button(h.Data("patch", at), h.Data("body", `{"enabled":true}`), g.Text("Switch on"))
	}
	if j.System {
		return h.Div(run)
	}
	return h.Div(run, g.Text(" "), toggle, g.Text(" "), layout.DeleteButton(at, "Remove", "Remove "+j.Name+"?"))
}

// jobDetails says what a job does and how, unless it is built in.
func jobDetails(j Job) g.Node {
	if j.System {
		return nil
	}
	does := j.Message
	var how []string
	if j.Record.Isolated {
		how = append(how, "isolated")
	}
	if j.Record.Quiet {
		how = append(how, "quiet")
	}
	if j.Tool != "" {
		does = "calls " + j.Tool + " " + j.Record.Args
	} else {
		how = append(how, "model: "+cmp.Or(j.Model, "as in the chat"))
	}
	how = append(how, "missed runs: "+j.Missed)
	return g.Group{
		h.P(h.Class("text"), g.Text(does)),
		h.P(g.Text(strings.Join(how, ", "))),
	}
}

func (p pages) runItems(runs []scheduler.Run) g.Group {
	if len(runs) == 0 {
		return g.Group{h.Li(g.Text("It has not run yet."))}
	}
	return g.Map(runs, func(r scheduler.Run) g.Node {
		text := p.formatTime(r.Due) + ": " + string(r.Outcome)
		if r.Took() > 0 {
			text += ", " + r.Took().String()
		}
		if r.Tokens > 0 {
			text += fmt.Sprintf(", %d tokens", r.Tokens)
		}
		if r.Cost > 0 {
			text += fmt.Sprintf(", cost %.4f", r.Cost)
		}
		if r.Note != "" {
			text += " – " + r.Note
		}
		return h.Li(g.Text(text), g.If(r.Result != "", h.P(h.Class("text"), g.Text(layout.Excerpt(r.Result)))))
	})
}

func (p pages) newJobForm() g.Node {
	zone := strings.Replace(p.zone.String(), "Local", "the gateway's machine", 1)
	return response.ScriptForm(h.Data("post", "/api/cron"),
		h.Label(h.For("message"), g.Text("Add a job")),
		h.Input(h.ID("message"), h.Name("message"), h.Required(), h.AutoComplete("off"),
			h.Placeholder("task for the agent")),
		h.Label(h.For("expr"), g.Text("on the cron schedule")),
		h.Input(h.ID("expr"), h.Name("cron_expr"), h.AutoComplete("off"), h.Placeholder("0 9 * * 1-5"),
			h.Aria("describedby", "zone")),
		h.Label(h.For("once"), g.Text("or once at")),
		h.Input(h.ID("once"), h.Name("at"), h.Type("datetime-local"), h.Aria("describedby", "zone")),
		h.Small(h.ID("zone"), g.Text("Times are read in the time zone of "+zone+".")),
		h.Button(g.Text("Add")),
	)
}
