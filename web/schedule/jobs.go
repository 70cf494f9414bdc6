package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/chat"
	"parley/response"
	"parley/scheduler"
	"parley/scheduler/jobs"
	"parley/web/layout"
	"parley/when"
)

const (
	maxPast = 12 // runs that are shown as points
	maxNext = 3
)

// job shows one job: when it runs next, what it takes, how it went, and what can be done.
func (v *view) job(j scheduler.Job) g.Node {
	words := j.Schedule.Words()
	if spec := j.Schedule.String(); words == spec || j.Schedule.Cron == "" {
		words = strings.ToUpper(words[:min(1, len(words))]) + words[min(1, len(words)):]
	} else {
		words = strings.ToUpper(words[:1]) + words[1:] + " · " + spec
	}
	return h.Li(h.ID("job-"+j.ID), h.Class("card "+v.hue(j.ID)),
		h.Div(h.Class("head"), h.H3(g.Text(j.Name)), v.state(j)),
		h.P(h.Class("when"), g.Text(words)),
		h.Dl(
			fact("Next", v.nextRuns(j)...),
			fact("A run takes", g.Text(v.costOf(j))),
			fact("Its answers go to", g.Text(place(j))),
			fact("Last runs", v.past(j)),
		),
		v.buttons(j),
		h.Details(h.Summary(g.Text("Runs and details"), h.Span(h.Class("unseen"), g.Text(" of "+j.Name))),
			details(j),
			h.Ul(h.Class("runs"), h.Aria("label", "Runs of "+j.Name+", the latest first"), v.runs(j)),
		),
		v.editForm(j),
	)
}

func fact(name string, content ...g.Node) g.Node {
	return h.Div(h.Dt(g.Text(name)), h.Dd(g.Group(content)))
}

// state says how a job is.
func (v *view) state(j scheduler.Job) g.Node {
	if j.Off {
		why := "paused"
		if j.Why != "" {
			why += ": " + j.Why
		}
		return layout.Status(layout.Idle, why)
	}
	if j.Failed > 1 {
		return layout.Status(layout.Bad, fmt.Sprintf("failed %d times", j.Failed))
	}
	if n := len(j.Runs); n > 0 {
		if state, words := v.outcome(j.Runs[n-1]); state == layout.Bad || state == layout.Busy {
			return layout.Status(state, words)
		}
	}
	return layout.Status(layout.Good, "on")
}

// nextRuns says when a job is due, in the zone of the job.
func (v *view) nextRuns(j scheduler.Job) (all []g.Node) {
	times := v.next(j, maxNext)
	if len(times) == 0 {
		return []g.Node{g.Text("not planned")}
	}
	for _, t := range times {
		all = append(all, h.Span(h.Class("times"), g.Text(t.Format("Mon 2 Jan 15:04 MST"))))
	}
	return all
}

// costOf says what a run takes, and all of the week.
func (v *view) costOf(j scheduler.Job) string {
	told, ok := v.forecastOf(j.ID)
	switch {
	case !ok:
		return "–"
	case j.Tool != "" && told.RunTokens == 0:
		return "no model"
	case !told.Known:
		return "not known yet"
	}
	text := layout.Grouped(told.RunTokens) + " tokens"
	if told.RunCost > 0 {
		text += ", " + layout.Money(told.RunCost)
	}
	if told.RunSeconds > 0 {
		text += ", " + (time.Duration(told.RunSeconds) * time.Second).String()
	}
	if told.Runs > 1 {
		text += fmt.Sprintf("; × %s in 7 days", layout.Grouped(told.Runs))
	}
	return text
}

// place says where the answers of a job go.
func place(j scheduler.Job) string {
	if j.System {
		return "built in"
	}
	return string(j.At.Session())
}

// past shows how the latest runs ended, the latest last.
func (v *view) past(j scheduler.Job) g.Node {
	runs := j.Runs[max(0, len(j.Runs)-maxPast):]
	if len(runs) == 0 {
		return g.Text("It has not run yet.")
	}
	points := g.Map(runs, func(r scheduler.Run) g.Node {
		state, words := v.outcome(r)
		text := v.dayAndTime(r.Due) + ": " + words
		return h.Li(h.Class(string(state)), h.Title(text), h.Span(h.Class("unseen"), g.Text(text)))
	})
	last := runs[len(runs)-1]
	_, words := v.outcome(last)
	return g.Group{
		h.Ol(h.Class("past"), points),
		h.Span(g.Text(v.dayAndTime(last.Due)+": "+words+" "), conversationLink(j, last)),
	}
}

