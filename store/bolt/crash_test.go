package bolt_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"parley/store"
	"parley/store/bolt"
	"parley/store/storetest"
)

const (
	writers     = 8
	crashRounds = 32
)

func logOf(w int) string         { return fmt.Sprint("log/", w) }
func keyOf(w int) string         { return fmt.Sprint("key/", w) }
func deferredKeyOf(w int) string { return fmt.Sprint("deferred/", w) }
func idOf(w, n int) string       { return fmt.Sprintf("%d-%d", w, n) }
func bodyOf(n, m int) string {
	return fmt.Sprintf("%d of %d %s", n, m, strings.Repeat(fmt.Sprint(n), n%300))
}

// writeForEver is a child: its writers print what they are about to finish, and what the
// Store has acknowledged.
func writeForEver(args []string) error {
	s, err := bolt.Open(context.Background(), bolt.Config{Dir: args[0]})
	if err != nil {
		return err
	}
	failed := make(chan error)
	go func() { // much more often than by themselves
		for {
			if err := s.BeginCheckpoint(context.Background()); err != nil {
				failed <- err
			}
			time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
		}
	}()
	go func() {
		for {
			if err := s.Compact(context.Background(), 1<<30); err != nil {
				failed <- err
			}
			time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
		}
	}()
	for w := range writers {
		go func() { failed <- write(s, w) }()
	}
	return <-failed
}

func say(format string, args ...any) { fmt.Fprintf(os.Stdout, format+"\n", args...) }

func write(s store.Store, w int) error {
	ctx := context.Background()
	l, b, q := s.Log(logOf(w)), s.Bucket("b"), s.Queue("q")
	count, rev := 0, uint64(0)
	val, rev, err := b.Get(ctx, keyOf(w))
	if err == nil {
		_, _ = fmt.Sscan(string(val), &count)
	}
	for {
		count++
		if _, err := b.Put(store.Deferred(ctx), deferredKeyOf(w), []byte(bodyOf(count, 0)), store.Any); err != nil {
			return fmt.Errorf("put deferred: %w", err)
		}
		if rev, err = b.Put(ctx, keyOf(w), []byte(bodyOf(count, 0)), rev); err != nil {
			return fmt.Errorf("put: %w", err)
		}
		say("put %d %d", w, count)

		recs := make([][]byte, 1+rand.IntN(5))
		for i := range recs {
			recs[i] = []byte(bodyOf(i+1, len(recs)))
		}
		seq, err := l.Append(ctx, store.Any, recs...)
		if err != nil {
			return err
		}
		say("append %d %d", w, seq)

		if err := q.Push(ctx, idOf(w, count), []byte(bodyOf(count, w))); err != nil {
			return err
		}
		say("push %d %d", w, count)
		if rand.IntN(4) == 0 {
			continue
		}
		item, err := q.Pull(ctx)
		if err != nil {
			return err
		}
		say("try %s 0", item.ID)
		if err := item.Done(ctx); err != nil {
			return err
		}
		say("done %s 0", item.ID)
		if seq > 5 && rand.IntN(8) == 0 {
			if err := l.Trim(ctx, seq-5); err != nil {
				return err
			}
			say("trim %d %d", w, seq-5)
		}
	}
}

// An output is what the children have printed.
type told struct {
	put, appended, trimmed [writers]int
	pushed, tried, done    map[string]bool
}

func (a *told) hear(line string) {
	var op, what string
	var w, n int
	_, _ = fmt.Sscan(line, &op, &what, &n)
	_, _ = fmt.Sscan(what, &w)
	switch op {
	case "put":
		a.put[w] = n
	case "append":
		a.appended[w] = n
	case "trim":
		a.trimmed[w] = n
	case "push":
		a.pushed[idOf(w, n)] = true
	case "try":
		a.tried[what] = true
	case "done":
		a.done[what] = true
	}
}

