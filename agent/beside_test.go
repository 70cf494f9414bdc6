package agent_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/llm"
	"parley/store/storetest"
	"parley/timetest"
	"parley/tools"
)

// noteCommand has the command /note, which takes as long as its argument says, if it is a time, and lists its arguments.
func noteCommand(noted *collected[string]) func(*agent.Config) {
	return func(c *agent.Config) {
		c.Commands = []agent.Command{{Name: "note", Help: "note it", Do: func(ctx context.Context, m chat.Message) (string, error) {
			_, what := chat.Word(m.Text)
			if wait, err := time.ParseDuration(what); err == nil {
				select {
				case <-time.After(wait):
				case <-ctx.Done():
					return "", ctx.Err()
				}
			}
			noted.add(what)
			return "noted " + what, nil
		}}}
	}
}

// Commands that are not about the turn are answered while it waits, in the order given; the turn goes on.
func TestCommandsBesideATurn(t *testing.T) {
	var noted collected[string]
	h := &house{conf: noteCommand(&noted), model: script(calls(call("1", "approve")), words("done"))}
	h.tools = []tools.Tool{tool("approve", func(context.Context) (string, error) {
		time.Sleep(10 * time.Minute)
		return "yes", nil
	})}
	play(t, h, func(h *house) {
		h.say("1", "go")
		timetest.Sleep(time.Second)
		h.say("2", "/note 3s")
		h.say("3", "/note b")
		h.say("4", "/search go")
		h.say("5", "/context") // this is about the turn
		timetest.Sleep(4 * time.Second)
		synctest.Wait()
		if len(h.sent) != 3 || h.sent[0] != "noted 3s" || h.sent[1] != "noted b" || !strings.HasPrefix(h.sent[2], "Said here") {
			t.Errorf("said %q", h.sent)
		}
		h.mu.Lock()
		h.sent = nil
		h.mu.Unlock()
		timetest.Sleep(20 * time.Minute)
		synctest.Wait()
		if len(h.sent) != 2 || h.sent[0] != "done" || !strings.HasPrefix(h.sent[1], "Model: main") {
			t.Errorf("said %q", h.sent)
		}
	})
}

// What is said after a command is answered after it, since it may be about what the command changed. But it does not
// wait long for one that hangs, which is ended after a minute; others do not wait at all (P14).
func TestMessageAfterCommand(t *testing.T) {
	for _, c := range []struct {
		takes    string
		answered time.Duration
		noted    string
	}{
		{"3s", 3 * time.Second, "noted 3s"},
		{"30s", 5 * time.Second, "noted 30s"},
		{"2h", 5 * time.Second, "I could not do that; the log says why."},
	} {
		t.Run(c.takes, func(t *testing.T) {
			var noted collected[string]
			var began time.Time
			var after collected[time.Duration]
			h := &house{conf: noteCommand(&noted)}
			h.model = func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
				after.add(time.Since(began))
				return words("well"), nil
			}
			play(t, h, func(h *house) {
				began = time.Now()
				h.say("1", "/note "+c.takes)
				h.say("2", "hello")
				other := message("3", "hello")
				other.At.Chat = "2"
				h.deliver(other)
				timetest.Sleep(2 * time.Minute)
				synctest.Wait()
				if got := after.values(); len(got) != 2 || got[0] != 0 || got[1] != c.answered {
					t.Errorf("answered after %v", got)
				}
				if got := h.said["re:test//1/1"]; got != c.noted {
					t.Errorf("the command was answered %q", got)
				}
			})
		})
	}
}

// A command that is under way when Parley ends is waited for, ended, and begun again by the next process.
func TestCommandAtTheEnd(t *testing.T) {
	var noted collected[string]
	var log strings.Builder
	conf := func(c *agent.Config) {
		noteCommand(&noted)(c)
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
	}
	play(t, &house{conf: conf}, func(h *house) {
		h.say("1", "/note 50s")
		synctest.Wait()
		h.stop()
		if got := noted.values(); len(got) != 0 || len(h.sent) != 0 || strings.Contains(log.String(), "command failed") {
			t.Errorf("noted %q, said %q, logged %s", got, h.sent, &log)
		}
		h.start()
		timetest.Sleep(time.Minute)
		h.want("noted 50s")
	})
}

// TestCommandCrash kills the process before and after every operation of the store, with commands beside a turn: each
// is answered once, in order (P1, P2).
func TestCommandCrash(t *testing.T) {
	for n, done := 0, false; !done; n++ {
		timetest.Test(t, func(t *testing.T) {
			dir := storetest.TempDir(t)
			said := map[string]string{}
			taken := map[string]bool{}
			var order []string
			var where any
			for _, life := range []int{n, 1 << 40} {
				var noted collected[string]
				m := newMortal(t, dir, life)
				h := &house{t: t, store: m, said: said}
				h.model = func(ctx context.Context, _ llm.Request, _ func(llm.Delta)) (llm.Message, error) {
					select {
					case <-time.After(30 * time.Second):
						return words("done"), nil
					case <-ctx.Done():
						return llm.Message{}, ctx.Err()
					}
				}
				h.conf = func(c *agent.Config) {
					noteCommand(&noted)(c)
					send := c.Send
					c.Send = func(ctx context.Context, r chat.Reply) error {
						if said[r.ID] != "" { // the outbox drops it
							return nil
						}
						err := send(ctx, r)
						order = append(order, r.Text)
						return err
					}
				}
				h.start()
				for i, text := range []string{"go", "/note a", "/note b", "/note c"} {
					id := fmt.Sprint(i)
					if taken[id] {
						continue
					}
					go func() {
						if err := h.pool.Deliver(t.Context(), message(id, text)); err != nil {
							t.Error(err)
						}
						taken[id] = true
					}()
					synctest.Wait()
				}
				timetest.Sleep(2 * time.Minute)
				synctest.Wait()
				if left, err := m.Queue("inbox").Len(context.WithoutCancel(t.Context())); m.where.Load() == nil && (left > 0 || err != nil) {
					t.Errorf("%d messages are left, %v", left, err)
				}
				h.stop()
				if err := m.Close(); err != nil {
					t.Error(err)
				}
				if life == n {
					where = m.where.Load()
					done = where == nil
				}
				if done {
					break
				}
			}
			if got := strings.Join(order, ","); got != "noted a,noted b,noted c,done" {
				t.Errorf("died %v: said %q", where, got)
			}
		})
	}
}

// P8: a command over which the process dies again and again is suspended and given up as any message, and the turn
// under way is not broken off for that.
func TestPoisonousCommand(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		dir := storetest.TempDir(t)
		said := map[string]string{}
		deaths := 0
		for life := range 9 {
			m := newMortal(t, dir, 1<<40)
			h := &house{t: t, store: m, said: said, conf: func(c *agent.Config) {
				c.Commands = []agent.Command{{Name: "poison", Do: func(context.Context, chat.Message) (string, error) {
					deaths++
					m.left.Store(0)
					runtime.Goexit()
					return "", nil
				}}}
			}}
			h.start()
			if life == 0 {
				go h.pool.Deliver(t.Context(), message("1", "/poison")) //nolint:errcheck // the process dies over it
			}
			timetest.Sleep(7 * time.Minute)
			synctest.Wait()
			h.stop()
			m.Close()
		}
		if got := said["re:test//1/1"]; !strings.Contains(got, "crashed three times") || deaths < 4 || deaths > 6 {
			t.Errorf("the person was told %q after %d deaths", got, deaths)
		}
	})
}
