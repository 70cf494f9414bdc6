package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/channels/telegram/telegramtest"
	"parley/chat"
	"parley/llm"
	"parley/llm/llmtest"
	"parley/scheduler"
)

// The tests here look for faults at random, each by one seed, which it logs. In
// ordinary runs they are short; with PARLEY_TORTURE set they last.

// bouts returns short, or long if there is time.
func bouts(short, long int) int {
	if os.Getenv("PARLEY_TORTURE") != "" {
		return long
	}
	return short
}

// seeded returns the random numbers of a test. PARLEY_SEED runs one again.
func seeded(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("PARLEY_SEED"); text != "" {
		if _, err := fmt.Sscan(text, &seed); err != nil {
			t.Fatalf("PARLEY_SEED: %v", err)
		}
	}
	t.Logf("PARLEY_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// A chaos is a siege in which, besides kills, connections break, the networks
// and the model fail, and the wall clock is stepped. What happened is checked
// when all is over.
type chaos struct {
	*siege
	faults sync.Mutex
	rnd    *rand.Rand // guarded by faults
	steps  int        // of the clock
}

// TestTortureHistories: over random faults of the process, the networks and the
// model, and random steps of the wall clock, each message is answered once, each
// call begun once, each run of a job begun at most once, and each chat kept in
// order (P1, P2, P5, P6, P7, P9, P10, P11, P12, P23).
func TestTortureHistories(t *testing.T) {
	for range bouts(1, 10) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			h := &chaos{rnd: seeded(t)}
			h.siege = newSiege(t, "telegram", 3, func(w *testGateway) { w.clock = &wallClock{} })
			h.slow = 20 * time.Millisecond
			h.mu.Lock()
			h.siege.model = h.reply
			h.mu.Unlock()
			var jobs []string
			if canSetClock { // else no job would be due
				jobs = h.schedule()
			}
			for range bouts(6, 40) {
				h.round()
			}
			h.lift()
			h.checkCalls()
			h.checkRuns(jobs)
			t.Logf("%d kills, %v messages", h.kills, h.asked)
		})
	}
}

func (h *chaos) chance(percent int) bool {
	h.faults.Lock()
	defer h.faults.Unlock()
	return h.rnd.IntN(100) < percent
}

func (h *chaos) pick(n int) int {
	h.faults.Lock()
	defer h.faults.Unlock()
	return h.rnd.IntN(n)
}

// reply answers as that of a siege does, or fails as providers do. What is told
// "count" it counts in a file, once.
func (h *chaos) reply(ctx context.Context, r llmtest.Request) llmtest.Reply {
	switch {
	case h.chance(4):
		return llmtest.Reply{Status: 500}
	case h.chance(4):
		return llmtest.Reply{Status: 429, Header: map[string]string{"Retry-After": "1"}}
	case h.chance(4):
		return llmtest.Reply{Text: "this answer breaks off in the middle", Chunks: 3, Abort: true}
	}
	reply := h.answer(ctx, r)
	if used(r) {
		return reply
	}
	for _, m := range spoken(r) {
		if strings.HasPrefix(m, "tool") { // instead of a file that is written twice without a trace
			for i, c := range reply.Calls {
				if strings.Contains(c.Args, strings.ReplaceAll(m, " ", "-")+".txt") {
					reply.Calls[i] = llm.ToolCall{ID: c.ID, Name: c.Name, Args: strings.Replace(c.Args, `"done"`, `"begun\n", "mode": "append"`, 1)}
				}
			}
		}
	}
	return reply
}

// tell has a person write, such as "tool 3 of chat 1".
func (h *chaos) tell(chat int, kind string) {
	h.asked[chat]++
	h.say(chat, fmt.Sprintf("%s %d of chat %d", kind, h.asked[chat], chat))
}

// round is some talk, during which things fail.
func (h *chaos) round() {
	for range h.pick(4) {
		h.fail()
	}
	talk := func() {
		for range 1 + h.pick(3) {
			if h.chance(50) {
				h.step(longSteps)
			}
			h.tell(h.pick(3), []string{"plain", "plain", "tool", "tool", "tell", "slow"}[h.pick(6)])
		}
		h.step(shortSteps)
	}
	switch h.pick(4) {
	case 0: // nobody kills it
		talk()
	case 1: // while it answers
		h.killAt(h.sometime(), talk)
		h.revive()
	default: // and once more as it comes back
		h.killAt(h.sometime(), talk)
		h.killAt(h.sometime(), func() { talk(); h.revive() })
		h.revive()
	}
	h.answered()
}

