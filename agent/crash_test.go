package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/store/bolt"
	"parley/store/storetest"
	"parley/timetest"
	"parley/tools"
)

// A mortal is a store that dies at a certain operation. From then on every
// goroutine that comes to it ends there, as in a process that was killed. What was
// deferred then is undone.
type mortal struct {
	store.Store
	db    store.Store  // without the counting
	left  atomic.Int64 // operations, counted before and after each
	where atomic.Value
	dir   string

	mu      sync.Mutex
	remains remains // what it left when it died; nil: it lives
}

// Remains are the files of a store as a crash leaves them, by their paths.
type remains map[string]storetest.Sparse

// readRemains reads the files of the store in dir, as they are at one moment: until they do
// not change any more.
func readRemains(dir string) (remains, error) {
	last := remains{}
	for {
		now, err := readFiles(dir)
		if err != nil || maps.EqualFunc(last, now, storetest.Sparse.Equal) {
			return now, err
		}
		last = now
	}
}

func readFiles(dir string) (remains, error) {
	files := remains{}
	for _, pattern := range []string{"parley.db", "parley.db.mark", "parley.db.wal/*"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			content, err := storetest.ReadSparse(path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			files[path] = content
		}
	}
	return files, nil
}

// restore makes the store in dir what it was, once it is closed.
func (files remains) restore(dir string) error {
	log := filepath.Join(dir, "parley.db.wal")
	err := errors.Join(os.RemoveAll(log), os.Mkdir(log, 0o700))
	for path, content := range files {
		err = errors.Join(err, content.Write(path))
	}
	return err
}

// Close implements [store.Store].
func (m *mortal) Close() error {
	err := m.Store.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.remains == nil {
		return err
	}
	return errors.Join(err, m.remains.restore(m.dir))
}

// keep stores what was sent, as the outbox does: all that was deferred is on disk then.
func (m *mortal) keep(ctx context.Context, id string) error {
	err := m.db.Queue("sent").Push(ctx, id, nil)
	if m.where.Load() != nil {
		runtime.Goexit()
	}
	return err
}

// die notes where it died, and what that leaves.
func (m *mortal) die(where string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.where.CompareAndSwap(nil, where) {
		return nil
	}
	var err error
	m.remains, err = readRemains(m.dir)
	return err
}

func newMortal(t *testing.T, dir string, life int) *mortal {
	db, err := bolt.Open(t.Context(), bolt.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	m := &mortal{db: db, dir: dir}
	m.left.Store(int64(life))
	step := func(when string) func(string) {
		return func(op string) {
			if n := m.left.Add(-1); n >= 0 {
				return
			}
			if err := m.die(when + " " + op); err != nil {
				t.Error(err)
			}
			runtime.Goexit()
		}
	}
	m.Store = storetest.Watch(db, step("before"), step("after"))
	return m
}

// A life is the conversation that the crash tests play, over as many deaths as there are.
type life struct {
	t     *testing.T
	dir   string
	runs  atomic.Int64 // of the tool that must not run twice
	taken map[string]bool
	mu    sync.Mutex
}

// run plays the conversation on a store that dies after so many operations.
// It returns where that was, or "" if the conversation came to its end.
func (l *life) run(life int) string {
	h, m := l.begin(life, func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		last := r.Messages[len(r.Messages)-1]
		switch {
		case last.Role == llm.ToolRole && strings.Contains(last.Text, "interrupted"):
			return words("may be paid"), nil
		case last.Role == llm.ToolRole:
			return words(last.Text), nil
		case strings.Contains(last.Text, "pay"):
			return calls(call(fmt.Sprint("c", len(r.Messages)), "pay")), nil
		}
		return words("heard " + spoken(r, 1)), nil
	})
	for _, m := range []chat.Message{message("1", "hello"), message("2", "pay"), message("3", "/new"), message("4", "bye")} {
		l.say(h, m)
		synctest.Wait()
	}
	return l.end(h, m)
}

// begin starts a pool with the tool on a store that dies after so many operations.
func (l *life) begin(life int, model llm.ModelFunc) (*house, *mortal) {
	m := newMortal(l.t, l.dir, life)
	h := &house{t: l.t, store: m, model: model, conf: func(c *agent.Config) {
		c.Send = func(ctx context.Context, r chat.Reply) error {
			b, _ := json.Marshal(r)
			return m.Queue("outbox").Push(ctx, r.ID, b)
		}
	}}
	h.tools = []tools.Tool{tool("pay", func(context.Context) (string, error) {
		return fmt.Sprintf("paid %d", l.runs.Add(1)), nil
	})}
	h.start()
	return h, m
}

