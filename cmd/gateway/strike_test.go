package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/channels/telegram/telegramtest"
	"parley/llm/llmtest"
	"parley/scheduler"
)

// A bell is a town with a job for each of several people, due every second,
// whose gateway is killed with SIGKILL while they run. The model counts aloud:
// of the runs of a job, the nth is answered "strike n".
type bell struct {
	*town
	mu   sync.Mutex
	when func(point string) bool // to kill
	died chan string
	ids  []string // of the jobs
}

func newBell(t *testing.T, jobs int) *bell {
	b := &bell{died: make(chan string, 1)}
	b.town = clocked(t, b.answer)
	names := map[string]string{"sendMessage": "send", "editMessageText": "edit", "getUpdates": "poll"}
	b.tg.Watch(func(e telegramtest.Event) { b.reach(when(e.Done) + spell(names, e.Method)) })
	b.start()
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

// reach kills the gateway if this is the moment.
func (b *bell) reach(point string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.when == nil || !b.when(point) {
		return
	}
	b.when = nil
	_ = b.proc.cmd.Process.Kill()
	<-b.proc.ended
	b.died <- point
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
// way, and no more of them twice than there were kills (P9, P12).
func (b *bell) lift(kills int) {
	b.t.Helper()
	for _, id := range b.ids {
		if out, code := b.run("", "cron", "disable", id); code != 0 {
			b.t.Fatalf("disable %s: %d %s", id, code, out)
		}
	}
	twice := 0
	for i, id := range b.ids {
		j := b.job(id, "at rest", func(j scheduler.Job) bool {
			return j.Off && !slices.ContainsFunc(j.Runs, func(r scheduler.Run) bool { return r.Outcome == scheduler.Running || r.Outcome == scheduler.Waiting })
		})
		for _, r := range j.Runs {
			if r.N > 0 && r.Outcome != scheduler.Answered {
				b.t.Errorf("job %d: run %d came out as %s: %s", i, r.N, r.Outcome, r.Note)
			}
		}
		times := struck(b.told(int64(person+i), "the last strike", func(texts []string) bool {
			return slices.Contains(texts, fmt.Sprintf("strike %d of the bell.", j.N))
		}))
		for n := range int(j.N) {
			if times[n+1] == 0 {
				b.t.Errorf("job %d: run %d is lost: %v", i, n+1, times)
			}
			twice += max(0, times[n+1]-1)
		}
		if len(times) != int(j.N) {
			b.t.Errorf("job %d: %d answers to %d runs: %v", i, len(times), j.N, times)
		}
	}
	if twice > kills {
		b.t.Errorf("%d answers repeated over %d kills", twice, kills)
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
		b.mu.Lock()
		b.when = nth(1, point)
		b.mu.Unlock()
		select {
		case <-b.died:
		case <-time.After(waitTime):
			t.Fatalf("it does not come to %q", point)
		}
		if point == "after send" {
			for down := time.Now().Add(2500 * time.Millisecond); time.Now().Before(down); soon(t.Context()) { // two runs of each are due meanwhile
			}
		}
		b.start()
		b.heard()
	}
	for _, id := range b.ids {
		if out, _ := b.run("", "cron", "history", id); !strings.Contains(out, ": missed") || !strings.Contains(out, "nobody was there") && !strings.Contains(out, "runs were missed, from ") {
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
					b.face() // it lives
					next := time.Now().Truncate(time.Second).Add(time.Second + time.Duration(rnd.IntN(120))*time.Millisecond)
					for time.Now().Before(next) {
						soon(t.Context())
					}
					b.kill()
					b.start()
				}
				b.heard()
			}
			b.lift(2 * rounds)
		})
	}
}
