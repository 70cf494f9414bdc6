package console

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/chat"
)

// C-007, C-014: what is told of a step, and what is not.
func TestTold(t *testing.T) {
	began := time.Unix(1000, 0)
	over := chat.Step{Tool: "read_file", Tip: "notes.md", State: chat.Done, Began: began, Ended: began.Add(200 * time.Millisecond), Took: 200}
	failed := over
	failed.State, failed.Error = chat.Failed, "no such\nfile"
	for want, s := range map[string]chat.Step{
		"":                                   {Tool: "read_file", State: chat.Waiting, Tip: "notes.md"},
		"  🔧 read_file notes.md":             {Tool: "read_file", State: chat.Running, Tip: "notes.md"},
		"  🔧 Read":                           {Tool: "read_file", Name: "Read", State: chat.Running},
		"  ✅ read_file, 0.2 s":               over,
		"  ✅ clock":                          {Tool: "clock", State: chat.Done},
		"  ❌ read_file, 0.2 s: no such file": failed,
		"  🔧 x " + strings.Repeat("ä", 93) + "…": {Tool: "x", State: chat.Running, Tip: strings.Repeat("ä", 200)},
	} {
		if got := stepLine(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Terminals are told of each step once, in order with the text; pipes are not.
func TestStepsThroughSocket(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, h *testGateway) {
		a, p := h.connect(ctx, asTerminal), h.connect(ctx, asPipe)
		for _, g := range []rawClient{a, p} {
			_, hangUp := g.start(ctx)
			defer hangUp()
		}
		synctest.Wait()
		r := chat.Reply{ID: "1", To: here}
		for i := range 20 {
			s := chat.Step{Call: fmt.Sprint(i), Tool: "clock", State: chat.Waiting}
			h.Step(r, s)
			for range 3 {
				r.Text += "."
				h.Stream(r)
			}
			s.State = chat.Running
			h.Step(r, s)
			h.Step(r, s)
			s.State = chat.Done
			h.Step(r, s)
		}
		h.Step(chat.Reply{ID: "2", To: chat.Address{Chat: "elsewhere"}}, chat.Step{Call: "x", State: chat.Running})
		for i := range 20 {
			for _, want := range []frame{
				{Kind: frameDraft, ID: "1", Text: strings.Repeat(".", 3*i+3)},
				{Kind: frameStep, ID: "1", Text: "  🔧 clock"}, {Kind: frameStep, ID: "1", Text: "  ✅ clock"},
			} {
				f := <-a.frames
				for f.Kind == frameDraft && f.Text != want.Text { // it was quick to take an earlier one
					f = <-a.frames
				}
				if f.Kind != want.Kind || f.Text != want.Text {
					t.Fatalf("round %d: got %+v, want %+v", i, f, want)
				}
			}
		}
		synctest.Wait()
		select {
		case f := <-a.frames:
			t.Errorf("and %+v", f)
		case f := <-p.frames:
			t.Errorf("the pipe was told %+v", f)
		default:
		}
	})
}

// A message that a tool has sent is shown; that it was sent is not.
func TestNoStepOfAMessage(t *testing.T) {
	for state, want := range map[chat.StepState]string{
		chat.Running: "", chat.Done: "", chat.Failed: "  ❌ message: no such chat",
	} {
		step := chat.Step{Tool: "message", State: state, Error: "no such chat"}
		if got := stepLine(step); got != want {
			t.Errorf("%s: got %q, want %q", state, got, want)
		}
	}
}
