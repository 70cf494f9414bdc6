package tools

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/chat"
)

// A hotel opens tools for sessions and notes what happens.
type hotel struct {
	mu    sync.Mutex
	log   []string
	fails int // openings to come that fail
}

func (h *hotel) note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

func (h *hotel) said() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := strings.Join(h.log, ", ")
	h.log = nil
	return s
}

func (h *hotel) open(_ context.Context, s Scope) ([]Tool, func() error, error) {
	h.note("open %s", s.Session)
	runtime.Gosched()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fails--; h.fails >= 0 {
		return nil, nil, errors.New("no room")
	}
	count := 0
	room := echo("room", anything)
	room.Run = func(_ context.Context, c Call) (Result, error) {
		count++ // the state of an earlier call is there (C-026)
		time.Sleep(2 * time.Hour)
		return Result{Text: fmt.Sprintf("%s %d", s.Session, count)}, nil
	}
	room.Timeout = -1
	return []Tool{room}, func() error {
		h.note("close %s", s.Session)
		if s.Session == "bad" {
			return errors.New("it sticks")
		}
		return nil
	}, nil
}

func (h *hotel) sessions() *Sessions {
	s := PerSession(h.open)
	s.Log = func(id chat.SessionID, err error) { h.note("%s: %v", id, err) }
	return s
}

func visitor(t *testing.T, s *Sessions, id chat.SessionID) *Kit {
	t.Helper()
	k, err := NewKit(t.Context(), Scope{Session: id}, []Source{s}, Standard(StandardConfig{})...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func expect(t *testing.T, h *hotel, id, want string) {
	t.Helper()
	synctest.Wait()
	if got := h.said(); got != want {
		t.Errorf("%s: %q, want %q", id, got, want)
	}
}

// C-018, C-019, C-021, C-026, C-028, C-054: made at first use, once per session, closed once.
func TestSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h hotel
		s := h.sessions()
		expect(t, &h, "C-018 nothing is made before it is needed", "")
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { s.Tools(t.Context(), Scope{Session: "x"}) }) //nolint:errcheck // which never fails
		}
		wg.Wait()
		expect(t, &h, "C-018 five at once", "open x")
		for i, id := range []chat.SessionID{"x", "y", "x"} {
			if got, want := visitor(t, s, id).Call(t.Context(), callTo("room", "")).Text, fmt.Sprintf("%s %d", id, 1+i/2); got != want {
				t.Errorf("C-021, C-026: %q, want %q", got, want)
			}
		}
		h.said()
		for range 2 {
			if err := s.Close("x"); err != nil {
				t.Error(err)
			}
		}
		expect(t, &h, "C-028 closed once", "close x")
		visitor(t, s, "x")
		expect(t, &h, "C-018 and opened again", "open x")
		if err := s.Close("y"); err != nil {
			t.Error(err)
		}
		expect(t, &h, "C-028 y", "close y")
		if err := s.CloseAll(); err != nil || len(visitor(t, s, "x").Tools()) != 0 {
			t.Errorf("after CloseAll: %v", err)
		}
		expect(t, &h, "C-028 at last", "close x")
		if err := s.CloseAll(); err != nil || h.said() != "" {
			t.Error("twice")
		}
	})
}

// C-020, C-024, C-029: what cannot be made is missing for one turn, which goes on.
func TestSessionsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hotel{fails: 2}
		s := h.sessions()
		for i, want := range []int{0, 0, 1, 1} {
			if got := len(visitor(t, s, "x").Tools()); got != want {
				t.Errorf("turn %d has %d tools", i, got)
			}
		}
		expect(t, &h, "C-020", "open x, x: open tools: no room, open x, x: open tools: no room, open x")
		visitor(t, s, "bad")
		if err := s.Close("bad"); err == nil || err.Error() != "close tools of bad: it sticks" {
			t.Errorf("C-028: %v", err)
		}
		visitor(t, s, "bad")
		if err := s.CloseAll(); err == nil || err.Error() != "close tools of bad: it sticks" {
			t.Errorf("C-028: %v", err)
		}
	})
}

// C-028: a call that never ends does not keep the house from closing.
func TestSessionsClosedAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h hotel
		s := h.sessions()
		k := visitor(t, s, "x")
		go k.Call(t.Context(), callTo("room", ""))
		synctest.Wait()
		if err := s.CloseAll(); err != nil {
			t.Error(err)
		}
		expect(t, &h, "C-028", "open x, close x")
		time.Sleep(3 * time.Hour)
	})
}

// C-028: a house that closes while tools are opened keeps none open.
func TestSessionsClosedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h hotel
		s := h.sessions()
		go s.Tools(t.Context(), Scope{Session: "x"}) //nolint:errcheck // which never fails
		synctest.Wait()
		if err := s.CloseAll(); err != nil {
			t.Error(err)
		}
		expect(t, &h, "C-028", "open x, close x")
	})
}