// conversationLink leads to what was said in a run.
func conversationLink(j scheduler.Job, r scheduler.Run) g.Node {
	session := string(j.At.Session())
	if j.Isolated || j.ID == jobs.HeartbeatID {
		session = scheduler.Sessions + j.ID
	}
	if r.Seconds == 0 || j.System && j.ID != jobs.HeartbeatID {
		return nil
	}
	return h.A(h.Href(layout.Path("owner", "talks", session)), g.Text("Conversation"))
}

// outcome says how a run ended, or how far it has come.
func (v *view) outcome(r scheduler.Run) (layout.State, string) {
	because := func(words string) string {
		if r.Note == "" {
			return words
		}
		return words + ": " + chat.OneLine(r.Note)
	}
	switch r.Outcome {
	case scheduler.Waiting:
		return layout.Busy, "waiting to begin"
	case scheduler.Running:
		return layout.Busy, "running"
	case scheduler.Sending:
		return layout.Busy, "waiting to be delivered"
	case scheduler.Delivered:
		return layout.Good, strings.TrimSpace("delivered " + v.accepted(r))
	case scheduler.Undelivered:
		return layout.Bad, because("not delivered")
	case scheduler.Answered, scheduler.Silent, scheduler.Done:
		return layout.Good, string(r.Outcome)
	case scheduler.Failed, scheduler.Refused:
		return layout.Bad, because(string(r.Outcome))
	case scheduler.Stopped:
		return layout.Idle, because(string(r.Outcome))
	}
	return layout.Warn, because(string(r.Outcome))
}

// accepted says when the network accepted an answer, as far as that is not said by when it was due.
func (v *view) accepted(r scheduler.Run) string {
	at := r.Accepted.In(v.zone)
	switch {
	case r.Accepted.IsZero():
		return ""
	case midnight(at, 0).Equal(midnight(r.Due.In(v.zone), 0)):
		return "at " + at.Format("15:04")
	}
	return "on " + at.Format("Mon 2 Jan 15:04")
}

func (v *view) runs(j scheduler.Job) g.Group {
	runs := slices.Clone(j.Runs)
	slices.Reverse(runs)
	return g.Map(runs, func(r scheduler.Run) g.Node {
		state, words := v.outcome(r)
		var more []string
		if r.Took() > 0 {
			more = append(more, r.Took().String())
		}
		if r.Tokens > 0 {
			more = append(more, layout.Grouped(r.Tokens)+" tokens")
		}
		if r.Cost > 0 {
			more = append(more, layout.Money(r.Cost))
		}
		return h.Li(
			h.Span(h.Class("times"), g.Text(v.dayAndTime(r.Due))), g.Text(" "),
			layout.Status(state, words), g.Text(" "),
			h.Small(g.Text(strings.Join(more, ", "))), g.Text(" "), conversationLink(j, r),
			g.If(r.Result != "", h.P(h.Class("text"), g.Text(layout.Excerpt(r.Result)))),
		)
	})
}

func (v *view) buttons(j scheduler.Job) g.Node {
	at := layout.Path("api", "cron", j.ID)
	name := "“" + j.Name + "”"
	run := h.Button(h.Data("post", at+"/run"), h.Data("done", name+" was started."), g.Text("Run now"))
	toggle := h.Button(h.Data("patch", at), h.Data("body", `{"enabled":false}`),
		h.Data("done", name+" is paused."), g.Text("Pause"))
	if j.Off {
		run = h.Button(h.Data("post", at+"/run?force=1"), h.Data("done", name+" was started."),
			layout.Confirmation(name+" is paused. Run it once anyway?"), g.Text("Run now"))
		toggle = h.Button(h.Data("patch", at), h.Data("body", `{"enabled":true}`),
			h.Data("done", name+" is active again."), g.Text("Resume"))
	}
	if j.System {
		return h.Div(h.Class("actions"), run)
	}
	remove := h.Button(h.Data("delete", at), h.Data("done", name+" was removed."),
		layout.Confirmation("Remove "+name+"?"), g.Text("Remove"))
	return h.Div(h.Class("actions"), toggle, run, remove)
}

