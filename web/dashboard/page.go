package dashboard

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/chat"
	"parley/web/chart"
	"parley/web/layout"
)

// figures returns the numbers of today.
func (d *Dashboard) figures(t Today) g.Node {
	since := "since midnight"
	if t.Since.Hour() != 0 || t.Since.Minute() != 0 {
		since = "since " + t.Since.In(d.Zone).Format("15:04") + ", when counting began"
	}
	latency, p95 := "–", "no answer yet "+since
	if t.Traffic.Answered > 0 {
		latency = span(t.Traffic.Median)
		p95 = "median; 95 of 100 within " + span(t.Traffic.Percentile95)
	}
	problems := "no warnings"
	if t.Warnings > 0 {
		problems = plural(t.Warnings, "warning")
	}
	failures := strconv.Itoa(t.Errors)
	if t.More {
		failures = "over " + failures
	}
	read := fmt.Sprintf("%s read, %s written", amount(float64(t.Usage.In)), amount(float64(t.Usage.Out)))
	return layout.Stats(
		layout.Stat("Messages today", strconv.Itoa(t.Traffic.Messages), since),
		layout.Stat("Turns today", strconv.Itoa(t.Turns), plural(t.Traffic.Failed, "turn")+" failed"),
		layout.Stat("Time to answer", latency, p95),
		layout.Stat("Tokens today", amount(float64(tokens(Day{Usage: t.Usage}))), read),
		d.money(t),
		layout.Stat("Errors today", failures, problems),
	)
}

// money returns what today costs, and the forecast of the month.
func (d *Dashboard) money(t Today) g.Node {
	month := time.Now().In(d.Zone).Format("January")
	note := fmt.Sprintf("Not enough yet for a forecast: %d of %d whole days.", t.Forecast.Days, minForecast)
	if t.Forecast.Known() {
		from := fmt.Sprintf(", from %d days", t.Forecast.Days)
		note = "about " + layout.Money(t.Forecast.Cost) + " in " + month + from
		if !t.Priced {
			note = "about " + amount(float64(t.Forecast.Tokens)) + " tokens in " + month + from
		}
	}
	if !t.Priced {
		return layout.Stat("Money today", "–", note+" No prices are configured.")
	}
	cost := layout.Money(t.Cost)
	if t.Partial {
		cost = "at least " + cost
	}
	return layout.Stat("Money today", cost, note)
}

// work returns what is under way, each with a button that stops it.
func (d *Dashboard) work(all []chat.Work) g.Node {
	if len(all) == 0 {
		return h.P(h.Class("quiet"), layout.Status(layout.Idle, "Nothing"),
			g.Text(" Turns, background tasks and jobs are here while they run."))
	}
	return h.Ul(h.Class("running"), g.Map(all, func(w chat.Work) g.Node {
		name := cmp.Or(chat.Inline(w.What, 120), string(w.Session))
		var place g.Node
		if w.Session != "" {
			place = h.A(h.Href(layout.Path("owner", "talks", string(w.Session))), g.Text(string(w.Session)))
		}
		return h.Li(
			h.Div(
				layout.Status(layout.Busy, string(w.Kind)), g.Text(" "),
				g.If(name != string(w.Session), h.B(g.Text(name+" "))), place,
				h.Small(g.Text(doing(w))),
			),
			h.Button(
				h.Data("post", layout.Path("api", "work", w.ID, "stop")),
				h.Aria("label", "Stop "+Describe(w)),
				g.Text("Stop"),
			),
		)
	}))
}

// doing says what w does, and for how long.
func doing(w chat.Work) string {
	since := span(time.Since(w.Since).Round(time.Second))
	if w.Doing == "" {
		return since
	}
	return chat.Inline(w.Doing, 120) + ", " + since
}

