package scheduler_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // the machine may have none

	"go.uber.org/goleak"

	"parley/chat"
	"parley/scheduler"
	"parley/store"
	"parley/store/mem"
	"parley/texts"
	"parley/timetest"
)

var (
	home  = chat.Address{Channel: "telegram", Chat: "42"}
	alice = chat.Sender{ID: "7", Name: "Alice", Role: chat.Owner}
	bob   = chat.Sender{ID: "8", Name: "Bob", Role: chat.User}
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A world has everything that a scheduler needs. Its wall clock is the bubble's plus
// an offset that tests set.
type world struct {
	t     *testing.T
	store store.Store
	zone  *time.Location

	mu       sync.Mutex
	step     time.Duration // offset of the wall clock
	runs     []chat.Message
	keys     map[string]int
	told     map[string]string
	roles    map[string]chat.Role
	system   []scheduler.System
	fail     error // of Deliver
	mute     error // of Tell
	hold     bool  // runs do not end by themselves
	maxSleep time.Duration
	result   scheduler.Ended
	texts    *texts.Scheduler

	s    *scheduler.Scheduler
	stop func()
}

func newWorld(t *testing.T) *world {
	return &world{t: t, store: mem.New(), zone: time.UTC, keys: map[string]int{}, told: map[string]string{},
		roles: map[string]chat.Role{"7": chat.Owner, "8": chat.User}, result: scheduler.Ended{Outcome: scheduler.Answered, Text: "done"}}
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.step)
}

func (w *world) config() scheduler.Config {
	return scheduler.Config{Store: w.store, Zone: w.zone, Now: w.now, System: w.system, Texts: w.texts,
		Deliver: w.deliver,
		Role: func(_ context.Context, _ chat.Address, from chat.Sender) (chat.Role, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.roles[from.ID], nil
		},
		Tell: func(_ context.Context, id string, _ chat.Address, text string) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.mute == nil {
				w.told[id] = text
			}
			return w.mute
		}}
}

// deliver accepts each key once, as the inbox does, and ends the run at once.
func (w *world) deliver(ctx context.Context, m chat.Message) error {
	w.mu.Lock()
	w.keys[m.Key()]++
	first, fail, hold, s, result := w.keys[m.Key()] == 1, w.fail, w.hold, w.s, w.result
	if fail != nil {
		w.keys[m.Key()]--
	} else if first {
		w.runs = append(w.runs, m)
	}
	w.mu.Unlock()
	if fail != nil || !first || hold {
		return fail
	}
	return s.Ended(context.WithoutCancel(ctx), m, result)
}

// open starts a scheduler, as a new process would.
func (w *world) open() *scheduler.Scheduler {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	s, ended := scheduler.New(w.config()), make(chan error, 1)
	if w.maxSleep > 0 {
		s.SetMaxSleep(w.maxSleep)
	}
	w.s = s
	go func() { ended <- s.Run(ctx) }()
	w.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
		w.stop = func() {}
	}
	w.t.Cleanup(func() { w.stop() })
	synctest.Wait()
	return s
}

// wait lets time pass.
func (w *world) wait(d time.Duration) {
	timetest.Sleep(d)
	synctest.Wait()
}

// set calls f with the lock held, to change the world while a scheduler runs.
func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// count returns how many runs there were.
func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.runs)
}

// ran returns the runs since its last call, with the time each was due.
func (w *world) ran() (texts []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.runs {
		texts = append(texts, m.Time.In(w.zone).Format("01-02 15:04:05 ")+m.Text)
	}
	w.runs = nil
	return texts
}

func (w *world) add(j scheduler.Job) scheduler.Job {
	w.t.Helper()
	if j.Text == "" {
		j.Text = "x"
	}
	if j.At == (chat.Address{}) {
		j.At, j.By = home, alice
	}
	if w.s == nil {
		w.s = scheduler.New(w.config())
	}
	j, err := w.s.Add(w.t.Context(), j)
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

func (w *world) job(id string) scheduler.Job {
	w.t.Helper()
	j, err := w.s.Job(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

// history returns how the runs of a job ended, without times.
func history(j scheduler.Job) (h []string) {
	for _, r := range j.Runs {
		h = append(h, fmt.Sprint(r.N, " ", r.Outcome, " ", r.Note))
	}
	return h
}
