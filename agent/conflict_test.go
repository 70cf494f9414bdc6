package agent_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/store/mem"
	"parley/timetest"
)

// ownInbox is a Store that is shared but for the inbox.
type ownInbox struct{ store.Store }

func (s ownInbox) Queue(name string) store.Queue {
	if name == store.QueueInbox {
		name += " of another"
	}
	return s.Store.Queue(name)
}

// another opens a house on the store of h whose replies go where those of h go. Each has an
// inbox of its own, so that the test says who answers what.
func (h *house) another(t *testing.T) *house {
	other := &house{
		t: t, store: ownInbox{h.store}, model: echo,
		conf: func(c *agent.Config) { c.Send = h.send },
	}
	other.start()
	return other
}

// P3 P9: whoever has a session in memory to which somebody else has appended writes nothing of
// what it made of that, reads the session anew, and answers once.
func TestSessionOfAnotherWorker(t *testing.T) {
	h := &house{store: mem.New(), model: echo}
	play(t, h, func(h *house) {
		other := h.another(h.t)
		defer other.stop()
		h.say("1", "one")
		h.want("You said one")
		other.say("2", "two")
		h.want("You said two")
		h.say("3", "three") // with the session as it was after "one"
		h.want()
		timetest.Sleep(time.Minute)
		h.want("You said three")
		if n := len(h.asks); n != 3 {
			t.Fatalf("%d requests, want one for the first message and two for the last", n)
		}
		want := "user one | assistant You said one | user two | assistant You said two | user three"
		if got := spoken(h.asks[2], 9); got != want {
			t.Errorf("asked %s\nwant  %s", got, want)
		}
		said := slices.DeleteFunc(h.transcript("test:1"), func(line string) bool { return !strings.Contains(line, "three") })
		if len(said) != 2 {
			t.Errorf("the session has %q, want the message and its answer", said)
		}
	})
}

// A turn that somebody else has taken over and ended meanwhile, as while this process was
// asleep, ends without a word: what the other has answered is the answer.
func TestTurnTakenOver(t *testing.T) {
	for _, c := range []struct {
		name  string
		model func() (llm.Message, error)
	}{
		{"it answers", func() (llm.Message, error) { return words("the answer of a sleeper"), nil }},
		{"it wants a tool", func() (llm.Message, error) { return calls(call("1", "change")), nil }},
		{"it fails", func() (llm.Message, error) { return llm.Message{}, &llm.Error{Kind: llm.BadRequest, Err: errBusy} }},
		{"it panics", func() (llm.Message, error) { panic("asleep for too long") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			wake := make(chan struct{})
			ran := 0
			var ends collected[string]
			var log strings.Builder
			h := &house{store: mem.New(), model: func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
				<-wake
				return c.model()
			}}
			h.conf = func(c *agent.Config) {
				c.Log = slog.New(slog.NewTextHandler(&log, nil))
				c.Begun = func(ctx context.Context, _ chat.SessionID, _ chat.Message) (context.Context, func(string)) {
					return ctx, ends.add
				}
			}
			h.tools = append(h.tools, tool("change", func(context.Context) (string, error) { ran++; return "changed", nil }))
			timetest.Test(t, func(t *testing.T) {
				h.t = t
				wake = make(chan struct{})
				h.start()
				defer func() { h.stop() }()
				other := h.another(t)
				defer other.stop()
				m := message("1", "hi")
				h.deliver(m)
				synctest.Wait()
				other.deliver(m)
				h.want("You said hi")
				close(wake)
				timetest.Sleep(time.Minute)
				h.want()
				if len(h.asks) != 1 || ran != 0 {
					t.Errorf("asked %d times, %d tools have run", len(h.asks), ran)
				}
				if how := ends.values(); !slices.Equal(how, []string{"", ""}) { // one that goes on, one with nothing to answer
					t.Errorf("turns have ended %q", how)
				}
				if text := log.String(); !strings.Contains(text, "turn broken off") || strings.Contains(text, "turn failed") && c.name != "it fails" {
					t.Errorf("logged %s", text)
				}
				if n, err := h.store.Queue(store.QueueInbox).Len(t.Context()); n != 0 || err != nil {
					t.Errorf("%d messages are left: %v", n, err)
				}
				if got := h.transcript("test:1"); len(got) != 2 {
					t.Errorf("the session has %q, want the message and its answer", got)
				}
			})
		})
	}
}

// A session whose records were all removed goes on, also after a restart.
func TestSessionThatWasTrimmed(t *testing.T) {
	play(t, &house{model: echo}, func(h *house) {
		for i := range 3 {
			h.say(fmt.Sprint("a", i), "hi")
			h.want("You said hi")
			if err := h.store.Log(store.LogSession("test:1", "")).Trim(h.t.Context(), store.Any); err != nil {
				h.t.Fatal(err)
			}
			h.say(fmt.Sprint("b", i), "again")
			h.want("You said again")
			if err := h.store.Log(store.LogSession("test:1", "")).Trim(h.t.Context(), store.Any); err != nil {
				h.t.Fatal(err)
			}
			h.stop()
			h.start()
		}
	})
}
