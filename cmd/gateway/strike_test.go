package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/llm/llmtest"
	"parley/scheduler"
)

// A bell is a testGateway with a job for each of several people, due every second,
// whose gateway is killed with SIGKILL while they run. The model counts aloud:
// of the runs of a job, the nth is answered "strike n".
type bell struct {
	*siege
	ids []string // of the jobs
}

// besieged makes a siege, with nobody in it yet, of a testGateway whose model answers with h.
func besieged(t *testing.T, h func(*siege) llmtest.Handler) *siege {
	s := &siege{died: make(chan string, 1)}
	s.testGateway = clocked(t, h(s))
	s.venue = venues["telegram"](s.testGateway, s.reach)
	return s
}

func newBell(t *testing.T, jobs int) *bell {
	b := &bell{}
	b.siege = besieged(t, func(*siege) llmtest.Handler { return b.answer })
	b.revive()
	for i := range jobs {
		s := b.at(int64(person + i))
		b.ids = append(b.ids, s.made(order(map[string]any{"action": "add", "every_seconds": 1, "message": "strike"})))
	}
	return b
}

// answer counts the runs that r tells of.
func (b *bell) answer(ctx context.Context, r llmtest.Request) llmtest.Reply {
	if spokenLast(r) != "strike" {
		return errand(ctx, r)
	}
	b.reach("model asked")
	n := 0
	for _, m := range r.Messages {
		if m.Role == "user" && strings.HasSuffix(m.Content, ", from the schedule]\nstrike") {
			n++
		}
	}
	return llmtest.Reply{Text: fmt.Sprintf("strike %d of the bell.", n), After: func(n int) { b.reach(fmt.Sprint("chunk ", n)) }}
}

// struck is how often the bell was heard in texts, for each run.
func struck(texts []string) map[int]int {
	times := map[int]int{}
	for _, text := range texts {
		var n int
		if _, err := fmt.Sscanf(text, "strike %d of the bell.", &n); err == nil && strings.HasSuffix(text, "bell.") {
			times[n]++
		}
	}
	return times
}

// heard waits until each bell was heard once more.
func (b *bell) heard() {
	b.t.Helper()
	for i := range b.ids {
		who := int64(person + i)
		was := len(struck(botTexts(b.tg.Chat(who))))
		b.told(who, "one more strike", func(texts []string) bool { return len(struck(texts)) > was })
	}
}

// lift stops the bells and counts: each run that was begun was answered, in one
// way, and in each chat no more of them twice than there were kills: what was on
// its way there when the program died (P9, P12).
func (b *bell) lift(kills int) {
	b.t.Helper()
	for _, id := range b.ids {
		if out, code := b.run("", "cron", "disable", id); code != 0 {
			b.t.Fatalf("disable %s: %d %s", id, code, out)
		}
	}
	for i, id := range b.ids {
		j := b.job(id, "at rest", func(j scheduler.Job) bool {
			return j.Off && !slices.ContainsFunc(j.Runs, func(r scheduler.Run) bool {
				return r.Outcome == scheduler.Running || r.Outcome == scheduler.Waiting || r.Outcome == scheduler.Sending
			})
		})
		for _, r := range j.Runs {
			if r.N > 0 && r.Outcome != scheduler.Delivered {
				b.t.Errorf("job %d: run %d came out as %s: %s", i, r.N, r.Outcome, r.Note)
			}
		}
		times := struck(b.told(int64(person+i), "the last strike", func(texts []string) bool {
			return slices.Contains(texts, fmt.Sprintf("strike %d of the bell.", j.N))
		}))
		twice := 0
		for n := range int(j.N) {
			if times[n+1] == 0 {
				b.t.Errorf("job %d: run %d is lost: %v", i, n+1, times)
			}
			twice += max(0, times[n+1]-1)
		}
		if twice > kills {
			b.t.Errorf("job %d: %d answers repeated over %d kills: %v", i, twice, kills, times)
		}
		if len(times) != int(j.N) {
			b.t.Errorf("job %d: %d answers to %d runs: %v", i, len(times), j.N, times)
		}
	}
	for _, why := range b.llm.Refused() {
		if !strings.Contains(why, "could not parse the JSON body") {
			b.t.Errorf("the provider refused: %q", why)
		}
	}
}

