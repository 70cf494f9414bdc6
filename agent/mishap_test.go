package agent_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/store/mem"
	"parley/store/storetest"
	"parley/timetest"
	"parley/tools"
)

// slow is a tool during which others can speak.
func slow() tools.Tool {
	return tool("slow", func(context.Context) (string, error) { time.Sleep(5 * time.Second); return "done", nil })
}

// TestPanicAfterJoin: what joined a turn that panics does not wait for the next start.
func TestPanicAfterJoin(t *testing.T) {
	h := &house{tools: []tools.Tool{slow()}}
	h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		switch {
		case len(r.Messages) == 1:
			return calls(call("1", "slow")), nil
		case spoken(r, 1) == "user burst":
			panic("oh")
		}
		return words("well"), nil
	}
	play(t, h, func(h *house) {
		h.say("1", "begin")
		timetest.Sleep(time.Second)
		h.say("2", "burst")
		timetest.Sleep(time.Minute)
		h.want("Something went wrong inside me. The error is in my log. Please try again.")
		if n, _ := h.store.Queue("inbox").Len(t.Context()); n != 0 {
			t.Errorf("%d messages left in the inbox", n)
		}
	})
}

// TestPanicTellsOnce: after a panic the model is not told twice what was said.
func TestPanicTellsOnce(t *testing.T) {
	h := &house{tools: []tools.Tool{slow()}}
	h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		switch n := strings.Count(fmt.Sprint(r.Messages), "begin"); {
		case len(r.Messages) == 1:
			return calls(call("1", "slow")), nil
		case spoken(r, 1) != "user and now?":
			panic("oh")
		default:
			return words(fmt.Sprint("told ", n, " times")), nil
		}
	}
	play(t, h, func(h *house) {
		h.say("1", "begin")
		timetest.Sleep(time.Minute)
		h.say("2", "and now?")
		h.want("Something went wrong inside me. The error is in my log. Please try again.", "told 1 times")
	})
}

// A joint is a turn that a second message joins, whose call writes; the process
// dies over the first message as long as it is poison.
type joint struct {
	t      *testing.T
	dir    string
	said   map[string]string
	poison bool
	wrote  atomic.Int64
	asked  []string // what the last life was asked
}

// live is one life of the process, which dies at the latest after so many operations of the store.
func (j *joint) live(life int, first bool, up time.Duration) (where string) {
	m := newMortal(j.t, j.dir, life)
	j.asked = nil
	h := &house{t: j.t, store: m, said: j.said, tools: []tools.Tool{slow(), tool("write", func(context.Context) (string, error) {
		return fmt.Sprint("wrote ", j.wrote.Add(1)), nil
	})}}
	h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		all := spoken(r, 99)
		j.asked = append(j.asked, all)
		switch last := spoken(r, 1); {
		case last == "user poison":
			return calls(call("1", "slow")), nil
		case last == "user hello":
			return calls(call("2", "write")), nil
		case strings.Contains(all, "poison") && j.poison && strings.Contains(all, "wrote"):
			m.left.Store(0)
			runtime.Goexit()
		}
		return words("well"), nil
	}
	h.start()
	if first {
		h.say("1", "poison")
		timetest.Sleep(time.Second)
		h.say("2", "hello")
	}
	timetest.Sleep(up)
	synctest.Wait()
	h.stop()
	if err := m.Close(); err != nil {
		j.t.Error(err)
	}
	where, _ = m.where.Load().(string)
	return where
}

const putAside = "[A message that was said here is suspended for now. What follows, up to the next message, was done for it.]"

// TestPutAsideAtEveryStep is P8: when a message is put aside whose turn another
// has joined, that one is answered without the words that the process may have
// died over, and what was done stays done; the first goes on where it was, once
// the process has been healthy for a while. So it is wherever the process dies
// meanwhile.
func TestPutAsideAtEveryStep(t *testing.T) {
	for n, done := 0, false; !done; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				j := &joint{t: t, dir: storetest.TempDir(t), said: map[string]string{}, poison: true}
				for life := range 5 { // as they come, both once more, alone three times
					j.live(1<<40, life == 0, time.Minute)
				}
				up := 4 * time.Minute // not for long enough for the last try
				if n%2 == 0 {         // or it is, and the message has done no harm
					j.poison, up = false, 20*time.Minute
				}
				where := j.live(n/2, false, up) // it is put aside
				if done = where == "" && n%2 == 0; done {
					want := []string{ // of which the first is answered without words that may do harm
						"user " + putAside + " | assistant  | tool done | user hello | assistant  | tool wrote 1",
						"user hello | assistant well | user poison | assistant  | tool done | assistant  | tool wrote 1",
					}
					if !slices.Equal(j.asked, want) {
						t.Errorf("asked %q\nwant  %q", j.asked, want)
					}
				}
				j.poison = false
				j.live(1<<40, false, 20*time.Minute)
				if one := j.said["re:test//1/1"]; one != "well" && (n%2 == 1 || !strings.HasPrefix(one, "I crashed")) { // the kill may come in the last try
					t.Errorf("said %q", one)
				}
				if two := j.said["re:test//1/2"]; two != "well" && (two != "" || done) {
					t.Errorf("said %q", j.said) // the second has no answer of its own if the two were not parted after all
				}
				if n := j.wrote.Load(); n != 1 {
					t.Errorf("written %d times", n)
				}
				if t.Failed() {
					t.Logf("died %s", where)
				}
			})
		})
	}
}

