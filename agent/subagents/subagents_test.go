package subagents_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/agent/subagents"
	"parley/chat"
	"parley/store"
	"parley/store/mem"
	"parley/timetest"
	"parley/tools"
)

// A host notes what a Supervisor asks of the agent.
type host struct {
	*subagents.Supervisor
	table store.Table[tools.Subagent]
	log   bytes.Buffer

	mu    sync.Mutex
	asked []string // each time with the seconds since the host began
	began time.Time
	admit func(*tools.Subagent) error
}

func newHost(bucket store.Bucket) *host {
	h := &host{table: store.NewTable(bucket, store.Report[tools.Subagent]), began: time.Now()}
	h.Supervisor = subagents.New(subagents.Config{
		Bucket: bucket,
		Log:    slog.New(slog.NewTextHandler(&h.log, nil)),
		Admit: func(_ context.Context, c *tools.Subagent) error {
			if h.admit == nil {
				return nil
			}
			return h.admit(c)
		},
		Deliver: func(_ context.Context, m chat.Message) error {
			h.note("deliver " + m.ID)
			return nil
		},
		Stop: func(session, _ chat.SessionID) { h.note("stop " + string(session)) },
		Forget: func(_ context.Context, session chat.SessionID, first func() error) error {
			h.note("forget " + string(session))
			return first()
		},
		Retry: func(ctx context.Context, _ string, do func(context.Context) error) error { return do(ctx) },
	})
	return h
}

func (h *host) note(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, fmt.Sprintf("%v: %s", time.Since(h.began), what))
}

// put stores c as another process has left it.
func (h *host) put(t *testing.T, c tools.Subagent) {
	t.Helper()
	if err := h.table.Set(t.Context(), c.ID, c); err != nil {
		t.Fatal(err)
	}
}

// run has h reconcile all subagents for some time.
func (h *host) run(t *testing.T, period time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), period)
	defer cancel()
	h.Run(ctx)
}

// C-052: which state may follow which.
func TestStates(t *testing.T) {
	const active, paused = tools.SubagentActive, tools.SubagentPaused
	const answered, failed, stopped = tools.SubagentAnswered, tools.SubagentFailed, tools.SubagentStopped
	next := map[tools.SubagentState][]tools.SubagentState{
		active:   {paused, answered, failed, stopped},
		paused:   {active, answered, failed, stopped},
		answered: {},
		failed:   {},
		stopped:  {},
	}
	for from, allowed := range next {
		for to := range next {
			h := newHost(mem.New().Bucket("helpers"))
			h.put(t, tools.Subagent{ID: "a", State: from})
			if err := h.Move(t.Context(), "a", to, nil); err != nil {
				t.Error(err)
			}
			c, _, err := h.table.Get(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			want := from
			if slices.Contains(allowed, to) {
				want = to
			}
			if c.State != want || c.Ended.IsZero() == (want != from && want.Over()) {
				t.Errorf("%q to %q: it is %q, ended at %v", from, to, c.State, c.Ended)
			}
		}
	}
}

// What a crash may have left of a subagent, and what becomes of it: its task is
// delivered again, it ends as lost if nobody takes that, its end is reported, and
// a week later it is forgotten.
func TestReconcile(t *testing.T) {
	for name, c := range map[string]struct {
		left  tools.Subagent
		taken bool // from the inbox, as soon as the process has started
		want  string
		state tools.SubagentState // "gone": its record is removed
	}{
		"at work":      {tools.Subagent{}, true, "", tools.SubagentActive},
		"paused":       {tools.Subagent{State: tools.SubagentPaused}, true, "", tools.SubagentPaused},
		"lost":         {tools.Subagent{}, false, "1m0s: deliver a", tools.SubagentFailed},
		"lost, awaits": {tools.Subagent{Report: true}, false, "1m0s: deliver a, 2m0s: deliver report/a", tools.SubagentFailed},
		"ended":        {tools.Subagent{State: tools.SubagentAnswered, Ended: time.Now()}, false, "", tools.SubagentAnswered},
		"not reported": {
			tools.Subagent{State: tools.SubagentAnswered, Report: true, Ended: time.Now()},
			false, "0s: deliver report/a", tools.SubagentAnswered,
		},
		"expired": {tools.Subagent{State: tools.SubagentStopped}, false, "0s: forget agent:a", "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				h := newHost(mem.New().Bucket("helpers"))
				c.left.ID = "a"
				if !c.left.Ended.IsZero() {
					c.left.Ended = time.Now()
				}
				h.put(t, c.left)
				if c.taken {
					if _, working, err := h.Receive(t.Context(), "a", chat.Message{}); !working || err != nil {
						t.Errorf("working %v, %v", working, err)
					}
				}
				h.run(t, 3*time.Hour)
				if got := strings.Join(h.asked, ", "); got != c.want {
					t.Errorf("asked for %s\nwant %s", got, c.want)
				}
				now, _, err := h.table.Get(t.Context(), "a")
				if errors.Is(err, store.ErrNotFound) {
					now.State = "gone"
				}
				if now.State != c.state || now.Report {
					t.Errorf("it is %q, report %v, %v", now.State, now.Report, err)
				}
			})
		})
	}
}

