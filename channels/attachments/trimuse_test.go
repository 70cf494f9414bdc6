package attachments_test

import (
	"io"
	"slices"
	"testing"
	"time"

	"parley/store"
	"parley/timetest"
)

// P28: a file that a call names while it is written into the archive stays.
func TestTrimWhileAFileIsUsed(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		s := newSent(t)
		name := s.send("a.txt", "of a")
		timetest.Sleep(30 * days)
		pass := store.Trimming{Before: time.Now().Add(-7 * days), Step: func(int) error { return nil }}
		pass.ArchiveFile = func(name string, _ io.Reader) error {
			s.inbox.NoteUse(t.Context(), `{"path": "`+name+`"}`)
			return nil
		}
		if err := s.inbox.Trim(t.Context(), pass); err != nil {
			t.Error(err)
		}
		if got := s.left(); !slices.Equal(got, []string{name}) {
			t.Errorf("left are %q, want %q", got, name)
		}
	})
}

// P28: JSON may write a slash as \/, and some models do.
func TestUseOfEscapedName(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		s := newSent(t)
		name := s.send("a.txt", "of a")
		timetest.Sleep(30 * days)
		escaped := ""
		for _, c := range name {
			if c == '/' {
				escaped += `\`
			}
			escaped += string(c)
		}
		s.inbox.NoteUse(t.Context(), `{"path": "`+escaped+`"}`)
		if n := s.trim(7 * days); n != 0 {
			t.Errorf("a file that was used as %s is removed", escaped)
		}
	})
}

// P28: nobody knows when files from before there were records were used. So they stay, from
// the first pass on, for as long as those that are used then.
func TestTrimAfterAnUpgrade(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		s := newSent(t)
		day := time.Date(1999, 3, 1, 0, 0, 0, 0, time.UTC)
		used := s.put("inbox/1999-03-01/0123456789-used.txt", "used every day", day)
		s.put("inbox/1999-03-01/0123456780-unused.txt", "unused", day)
		if n := s.trim(30 * days); n != 0 {
			t.Errorf("%d files were removed in the first pass", n)
		}
		for range 40 {
			timetest.Sleep(24 * time.Hour)
			s.inbox.NoteUse(t.Context(), used)
		}
		if n := s.trim(30 * days); n != 1 {
			t.Errorf("%d files were removed, want 1", n)
		}
		if got := s.left(); !slices.Equal(got, []string{used}) {
			t.Errorf("left are %q, want %q", got, used)
		}
	})
}

const sumOfA = "44625108b765cba608de59e81977de42deb702f776a7309f649085cbf570af1b" // SHA-256 of "of a"

// A clock that was wrong when a file came makes it no older than the message it came with.
func TestTrimAfterAWrongClock(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		s := newSent(t)
		timetest.Sleep(30 * days)
		name := s.send("a.txt", "of a")
		b := s.store.Bucket(store.BucketReceived)
		if _, err := b.Put(t.Context(), name, []byte(`{"time":"1970-01-01T00:00:07Z","size":4,"sum":"`+sumOfA+`"}`), store.Any); err != nil {
			t.Fatal(err)
		}
		if n := s.trim(7 * days); n != 0 {
			t.Error("a file that came now is removed")
		}
		timetest.Sleep(9 * days)
		if n := s.trim(7 * days); n != 1 {
			t.Errorf("%d files were removed later, want 1", n)
		}
	})
}