const gap = "[A part of this conversation stood here. It is damaged on disk and cannot be read. What was said and done in it is not known: look before you do something again, and say so if it matters.]"

// TestEndLost is P21: when the record of a turn's end is damaged, the next
// message gets an answer of its own, not one with an ID that was sent already.
func TestEndLost(t *testing.T) {
	s := mem.New()
	for _, r := range []string{
		`{"heard":{"id":"0","text":"hi","at":{"channel":"test","chat":"1"},"from":{"id":"7"},"time":"2026-01-01T00:00:00Z"}}`,
		`{"said":{"role":"assistant","text":"hello"}}`, "damaged",
	} {
		if _, err := s.Log("session/test:1").Append(t.Context(), store.Any, []byte(r)); err != nil {
			t.Fatal(err)
		}
	}
	h := &house{store: s, said: map[string]string{"re:test//1/0": "hello"}, model: script(words("well"))}
	play(t, h, func(h *house) {
		h.say("1", "and now?")
		h.want("well")
		if got, want := spoken(h.asks[0], 9), "user hi | assistant hello | user "+gap+" | user and now?"; got != want {
			t.Errorf("asked %s\nwant  %s", got, want)
		}
	})
}

// TestDamageIsToldOnce is P21: the log is told of a damaged record when somebody
// goes on with the conversation, not each time it is read.
func TestDamageIsToldOnce(t *testing.T) {
	var log strings.Builder
	h := &house{store: mem.New(), model: echo, conf: func(c *agent.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) }}
	if _, err := h.store.Log("session/test:1").Append(t.Context(), store.Any, []byte("damaged")); err != nil {
		t.Fatal(err)
	}
	play(t, h, func(h *house) {
		h.transcript("test:1")
		h.say("1", "hi")
		h.want("You said hi")
		h.transcript("test:1")
		if n := strings.Count(log.String(), "is damaged and left out"); n != 1 {
			t.Errorf("told %d times", n)
		}
	})
}

// TestRetryHasNoMoreRights: an owner who has a user's words answered again does not lend them the owner's rights.
func TestRetryHasNoMoreRights(t *testing.T) {
	var roles collected[chat.Role]
	who := tool("who", nil)
	who.Run = func(_ context.Context, c tools.Call) (tools.Result, error) {
		roles.add(c.From.Role)
		return tools.Result{Text: "ok"}, nil
	}
	play(t, &house{tools: []tools.Tool{who}, model: script(words("no"), calls(call("1", "who")), words("done"))}, func(h *house) {
		m := message("1", "do it")
		m.From = chat.Sender{ID: "8", Role: chat.User}
		h.deliver(m)
		h.want("no")
		h.say("2", "/retry")
		h.want("done")
		if fmt.Sprint(roles.values()) != "[user]" {
			t.Errorf("roles %v", roles.values())
		}
	})
}

var errBusy = errors.New("the disk is busy")

// A moody store fails to tell what is in a bucket for a while.
type moody struct {
	store.Store
	bucket string
	until  time.Time
}

func (m moody) Bucket(name string) store.Bucket {
	if name == m.bucket {
		return moodyBucket{m.Store.Bucket(name), m.until}
	}
	return m.Store.Bucket(name)
}

type moodyBucket struct {
	store.Bucket
	until time.Time
}

func (b moodyBucket) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if time.Now().Before(b.until) {
		return nil, 0, errBusy
	}
	return b.Bucket.Get(ctx, key)
}