// end waits until nothing goes on, stops the pool, and returns where the store died.
func (l *life) end(h *house, m *mortal) string {
	timetest.Sleep(time.Minute)
	synctest.Wait()
	h.stop()
	if err := m.Close(); err != nil {
		l.t.Error(err)
	}
	where, _ := m.where.Load().(string)
	return where
}

// say is a network that delivers again what was not acknowledged.
func (l *life) say(h *house, m chat.Message) {
	if l.acknowledged(m.ID) {
		return
	}
	go func() {
		if err := h.pool.Deliver(l.t.Context(), m); err != nil && !errors.Is(err, store.ErrClosed) {
			l.t.Error(err)
		}
		l.acknowledge(m.ID)
	}()
}

func (l *life) acknowledged(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taken[id]
}

func (l *life) acknowledge(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken[id] = true
}

// check reads what the conversation came to.
func (l *life) check(t *testing.T) {
	db, err := bolt.Open(t.Context(), bolt.Config{Dir: l.dir})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if n, _ := db.Queue("inbox").Len(t.Context()); n != 0 {
		t.Errorf("%d messages left unanswered", n)
	}
	replies, order := map[string]string{}, ""
	n, _ := db.Queue("outbox").Len(t.Context())
	for range n {
		item, err := db.Queue("outbox").Pull(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var r chat.Reply
		if err := json.Unmarshal(item.Body, &r); err != nil {
			t.Fatal(err)
		}
		replies[r.Quote] += r.Text
		order += r.Quote
	}
	if order != "1234" && order != "134" {
		t.Errorf("replies to %q: %q", order, replies)
	}
	paid := replies["1"] + replies["2"]
	if runs := l.runs.Load(); runs > 1 || runs == 0 && !strings.Contains(paid, "may be paid") || !strings.Contains(paid, "paid") {
		t.Errorf("paid %d times, and said %q", runs, paid)
	}
	if !strings.HasSuffix(replies["4"], "bye") {
		t.Errorf("replies %q", replies)
	}
}

// TestCrashAtEveryStep kills the process before and after every operation of
// the store that a conversation makes, one at a time: every message is
// answered once, in order, and no tool runs twice (P1, P2, P6, P7).
func TestCrashAtEveryStep(t *testing.T) {
	for n, done := 0, false; !done; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				l := &life{t: t, dir: storetest.TempDir(t), taken: map[string]bool{}}
				where := l.run(n)
				if done = where == ""; !done {
					l.run(1 << 40)
				}
				if l.check(t); t.Failed() {
					t.Logf("died %s", where)
				}
			})
		})
	}
}

// TestCrashTwice kills it at two random operations.
func TestCrashTwice(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, uint64(time.Now().UnixNano())))
	for range 40 {
		a, b := rnd.IntN(50), rnd.IntN(50)
		t.Run(fmt.Sprint(a, "+", b), func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				l := &life{t: t, dir: storetest.TempDir(t), taken: map[string]bool{}}
				first, second := l.run(a), l.run(b)
				l.run(1 << 40)
				if l.check(t); t.Failed() {
					t.Logf("died %s and %s", first, second)
				}
			})
		})
	}
}

// lastTry is what a process leaves behind that died over the last try of the message key.
func lastTry(key string) map[string]any {
	return map[string]any{"key": key, "alone": true, "last": true}
}