// A subagent begins with its record and its task; a limit or a full parent keep
// it from that, and the same call finds it again.
func TestSpawn(t *testing.T) {
	h := newHost(mem.New().Bucket("helpers"))
	spawn := func(id string) error {
		_, err := h.Spawn(t.Context(), tools.Subagent{ID: id, Call: id, Tool: "spawn", Parent: "test:1", Most: 2})
		return err
	}
	for _, id := range []string{"a", "b", "a"} {
		if err := spawn(id); err != nil {
			t.Error(err)
		}
	}
	var busy *tools.BusyError
	if err := spawn("c"); !errors.As(err, &busy) || busy.Running != 2 {
		t.Errorf("the third: %v", err)
	}
	if err := h.Cancel(t.Context(), "a", "enough", false); err != nil {
		t.Error(err)
	}
	limit := errors.New("limit")
	h.admit = func(*tools.Subagent) error { return limit }
	if err := spawn("c"); !errors.Is(err, limit) {
		t.Errorf("at the limit: %v", err)
	}
	h.admit = nil
	if err := spawn("c"); err != nil {
		t.Error(err)
	}
	var got []string
	for _, what := range h.asked {
		_, what, _ = strings.Cut(what, ": ")
		got = append(got, what)
	}
	if want := "[deliver a deliver b stop agent:a deliver c]"; fmt.Sprint(got) != want {
		t.Errorf("asked for %v\nwant %s", got, want)
	}
}

// P21: that the record of a subagent is damaged is logged once, not every hour.
func TestDamagedRecordIsLoggedOnce(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		bucket := mem.New().Bucket("helpers")
		for _, id := range []string{"a", "b"} {
			if _, err := bucket.Put(t.Context(), id, []byte("no JSON"), store.Any); err != nil {
				t.Fatal(err)
			}
		}
		h := newHost(bucket)
		h.run(t, 24*time.Hour)
		if n := strings.Count(h.log.String(), "the record of a subagent is damaged"); n != 2 {
			t.Errorf("logged %d times: %s", n, &h.log)
		}
	})
}

// However many subagents ended long ago, each is read a few times to forget it.
func TestForgetMany(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		h := newHost(watchedBucket{mem.New().Bucket("helpers"), func() { reads.Add(1) }, func() {}})
		const many = 500
		for i := range many {
			c := tools.Subagent{ID: fmt.Sprintf("%08x", i), Parent: "test:1", State: tools.SubagentAnswered}
			if i%2 > 0 { // a conversation that is forgotten
				c.Ended, c.Parent = time.Now(), "test:2"
			}
			h.put(t, c)
		}
		h.run(t, time.Minute)
		if err := h.ForgetSession(t.Context(), "test:2"); err != nil {
			t.Error(err)
		}
		left, err := h.List(t.Context(), "")
		if n := reads.Load(); len(left) != 0 || err != nil || n > 20*many {
			t.Errorf("%d are left, %v, after %d reads", len(left), err, n)
		}
	})
}

// A subagent that is begun as its parent is stopped is not begun (D-093): whether
// the stop comes before its record is written, or while it is.
func TestStoppedAsItBegins(t *testing.T) {
	for _, moment := range []string{"read", "write"} {
		t.Run(moment, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var h *host
			stopped := false
			stop := func(at string) {
				if at != moment || stopped {
					return
				}
				stopped = true
				cancel()
				if err := h.CancelAll(t.Context(), anySubagent); err != nil {
					t.Error(err)
				}
			}
			bucket := mem.New().Bucket("helpers")
			h = newHost(watchedBucket{bucket, func() { stop("read") }, func() { stop("write") }})
			_, err := h.Spawn(ctx, tools.Subagent{ID: "a", Call: "a"})
			left, _ := h.List(t.Context(), "")
			working, _ := h.Working(t.Context(), anySubagent)
			if err == nil || len(left)+len(working)+len(h.asked) > 0 {
				t.Errorf("begun: %v, %+v, %+v, %q", err, left, working, h.asked)
			}
		})
	}
}

func anySubagent(tools.Subagent) bool { return true }

// A watchedBucket calls afterRead and beforeWrite.
type watchedBucket struct {
	store.Bucket
	afterRead   func()
	beforeWrite func()
}

func (b watchedBucket) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	defer b.afterRead()
	return b.Bucket.Get(ctx, key)
}

func (b watchedBucket) Put(ctx context.Context, key string, value []byte, rev uint64) (uint64, error) {
	b.beforeWrite()
	return b.Bucket.Put(ctx, key, value, rev)
}
