package attachments_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/channels/attachments"
	"parley/chat"
	"parley/retention/retentiontest"
	"parley/store"
	"parley/store/mem"
	"parley/timetest"
	"parley/workspace"
)

const days = 24 * time.Hour

// A sent is an Inbox and what was sent to it.
type sent struct {
	t     *testing.T
	store store.Store
	files *workspace.Workspace
	inbox *attachments.Inbox
}

func newSent(t *testing.T) *sent {
	t.Helper()
	files, err := workspace.Open(filepath.Join(t.TempDir(), "work"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close() })
	s := &sent{t: t, store: mem.New(), files: files}
	s.inbox = s.over(s.store)
	return s
}

// over returns an Inbox of the same files over another store.
func (s *sent) over(st store.Store) *attachments.Inbox {
	c := config(s.files)
	c.Store = st
	return attachments.New(c)
}

// send has somebody send a file, and returns its path.
func (s *sent) send(name, text string) string {
	s.t.Helper()
	f, err := s.inbox.Save(s.t.Context(), room, chat.Sender{ID: "7"}, name, strings.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	return f.Path
}

// put writes a file without the Inbox, changed at that time.
func (s *sent) put(name, text string, changed time.Time) string {
	s.t.Helper()
	if err := s.files.Names().WriteFile(name, []byte(text)); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(s.files.Dir(), name), changed, changed); err != nil {
		s.t.Fatal(err)
	}
	return name
}

// trim removes what was not used for so long, and returns how many files those were.
func (s *sent) trim(period time.Duration) (removed int) {
	s.t.Helper()
	err := s.inbox.Trim(s.t.Context(), store.Trimming{Before: time.Now().Add(-period), Step: func(n int) error {
		removed += n
		return nil
	}})
	if err != nil {
		s.t.Error(err)
	}
	return removed
}

// left lists what is in the workspace, sorted.
func (s *sent) left() (names []string) {
	s.t.Helper()
	p := post{t: s.t, files: s.files}
	return p.all()
}

// known lists the files of which something is known.
func (s *sent) known() (names []string) {
	s.t.Helper()
	for name, err := range s.store.Bucket(store.BucketReceived).Keys(s.t.Context(), "") {
		if err != nil {
			s.t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// P28: a file that somebody sent goes when it has not been used for as long as the config
// says. What a call names is used; what was changed or renamed is its owner's.
func TestTrim(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		s := newSent(t)
		old := s.send("old.txt", "old")
		used := s.send("used.txt", "used")
		edited := s.send("edited.txt", "edited")
		kept := s.send("kept.txt", "kept")
		deleted := s.send("deleted.txt", "deleted")
		for name, change := range map[string]func(path string) error{
			edited:  func(path string) error { return os.WriteFile(path, []byte("editeD"), 0o600) },
			kept:    func(path string) error { return os.Rename(path, filepath.Join(filepath.Dir(path), "kept.txt")) },
			deleted: os.Remove,
		} {
			if err := change(filepath.Join(s.files.Dir(), name)); err != nil {
				t.Fatal(err)
			}
		}
		answer := s.put(room.Chat+"/answers/answer-1.md", "whole", time.Now())
		timetest.Sleep(60 * days)
		s.inbox.NoteUse(t.Context(), `{"command": "wc -l '`+used+`'"}`)
		s.inbox.NoteUse(t.Context(), `{"path": "inbox/1999-12-31/0000000000-other.txt"}`)
		timetest.Sleep(60 * days)
		young := s.send("young.txt", "young")
		if n := s.trim(90 * days); n != 1 {
			t.Errorf("%d files were removed, want 1", n)
		}
		want := []string{answer, edited, filepath.Join(filepath.Dir(kept), "kept.txt"), used, young}
		slices.Sort(want)
		if got := s.left(); !slices.Equal(got, want) {
			t.Errorf("left are %q, want %q, without %q", got, want, old)
		}
		if s.trim(1) != 1 || slices.Contains(s.left(), used) {
			t.Errorf("later there are %q", s.left())
		}
		timetest.Sleep(90 * days)
		if s.trim(7*days) != 1 || slices.Contains(s.left(), young) {
			t.Errorf("in the end there are %q", s.left())
		}
		if got := s.known(); !slices.Equal(got, []string{edited}) {
			t.Errorf("something is known of %q", got)
		}
		if _, err := os.Stat(filepath.Join(s.files.Dir(), filepath.Dir(young))); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the empty folder of a day: %v", err)
		}
	})
}