// hours returns the charts of the last 24 hours.
func (d *Dashboard) hours(t Today) g.Node {
	traffic := chart.Chart{
		ID: "traffic", Title: "Last 24 hours", Whole: true, Empty: "No messages in the last 24 hours.",
		Series: []chart.Series{{Name: "messages"}, {Name: "turns"}},
	}
	latency := chart.Chart{
		ID: "latency", Title: "Time to answer", Empty: "No answers in the last 24 hours.", Format: seconds,
		Series: []chart.Series{{Name: "median"}, {Name: "95th percentile", Mark: true}},
	}
	for _, hour := range t.Hours {
		start := hour.Start.In(d.Zone)
		p := chart.Point{Name: start.Format("15:04") + " to " + start.Add(time.Hour).Format("15:04")}
		if start.Hour()%6 == 0 {
			p.Tick = start.Format("15:04")
		}
		p.Values = []float64{float64(hour.Messages), float64(hour.Turns)}
		if hour.Start.Add(time.Hour).Before(d.Traffic.Began()) {
			p.Values = []float64{math.NaN(), math.NaN()}
		}
		traffic.Points = append(traffic.Points, p)
		p.Values = []float64{hour.Median.Seconds(), hour.Percentile95.Seconds()}
		if hour.Answered == 0 {
			p.Values = []float64{math.NaN(), math.NaN()}
		}
		latency.Points = append(latency.Points, p)
	}
	if began := d.Traffic.Began(); time.Since(began) < 24*time.Hour {
		note := "Counted since " + began.In(d.Zone).Format("15:04") + "."
		traffic.Note, latency.Note = note, note
	}
	return g.Group{h.Div(h.Class("card"), traffic.Node()), h.Div(h.Class("card"), latency.Node())}
}

// days returns the charts of the last 30 days.
func (d *Dashboard) days(t Today) g.Node {
	used := chart.Chart{
		ID: "tokens", Title: "Tokens, last 30 days", Whole: true, Empty: "No tokens in the last 30 days.",
		Series: []chart.Series{{Name: "tokens"}}, Format: amount,
	}
	other := chart.Chart{
		ID: "turns", Title: "Turns, last 30 days", Whole: true, Empty: "No turns in the last 30 days.",
		Series: []chart.Series{{Name: "turns"}},
	}
	if t.Priced {
		other = chart.Chart{
			ID: "money", Title: "Money, last 30 days", Empty: "Nothing was spent in the last 30 days.",
			Series: []chart.Series{{Name: "money"}}, Format: layout.Money,
		}
	}
	for i, day := range t.Days {
		p := chart.Point{Name: day.Date.Format("Monday, 2 January"), Values: []float64{float64(tokens(day))}}
		if (len(t.Days)-1-i)%7 == 0 {
			p.Tick = day.Date.Format("2 Jan")
		}
		used.Points = append(used.Points, p)
		p.Values = []float64{float64(day.Turns)}
		if t.Priced {
			p.Values = []float64{day.Cost}
		}
		other.Points = append(other.Points, p)
	}
	cards := append(g.Group{used.Node(), other.Node()}, d.trafficDays(t)...)
	return g.Map(cards, func(c g.Node) g.Node { return h.Div(h.Class("card"), c) })
}

// trafficDays returns the charts of messages and of times to answer of the last 30 days.
func (d *Dashboard) trafficDays(t Today) g.Group {
	messages := chart.Chart{
		ID: "messages", Title: "Messages, last 30 days", Whole: true, Empty: "No messages in the last 30 days.",
		Series: []chart.Series{{Name: "messages"}},
	}
	latency := chart.Chart{
		ID: "answers", Title: "Time to answer, last 30 days", Empty: "No answers in the last 30 days.", Format: seconds,
		Series: []chart.Series{{Name: "median"}, {Name: "95th percentile", Mark: true}},
	}
	began := d.Traffic.Began()
	for i, day := range t.TrafficDays {
		p := chart.Point{Name: day.Start.Format("Monday, 2 January")}
		if (len(t.TrafficDays)-1-i)%7 == 0 {
			p.Tick = day.Start.Format("2 Jan")
		}
		p.Values = []float64{float64(day.Messages)}
		if day.Start.AddDate(0, 0, 1).Before(began) {
			p.Values = []float64{math.NaN()}
		}
		messages.Points = append(messages.Points, p)
		p.Values = []float64{day.Median.Seconds(), day.Percentile95.Seconds()}
		if day.Answered == 0 {
			p.Values = []float64{math.NaN(), math.NaN()}
		}
		latency.Points = append(latency.Points, p)
	}
	if time.Since(began) < 29*24*time.Hour {
		note := "Counted since " + began.In(d.Zone).Format("2 January") + "."
		messages.Note, latency.Note = note, note
	}
	return g.Group{messages.Node(), latency.Node()}
}

