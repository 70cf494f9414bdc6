package activity

import (
	"context"
	"errors"
	"testing"
	"time"

	"parley/chat"
	"parley/timetest"
)

// In each session one activity is under way at a time. Whoever comes next waits for
// it, or ends it, and one in another session waits for nobody.
func TestOneAtATime(t *testing.T) {
	for _, why := range []error{nil, ErrForgotten} {
		timetest.Test(t, func(t *testing.T) {
			s := NewSet()
			ctx, stop := context.WithCancelCause(t.Context())
			first := New("working")
			first.Stop = stop
			if err := s.Enter(t.Context(), "a", first, nil); err != nil {
				t.Fatal(err)
			}
			if err := s.Enter(t.Context(), "b", New("working"), nil); err != nil {
				t.Fatal(err)
			}
			go func() {
				select {
				case <-ctx.Done():
				case <-time.After(time.Minute):
				}
				s.Leave("a")
			}()
			began := time.Now()
			if err := s.Enter(t.Context(), "a", New("forgetting"), why); err != nil {
				t.Fatal(err)
			}
			want := time.Minute
			if why != nil {
				want = 0
			}
			if took := time.Since(began); took != want || !errors.Is(context.Cause(ctx), why) {
				t.Errorf("it waited for %v, and the first was ended by %v", took, context.Cause(ctx))
			}
			if a, found := s.Get("a"); !found || a.Doing != "forgetting" {
				t.Errorf("under way is %q, %v", a.Doing, found)
			}
		})
	}
}

// A turn about what was said after /stop goes on, because /stop was delivered again;
// and one whose end is on disk cannot be stopped any more.
func TestInterruptKnowsWhen(t *testing.T) {
	s := NewSet()
	now := time.Now()
	stopped := 0
	a := New("thinking")
	a.Said = now
	a.Stop = func(error) { stopped++ }
	if err := s.Enter(t.Context(), "a", a, nil); err != nil {
		t.Fatal(err)
	}
	all := func(chat.SessionID, *Activity) bool { return true }
	if s.Interrupt(chat.Message{Time: now.Add(-time.Second)}, 0, all) || stopped > 0 {
		t.Error("an earlier /stop has stopped it")
	}
	if !s.Interrupt(chat.Message{ID: "2", Time: now.Add(time.Second)}, 2, all) || stopped != 1 {
		t.Error("a later /stop has not stopped it")
	}
	if asked, by, n := s.Interruption(a); !asked.Equal(now.Add(time.Second)) || by != "2" || n != 2 {
		t.Errorf("it was stopped at %v by %q with %d subagents", asked, by, n)
	}
	s.Close("a")
	if s.Interrupt(chat.Message{Time: now.Add(time.Second)}, 0, all) {
		t.Error("it was stopped after its end")
	}
}