// Steps of the wall clock. A gateway that is killed comes back with one of the
// short ones: it cannot know that it was not away for a day.
var (
	shortSteps = []time.Duration{0, time.Second, -time.Second, time.Minute, time.Hour, -time.Hour, 5 * time.Hour, -5 * time.Hour}
	longSteps  = append(shortSteps, 25*time.Hour, -25*time.Hour)
)

// step sets the wall clock forth or back.
func (h *chaos) step(to []time.Duration) {
	h.clock.set(to[h.pick(len(to))])
	h.steps++
}

// schedule makes jobs that note each of their runs in a file, and returns their IDs.
func (h *chaos) schedule() (ids []string) {
	h.t.Helper()
	for i, every := range []string{"1h", "10m"} {
		args := fmt.Sprintf(`{"path": "runs/%d.txt", "content": "ran\n", "mode": "append"}`, i)
		out, code := h.run("", "cron", "add", "--every", every, "--isolated", "--to", fmt.Sprint("telegram:", person+i), "--tool", "write_file", "--args", args)
		id := jobID.FindStringSubmatch(out)
		if code != 0 || id == nil {
			h.t.Fatalf("cron add: %d: %s", code, out)
		}
		ids = append(ids, id[1])
	}
	return ids
}

// checkRuns wants each run of a job to have been begun at most once, no burst
// of them, and none standing still once the clock is right again (P12, P23).
func (h *chaos) checkRuns(ids []string) {
	h.t.Helper()
	h.clock.set(0)
	h.testGateway.kill()
	h.revive()
	before := map[string]scheduler.Job{}
	for _, id := range ids {
		before[id] = h.job(id, "at rest", func(j scheduler.Job) bool { // and not about to run
			return time.Until(j.Next) > 10*time.Second && (len(j.Runs) == 0 || !slices.Contains([]scheduler.Outcome{scheduler.Waiting, scheduler.Running, scheduler.Sending}, j.Runs[len(j.Runs)-1].Outcome))
		})
	}
	h.testGateway.kill()
	h.clock.set(3 * time.Hour)
	h.revive()
	for i, id := range ids {
		j := h.job(id, "run again", func(j scheduler.Job) bool {
			return j.N > before[id].N && j.Runs[len(j.Runs)-1].Outcome == scheduler.Delivered
		})
		if j.N > before[id].N+1 {
			h.t.Errorf("job %s: %d runs after one step", id, j.N-before[id].N)
		}
		text, err := os.ReadFile(filepath.Join(h.dir, "workspace", []string{"", homeOf(guest)}[i], "runs", fmt.Sprint(i, ".txt")))
		if ran := strings.Count(string(text), "ran\n"); err != nil || ran > int(j.N) {
			h.t.Errorf("job %s: %d runs, which were done %d times: %v", id, j.N, ran, err)
		}
		if int(j.N) > h.steps+2*h.starts {
			h.t.Errorf("job %s: a burst of %d runs over %d steps of the clock and %d starts", id, j.N, h.steps, h.starts)
		}
	}
}

func (h *chaos) sometime() func(string) bool {
	h.faults.Lock()
	defer h.faults.Unlock()
	return sometime(h.rnd)
}

// fail makes one of the next requests to the network fail.
func (h *chaos) fail() {
	method := []string{"getUpdates", "sendMessage", "editMessageText", "sendChatAction"}[h.pick(4)]
	fault := []telegramtest.Fault{
		{DropBefore: true}, {DropAfter: true}, {Code: 500, Text: "Internal Server Error"}, {Code: 429, Text: "Too Many Requests: retry after 1", RetryAfter: 1},
		{Code: 502, Page: "<html>Bad Gateway</html>"}, {Delay: 300 * time.Millisecond},
	}[h.pick(6)]
	h.tg.Fail(method, fault)
}

// checkCalls wants no call to have been begun twice (P6).
func (h *chaos) checkCalls() {
	h.t.Helper()
	files, err := filepath.Glob(filepath.Join(h.dir, "workspace", "log", "*.txt"))
	theirs, wrong := filepath.Glob(filepath.Join(h.dir, "workspace", chat.PeopleDir, "*", "log", "*.txt"))
	files = append(files, theirs...)
	if err = errors.Join(err, wrong); err != nil || len(files) == 0 {
		h.t.Errorf("no call was made: %v", err)
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); string(text) != "begun\n" {
			h.t.Errorf("%s: %q, %v", filepath.Base(file), text, err)
		}
	}
}

