package schedule

import (
	"fmt"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/scheduler/rehearsal"
	"parley/web/layout"
)

// rehearsalFrame returns the page of a rehearsal of n days.
func (p *Pages) rehearsalFrame(r rehearsal.Report, n int) layout.Frame {
	lead := "Which jobs would run, and what they would take, by what their runs took before. Nothing was run."
	if r.Asked {
		lead = "Each job was asked once. What it would have sent or changed was kept back: no chat, no file and no " +
			"service has seen it."
	}
	var links g.Group
	for _, d := range []int{1, 7, 14, 31} {
		links = append(links, h.Li(h.A(h.Href(rehearsalPath+"?days="+strconv.Itoa(d)),
			g.If(d == n && !r.Asked, h.Aria("current", "true")), g.Text(count(d, "day")))))
	}
	var ask g.Node
	if p.Ask != nil {
		ask = h.Button(h.Class("main"), h.Data("ask", "/api/cron/rehearsal?days="+strconv.Itoa(n)),
			h.Data("then", rehearsalPath+"?asked=1&days="+strconv.Itoa(n)), layout.Confirmation(askQuestion(r)),
			g.Text("Ask the model once per job"))
	}
	figures := []g.Node{
		layout.Stat("Runs", layout.Grouped(r.Runs), "until "+r.Until.In(p.Zone).Format("Mon 2 Jan 15:04")),
		layout.Stat("Tokens", tokensOf(r), unknownNote(r)),
	}
	if r.Cost > 0 {
		figures = append(figures, layout.Stat("Money", layout.Money(r.Cost), "as far as prices are known"))
	}
	return layout.Frame{
		Path: rehearsalPath, Title: "Rehearsal", Lead: lead,
		Actions: g.Group{layout.LinkButton(pagePath, "Back to the schedule"), ask},
		Assets:  []string{"schedule.css", "schedule.js"},
		Content: g.Group{
			h.Div(h.Class("chips"), h.Role("group"), h.Aria("label", "How far to look ahead"), h.Ul(links)),
			layout.Stats(figures...),
			warnings(r),
			g.If(r.Asked, answers(r)),
			layout.Heading("all", "Jobs"),
			p.table(r),
		},
	}
}

func unknownNote(r rehearsal.Report) string {
	if r.Unknown == 0 {
		return ""
	}
	return rehearsal.NotCounted(r.Unknown)
}

// tokensOf returns what all runs take.
func tokensOf(r rehearsal.Report) string {
	if !r.TokensKnown() {
		return "not known yet"
	}
	return layout.Grouped(r.Tokens)
}

// askQuestion says what asking each job once takes.
func askQuestion(r rehearsal.Report) string {
	takes, n := r.AskTakes()
	whom := "for " + count(n, "job")
	if n != 1 {
		whom = "for each of " + count(n, "job")
	}
	return fmt.Sprintf("Ask the model once %s? That takes %s. Nothing is sent, and files are changed in a copy only.",
		whom, takes)
}

// warnings shows what would go wrong.
func warnings(r rehearsal.Report) g.Node {
	if len(r.Warnings) == 0 {
		return h.P(layout.Status(layout.Good, "Nothing stands in the way."))
	}
	items := g.Map(r.Warnings, func(w rehearsal.Warning) g.Node {
		state := layout.Warn
		if w.Kind == "unreachable" || w.Kind == "budget" {
			state = layout.Bad
		}
		return h.Li(layout.Status(state, w.Text))
	})
	return layout.Card("Worth a look", h.Ul(h.Class("warnings"), items))
}

// table lists the jobs.
func (p *Pages) table(r rehearsal.Report) g.Node {
	rows := g.Map(r.Jobs, func(j rehearsal.Job) g.Node {
		first := "–"
		if len(j.Times) > 0 {
			first = j.Times[0].In(p.Zone).Format("Mon 2 Jan 15:04")
		}
		tokens, cost := layout.Grouped(j.Tokens), layout.Money(j.Cost)
		if !j.Known {
			tokens, cost = "not known yet", "–"
		}
		runs := layout.Grouped(j.Runs)
		if j.Skipped > 0 {
			runs += fmt.Sprintf(" (%d skipped)", j.Skipped)
		}
		return h.Tr(layout.RowHead(g.Text(j.Name)), layout.Cell(j.When), layout.Cell(first), layout.Cell(runs),
			layout.Cell(tokens), layout.Cell(cost))
	})
	return layout.Table("all", []string{"Job", "When", "First", "Runs", "Tokens", "Money"}, "There are no jobs.", rows)
}

// answers shows what came of asking each job.
func answers(r rehearsal.Report) g.Node {
	var all g.Group
	for _, j := range r.Jobs {
		if a := j.Answer; a != nil {
			all = append(all, layout.Card(j.Name, answer(a)))
		}
	}
	return g.Group{h.H2(g.Text("Answers")), g.Group(all)}
}

func answer(a *rehearsal.Answer) g.Node {
	state := layout.Good
	if a.Outcome == "failed" || a.Outcome == "refused" {
		state = layout.Bad
	}
	took := (time.Duration(a.Seconds) * time.Second).String()
	all := g.Group{h.P(layout.Status(state, a.Outcome), g.Text(" "),
		h.Small(g.Text(layout.Grouped(a.Tokens)+" tokens, "+took)))}
	if a.Text != "" && len(a.Sends) == 0 {
		all = append(all, h.P(h.Class("text"), g.Text(a.Text)))
	}
	for _, s := range a.Sends {
		all = append(all, h.Figure(h.FigCaption(g.Text("Would be sent to "+s.To)),
			h.BlockQuote(h.Class("text"), g.Text(s.Text))))
	}
	lists := []struct {
		title string
		items []string
	}{{"Not done", a.NotDone}, {"Changed in the copy of the workspace", a.Files}}
	for _, l := range lists {
		if len(l.items) > 0 {
			all = append(all, h.P(h.B(g.Text(l.title))), h.Ul(g.Map(l.items, func(text string) g.Node {
				return h.Li(h.Code(g.Text(text)))
			})))
		}
	}
	return all
}
