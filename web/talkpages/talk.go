package talkpages

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/channels/markdown"
	"parley/chat"
	"parley/store"
	"parley/web/layout"
)

const (
	turnsPerPage = 50
	maxText      = 20_000 // bytes of a text, of arguments or of a result on a page; the export has all of it
)

// talk serves one conversation, its latest turns unless another part of it is asked for.
func (p *Pages) talk(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	id := chat.SessionID(r.PathValue("id"))
	turns, err := p.Turns(r.Context(), id)
	if err != nil {
		return err
	}
	if len(turns) == 0 {
		return store.ErrNotFound
	}
	names := map[string]string{}
	if p.Names != nil {
		if names, err = p.Names(r.Context()); err != nil {
			return err
		}
	}
	before, _ := strconv.Atoi(r.FormValue("before")) // 0 if it is no number
	end := len(turns)
	if before > 0 {
		end = min(before, end)
	}
	first := max(end-turnsPerPage, 0)
	at := placeOf(id)
	api := layout.Path("api", "sessions", string(id))
	return layout.Frame{
		Path:  talkPath(id),
		Title: "Conversation",
		Lead:  at.title() + ", " + whoIs(string(id), map[string]string{string(id): names[at.chat]}),
		Actions: g.Group{
			h.A(h.Class("button"), h.Href(api+"/export"), h.Download("conversation.md"), g.Text("Export as text")),
			h.A(h.Class("button"), h.Href(api), h.Download("conversation.json"), g.Text("Export as JSON")),
			h.Button(h.Data("delete", api), layout.Confirmation("Delete this conversation for ever?"),
				h.Data("then", pagePath), g.Text("Delete")),
		},
		Assets: []string{"talks.css"},
		Content: g.Group{
			p.totals(turns),
			p.others(id, first, end, len(turns)),
			h.Ol(h.Class("turns"), g.Map(turns[first:end], p.turn)),
			g.If(end < len(turns), p.others(id, first, end, len(turns))),
			h.P(h.Class("lead"), g.Text("A conversation contains whatever secrets were said in it.")),
		},
	}.Write(w)
}

// totals returns what all turns took together.
func (p *Pages) totals(turns []chat.Turn) g.Node {
	var sum chat.Turn
	answered, calls := 0, 0
	failed := 0
	var began, last time.Time
	for _, t := range turns {
		sum.Read += t.Read
		sum.Written += t.Written
		sum.Cost += t.Cost
		sum.Unpriced += t.Unpriced
		spoke := false
		for _, part := range t.Parts {
			if began.IsZero() {
				began = part.Entry.Time
			}
			last = part.Entry.Time
			spoke = spoke || part.Entry.Kind == chat.Heard
			if part.Step == nil {
				continue
			}
			calls++
			if part.Step.State == chat.Failed {
				failed++
			}
		}
		if spoke {
			answered++
		}
	}
	now := time.Now().In(p.Zone)
	trouble := "none failed"
	if failed > 0 {
		trouble = fmt.Sprintf("%d failed", failed)
	}
	if calls == 0 {
		trouble = ""
	}
	cost := "–"
	note := "no prices are known"
	if sum.Read+sum.Written == 0 {
		note = "nothing was used"
	} else if sum.Unpriced < sum.Read+sum.Written {
		cost = layout.Money(sum.Cost)
		note = "by the prices of today"
		if sum.Unpriced > 0 {
			note = "and more: some prices are not known"
		}
	}
	when := "since " + p.moment(began, now) + ", the last at " + p.moment(last, now)
	return layout.Stats(
		layout.Stat("Turns", layout.Grouped(answered), when),
		layout.Stat("Steps", layout.Grouped(calls), trouble),
		layout.Stat("Tokens", layout.Grouped(sum.Read+sum.Written),
			layout.Grouped(sum.Read)+" read, "+layout.Grouped(sum.Written)+" written"),
		layout.Stat("Money", cost, note),
	)
}

// others returns links to the turns that the page does not show.
func (p *Pages) others(id chat.SessionID, first, end, all int) g.Node {
	if first == 0 && end == all {
		return nil
	}
	link := func(before int, label string) g.Node {
		return layout.LinkButton(talkPath(id)+"?"+url.Values{"before": {strconv.Itoa(before)}}.Encode(), label)
	}
	return h.P(h.Class("actions"),
		g.If(first > 0, link(first, "Earlier")),
		g.If(end < all, link(min(end+turnsPerPage, all), "Later")),
		h.Small(g.Textf("Turns %d to %d of %d", first+1, end, all)),
	)
}

func (p *Pages) turn(t chat.Turn) g.Node {
	if len(t.Parts) == 1 && (t.Parts[0].Entry.Kind == chat.Began || t.Parts[0].Entry.Kind == chat.Removed) {
		e := t.Parts[0].Entry
		words := "A new conversation began"
		if e.Kind == chat.Removed {
			words = capital(strings.Trim(e.Text, "[]"))
		}
		return h.Li(h.Class("mark"), h.Span(g.Text(words)), g.Text(" "), p.time(e.Time))
	}
	var content g.Group
	for i := 0; i < len(t.Parts); i++ {
		if t.Parts[i].Step == nil {
			content = append(content, p.entry(t.Parts[i].Entry))
			continue
		}
		var steps g.Group
		for ; i < len(t.Parts) && t.Parts[i].Step != nil; i++ {
			steps = append(steps, p.step(t.Parts[i], t.Open))
		}
		i--
		content = append(content, h.Ol(h.Class("steps"), steps))
	}
	return h.Li(content, g.If(t.Read+t.Written > 0, h.P(h.Class("cost"), g.Text(spent(t)))))
}