// TestParked is P8: a message over which the process dies three times, alone at
// work, is put aside; it is tried once more by a process that has been up for
// five minutes, and given up when that dies, too, and the person is told. What
// came after it is answered.
func TestParked(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		dir, said := storetest.TempDir(t), map[string]string{}
		var began []time.Duration // since the start of its process
		start := func() (h *house, m *mortal) {
			m, up := newMortal(t, dir, 1<<40), time.Now()
			h = &house{t: t, store: m, said: said}
			h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
				if strings.Contains(spoken(r, 1), "poison") {
					began = append(began, time.Since(up).Truncate(time.Minute))
					m.left.Store(0)
					runtime.Goexit()
				}
				return words("fine"), nil
			}
			h.start()
			return h, m
		}
		for life := range 8 {
			h, m := start()
			if life == 0 {
				go h.pool.Deliver(t.Context(), message("1", "poison")) //nolint:errcheck // the process dies over it
				synctest.Wait()
				m2 := message("2", "hello")
				m2.At.Chat = "2"
				h.stop()
				m.Close()
				m = newMortal(t, dir, 1<<40) // it came in just before the end
				b, _ := json.Marshal(m2)
				if err := m.Queue("inbox").Push(t.Context(), m2.Key(), b); err != nil {
					t.Fatal(err)
				}
				m.Close()
				continue
			}
			timetest.Sleep(6 * time.Minute)
			synctest.Wait()
			h.stop()
			m.Close()
		}
		// With others, maybe beside another that is not done yet, alone three times, and the last try.
		got := fmt.Sprint(began)
		if got != "[0s 0s 0s 0s 5m0s]" && got != "[0s 0s 0s 0s 0s 5m0s]" {
			t.Errorf("the message was begun at %s", got)
		}
		h, m := start()
		h.say("9", "/status")
		if got := said["re:test//1/9"]; !strings.HasSuffix(got, "Not answered, because I crashed over it: test//1/1") {
			t.Errorf("the owner is told %q", got)
		}
		h.stop()
		m.Close()
		if got := said["re:test//1/1"]; !strings.Contains(got, "crashed three times") {
			t.Errorf("the person was told %q", got)
		}
		if got := said["re:test//2/2"]; got != "fine" {
			t.Errorf("the other one was told %q", got)
		}
		m = newMortal(t, dir, 1<<40)
		defer m.Close()
		if _, _, err := m.Bucket("parked messages").Get(t.Context(), "test//1/1"); err != nil {
			t.Errorf("the parked message: %v", err)
		}
	})
}

// TestKillsFromOutside is P8: whatever kills the process from outside, and
// however often, no message is given up, and all are answered once it lives.
func TestKillsFromOutside(t *testing.T) {
	for _, after := range []time.Duration{200 * time.Millisecond, 2 * time.Second, 4 * time.Second, 7 * time.Second, 20 * time.Second} {
		for _, chats := range []int{1, 2, 5} {
			t.Run(fmt.Sprint(after, " ", chats), func(t *testing.T) {
				timetest.Test(t, func(t *testing.T) {
					dir, said := storetest.TempDir(t), map[string]string{}
					for life := range 12 {
						m := newMortal(t, dir, 1<<40)
						h := &house{t: t, store: m, said: said}
						h.model = func(ctx context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
							select {
							case <-time.After(30 * time.Second):
								return words("fine"), nil
							case <-ctx.Done():
								return llm.Message{}, ctx.Err()
							}
						}
						h.start()
						for i := range chats {
							if m := message("1", "hi"); life == 0 {
								m.At.Chat = fmt.Sprint(i)
								h.deliver(m)
							}
						}
						if life < 11 {
							timetest.Sleep(after)
							m.left.Store(0)
						} else {
							timetest.Sleep(10 * time.Minute)
							synctest.Wait()
						}
						h.stop()
						m.Close()
					}
					for i := range chats {
						if got := said[fmt.Sprintf("re:test//%d/1", i)]; got != "fine" {
							t.Errorf("chat %d was told %q", i, got)
						}
					}
				})
			})
		}
	}
}

// TestNotAloneIsNotBlamed is P8: a message beside which another was answered is
// not blamed for a death, also if a call of the other had just ended.
func TestNotAloneIsNotBlamed(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		dir, said := storetest.TempDir(t), map[string]string{}
		for life := range 5 {
			m := newMortal(t, dir, 1<<40)
			h := &house{t: t, store: m, said: said, tools: []tools.Tool{tool("look", func(context.Context) (string, error) { return "seen", nil })}}
			h.model = func(ctx context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
				if strings.HasSuffix(lastOf(r).Text, "look") {
					return calls(call("1", "look")), nil
				}
				select {
				case <-time.After(30 * time.Second):
					return words("fine"), nil
				case <-ctx.Done():
					return llm.Message{}, ctx.Err()
				}
			}
			h.start()
			if life == 0 {
				h.say("1", "hi")
			}
			if timetest.Sleep(time.Second); life == 1 { // the only death that has anybody beside the message
				other := message("2", "look")
				other.At.Chat = "2"
				h.deliver(other)
			}
			if life < 4 {
				timetest.Sleep(time.Second)
				m.left.Store(0)
			} else {
				timetest.Sleep(2 * time.Minute)
				synctest.Wait()
			}
			h.stop()
			m.Close()
		}
		if got := said["re:test//1/1"]; got != "fine" {
			t.Errorf("the person was told %q", got)
		}
	})
}