// details says what a job does and how.
func details(j scheduler.Job) g.Node {
	if j.System {
		return h.P(g.Text("It belongs to Parley and cannot be changed here."))
	}
	does := j.Text
	how := []string{"ID " + j.ID}
	if j.Isolated {
		how = append(how, "a conversation of its own")
	}
	if j.Quiet {
		how = append(how, "says nothing without news")
	}
	if j.Tool != "" {
		does = "calls " + j.Tool + " " + j.Args
	} else if j.Model != "" {
		how = append(how, "model "+j.Model)
	}
	if j.Missed == scheduler.Skip {
		how = append(how, "missed runs are skipped")
	}
	return g.Group{h.P(h.Class("text"), g.Text(does)), h.P(h.Small(g.Text(strings.Join(how, " · "))))}
}

// newJob returns the form that makes a job.
func (v *view) newJob() g.Node {
	return h.Section(h.ID("new"), h.Class("card"), h.H2(g.Text("Add a job")),
		response.ScriptForm(h.Class("jobform"), h.Data("job", "POST /api/cron"),
			taskField("new", "", true), v.whenField("new", "", ""),
			h.Div(h.Class("field"), h.Label(h.For("new-to"), g.Text("Its answers go to")),
				h.Input(h.ID("new-to"), h.Name("to"), h.AutoComplete("off"),
					h.Placeholder("you, where you can be reached")),
				h.Small(g.Text("A chat such as telegram:42."))),
			options("new", scheduler.Job{}),
			h.Button(h.Class("main"), g.Text("Add the job")),
		),
	)
}

// editForm returns the form that changes a job.
func (v *view) editForm(j scheduler.Job) g.Node {
	if j.System {
		return nil
	}
	id := "edit-" + j.ID
	return h.Details(h.Summary(g.Text("Edit"), h.Span(h.Class("unseen"), g.Text(" "+j.Name))),
		response.ScriptForm(h.Class("jobform"), h.Data("job", "PATCH "+layout.Path("api", "cron", j.ID)),
			g.If(j.Tool == "", taskField(id, j.Text, false)),
			v.whenField(id, j.Schedule.Words(), j.Schedule.Zone),
			h.Div(h.Class("field"), h.Label(h.For(id+"-name"), g.Text("Name")),
				h.Input(h.ID(id+"-name"), h.Name("name"), h.Value(j.Name), h.AutoComplete("off"))),
			options(id, j),
			h.Button(h.Class("main"), g.Text("Save")),
		),
	)
}

func taskField(id, text string, required bool) g.Node {
	return h.Div(h.Class("field whole"), h.Label(h.For(id+"-message"), g.Text("What the agent is to do")),
		h.Textarea(h.ID(id+"-message"), h.Name("message"), h.Rows("3"), g.If(required, h.Required()),
			h.Placeholder("Look at my mail and the weather, and tell me what matters today."), g.Text(text)))
}

// whenField asks when a job runs, shows what was understood, and offers examples.
func (v *view) whenField(id, words, zone string) g.Node {
	examples := g.Map(when.Examples, func(text string) g.Node {
		return h.Button(h.Type("button"), h.Data("example", text), g.Text(text))
	})
	name := strings.Replace(v.zone.String(), "Local", "the gateway's machine", 1)
	return g.Group{
		h.Div(h.Class("field whole"), h.Label(h.For(id+"-when"), g.Text("When")),
			h.Input(h.ID(id+"-when"), h.Name("when"), h.Value(words), h.Required(), h.AutoComplete("off"),
				h.Placeholder("every weekday at 9"), h.Aria("describedby", id+"-next")),
			h.Div(h.Class("examples"), h.Aria("label", "Examples"), h.Role("group"), examples),
			h.Div(h.ID(id+"-next"), h.Class("next"), h.Role("status"), g.Text("The next five times are shown here.")),
		),
		h.Div(h.Class("field"), h.Label(h.For(id+"-tz"), g.Text("Time zone")),
			h.Input(h.ID(id+"-tz"), h.Name("tz"), h.Value(zone), h.AutoComplete("off"), h.Placeholder(name)),
			h.Small(g.Text("Empty is that of "+name+"."))),
	}
}

// options are what can be ticked.
func options(id string, j scheduler.Job) g.Node {
	check := func(name, text string, on bool) g.Node {
		return h.Label(h.Class("check"),
			h.Input(h.Type("checkbox"), h.ID(id+"-"+name), h.Name(name), g.If(on, h.Checked())), g.Text(text))
	}
	return h.Div(h.Class("field whole"),
		check("quiet", "Say nothing when there is no news", j.Quiet),
		check("isolated", "Without the chat's history", j.Isolated),
	)
}

// count returns n with the word for it.
func count(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return strconv.Itoa(n) + " " + word
}