// TestCrash kills a process that writes, again and again with the same directory. Every
// acknowledged write is there, in order and complete.
func TestCrash(t *testing.T) {
	dir := storetest.TempDir(t)
	a := &told{pushed: map[string]bool{}, tried: map[string]bool{}, done: map[string]bool{}}
	for round := range crashRounds {
		crash(t, dir, rand.IntN(400), a)
		s := open(t, dir)
		for w := range writers {
			checkLog(t, s, w, a)
			checkKey(t, s, w, a)
		}
		checkQueue(t, s, a)
		if t.Failed() {
			t.Fatalf("after round %d", round)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d pushes, %d done, %v appended", len(a.pushed), len(a.done), a.appended)
}

// crash kills a child after it has printed that many lines.
func crash(t *testing.T, dir string, lines int, a *told) {
	t.Helper()
	cmd := child(t.Context(), "write", dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(out)
	for n := 0; ; n++ {
		if n == lines {
			_ = cmd.Process.Kill()
		}
		if !said.Scan() {
			break
		}
		a.hear(said.Text())
	}
	_ = cmd.Wait()
	if cmd.ProcessState.Exited() {
		t.Fatalf("child ended by itself: %v", cmd.ProcessState)
	}
}

func checkLog(t *testing.T, s store.Store, w int, a *told) {
	t.Helper()
	i, m, last := 0, 0, a.trimmed[w]
	first := true
	for r, err := range s.Log(logOf(w)).Since(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if int(r.Seq) <= a.trimmed[w] || !first && int(r.Seq) != last+1 {
			t.Errorf("log %d: number %d after %d, trimmed to %d", w, r.Seq, last, a.trimmed[w])
		}
		before := i
		_, _ = fmt.Sscanf(string(r.Body), "%d of %d", &i, &m)
		if string(r.Body) != bodyOf(i, m) || !first && i != before+1 && i != 1 {
			t.Errorf("log %d: record %d is %.40q after part %d", w, r.Seq, r.Body, before)
		}
		last, first = int(r.Seq), false
	}
	if last < a.appended[w] || i != m {
		t.Errorf("log %d: ends at %d with part %d of %d, acknowledged %d", w, last, i, m, a.appended[w])
	}
}

func checkKey(t *testing.T, s store.Store, w int, a *told) {
	t.Helper()
	val, _, err := s.Bucket("b").Get(t.Context(), keyOf(w))
	if a.put[w] == 0 && err != nil {
		return
	}
	var n int
	_, _ = fmt.Sscan(string(val), &n)
	if err != nil || n < a.put[w] || string(val) != bodyOf(n, 0) {
		t.Errorf("key %d = %.40q, %v; acknowledged %d", w, val, err, a.put[w])
	}
	val, _, err = s.Bucket("b").Get(t.Context(), deferredKeyOf(w)) // the one before, or that of the next count
	var before int
	_, _ = fmt.Sscan(string(val), &before)
	if err != nil || before != n && before != n+1 {
		t.Errorf("deferred before key %d = %.40q, %v; want %d or %d", w, val, err, n, n+1)
	}
}

// checkQueue pulls all work and holds it: closing the Store returns it to the queue.
func checkQueue(t *testing.T, s store.Store, a *told) {
	t.Helper()
	ctx, q := t.Context(), s.Queue("q")
	n, err := q.Len(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var newest [writers]int
	there := map[string]bool{}
	for range n {
		item, err := q.Pull(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var w, n int
		_, _ = fmt.Sscanf(item.ID, "%d-%d", &w, &n)
		if n <= newest[w] || string(item.Body) != bodyOf(n, w) || !item.Again || a.done[item.ID] {
			t.Errorf("work %s after %d, done: %v, again: %v, body %.40q", item.ID, newest[w], a.done[item.ID], item.Again, item.Body)
		}
		newest[w] = n
		there[item.ID] = true
	}
	for id := range a.pushed {
		if !there[id] && !a.tried[id] {
			t.Errorf("work %s is lost", id)
		}
		if rand.IntN(20) == 0 { // P2: still known, done or not
			if err := q.Push(ctx, id, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if m, err := q.Len(ctx); m != n || err != nil {
		t.Errorf("Len = %d, %v after pushing known ids, want %d", m, err, n)
	}
}
