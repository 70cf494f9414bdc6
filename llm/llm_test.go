package llm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/llm"
	"parley/llm/llmtest"
	"parley/timetest"
)

func fail(kind llm.Kind, after time.Duration) llmtest.Answer {
	return llmtest.Answer{Err: &llm.Error{Kind: kind, After: after, Err: errors.New("scripted")}}
}

// A recorder collects what is streamed, and counts resets.
type recorder struct {
	text   string
	resets int
}

func (r *recorder) record(d llm.Delta) {
	if d.Reset {
		r.text = ""
		r.resets++
	}
	r.text += d.Text
}

// P11: temporary errors are retried, 4 attempts in all; others are not.
func TestRetry(t *testing.T) {
	for _, c := range []struct {
		kind  llm.Kind
		after time.Duration
		tries int
	}{
		{llm.RateLimited, 0, 4}, {llm.Overloaded, 0, 4}, {llm.Cut, 0, 4}, {llm.TimedOut, 0, 4}, {llm.Unreachable, 0, 4},
		{llm.Auth, 0, 1}, {llm.Quota, 0, 1}, {llm.BadRequest, 0, 1}, {llm.TooLong, 0, 1},
		{llm.RateLimited, time.Minute, 4}, {llm.RateLimited, time.Minute + 1, 1},
	} {
		t.Run(fmt.Sprint(c.kind, c.after), func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				s := &llmtest.Script{Else: func(llm.Request) llmtest.Answer { return fail(c.kind, c.after) }}
				start := time.Now()
				_, err := llm.Retry(s).Generate(t.Context(), llm.Request{}, nil)
				var e *llm.Error
				if !errors.As(err, &e) || e.Kind != c.kind || len(s.Seen()) != c.tries {
					t.Fatalf("got %v after %d tries, want %d", err, len(s.Seen()), c.tries)
				}
				took, base := time.Since(start), 7*time.Second // 1+2+4
				switch {
				case c.tries == 1 && took != 0:
					t.Fatalf("waited %v for nothing", took)
				case c.tries == 4 && c.after == 0 && (took < base*3/4 || took > base*5/4):
					t.Fatalf("waited %v, want about %v", took, base)
				case c.tries == 4 && c.after > 0 && took != 3*c.after:
					t.Fatalf("waited %v, want what the provider asked for", took)
				}
			})
		})
	}
}

// P11: a model that fails only after minutes leaves time for the fallback.
func TestRetryLeavesTime(t *testing.T) {
	for took, tries := range map[time.Duration]int{time.Minute: 4, 2 * time.Minute: 3, 5 * time.Minute: 1} {
		timetest.Test(t, func(t *testing.T) {
			s := &llmtest.Script{Else: func(llm.Request) llmtest.Answer {
				a := fail(llm.TimedOut, 0)
				a.Delay = took
				return a
			}}
			if _, err := llm.Retry(s).Generate(t.Context(), llm.Request{}, nil); err == nil || len(s.Seen()) != tries {
				t.Errorf("each takes %v: got %v after %d tries, want %d", took, err, len(s.Seen()), tries)
			}
		})
	}
}

// P11: what a failed attempt streamed is reset, once.
func TestRetryResets(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		s := &llmtest.Script{Answers: []llmtest.Answer{
			fail(llm.Overloaded, 0),
			{Text: "half an", Err: &llm.Error{Kind: llm.Cut, Err: errors.New("cut")}},
			fail(llm.Overloaded, 0),
			llmtest.Text("a whole answer"),
		}}
		var r recorder
		m, err := llm.Retry(s).Generate(t.Context(), llm.Request{}, r.record)
		if err != nil || m.Text != "a whole answer" || r.text != m.Text || r.resets != 1 {
			t.Fatalf("got %+v, %v, streamed %+v", m, err, r)
		}
	})
}

func TestRetryStopsWithTheContext(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		s := &llmtest.Script{Else: func(llm.Request) llmtest.Answer { return fail(llm.RateLimited, 50*time.Second) }}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, err := llm.Retry(s).Generate(ctx, llm.Request{}, nil)
		if !errors.Is(err, context.Canceled) || time.Since(start) != time.Second || len(s.Seen()) != 1 {
			t.Fatalf("got %v after %v", err, time.Since(start))
		}
	})
}