// TestP12KillAroundAJob kills the real program at the points around a run that
// the world sees: nothing is lost and nothing done twice. What nobody was there
// for is on record as missed (P7, P9, P12).
func TestP12KillAroundAJob(t *testing.T) {
	t.Parallel()
	b := newBell(t, 2)
	points := []string{"model asked", "before send", "after send"}
	for _, point := range points {
		b.killAt(nth(1, point), func() {})
		if point == "after send" {
			for down := time.Now().Add(2500 * time.Millisecond); time.Now().Before(down); soon(t.Context()) { // two runs of each are due meanwhile
			}
		}
		b.revive()
		b.heard()
	}
	for _, id := range b.ids {
		if out, _ := b.run("", "cron", "history", id); !strings.Contains(out, ": missed") || !strings.Contains(out, "Parley was not running") && !strings.Contains(out, "runs were missed, from ") {
			t.Errorf("the history does not tell what was missed: %s", out)
		}
	}
	b.lift(len(points))
}

// TestP12KillAtRandom kills it twenty times at random moments, most of them just
// after a second begins, when the runs are claimed and handed over.
func TestP12KillAtRandom(t *testing.T) {
	t.Parallel()
	rounds := 2 // of two kills each: a message over which the program dies three times would be put aside (P8)
	if testing.Short() {
		rounds = 1
	}
	for n := range 5 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			rnd := rand.New(rand.NewPCG(seed, 0))
			b := newBell(t, 2)
			for range rounds {
				for range 2 {
					b.base() // it lives
					next := time.Now().Truncate(time.Second).Add(time.Second + time.Duration(rnd.IntN(120))*time.Millisecond)
					for time.Now().Before(next) {
						soon(t.Context())
					}
					b.testGateway.kill()
					b.revive()
				}
				b.heard()
			}
			b.lift(2 * rounds)
		})
	}
}

// TestD092KillAroundAReport kills it when a subagent has its result and while that
// is reported: each report comes, in one way, and is repeated at most where the
// network could not tell (D-092, P7, P9).
func TestD092KillAroundAReport(t *testing.T) {
	t.Parallel()
	w := besieged(t, func(w *siege) llmtest.Handler {
		return modelWithSubagents(func(_ context.Context, r llmtest.Request) llmtest.Reply {
			return llmtest.Reply{Text: task(r) + " is done", After: func(n int) { w.reach(fmt.Sprint("result ", n)) }}
		}, func() { w.reach("report") })
	})
	w.revive()
	s := w.telegramSpot()
	points := []string{"result 1", "result 4", "report", "before send", "after send"}
	for i, point := range points {
		kill, reported := nth(1, point), !strings.HasSuffix(point, "send")
		w.killAt(func(at string) bool { // the first answer is of who sent the subagent off
			reported = reported || at == "report"
			return reported && kill(at)
		}, func() { s.post(fmt.Sprintf(`call spawn {"task": "errand %d", "label": "e%d"}`, i, i)) })
		w.revive()
		s.hears(fmt.Sprintf("the subagent says: errand %d is done", i), 1)
	}
	s.asks("thanks", "heard thanks")
	for i, point := range points {
		most := 1
		if strings.HasSuffix(point, "send") { // nobody can tell whether it was sent
			most = 2
		}
		if n := s.answers(fmt.Sprintf("the subagent says: errand %d is done", i)); n > most {
			t.Errorf("killed at %q, and told %d times: %q", point, n, botTexts(w.tg.Chat(person)))
		}
	}
}
