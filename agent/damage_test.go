package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/store/storetest"
	"parley/timetest"
	"parley/tools"
)

// A holed store cannot read some records of the log of the conversation test:1.
type holed struct {
	store.Store
	from, to uint64
}

func (h holed) Log(name string) store.Log {
	l := h.Store.Log(name)
	if name != "session/test:1" {
		return l
	}
	return holedLog{l, h.from, h.to}
}

type holedLog struct {
	store.Log
	from, to uint64
}

func (l holedLog) Since(ctx context.Context, seq uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for r, err := range l.Log.Since(ctx, seq) {
			if err == nil && l.from <= r.Seq && r.Seq <= l.to {
				r.Body, err = nil, store.ErrDamaged
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// A wreck is a conversation over a death and damage.
type wreck struct {
	t      *testing.T
	dir    string
	said   map[string]string // the first reply with each ID, as an outbox keeps it
	writes int
	asked  string // what the model was last shown
}

// live lets the house work on texts, in a store in which the records from to to
// cannot be read, until it is stopped or the store dies. It returns where the store
// died, and the number of the last record.
func (w *wreck) live(life int, from, to uint64, texts ...string) (where string, last uint64) {
	m := newMortal(w.t, w.dir, life)
	h := &house{t: w.t, store: holed{m, from, to}}
	h.tools = []tools.Tool{tool("write", func(context.Context) (string, error) {
		w.writes++
		return "written", nil
	})}
	h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		if m.left.Load() < 0 {
			runtime.Goexit()
		}
		w.asked = spoken(r, 99)
		if strings.HasSuffix(w.asked, "user work") || strings.HasSuffix(w.asked, "user work | user "+gap) {
			return calls(call("1", "write")), nil
		}
		return words("well"), nil
	}
	h.conf = func(c *agent.Config) {
		c.Log = slog.New(slog.DiscardHandler)
		c.Send = func(ctx context.Context, r chat.Reply) error {
			if m.left.Load() < 0 {
				runtime.Goexit()
			}
			if _, sent := w.said[r.ID]; !sent {
				w.said[r.ID] = r.Text
			}
			return m.keep(ctx, r.ID)
		}
	}
	h.start()
	said := make(chan struct{})
	go func() { // it ends where the store dies
		defer close(said)
		for i, text := range texts {
			h.say(fmt.Sprint(life, "-", i), text)
		}
	}()
	<-said
	timetest.Sleep(time.Minute)
	synctest.Wait()
	h.stop()
	where, _ = m.where.Load().(string)
	m.left.Store(1 << 40)
	for r, err := range m.Store.Log("session/test:1").Since(w.t.Context(), 0) {
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			w.t.Error(err)
		}
		last = r.Seq
	}
	if err := m.Close(); err != nil {
		w.t.Error(err)
	}
	return where, last
}

// TestDamagedTurn is P6, P21: whatever part of a turn cannot be read after a death
// at whatever moment of it, what was done in it is not done again, the person is
// told, and the next message is answered by a model that knows of the damage.
func TestDamagedTurn(t *testing.T) {
	const immortal = 1 << 40
	for n, done := 0, false; !done; n += 2 { // before each operation
		for variant, more := 0, true; more; variant++ {
			t.Run(fmt.Sprint(n, " ", variant), func(t *testing.T) {
				timetest.Test(t, func(t *testing.T) {
					w := &wreck{t: t, dir: storetest.TempDir(t), said: map[string]string{}}
					where, last := w.live(n, 0, 0, "work")
					if done = where == ""; last == 0 {
						more = false
						return
					}
					from, to := uint64(variant/2)+1, last // from there to the end …
					if more = from < last || variant%2 == 0; variant%2 == 1 {
						to = from // … or that record alone
					}
					w.live(immortal, from, to)
					first, second := fmt.Sprint("re:test//1/", n, "-0"), fmt.Sprint("re:test//1/", immortal, "-0")
					if w.said[first] == "" {
						t.Error("the message was not answered")
					}
					w.live(immortal, from, to, "and now?")
					if w.said[second] != "well" || len(w.said) != 2 {
						t.Errorf("said %q", w.said)
					}
					if w.writes > 1 {
						t.Errorf("written %d times", w.writes)
					}
					if strings.Count(w.asked, gap) != 1 || !strings.HasSuffix(w.asked, "user and now?") {
						t.Errorf("the model was asked %q", w.asked)
					}
					if t.Failed() {
						t.Logf("died %s, records %d to %d of %d damaged", where, from, to, last)
					}
				})
			})
		}
	}
}