// TestTortureRestore kills a restore at random moments: then there is what was
// before or what was restored, or the gateway refuses to begin without it, and a
// second restore succeeds. What was before is never destroyed (P18, P20).
func TestTortureRestore(t *testing.T) {
	t.Parallel()
	rnd := seeded(t)
	w := newTestGateway(t, echo)
	w.start()
	w.tg.Say(person, "of old")
	w.says(person, "heard of old")
	file, session := filepath.Join(t.TempDir(), "backup"), fmt.Sprintf("telegram:%d", person)
	if out, code := w.run("", "backup", file); code != 0 {
		t.Fatalf("backup: %d: %s", code, out)
	}
	w.tg.Say(person, "of late")
	w.says(person, "heard of late")
	w.stop()
	restored := 0
	for range bouts(6, 60) {
		w.killAfter(time.Duration(rnd.IntN(400))*time.Millisecond, "restore", "--force", "--yes", file)
		out, code := w.run("", "sessions", "export", session)
		if code == 0 && !strings.Contains(out, "heard of old") {
			t.Fatalf("it began without what was there: %q", out)
		}
		if code != 0 {
			if out, code := w.run("", "restore", "--force", "--yes", file); code != 0 {
				t.Fatalf("the second restore: exit code %d: %s", code, out)
			}
			out = w.exported(session)
		}
		if !strings.Contains(out, "heard of late") {
			restored++
		}
	}
	if late := w.holding("parley.db", "heard of late"); late == 0 {
		t.Error("what was before the restore is gone")
	}
	if left, err := filepath.Glob(filepath.Join(w.dir, ".restore-*")); err != nil || len(left) > 1 {
		t.Errorf("left there: %q, %v", left, err)
	}
	t.Logf("restored %d times", restored)
}

// killAfter runs a command line of the program and kills it after that time.
func (w *testGateway) killAfter(after time.Duration, args ...string) {
	w.t.Helper()
	cmd := w.command(args...)
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	killer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait() // it was killed, or was faster
	killer.Stop()
}

// holding counts the files of that name, in the data folder and those in it, that hold text.
func (w *testGateway) holding(name, text string) (n int) {
	w.t.Helper()
	err := filepath.WalkDir(w.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Name() != name {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), text) {
			n++
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// TestTortureBackup kills backups, and gateways that make them, at random
// moments: there is no backup, or one that restores; talk goes on; and nothing
// is left behind (P20).
func TestTortureBackup(t *testing.T) {
	t.Parallel()
	rnd := seeded(t)
	w := newTestGateway(t, echo)
	w.start()
	w.tg.Say(person, "hello 0")
	w.says(person, "heard hello 0")
	other := newTestGateway(t, echo) // where what was made is restored
	other.config()
	for i := range bouts(4, 40) {
		file := filepath.Join(t.TempDir(), "backup")
		delay := time.Duration(rnd.IntN(300)) * time.Millisecond
		if rnd.IntN(2) == 0 {
			w.killAfter(delay, "backup", file)
		} else {
			killer := time.AfterFunc(delay, w.kill)
			w.run("", "backup", file) //nolint:errcheck // it may fail: the gateway is killed meanwhile
			if killer.Stop() {
				w.kill()
			}
			w.start()
		}
		hello := fmt.Sprint("hello ", i+1)
		w.tg.Say(person, hello)
		w.says(person, "heard "+hello)
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if out, code := other.run("", "restore", "--force", "--yes", file); code != 0 {
			t.Fatalf("half a backup was left: exit code %d: %s", code, out)
		}
		if got := other.exported(fmt.Sprintf("telegram:%d", person)); !strings.Contains(got, fmt.Sprint("heard hello ", i)) {
			t.Errorf("backup %d holds %q", i, got)
		}
	}
	w.kill()
	w.start() // which sweeps away what was cut off
	w.tg.Say(person, "the end")
	w.says(person, "heard the end")
	if left, err := filepath.Glob(filepath.Join(w.dir, ".backup-*")); err != nil || len(left) > 0 {
		t.Errorf("left there: %q, %v", left, err)
	}
}

// TestTortureSending kills the program while it sends to twenty people at
// once, at the moment when Telegram has taken a message or is about to: none is
// lost, and none is there twice (P9).
func TestTortureSending(t *testing.T) {
	t.Parallel()
	const people = 20
	kills, rnd := bouts(6, 200), seeded(t)
	s := newSiege(t, "telegram", people)
	s.slow = 50 * time.Millisecond
	talk := func() {
		for chat := range people {
			s.tell(chat, []string{"plain", "plain", "tool", "tell", "slow"}[rnd.IntN(5)])
		}
	}
	sending := func() func(string) bool {
		return nth(1+rnd.IntN(people), []string{"before send", "after send", "after send"}[rnd.IntN(3)])
	}
	for s.kills < kills {
		s.killAt(sending(), talk)
		s.killAt(sending(), func() { talk(); s.revive() })
		s.revive()
		s.answered()
	}
	s.lift()
	t.Logf("%d kills, %v messages", s.kills, s.asked)
}