// P28: files from before there were records go when they have not been used since the first
// pass, and stay if their last change is not the one when they came.
func TestTrimUnknownFiles(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		s := newSent(t)
		day := time.Date(1999, 3, 1, 0, 0, 0, 0, time.UTC)
		s.put("inbox/1999-03-01/0123456789-old.txt", "old", day.Add(30*time.Hour))
		s.put("inbox/1999-03-01/.new-ABC", "half", day) // of a download that a crash has ended
		s.put("inbox/people/net_7-0123/1999-03-01/0123456789-old.txt", "old", day.Add(30*time.Hour))
		want := []string{
			s.put("inbox/1999-03-01/0123456780-used.txt", "used", day),
			s.put("inbox/1999-03-01/0123456789-edited.txt", "edited", day.Add(5*days)),
			s.put("inbox/1999-03-01/own.txt", "of another name", day),
			s.put("inbox/own/1999-03-01/0123456789-x.txt", "in a folder of somebody's own", day),
		}
		if n := s.trim(365 * days); n != 0 {
			t.Errorf("%d files were removed", n)
		}
		timetest.Sleep(210 * days)
		s.inbox.NoteUse(t.Context(), `read "inbox/1999-03-01/0123456780-used.txt"`)
		want = append(want,
			s.put("inbox/1999-12-30/.new-DEF", "of an old message that is tried again now", time.Now()),
			s.put("inbox/2000-07-29/0123456789-young.txt", "young", time.Now()))
		slices.Sort(want)
		if n := s.trim(200 * days); n != 2 {
			t.Errorf("%d files were removed, want 2", n)
		}
		if got := s.left(); !slices.Equal(got, want) {
			t.Errorf("left are %q, want %q", got, want)
		}
	})
}

// R-S18: no link is followed on the way to a file, and none is taken for a file.
func TestTrimFollowsNoLinks(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		s := newSent(t)
		outside := t.TempDir()
		file := s.send("file.txt", "same")
		day := filepath.Dir(s.send("day.txt", "day"))
		other := s.put("inbox/1999-03-01/0123456789-x.txt", "same", time.Unix(0, 0))
		write := func(name string) string {
			path := filepath.Join(outside, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("same"), 0o600)); err != nil {
				t.Fatal(err)
			}
			return path
		}
		link := func(to, name string) {
			path := filepath.Join(s.files.Dir(), name)
			if err := errors.Join(os.RemoveAll(path), os.Symlink(to, path)); err != nil {
				t.Fatal(err)
			}
		}
		precious := []string{write("file.txt"), write("day/" + filepath.Base(file)), write("old/0123456789-x.txt")}
		link(precious[0], other)
		link(filepath.Join(outside, "old"), "inbox/1999-03-02")
		timetest.Sleep(90 * days)
		link(filepath.Join(outside, "day"), day)
		if n := s.trim(7 * days); n != 0 {
			t.Errorf("%d files were removed", n)
		}
		for _, path := range precious {
			if text, err := os.ReadFile(path); string(text) != "same" || err != nil {
				t.Errorf("%s has %q, %v", path, text, err)
			}
		}
	})
}

// P28: a failure at one file stops no other, and ends with the context.
func TestTrimFails(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		s := newSent(t)
		bad := s.send("bad.txt", "bad")
		good := s.send("good.txt", "good")
		timetest.Sleep(30 * days)
		full := errors.New("disk full")
		pass := store.Trimming{Before: time.Now().Add(-7 * days), Step: func(int) error { return nil }}
		pass.ArchiveFile = func(name string, _ io.Reader) error {
			if name == bad {
				return full
			}
			return nil
		}
		if err := s.inbox.Trim(t.Context(), pass); !errors.Is(err, full) {
			t.Errorf("the pass ends with %v", err)
		}
		if got := s.left(); !slices.Equal(got, []string{bad}) {
			t.Errorf("left are %q, without %q", got, good)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := s.inbox.Trim(ctx, pass); !errors.Is(err, context.Canceled) {
			t.Errorf("a pass that is to end ends with %v", err)
		}
	})
}

// P28: files are removed with a crash anywhere: each is in the archive, whole and once.
func TestTrimCrashAnywhere(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		var s *sent
		var young string
		retentiontest.Run(t, retentiontest.Case{
			Before: time.Now().Add(30 * days),
			Open: func() store.Store {
				s = newSent(t)
				s.send("a.txt", "of a")
				s.send("b.txt", "of b")
				s.put("inbox/1999-03-01/0123456789-c.txt", "of c", time.Date(1999, 3, 1, 1, 0, 0, 0, time.UTC))
				young = s.put("inbox/2000-03-01/0123456789-d.txt", "of d", time.Date(2000, 3, 1, 1, 0, 0, 0, time.UTC))
				return s.store
			},
			Trim: func(st store.Store, pass store.Trimming) error {
				return s.over(st).Trim(t.Context(), pass)
			},
			Archived: []string{"of a", "of b", "of c"},
			Check: func(t *testing.T, _ store.Store) {
				t.Helper()
				if got := s.left(); !slices.Equal(got, []string{young}) {
					t.Errorf("left are %q", got)
				}
				if got := s.known(); !slices.Equal(got, []string{young}) {
					t.Errorf("something is known of %q", got)
				}
			},
		})
	})
}

// A record that cannot be read takes no file with it that is not old (P21).
func TestTrimDamagedRecord(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		s := newSent(t)
		name := s.put("inbox/2000-01-01/0123456789-a.txt", "of a", time.Now())
		timetest.Sleep(30 * days)
		if _, err := s.store.Bucket(store.BucketReceived).Put(t.Context(), name, []byte("{"), store.Any); err != nil {
			t.Fatal(err)
		}
		if n := s.trim(7 * days); n != 0 || len(s.left()) != 1 {
			t.Errorf("%d files were removed", n)
		}
	})
}
