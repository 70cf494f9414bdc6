package channels_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/channels"
	"parley/channels/channeltest"
	"parley/chat"
	"parley/store"
	"parley/store/mem"
	"parley/timetest"
)

var errDead = errors.New("the process is dead")

// A machine is a store that survives crashes, a network, and the moment of the
// next crash: the crash-th operation on either. Odd operations crash after they
// took effect in one run of a test and before in another.
type machine struct {
	t    *testing.T
	fake channeltest.Fake
	cfg  channels.Config // beside what every hub has

	mu      sync.Mutex
	hook    func(channeltest.Op) error // of the test
	store   *mem.Store
	pushes  map[string][]push
	ops     int
	crash   int  // 0 for never
	late    bool // the operation takes effect
	crashed chan struct{}
	full    bool          // the disk
	refuse  error         // what the agent says of every message
	slow    time.Duration // from the moment when work can be pulled to that when it is
}

type push struct {
	id   string
	body []byte
	done bool
	old  bool // it was there when the process started
}

func newMachine(t *testing.T) *machine {
	m := &machine{t: t, pushes: map[string][]push{}, store: mem.New(), crashed: make(chan struct{})}
	m.fake.Hook = func(op channeltest.Op) error {
		err := m.step()
		if errors.Is(err, errLate) {
			return channeltest.ErrLost
		}
		m.mu.Lock()
		hook := m.hook
		m.mu.Unlock()
		if err == nil && hook != nil {
			err = hook(op)
		}
		return err
	}
	return m
}

// on sets what happens before each operation of the network.
func (m *machine) on(hook func(channeltest.Op) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hook = hook
}

func (m *machine) fill(full bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.full = full
}

var errLate = errors.New("died after it took effect")

// step counts an operation: errDead when it must not take effect, errLate when
// it must although nobody will hear of it.
func (m *machine) step() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ops++
	switch {
	case m.crash == 0 || m.ops < m.crash:
		return nil
	case m.ops > m.crash:
		return errDead
	}
	close(m.crashed)
	if m.late {
		return errLate
	}
	return errDead
}

// write does f unless the process is dead.
func (m *machine) write(f func() error) error {
	err := m.step()
	if err != nil && !errors.Is(err, errLate) {
		return err
	}
	m.mu.Lock()
	full := m.full
	m.mu.Unlock()
	if full {
		return store.ErrFull
	}
	return errors.Join(f(), err)
}

// reboot starts the store anew, with what was on disk.
func (m *machine) reboot(ctx context.Context) {
	old := m.store
	m.mu.Lock()
	defer m.mu.Unlock()
	m.store, m.crash, m.crashed = mem.New(), 0, make(chan struct{})
	for _, name := range []string{"delivery", "pairing", "paired", "questions", "parked replies", "commands done", "last sent"} {
		from, to := old.Bucket(name), m.store.Bucket(name)
		for k := range keys(from) {
			v, _, _ := from.Get(ctx, k)
			_, _ = to.Put(ctx, k, v, store.Any)
		}
	}
	for name, ps := range m.pushes {
		for i, p := range ps {
			ps[i].old = true
			if !p.done {
				_ = m.store.Queue(name).Push(ctx, p.id, p.body)
			}
		}
	}
}

// pushed says whether the outbox was ever given the reply id.
func (m *machine) pushed(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.pushes["outbox/net"], func(p push) bool { return p.id == id })
}

func (m *machine) disk() store.Store { return disk{m.store, m} }

type disk struct {
	store.Store
	m *machine
}

func (d disk) Bucket(name string) store.Bucket { return bucket{d.Store.Bucket(name), d.m} }
func (d disk) Queue(name string) store.Queue   { return queue{d.Store.Queue(name), d.m, name} }

type bucket struct {
	store.Bucket
	m *machine
}

func (b bucket) Put(ctx context.Context, key string, val []byte, rev uint64) (n uint64, err error) {
	err = b.m.write(func() (err error) { n, err = b.Bucket.Put(ctx, key, val, rev); return err })
	return n, err
}

func (b bucket) Delete(ctx context.Context, key string) error {
	return b.m.write(func() error { return b.Bucket.Delete(ctx, key) })
}