// P11: after every kind of error, the next model may answer.
func TestFallback(t *testing.T) {
	for _, kind := range []llm.Kind{llm.Auth, llm.Quota, llm.BadRequest, llm.TooLong, llm.RateLimited, llm.Overloaded, llm.Cut, llm.TimedOut, llm.Unreachable} {
		a := &llmtest.Script{Answers: []llmtest.Answer{{Text: "half", Err: &llm.Error{Kind: kind, Err: errors.New("x")}}}}
		b := &llmtest.Script{Name: "spare", Answers: []llmtest.Answer{llmtest.Text("here I am")}}
		var r recorder
		m, err := llm.Fallback(a, b).Generate(t.Context(), llm.Request{}, r.record)
		if err != nil || m.Model != "spare" || r.text != "here I am" || r.resets != 1 {
			t.Errorf("%s: got %+v, %v, streamed %+v", kind, m, err, r)
		}
	}
}

func TestFallbackLetsModelsRest(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		always := func(a llmtest.Answer) func(llm.Request) llmtest.Answer {
			return func(llm.Request) llmtest.Answer { return a }
		}
		a := &llmtest.Script{Name: "a", Answers: []llmtest.Answer{fail(llm.Overloaded, 0)}, Else: always(llmtest.Text("a"))}
		b := &llmtest.Script{Name: "b", Else: always(llmtest.Text("b"))}
		m := llm.Fallback(a, b)
		ask := func(want string) {
			t.Helper()
			if got, err := m.Generate(t.Context(), llm.Request{}, nil); err != nil || got.Model != want {
				t.Fatalf("got %q, %v, want %q", got.Model, err, want)
			}
		}
		ask("b")
		ask("b")
		if n := len(a.Seen()); n != 1 {
			t.Fatalf("a was asked %d times while it rests", n)
		}
		timetest.Sleep(30 * time.Second)
		ask("a")
		a.Add(fail(llm.RateLimited, 2*time.Minute))
		ask("b")
		timetest.Sleep(119 * time.Second)
		ask("b")
		b.Add(fail(llm.Auth, 0))
		ask("a") // all the others failed: one that rests is asked all the same
		ask("a") // and rests no longer
	})
}

func TestFallbackTellsOfAll(t *testing.T) {
	a := &llmtest.Script{Answers: []llmtest.Answer{fail(llm.Overloaded, 0)}}
	b := &llmtest.Script{Answers: []llmtest.Answer{fail(llm.Auth, 0)}}
	_, err := llm.Fallback(a, b).Generate(t.Context(), llm.Request{}, nil)
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.Overloaded || !strings.Contains(err.Error(), string(llm.Auth)) {
		t.Fatalf("got %v", err)
	}
	if _, err := llm.Fallback().Generate(t.Context(), llm.Request{}, nil); !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
}

func TestFallbackStopsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := &llmtest.Script{Answers: []llmtest.Answer{{Begin: cancel}}}
	b := &llmtest.Script{Answers: []llmtest.Answer{llmtest.Text("b")}}
	if _, err := llm.Fallback(a, b).Generate(ctx, llm.Request{}, nil); !errors.Is(err, context.Canceled) || len(b.Seen()) != 0 {
		t.Fatalf("got %v", err)
	}
}

// P11: 10 minutes in all, attempts included.
func TestLimit(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		s := &llmtest.Script{Else: func(llm.Request) llmtest.Answer { return llmtest.Answer{Delay: time.Hour} }}
		start := time.Now()
		m := llm.Limit(10 * time.Minute)(llm.Retry(s))
		_, err := m.Generate(t.Context(), llm.Request{}, nil)
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != llm.TimedOut || time.Since(start) != 10*time.Minute {
			t.Fatalf("got %v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := m.Generate(ctx, llm.Request{}, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want the caller's own deadline", err)
		}
	})
}

// P25: IDs that providers omit, repeat, or begin again in each answer.
func TestIdentify(t *testing.T) {
	said := []llm.Message{{Role: llm.User}, {Role: llm.Assistant, Calls: []llm.ToolCall{{ID: "0"}, {ID: "call_2_1"}}}}
	calls := []llm.ToolCall{{ID: "0"}, {ID: ""}, {ID: "mine"}, {ID: "mine"}, {ID: strings.Repeat("x", 41)}, {ID: "call_2_0"}}
	again := append([]llm.ToolCall(nil), calls...)
	llm.Identify(calls, said)
	llm.Identify(again, said)
	seen := map[string]bool{"0": true, "call_2_1": true}
	for i, c := range calls {
		if c.ID == "" || len(c.ID) > 40 || seen[c.ID] || c.ID != again[i].ID {
			t.Errorf("call %d: ID %q (again %q), taken: %v", i, c.ID, again[i].ID, seen)
		}
		seen[c.ID] = true
	}
	if calls[2].ID != "mine" {
		t.Errorf("a good ID became %q", calls[2].ID)
	}
}
