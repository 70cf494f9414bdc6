package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/admin"
	"parley/agent"
	"parley/agent/conversation"
	"parley/agent/replay"
	"parley/chat"
	"parley/config"
	"parley/llm"
	"parley/store/mem"
	"parley/texts"
)

// A turnPrinter prints turns, or runs them again.
type turnPrinter struct {
	out           io.Writer
	zone          *time.Location // of the times that are printed
	turn          int            // 0: all; negative: counted from the end
	run, requests bool
	system        string // that was printed last
}

// replayCommand prints and runs again what was recorded of a session.
func (p *program) replayCommand() *cobra.Command {
	v, save := turnPrinter{}, ""
	c := &cobra.Command{
		Use: "replay SESSION|FILE", Args: cobra.ExactArgs(1),
		Short: "Print the turns of a conversation with all that models and tools were asked, or run them again",
	}
	c.Flags().IntVar(&v.turn, "turn", 0, "the `number` of the only turn: 1 is the first, -1 the last")
	c.Flags().BoolVar(&v.run, "run", false, "run the turns again, with the answers and results recorded, and say what is not as it was")
	c.Flags().BoolVar(&v.requests, "requests", false, "print all that the model was shown, too")
	c.Flags().StringVar(&save, "save", "", "write the recording to a new `file`, which replay can read")
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx, stop := untilSignal(c.Context(), os.Interrupt)
		defer stop()
		raw, zone, err := p.recording(ctx, args[0])
		if err != nil {
			return err
		}
		if save != "" {
			if wrote, err := config.WriteNew(save, raw); err != nil || !wrote {
				return cmp.Or(err, fmt.Errorf("%s is there already", save))
			}
		}
		r, err := replay.Read(bytes.NewReader(raw))
		if err != nil {
			return err
		}
		v.out, v.zone = p.stdout, zone
		return v.show(ctx, r)
	}
	return c
}

// recording reads the file of that name, or else what the gateway recorded of
// the session. The zone is that of the gateway, or of the machine.
func (p *program) recording(ctx context.Context, name string) (raw []byte, zone *time.Location, err error) {
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
		raw, err = os.ReadFile(name)
		return raw, time.Local, err
	}
	a, err := p.admin(ctx)
	if err != nil {
		return nil, nil, err
	}
	raw, err = a.Recording(ctx, name)
	return raw, a.Zone, errors.Join(err, a.Close())
}

// show prints the turns that are wanted, or runs them again.
func (v *turnPrinter) show(ctx context.Context, r *replay.Recording) error {
	n := 0
	for t := range r.Turns() {
		n = t.N
	}
	want := v.turn
	if want < 0 {
		want += n + 1
	}
	if v.turn != 0 && (want < 1 || want > n) {
		return fmt.Errorf("there is no turn %d; there are %d", v.turn, n)
	}
	ran, different := 0, 0
	for t := range r.Turns() {
		if want != 0 && t.N != want {
			continue
		}
		if !v.run {
			v.print(t)
			continue
		}
		all, err := agent.Rerun(ctx, mem.New(), r, t)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			v.line("turn %d: %v", t.N, err)
			continue
		case len(all) == 0:
			v.line("turn %d: the same", t.N)
		}
		for _, d := range all {
			v.line("turn %d: %s", t.N, chat.OneLine(d))
		}
		ran++
		different += min(len(all), 1)
	}
	switch {
	case different > 0:
		return fmt.Errorf("turns that are not as they were: %d", different)
	case v.run && ran == 0:
		return errors.New("no turn was re-run")
	}
	return nil
}

func (v *turnPrinter) line(format string, args ...any) { fmt.Fprintf(v.out, format+"\n", args...) }

// text prints what others wrote, at most so many lines of it, set in under a head.
func (v *turnPrinter) text(head, text string, most int) {
	v.line("  %s", chat.OneLine(head))
	n := 0
	for line := range strings.Lines(chat.Printable(text)) {
		if n++; n > most {
			v.line("      …")
			return
		}
		v.line("      %s", strings.TrimRight(line, "\n"))
	}
}

const (
	whole = 1 << 30 // lines
	few   = 6       // lines of a result
)

func (v *turnPrinter) print(t replay.Turn) {
	v.line("Turn %d, conversation %d", t.N, t.Talk)
	for _, e := range t.Events {
		if e.Asked != nil {
			v.asked(e)
		}
		switch {
		case e.Heard != nil || e.Retried != nil:
			v.heard(*cmp.Or(e.Heard, e.Retried))
		case e.Said != nil && e.Said.Role == llm.Assistant:
			head := cmp.Or(e.Said.Model, "said")
			if u := e.Said.Usage; u != (llm.Usage{}) {
				head += fmt.Sprintf(" (%d tokens in, %d of them from cache, %d out)", u.In, u.Cached, u.Out)
			}
			v.text(head, e.Said.Text, whole)
			for _, c := range e.Said.Calls {
				v.text("calls "+c.Name+", as "+c.ID, c.Args, whole)
			}
		case e.Finished != nil:
			v.gave(e)
		case e.RolledBack != "":
			v.text("↩ rolled back", e.RolledBack, whole)
		case e.Summed != nil:
			v.text("what was said before, summed up", e.Summed.Text, whole)
		case e.Ended != nil:
			v.line("  %s", chat.OneLine(string(e.Ended.Outcome)))
			if e.Ended.Reply != nil {
				v.text("reply", e.Ended.Reply.Text, whole)
			}
		}
	}
	v.line("")
}

func (v *turnPrinter) heard(m chat.Message) {
	head := admin.Moment(m.Time, v.zone) + "  " + conversation.Speaker(texts.English().Agent.Speakers, m)
	if m.Edits != "" {
		head += ", corrected"
	}
	for _, f := range m.Files {
		head += ", with " + cmp.Or(f.Path, f.Name)
	}
	v.text(head, cmp.Or(m.Text, m.Media), whole)
}

// asked prints a request.
func (v *turnPrinter) asked(e replay.Event) {
	if e.Request == nil {
		v.line("  asked, and what is not kept")
		return
	}
	v.line("  asked with %d messages and %d tools", len(e.Request.Messages), len(e.Request.Tools))
	if e.Asked.Refused {
		v.line("  the provider refused the pictures")
	}
	if !v.requests {
		return
	}
	if v.system != e.Asked.System {
		v.text("  system "+e.Asked.System, e.Request.System, whole)
	}
	v.system = e.Asked.System
	for _, m := range e.Request.Messages {
		text := m.Text
		for _, c := range m.Calls {
			text += fmt.Sprintf("\n→ %s %s", c.Name, c.Args)
		}
		v.text("  "+string(m.Role), text, whole)
	}
}

// gave prints what came of a call.
func (v *turnPrinter) gave(e replay.Event) {
	head := e.Finished.Name + " gave"
	if r := e.Result; r != nil {
		if r.Took > 0 {
			head += ", in " + r.Took.Round(time.Microsecond).String()
		}
		for _, flag := range []struct {
			on   bool
			what string
		}{
			{r.Failed, "failed"}, {r.Cached, "cached"}, {r.Skipped, "skipped"}, {r.By != "", "approved by " + r.By},
			{r.Verdict != "", string(r.Verdict)}, {r.Tainted, "untrusted"}, {r.Cut, "cut"},
		} {
			if flag.on {
				head += ", " + flag.what
			}
		}
	}
	v.text(head, e.Finished.Text, few)
}
