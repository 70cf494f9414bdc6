// Package cards shows the questions of the agent on the web page as cards: who asks, what can be answered, and
// afterwards what was.
package cards

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/channels/markdown"
	"parley/channels/web/parts"
	"parley/chat"
	"parley/response"
)

// A Card is a question as the page shows it. The text of the question stands between its head and its body.
type Card struct {
	Question *chat.Question // nil: there is none
	Outcome  *chat.Outcome  // nil: it is open
}

// Waits reports whether somebody waits for the answer.
func (c Card) Waits() bool { return c.Question != nil && c.Outcome == nil && !c.Question.Say }

// IsCard reports whether the question looks like one. Buttons that only say something do not.
func (c Card) IsCard() bool { return c.Question != nil && !c.Question.Say }

// TextID is the ID of the element with the text of the question.
func (c Card) TextID() string { return "what-" + c.Question.ID }

func (c Card) headID() string { return "who-" + c.Question.ID }

// Head says who asks.
func (c Card) Head() g.Node {
	if !c.IsCard() {
		return nil
	}
	what, symbol := " asks", "ask"
	switch {
	case c.Question.Approval && c.Outcome != nil:
		what, symbol = " asked for approval", "shield"
	case c.Question.Approval:
		what, symbol = " asks for your approval", "shield"
	case c.Outcome != nil:
		what = " asked"
	}
	return h.P(h.Class("asker"), h.ID(c.headID()), parts.Icon(symbol),
		h.Span(h.B(g.Text(cmp.Or(c.Question.Asker, "Parley"))), g.Text(what)))
}

// Body has what can be answered, or what was.
func (c Card) Body() g.Node {
	switch {
	case c.Question == nil:
		return nil
	case c.Outcome != nil:
		return c.outcome()
	case len(c.Question.Fields) > 0:
		return c.form()
	}
	labels := g.Group{h.Aria("labelledby", c.headID()), h.Aria("describedby", c.TextID())}
	if !c.IsCard() {
		labels = g.Group{h.Aria("label", "Choose an answer")}
	}
	buttons := h.Div(h.Class("ask"), h.Role("group"), labels, h.Data("question", c.Question.ID),
		g.If(c.Question.Approval, h.Data("approval", "")), c.buttons(),
		g.If(c.IsCard() && c.Question.Free, h.P(h.Class("own"), g.Text("Or write your answer below."))))
	return buttons
}

func (c Card) form() g.Node {
	var fields g.Group
	for i, f := range c.Question.Fields {
		if f.Format == chat.FormatDate || f.Format == chat.FormatDateTime {
			f.Hint = "" // there is a calendar
		}
		fields = append(fields, formField{f, fmt.Sprintf("%s-%d", c.Question.ID, i)}.node())
	}
	return response.ScriptForm(h.Class("ask form"), h.Aria("label", "Fill in and send"), g.Attr("novalidate"),
		h.Data("question", c.Question.ID), fields, h.Div(h.Class("choices"), c.buttons()))
}

// buttons returns a button for each choice. The one that sends values submits the form.
func (c Card) buttons() (buttons g.Group) {
	for i, choice := range c.Question.Choices {
		kind := "button"
		if c.Question.TakesValues(i) {
			kind = "submit"
		}
		buttons = append(buttons, h.Button(h.Type(kind), h.Data("choice", strconv.Itoa(i)), g.Text(choice)))
	}
	return buttons
}

// outcome says what was answered, by whom and when.
func (c Card) outcome() g.Node {
	o := c.Outcome
	how, symbol := "yes", "done"
	switch {
	case o.Answer == "":
		how, symbol = "gone", "close"
	case c.Question.Approval && o.Choice == 1:
		how, symbol = "no", "close"
	}
	return h.Div(h.Class("outcome"), h.Data("how", how),
		h.P(parts.Icon(symbol), h.Span(h.B(g.Text(cmp.Or(o.Answer, "No longer asked"))),
			g.If(o.By != "", g.Text(" · "+o.By)), g.Text(" · "),
			h.Time(h.DateTime(o.Time.UTC().Format(time.RFC3339)), g.Text(o.Time.UTC().Format("15:04 UTC"))))),
		g.If(o.Filled != "", h.Div(h.Class("filled"), g.Raw(markdown.HTML(o.Filled)))))
}

// Text returns the text of the question with what was answered, in Markdown, for who takes it along.
func (c Card) Text(text string) string {
	o := c.Outcome
	if o == nil {
		return text
	}
	words := []string{"**" + o.Answer + "**", o.By, o.Time.UTC().Format("2006-01-02 15:04 UTC")}
	if o.Answer == "" {
		words[0] = "*No longer asked*"
	}
	if o.By == "" {
		words = append(words[:1], words[2])
	}
	return text + "\n\n→ " + strings.Join(words, " · ") + o.Filled
}