// spent says what a turn took.
func spent(t chat.Turn) string {
	text := fmt.Sprintf("%s tokens read, %s written", layout.Grouped(t.Read), layout.Grouped(t.Written))
	if t.Unpriced < t.Read+t.Written {
		text += ", " + layout.Money(t.Cost)
		if t.Unpriced > 0 {
			text += " and more"
		}
	}
	return text
}

func (p *Pages) time(t time.Time) g.Node {
	if t.IsZero() {
		return nil
	}
	t = t.In(p.Zone)
	return h.Time(h.DateTime(t.Format(time.RFC3339)), h.Title(t.Format("2006-01-02 15:04:05 MST")),
		g.Text(p.moment(t, time.Now().In(p.Zone))))
}

// entry returns what was said, and by whom.
func (p *Pages) entry(e chat.Entry) g.Node {
	files := g.Map(e.Files, func(f chat.File) g.Node {
		return h.P(h.Class("file"), g.Text(cmp.Or(f.Name, f.Path, "a file")))
	})
	text := e.Text
	if len(text) > maxText {
		text = chat.Clip(text, maxText, "…")
	}
	switch e.Kind {
	case chat.Heard:
		return h.Div(h.Class("heard"),
			h.P(h.Class("who"), h.B(g.Text(cmp.Or(e.Who, "Somebody"))), g.Text(" "), p.time(e.Time)),
			g.If(text != "", h.P(h.Class("text"), g.Text(text))), files)
	case chat.Said:
		return h.Div(h.Class("said"),
			h.P(h.Class("who"), h.B(g.Text("Parley")), g.If(e.Who != "", h.Small(g.Text(" "+e.Who)))),
			h.Div(h.Class("prose"), g.Raw(markdown.HTML(text))), files)
	case chat.Ended:
		return h.P(h.Class("end"), layout.Status(ending(text), capital(text)))
	case chat.Lost:
		return h.P(h.Class("end"), layout.Status(layout.Warn, capital(strings.Trim(text, "[]"))))
	}
	return h.P(h.Class("end"), layout.Status(layout.Idle, capital(strings.Trim(text, "[]"))))
}

// ending returns how bad it is that a turn ended in this way: people stop turns, and limits are there to be kept.
func ending(how string) layout.State {
	if strings.HasPrefix(how, "failed") || strings.HasPrefix(how, "parked") {
		return layout.Bad
	}
	return layout.Idle
}

func capital(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// step returns a call with what came of it. Open says that its turn goes on.
func (p *Pages) step(part chat.Part, open bool) g.Node {
	s := part.Step
	state, words := outcome(*s, open)
	if part.Retried {
		words += ", tried another way"
	}
	var facts []string
	if !s.Began.IsZero() {
		facts = append(facts, s.Began.In(p.Zone).Format("15:04:05"))
	}
	if s.Took > 0 {
		facts = append(facts, took(s.Took))
	}
	if part.By != "" {
		facts = append(facts, "approved by "+part.By)
	}
	if part.Receipt != "" {
		facts = append(facts, "receipt "+part.Receipt)
	}
	body := g.Group{
		g.If(len(facts) > 0, h.P(h.Class("facts"), g.Text(strings.Join(facts, " · ")))),
		label("Arguments"), pre("Arguments of "+s.Name, arguments(part.Entry.Text)),
	}
	if s.State.Over() {
		title := "Result"
		if s.State == chat.Refused {
			title = "What the model was told"
		}
		body = append(body, label(title), pre(title+" of "+s.Name, cmp.Or(part.Result, s.Result, s.Error, "–")))
	}
	tip := s.Tip
	if s.State == chat.Failed || s.State == chat.Refused {
		tip = cmp.Or(s.Error, s.Tip)
	}
	return h.Li(h.Details(
		h.Summary(
			h.Span(h.Class("tool"), h.B(g.Text(s.Name)), g.If(s.Name != s.Tool, h.Small(g.Text(s.Tool)))),
			h.Span(h.Class("tip"), g.Text(tip)),
			h.Span(h.Class("how"), layout.Status(state, words), g.If(s.Took > 0, h.Small(g.Text(took(s.Took))))),
		),
		h.Div(h.Class("more"), body),
	))
}

// outcome says how a call ended. One that was not allowed is no failure.
func outcome(s chat.Step, open bool) (layout.State, string) {
	switch s.State {
	case chat.Done:
		return layout.Good, "done"
	case chat.Failed:
		return layout.Bad, "failed"
	case chat.Refused:
		return layout.Idle, "not allowed"
	case chat.Interrupted:
		return layout.Warn, "interrupted"
	case chat.Running:
		return layout.Busy, "running"
	}
	if open {
		return layout.Busy, "waits"
	}
	return layout.Idle, "not made"
}

func label(text string) g.Node { return h.P(h.Class("label"), g.Text(text)) }

// pre returns text as it is, whatever it is.
func pre(label, text string) g.Node {
	if len(text) > maxText {
		text = chat.Clip(text, maxText, "\n… the export has the rest")
	}
	return h.Pre(h.TabIndex("0"), h.Role("group"), h.Aria("label", label), g.Text(text))
}

// arguments returns those of a call in lines, if they are JSON.
func arguments(text string) string {
	var out bytes.Buffer
	if json.Indent(&out, []byte(text), "", "  ") != nil {
		return cmp.Or(text, "none")
	}
	return out.String()
}

// took returns a number of milliseconds for people.
func took(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", ms)
	case d < 2*time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f min", d.Minutes())
}