type queue struct {
	store.Queue
	m    *machine
	name string
}

func (q queue) Push(ctx context.Context, id string, body []byte) error {
	return q.m.write(func() error {
		q.m.mu.Lock()
		known := slices.ContainsFunc(q.m.pushes[q.name], func(p push) bool { return p.id == id })
		if !known {
			q.m.pushes[q.name] = append(q.m.pushes[q.name], push{id: id, body: body})
		}
		q.m.mu.Unlock()
		if known {
			return nil
		}
		return q.Queue.Push(ctx, id, body)
	})
}

func (q queue) Pull(ctx context.Context) (store.Item, error) {
	item, err := q.Queue.Pull(ctx)
	done := item.Done
	q.m.mu.Lock()
	slow := q.m.slow
	q.m.mu.Unlock()
	<-time.After(slow)
	q.m.mu.Lock()
	item.Again = slices.ContainsFunc(q.m.pushes[q.name], func(p push) bool { return p.id == item.ID && p.old })
	q.m.mu.Unlock()
	item.Done = func(ctx context.Context) error {
		return q.m.write(func() error {
			q.m.mu.Lock()
			defer q.m.mu.Unlock()
			for i, p := range q.m.pushes[q.name] {
				if p.id == item.ID {
					q.m.pushes[q.name][i].done = true
				}
			}
			return done(ctx)
		})
	}
	return item, err
}

// A testHub is a Hub at work on a machine, with the channel "net".
type testHub struct {
	*channels.Hub
	stopIntake, stopWork context.CancelFunc
	wg                   sync.WaitGroup
	mu                   sync.Mutex
	heard                []chat.Message
}

func (m *machine) start(powers channeltest.Power) *testHub {
	cfg := m.cfg
	cfg.Store, cfg.Log, cfg.Commands = m.disk(), discard, []channels.Command{{Name: "new"}}
	h := &testHub{Hub: channels.NewHub(cfg)}
	h.Add("net", m.fake.As(powers))
	intake, stopIntake := context.WithCancel(m.t.Context())
	work, stopWork := context.WithCancel(m.t.Context())
	h.stopIntake, h.stopWork = stopIntake, stopWork
	h.wg.Go(func() {
		_ = h.Receive(intake, func(_ context.Context, msg chat.Message) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			if m.refuse != nil {
				return m.refuse
			}
			h.heard = append(h.heard, msg)
			return nil
		})
	})
	h.wg.Go(func() {
		if err := h.Work(work); err != nil {
			m.t.Error(err)
		}
	})
	return h
}

func (h *testHub) stop() {
	h.stopIntake()
	h.stopWork()
	h.wg.Wait()
}

// drain stops the hub once its outbox is empty or stuck.
func (h *testHub) drain() {
	h.stopIntake()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	h.Drain(ctx)
	h.stop()
}

func (h *testHub) texts() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []string
	for _, m := range h.heard {
		all = append(all, m.Text)
	}
	return all
}

var discard = slog.New(slog.DiscardHandler)

var room = chat.Address{Channel: "net", Chat: "1"}

func reply(id, text string) chat.Reply { return chat.Reply{ID: id, To: room, Text: text} }

// in runs f where time is free of charge.
func in(t *testing.T, f func(t *testing.T, m *machine)) {
	timetest.Test(t, func(t *testing.T) { f(t, newMachine(t)) })
}

func (m *machine) shows(want ...string) {
	m.t.Helper()
	if got := m.fake.Shown(room); !slices.Equal(got, want) {
		m.t.Errorf("the chat shows %q, want %q", got, want)
	}
}

// clean checks that nothing is left behind of what is done.
func (m *machine) clean() {
	m.t.Helper()
	if left := slices.Collect(maps.Keys(keys(m.store.Bucket("delivery")))); len(left) > 0 {
		m.t.Errorf("delivery records left: %q", left)
	}
}

func keys(b store.Bucket) map[string]bool {
	all := map[string]bool{}
	for k, err := range b.Keys(context.Background(), "") {
		all[k] = err == nil
	}
	return all
}