// modelList returns how the models do.
func (d *Dashboard) modelList(all []ModelState) g.Node {
	if len(all) == 0 {
		return h.P(g.Text("No model is configured."))
	}
	return h.Ul(h.Class("states"), g.Map(all, func(m ModelState) g.Node {
		state := layout.Status(layout.Idle, "not asked yet")
		note := ""
		switch {
		case m.Requests > 0 && m.Works():
			state = layout.Status(layout.Good, "answers")
			note = plural(m.Requests, "request")
			if m.Failed > 0 {
				note += fmt.Sprintf(", %d failed", m.Failed)
			}
		case m.Requests > 0:
			state = layout.Status(layout.Bad, "failed: "+m.Why)
			note = fmt.Sprintf("at %s, %d of %d requests", m.Refused.In(d.Zone).Format("15:04"), m.Failed, m.Requests)
		}
		name := m.Name
		if m.Usual {
			name += " (the usual one)"
		}
		return h.Li(h.Div(h.B(g.Text(name)), g.If(note != "", h.Small(g.Text(note)))), state)
	}))
}

// disk returns what takes how much.
func (d *Dashboard) disk(disk Disk) g.Node {
	if disk.Measured.IsZero() {
		return h.P(g.Text("Not measured yet: that is done once a day."))
	}
	total := disk.Total()
	note := "measured " + disk.Measured.In(d.Zone).Format("2 January, 15:04")
	if disk.Grown > 0 {
		note = bytes(disk.Grown) + " more in the last week; " + note
	}
	if disk.Free > 0 {
		note = bytes(int64(min(disk.Free, math.MaxInt64))) + " free; " + note
	}
	parts := slices.SortedFunc(maps.Keys(disk.Bytes), func(a, b string) int {
		return cmp.Or(cmp.Compare(disk.Bytes[b], disk.Bytes[a]), cmp.Compare(a, b))
	})
	return g.Group{
		h.P(h.B(g.Text(bytes(total)+" ")), h.Small(g.Text(note))),
		h.Ul(h.Class("parts"), g.Map(parts[:min(len(parts), 6)], func(name string) g.Node {
			n := disk.Bytes[name]
			return h.Li(h.Span(g.Text(name)), h.Meter(h.Max("100"), h.Value(share(n, total)),
				h.Aria("label", name+" of all")), h.Span(g.Text(bytes(n))))
		})),
	}
}

// share returns n of total in percent.
func share(n, total int64) string {
	return strconv.FormatFloat(math.Round(1000*float64(n)/float64(max(total, 1)))/10, 'f', -1, 64)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// amount returns a number in three digits: 12, 1.23k, 45.6M, 789k.
func amount(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v < unit.size {
			continue
		}
		places := 2
		for most := 9.995; v/unit.size >= most && places > 0; most *= 10 {
			places--
		}
		return strconv.FormatFloat(v/unit.size, 'f', places, 64) + unit.name
	}
	return strconv.FormatFloat(math.Round(v), 'f', -1, 64)
}

func seconds(v float64) string { return span(time.Duration(v * float64(time.Second))) }

// span returns a length of time for people.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.0f h", d.Hours())
}

func bytes(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d bytes", n)
	}
	return amount(float64(n)) + "B"
}
