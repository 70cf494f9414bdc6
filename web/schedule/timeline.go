package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/scheduler"
	"parley/scheduler/rehearsal"
	"parley/web/layout"
)

// A view makes the contents of the page at one moment.
type view struct {
	zone *time.Location
	now  time.Time
	week rehearsal.Report
	next func(j scheduler.Job, n int) []time.Time
	hues map[string]int // of the jobs, by ID
}

const maxHues = 6

// number gives each job a colour. Parley's own jobs have none.
func (v *view) number(all []scheduler.Job) {
	v.hues = map[string]int{}
	n := 0
	for _, j := range slices.SortedFunc(slices.Values(all), func(a, b scheduler.Job) int {
		return a.Created.Compare(b.Created)
	}) {
		if !j.System {
			v.hues[j.ID] = n%maxHues + 1
			n++
		}
	}
}

// hue returns the class of a job's colour.
func (v *view) hue(id string) string { return "hue" + strconv.Itoa(v.hues[id]) }

// forecastOf returns what the week has of a job.
func (v *view) forecastOf(id string) (rehearsal.Job, bool) {
	i := slices.IndexFunc(v.week.Jobs, func(j rehearsal.Job) bool { return j.ID == id })
	if i < 0 {
		return rehearsal.Job{}, false
	}
	return v.week.Jobs[i], true
}

// figures sums up the week.
func (v *view) figures() g.Node {
	next, nextName := time.Time{}, ""
	for _, j := range v.week.Jobs {
		if len(j.Times) > 0 && !j.System && (next.IsZero() || j.Times[0].Before(next)) {
			next, nextName = j.Times[0], j.Name
		}
	}
	soonest := layout.Stat("Your next job", "none", "Add one below.")
	if !next.IsZero() {
		soonest = layout.Stat("Your next job", v.dayAndTime(next), nextName)
	}
	unknown := "by what runs took before"
	if v.week.Unknown > 0 {
		unknown = rehearsal.NotCounted(v.week.Unknown)
	}
	all := []g.Node{
		soonest,
		layout.Stat("Runs in 7 days", layout.Grouped(v.week.Runs), ""),
		layout.Stat("Tokens in 7 days", tokensOf(v.week), unknown),
	}
	if v.week.Cost > 0 {
		all = append(all, layout.Stat("Money in 7 days", layout.Money(v.week.Cost), "as far as prices are known"))
	}
	return layout.Stats(all...)
}

// dayAndTime returns a time near now for people.
func (v *view) dayAndTime(t time.Time) string {
	t = t.In(v.zone)
	now := v.now.In(v.zone)
	days := int(midnight(t, 0).Sub(midnight(now, 0)).Round(24*time.Hour) / (24 * time.Hour))
	switch {
	case days == 0:
		return "Today " + t.Format("15:04")
	case days == 1:
		return "Tomorrow " + t.Format("15:04")
	case days == -1:
		return "Yesterday " + t.Format("15:04")
	case t.Year() != now.Year():
		return t.Format("2 Jan 2006 15:04")
	}
	return t.Format("Mon 2 Jan 15:04")
}

// midnight returns the beginning of the day of t, or of one some days later.
func midnight(t time.Time, later int) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day()+later, 0, 0, 0, 0, t.Location())
}

// A mark is what a job does in a day: one run, or several from the first to the last.
type mark struct {
	job         rehearsal.Job
	first, last time.Time
	runs        int
}

// maxMarks is how many runs of a job in a day are shown one by one.
const maxMarks = 2

// timeline shows the days of the week, with a mark for each run. Many runs of one job are one mark.
func (v *view) timeline() g.Node {
	var columns g.Group
	for n := range weekDays {
		begin := midnight(v.now.In(v.zone), n)
		columns = append(columns, v.day(begin, midnight(begin, 1), n == 0))
	}
	return h.Section(h.Class("week"), h.Aria("label", "The coming week"), h.Ol(columns))
}

// day shows one day.
func (v *view) day(begin, end time.Time, isToday bool) g.Node {
	var marks []mark
	var ticks g.Group
	for _, j := range v.week.Jobs {
		isHere := func(d rehearsal.Day) bool { return !d.First.Before(begin) && d.First.Before(end) }
		i := slices.IndexFunc(j.Days, isHere)
		if i < 0 {
			continue
		}
		var times []time.Time
		for _, t := range j.Times {
			if !t.Before(begin) && t.Before(end) {
				times = append(times, t.In(v.zone))
			}
		}
		whole := mark{j, j.Days[i].First.In(v.zone), j.Days[i].Last.In(v.zone), j.Days[i].Runs}
		if len(times) < whole.runs { // there are too many to list
			ticks = append(ticks, v.stretch(whole))
		} else {
			ticks = append(ticks, v.ticks(j.ID, times))
		}
		if whole.runs > maxMarks || len(times) < whole.runs {
			marks = append(marks, whole)
			continue
		}
		for _, t := range times {
			marks = append(marks, mark{j, t, t, 1})
		}
	}
	slices.SortStableFunc(marks, func(a, b mark) int { return a.first.Compare(b.first) })
	title := begin.Format("Mon 2 Jan")
	if isToday {
		title = "Today"
		now := v.now.In(v.zone)
		ticks = append(ticks, tick("now", now.Hour()*60+now.Minute(), 4))
	}
	list := h.P(h.Class("none"), g.Text("Nothing"))
	if len(marks) > 0 {
		list = h.Ul(g.Map(marks, v.mark))
	}
	return h.Li(g.If(isToday, h.Class("today")),
		h.H2(g.Text(title)),
		h.SVG(g.Attr("viewBox", "0 0 1440 16"), g.Attr("preserveAspectRatio", "none"), h.Aria("hidden", "true"), ticks),
		list,
	)
}

// ticks shows when a job runs on the strip of a day.
func (v *view) ticks(id string, times []time.Time) g.Group {
	return g.Map(times, func(t time.Time) g.Node { return tick(v.hue(id), t.Hour()*60+t.Minute(), 12) })
}

// stretch shows on the strip of a day from when to when a job runs.
func (v *view) stretch(m mark) g.Node {
	from := m.first.Hour()*60 + m.first.Minute()
	return tick(v.hue(m.job.ID), from, m.last.Hour()*60+m.last.Minute()-from+12)
}

func tick(class string, minute, width int) g.Node {
	return g.El("rect", h.Class(class), g.Attr("x", strconv.Itoa(minute)), h.Width(strconv.Itoa(width)), h.Height("16"))
}

func (v *view) mark(m mark) g.Node {
	at := m.first.Format("15:04")
	many := ""
	if m.runs > 1 {
		at += "–" + m.last.Format("15:04")
		many = fmt.Sprintf(" × %d", m.runs)
	}
	return h.Li(h.A(h.Class("mark "+v.hue(m.job.ID)), h.Href("#job-"+m.job.ID),
		h.Time(g.Text(at)),
		h.Span(g.Text(m.job.Name), g.If(many != "", h.B(g.Text(many)))),
	))
}