// TestOrderAfterFailure is P5: when the store cannot be read for a while, messages
// are answered in the order they came, and the session is what it was.
func TestOrderAfterFailure(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		h := &house{t: t, store: moody{mem.New(), "sessions", time.Now().Add(2 * time.Second)}}
		h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
			return words(spoken(r, 9)), nil
		}
		if _, err := h.store.Bucket("sessions").Put(t.Context(), "test:1", []byte(`{"model":"other"}`), store.Any); err != nil {
			t.Fatal(err)
		}
		h.start()
		h.say("1", "one")
		timetest.Sleep(3 * time.Second)
		h.say("2", "two")
		timetest.Sleep(time.Minute)
		h.want("user one | user two")
		if b, _, _ := h.store.Bucket("sessions").Get(t.Context(), "test:1"); !strings.Contains(string(b), `"model":"other"`) {
			t.Errorf("the session is now %s", b)
		}
		h.stop()
	})
}

// TestSuspectsRunAlone is P8: messages that may have crashed the process are
// answered one at a time, so that none is blamed for another.
func TestSuspectsRunAlone(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		dir, said := storetest.TempDir(t), map[string]string{}
		var busy atomic.Int32
		for run := range 3 {
			m := newMortal(t, dir, 1<<40)
			h := &house{t: t, store: m, said: said}
			h.model = func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
				if busy.Add(1) > 1 && run == 2 {
					t.Error("two at once")
				}
				time.Sleep(time.Second)
				if busy.Add(-1); run < 2 {
					m.left.Store(0)
					runtime.Goexit()
				}
				return words("fine"), nil
			}
			h.start()
			for i := range 3 {
				if m := message("1", "hi"); run == 0 {
					m.At.Chat = fmt.Sprint(i)
					h.deliver(m)
				}
			}
			timetest.Sleep(time.Minute)
			synctest.Wait()
			h.stop()
			m.Close()
		}
		if len(said) != 3 {
			t.Errorf("told %q", said)
		}
	})
}

// A brimful store has no room for the records of sessions for a while.
type brimful struct {
	store.Store
	full *atomic.Bool
}

func (b brimful) Log(name string) store.Log { return brimfulLog{b.Store.Log(name), b.full} }

type brimfulLog struct {
	store.Log
	full *atomic.Bool
}

func (l brimfulLog) Append(ctx context.Context, after uint64, recs ...[]byte) (uint64, error) {
	if l.full.Load() && len(recs) > 0 {
		return 0, store.ErrFull
	}
	return l.Log.Append(ctx, after, recs...)
}

// TestStopOnFullDisk is P16 and P19: a turn that was stopped and could not be
// saved before the end of the house gives back all that it had heard.
func TestStopOnFullDisk(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		h := &house{t: t, store: brimful{mem.New(), &full}}
		h.model = func(ctx context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
			if len(r.Messages) == 1 {
				<-ctx.Done()
				return llm.Message{}, ctx.Err()
			}
			return words(spoken(r, 9)), nil
		}
		h.start()
		h.say("1", "do it")
		timetest.Sleep(time.Second)
		h.say("2", "and this")
		timetest.Sleep(time.Second)
		full.Store(true)
		h.say("3", "/stop")
		timetest.Sleep(time.Second)
		h.stop()
		full.Store(false)
		h.start()
		timetest.Sleep(time.Minute)
		h.want("user do it | user and this")
		if n, _ := h.store.Queue("inbox").Len(t.Context()); n != 0 {
			t.Errorf("%d messages left in the inbox", n)
		}
		h.stop()
	})
}

// TestReplyNamesAll: the reply names every message it answers, and is sent when
// the live view is closed.
func TestReplyNamesAll(t *testing.T) {
	var v closing
	var sent collected[chat.Reply]
	h := &house{tools: []tools.Tool{slow()}, model: script(calls(call("1", "slow")), words("both"))}
	h.conf = func(c *agent.Config) {
		c.Live = func(context.Context, chat.Reply) chat.Live { return &v }
		c.Send = func(_ context.Context, r chat.Reply) error {
			sent.add(r)
			if !v.closed {
				t.Error("sent while the live view was open")
			}
			return nil
		}
	}
	play(t, h, func(h *house) {
		h.say("1", "do it")
		timetest.Sleep(time.Second)
		h.say("2", "and hurry")
		timetest.Sleep(time.Minute)
		synctest.Wait()
		if sent := sent.values(); len(sent) != 1 || sent[0].Quote != "1" || fmt.Sprint(sent[0].Also) != "[2]" {
			t.Errorf("sent %+v", sent)
		}
	})
}

type closing struct{ closed bool }

func (c *closing) Show(string)    {}
func (c *closing) Step(chat.Step) {}
func (c *closing) Close()         { c.closed = true }
