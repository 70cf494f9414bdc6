package retention_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"parley/retention"
)

// newArchive returns an archive, and the path of the file that it has of "name".
func newArchive(t *testing.T) (a retention.Archive, path string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data", "archive")
	return retention.Archive{Dir: dir}, filepath.Join(dir, "part", "name.jsonl")
}

// add archives lines under "name".
func add(t *testing.T, a retention.Archive, lines ...string) {
	t.Helper()
	if err := a.Add("part", "name", asBytes(lines)...); err != nil {
		t.Fatal(err)
	}
}

func asBytes(lines []string) (all [][]byte) {
	for _, line := range lines {
		all = append(all, []byte(line))
	}
	return all
}

// wantText wants the file to have exactly these lines.
func wantText(t *testing.T, path string, lines ...string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join(lines, "\n") + "\n"
	if string(text) != want {
		t.Errorf("the archive has %d bytes, ending with %.100q; want %d, ending with %.100q",
			len(text), string(text[max(0, len(text)-100):]), len(want), want[max(0, len(want)-100):])
	}
}

// P28: what was archived before is neither read nor written again.
func TestArchiveAppends(t *testing.T) {
	a, path := newArchive(t)
	add(t, a, "one", "two")
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	add(t, a, "three")
	wantText(t, path, "one", "two", "three")
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("the file was replaced, %v", err)
	}
	long := strings.Repeat("x", retention.TailSize)
	add(t, a, long)
	add(t, a, "one") // of another time, which says the same
	wantText(t, path, "one", "two", "three", long, "one")
}

// P28: wherever a write is cut off, the batch is there once and whole when it is handed over
// again, also when some of it was removed meanwhile.
func TestArchiveTorn(t *testing.T) {
	batch := []string{`{"n":3}`, `{"n":4,"text":"` + strings.Repeat("long", 10) + `"}`, `{"n":5}`}
	size := len(strings.Join(batch, "\n")) + 1
	for cut := range size + 1 {
		a, path := newArchive(t)
		add(t, a, `{"n":1}`, `{"n":2}`)
		add(t, a, batch...)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, info.Size()-int64(cut)); err != nil {
			t.Fatal(err)
		}
		want := append([]string{`{"n":1}`, `{"n":2}`}, batch...)
		if cut == 0 { // removing them had begun
			add(t, a, append(batch[1:], `{"n":6}`)...)
			wantText(t, path, append(want, `{"n":6}`)...)
			continue
		}
		add(t, a, batch...)
		wantText(t, path, want...)
		if t.Failed() {
			t.Fatalf("cut off by %d of %d bytes", cut, size)
		}
	}
}

// A line may be longer than the end of the file that is read at first.
func TestArchiveTornLongLine(t *testing.T) {
	a, path := newArchive(t)
	add(t, a, "one")
	long := strings.Repeat("x", 3*retention.TailSize)
	add(t, a, long)
	if err := os.Truncate(path, int64(len("one\n")+len(long))); err != nil {
		t.Fatal(err)
	}
	add(t, a, "two")
	wantText(t, path, "one", "two")
	add(t, a, long)
	add(t, a, long)
	wantText(t, path, "one", "two", long)
	add(t, a, "x") // as that line ends
	wantText(t, path, "one", "two", long, "x")
}

// P28: whatever call of the system fails or is the last one, the batch can be handed over
// again; and nothing is told to be kept before the lines and the names are on disk.
func TestArchiveCrash(t *testing.T) {
	for at := 0; ; at++ {
		for _, torn := range []bool{false, true} {
			a, path := newArchive(t)
			var calls []string
			crashing := a.WithStep(func(call string) error {
				if len(calls) == at {
					if call == "write" && torn {
						tearInto(t, path)
					}
					return syscall.ENOSPC
				}
				calls = append(calls, call)
				return nil
			})
			err := crashing.Add("part", "name", asBytes([]string{"one", "two"})...)
			if err == nil {
				want := []string{"open", "sync folder", "sync folder", "sync folder", "write", "sync"}
				if !slices.Equal(calls, want) {
					t.Errorf("the calls are %q, want %q", calls, want)
				}
				return
			}
			if !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("at %d: %v", at, err)
			}
			if text, err := os.ReadFile(path); err == nil && !slices.Contains([]string{"", "one\ntwo\n"}, string(text)) {
				t.Errorf("at %d there is left %q", at, text)
			}
			add(t, a, "one", "two")
			wantText(t, path, "one", "two")
			add(t, a, "two", "three")
			wantText(t, path, "one", "two", "three")
		}
	}
}

// tearInto writes a part of a line into the archive, as a short write leaves it.
func tearInto(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprint(f, "one\nt"); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// P28: lines that were found again may not have been synced by who wrote them.
func TestArchiveSyncsWhatItFinds(t *testing.T) {
	a, path := newArchive(t)
	add(t, a, "one")
	var calls []string
	again := a.WithStep(func(call string) error { calls = append(calls, call); return nil })
	add(t, again, "one")
	if want := []string{"open", "sync"}; !slices.Equal(calls, want) {
		t.Errorf("the calls are %q, want %q", calls, want)
	}
	wantText(t, path, "one")
}
