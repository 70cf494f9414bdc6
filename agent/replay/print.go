package replay

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"parley/agent/conversation"
	"parley/chat"
	"parley/llm"
	"parley/texts"
)

// A Printer prints turns for people.
type Printer struct {
	Out      io.Writer
	Zone     *time.Location // of the times that are printed
	Requests bool           // also print all that the model was shown

	system string // digest of the instructions that were printed last
}

// Lines of a text that are printed.
const (
	allLines    = 1 << 30
	resultLines = 6
)

// Print prints t.
func (p *Printer) Print(t Turn) {
	p.printRemoved(t.Removed)
	p.line("Turn %d, conversation %d", t.N, t.Talk)
	if t.Back != nil {
		p.line("  went back to an earlier place: goes on from record %d", *t.Back)
	}
	for _, e := range t.Events {
		p.printEvent(e)
	}
	p.line("")
}

// PrintNone prints that r has no turns, and why.
func (p *Printer) PrintNone(r *Recording) {
	p.printRemoved(r.removed)
	p.line("There are no turns.")
}

// printRemoved prints that what was said before a time was removed, unless that is zero.
func (p *Printer) printRemoved(before time.Time) {
	if !before.IsZero() {
		day := before.In(p.Zone).Format(time.DateOnly)
		p.line("What was said before %s was removed because it was old, but for what the model was still shown.\n", day)
	}
}

func (p *Printer) printEvent(e Event) {
	if e.Asked != nil {
		p.printRequest(e)
	}
	switch {
	case e.Heard != nil || e.Retried != nil:
		p.printMessage(*cmp.Or(e.Heard, e.Retried))
	case e.Said != nil && e.Said.Role == llm.Assistant:
		p.printAnswer(*e.Said)
	case e.Finished != nil:
		p.printResult(e)
	case e.RolledBack != "":
		p.text("↩ rolled back", e.RolledBack, allLines)
	case e.Summed != nil:
		p.text("what was said before, summed up", e.Summed.Text, allLines)
	case e.Ended != nil:
		p.line("  %s", chat.OneLine(string(e.Ended.Outcome)))
		if e.Ended.Reply != nil {
			p.text("reply", e.Ended.Reply.Text, allLines)
		}
	}
}

func (p *Printer) line(format string, args ...any) { fmt.Fprintf(p.Out, format+"\n", args...) }

// text prints what others wrote, indented below a heading. Lines beyond the limit
// are left out.
func (p *Printer) text(heading, text string, limit int) {
	p.line("  %s", chat.OneLine(heading))
	n := 0
	for line := range strings.Lines(chat.Printable(text)) {
		if n++; n > limit {
			p.line("      …")
			return
		}
		p.line("      %s", strings.TrimRight(line, "\n"))
	}
}

// printMessage prints a message to the agent.
func (p *Printer) printMessage(m chat.Message) {
	sent := m.Time.In(p.Zone).Format("2006-01-02 15:04")
	heading := sent + "  " + conversation.Speaker(texts.English().Agent.Speakers, m)
	if m.Edits != "" {
		heading += ", corrected"
	}
	for _, f := range m.Files {
		heading += ", with " + cmp.Or(f.Path, f.Name)
	}
	p.text(heading, cmp.Or(m.Text, m.Media), allLines)
}

// printAnswer prints a message of the model.
func (p *Printer) printAnswer(m llm.Message) {
	heading := cmp.Or(m.Model, "said")
	if u := m.Usage; u != (llm.Usage{}) {
		heading += fmt.Sprintf(" (%d tokens in, %d of them from cache, %d out)", u.In, u.Cached, u.Out)
	}
	p.text(heading, m.Text, allLines)
	for _, c := range m.Calls {
		p.text("calls "+c.Name+", as "+c.ID, c.Args, allLines)
	}
}

// printRequest prints a request to the model.
func (p *Printer) printRequest(e Event) {
	if e.Request == nil {
		p.line("  asked, and what is not kept")
		return
	}
	p.line("  asked with %d messages and %d tools", len(e.Request.Messages), len(e.Request.Tools))
	if e.Asked.Refused {
		p.line("  the provider refused the pictures")
	}
	if !p.Requests {
		return
	}
	if p.system != e.Asked.System {
		p.text("  system "+e.Asked.System, e.Request.System, allLines)
	}
	p.system = e.Asked.System
	for _, m := range e.Request.Messages {
		text := m.Text
		for _, c := range m.Calls {
			text += fmt.Sprintf("\n→ %s %s", c.Name, c.Args)
		}
		p.text("  "+string(m.Role), text, allLines)
	}
}

// printResult prints the result of a call.
func (p *Printer) printResult(e Event) {
	heading := e.Finished.Name + " gave"
	r := e.Result
	if r == nil {
		p.text(heading, e.Finished.Text, resultLines)
		return
	}
	if r.Took > 0 {
		heading += ", in " + r.Took.Round(time.Microsecond).String()
	}
	for _, flag := range []struct {
		set  bool
		text string
	}{
		{r.Failed, "failed"},
		{r.Cached, "cached"},
		{r.Skipped, "skipped"},
		{r.By != "", "approved by " + r.By},
		{r.Verdict != "", string(r.Verdict)},
		{r.Tainted, "untrusted"},
		{r.Cut, "cut"},
	} {
		if flag.set {
			heading += ", " + flag.text
		}
	}
	p.text(heading, e.Finished.Text, resultLines)
}
