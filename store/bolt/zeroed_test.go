package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"parley/store"
	"parley/store/bolt"
	"parley/store/bolt/refusal"
	"parley/store/storetest"
)

// useZeroed is a child: for each page from the given number on, it overwrites the page
// with zeros while the Store in its first argument is closed, opens the Store, and uses
// all of it. It prints each page first.
func useZeroed(args []string) error {
	path := file(args[0])
	whole, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	mark, err := os.ReadFile(path + ".mark")
	if err != nil {
		return err
	}
	from, _ := strconv.Atoi(args[1])
	for page := from; (page+1)*4096 <= len(bytes.TrimRight(whole, "\x00"))+4095; page++ {
		say("page %d", page)
		if err := errors.Join(
			os.WriteFile(path, whole, 0o600), overwrite(path, int64(page)*4096, make([]byte, 4096)),
			os.Chtimes(path, info.ModTime(), info.ModTime()), os.WriteFile(path+".mark", mark, 0o600),
		); err != nil {
			return err
		}
		say("%s", useAll(args[0]))
	}
	return nil
}

// useAll reads everything in the Store in dir and writes to every part of it.
func useAll(dir string) string {
	ctx := context.Background()
	stopped := false
	s, err := bolt.Open(ctx, bolt.Config{Dir: dir, Stopped: func(error) { stopped = true }})
	var told *refusal.DamagedError
	switch {
	case errors.As(err, &told):
		return "refused"
	case err != nil:
		return err.Error()
	}
	defer s.Close()
	_, damaged, err := contents(s)
	failed := 0
	for i := range 40 {
		l := s.Log(fmt.Sprint("log", i))
		last, err1 := store.LastNumber(ctx, l)
		if err1 == nil {
			_, err1 = l.Append(ctx, last, []byte("more"))
		}
		if errors.Is(err1, store.ErrConflict) {
			return "a log does not end with its last number"
		}
		_, err2 := s.Bucket("b").Put(ctx, fmt.Sprint("key", i), []byte("other"), store.Any)
		err3 := s.Queue("q").Push(ctx, fmt.Sprint("other", i), nil)
		if errors.Join(err1, err2, err3) != nil {
			failed++
		}
	}
	if err := s.Close(); err != nil {
		return "closing failed: " + err.Error()
	}
	if stopped {
		return "stopped"
	}
	if err != nil || damaged > 0 || failed > 0 {
		return "damage"
	}
	return "same"
}

// P18: a page that the disk has lost after a clean end does not crash the process that
// uses the Store.
func TestZeroedPage(t *testing.T) {
	dir := storetest.TempDir(t)
	if err := fill(dir); err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]int{}
	for page, done := 0, false; !done; {
		out, err := child(t.Context(), "zeroed", dir, fmt.Sprint(page)).CombinedOutput()
		for line := range strings.Lines(string(out)) {
			line = strings.TrimSpace(line)
			if _, e := fmt.Sscanf(line, "page %d", &page); e != nil && (err == nil || len(line) < 20) {
				outcomes[line]++
			}
		}
		if done = err == nil; !done {
			t.Errorf("page %d: the process ended: %v\n%.1500s", page, err, out[max(0, strings.Index(string(out), "panic")):])
			page++
		}
	}
	t.Log(outcomes)
	for what := range outcomes {
		switch what {
		case "same", "damage", "refused", "stopped":
		default:
			t.Error(what)
		}
	}
	if outcomes["stopped"] > outcomes["damage"] {
		t.Error("the Store stopped more often than it went on: only for the queue it may")
	}
	if outcomes["damage"] == 0 || outcomes["same"] == 0 {
		t.Error("no page was lost, or each was needed")
	}
}