// TestAnsweredIsNotParked: when the process dies a third time after the answer
// was given, and before that was noted, the answer stands.
func TestAnsweredIsNotParked(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		dir, said := storetest.TempDir(t), map[string]string{}
		for run := range 4 {
			m := newMortal(t, dir, 1<<40)
			h := &house{t: t, store: m, said: said}
			h.model = func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
				if run < 2 {
					m.left.Store(0)
					runtime.Goexit()
				}
				return words("fine"), nil
			}
			h.conf = func(c *agent.Config) {
				send := c.Send
				c.Send = func(ctx context.Context, r chat.Reply) error {
					err := send(ctx, r)
					if run == 2 {
						m.left.Store(0)
						runtime.Goexit()
					}
					return err
				}
			}
			h.start()
			if run == 0 {
				go h.pool.Deliver(t.Context(), message("1", "hi")) //nolint:errcheck // the process dies over it
			}
			timetest.Sleep(time.Minute)
			synctest.Wait()
			h.stop()
			if n, _ := m.Queue("inbox").Len(t.Context()); n != 0 && run == 3 {
				t.Errorf("%d messages left in the inbox", n)
			}
			m.Close()
		}
		if got := said["re:test//1/1"]; got != "fine" {
			t.Errorf("the person was told %q", got)
		}
	})
}

// TestShutdown is P16: a turn under way may finish; a tool that takes too long
// is cut off, and the person gets an answer after the next start without asking again.
func TestShutdown(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		dir, said := storetest.TempDir(t), map[string]string{}
		db := newMortal(t, dir, 1<<40)
		h := &house{t: t, store: db, said: said}
		h.tools = []tools.Tool{tool("sleep", func(ctx context.Context) (string, error) {
			select {
			case <-time.After(30 * time.Second):
				return "slept", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		})}
		h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
			time.Sleep(time.Second)
			switch last := r.Messages[len(r.Messages)-1]; {
			case strings.Contains(last.Text, "sleep"):
				return calls(call("1", "sleep")), nil
			case last.Role == llm.ToolRole:
				return words("after all: " + last.Text[:6]), nil
			}
			return words("quick"), nil
		}
		h.start()
		h.say("1", "sleep")
		m := message("2", "quick")
		m.At.Chat = "2"
		h.deliver(m)
		timetest.Sleep(500 * time.Millisecond)
		began := time.Now()
		h.stop()
		if d := time.Since(began); d < 19*time.Second || d > 21*time.Second {
			t.Errorf("stopped after %v, want 20 s", d)
		}
		h.want("quick")
		db.Close()
		h.store = newMortal(t, dir, 1<<40)
		h.start()
		timetest.Sleep(time.Minute)
		synctest.Wait()
		if got := said["re:test//1/1"]; !strings.HasPrefix(got, "after all: Error") {
			t.Errorf("the person was told %q", got)
		}
		h.stop()
		h.store.Close()
	})
}

// TestResultsAsTheyCome is P6: when the process dies while one call of a group
// is under way, those that had ended are not repeated, and the model reads what
// they gave, in the order it had asked.
func TestResultsAsTheyCome(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		dir, said := storetest.TempDir(t), map[string]string{}
		var ran sync.Map
		for run := range 2 {
			m := newMortal(t, dir, 1<<40)
			h := &house{t: t, store: m, said: said}
			for _, name := range []string{"slow", "fetch", "read"} {
				look := tool(name, func(context.Context) (string, error) {
					n, _ := ran.LoadOrStore(name, new(atomic.Int64))
					times := n.(*atomic.Int64).Add(1)
					if name == "slow" {
						time.Sleep(10 * time.Second)
						m.left.Store(0)
						runtime.Goexit()
					}
					return fmt.Sprintf("%s %d", name, times), nil
				})
				look.ReadOnly = true
				h.tools = append(h.tools, look)
			}
			h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
				if lastOf(r).Role == llm.ToolRole {
					return words(spoken(r, 3)), nil
				}
				return calls(call("1", "slow"), call("2", "fetch"), call("3", "read")), nil
			}
			h.start()
			if run == 0 {
				h.say("1", "look around")
			}
			timetest.Sleep(time.Minute)
			synctest.Wait()
			h.stop()
			m.Close()
		}
		want := "tool Error: interrupted while it ran. It may have taken effect: look before you do it again. | tool fetch 1 | tool read 1"
		if got := said["re:test//1/1"]; got != want {
			t.Errorf("the model read %q\nwant           %q", got, want)
		}
	})
}
