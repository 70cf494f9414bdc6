package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley/store"
	"parley/store/bolt"
	"parley/store/bolt/refusal"
	"parley/store/storetest"
)

// fullDisk checks P19 with a Store in dir whose disk has little space: writing fails
// cleanly, reading goes on, and after free everything works again.
func fullDisk(dir string, free func() error) error {
	ctx := context.Background()
	s, err := bolt.Open(ctx, bolt.Config{Dir: dir})
	if err != nil {
		return err
	}
	defer s.Close()
	l, q := s.Log("l"), s.Queue("q")
	body := bytes.Repeat([]byte("0123456789abcdef"), 1<<12)
	if err := q.Push(ctx, "early", body); err != nil {
		return err
	}
	n := uint64(0)
	for full := 0; full < 3; { // a failed commit may leave room for the next
		seq, err := l.Append(ctx, store.Any, body, body)
		switch {
		case errors.Is(err, store.ErrFull):
			full++
			if err := q.Push(ctx, "late", bytes.Repeat(body, 32)); !errors.Is(err, store.ErrFull) {
				return fmt.Errorf("push on a full disk: %w, want ErrFull", err)
			}
		case err != nil || seq != n+2 || n > 2000:
			return fmt.Errorf("append after %d: %d, %w", n, seq, err)
		default:
			full, n = 0, seq
		}
	}
	if err := s.Compact(ctx, 1<<30); !errors.Is(err, store.ErrFull) {
		return fmt.Errorf("compact on a full disk: %w, want ErrFull", err)
	}
	if err := holds(s, n, 1); err != nil {
		return fmt.Errorf("full: %w", err)
	}
	if err := free(); err != nil {
		return err
	}
	if err := q.Push(ctx, "late", body); err != nil {
		return fmt.Errorf("push when there is space again: %w", err)
	}
	if seq, err := l.Append(ctx, store.Any, body, body); err != nil || seq != n+2 {
		return fmt.Errorf("append when there is space again: %d, %w", seq, err)
	}
	if err := s.Close(); err != nil {
		return err
	}
	if s, err = bolt.Open(ctx, bolt.Config{Dir: dir}); err != nil {
		return err
	}
	defer s.Close()
	return holds(s, n+2, 2)
}

func holds(s store.Store, records uint64, work int) error {
	n := uint64(0)
	for r, err := range s.Log("l").Since(context.Background(), 0) {
		if n++; err != nil || r.Seq != n {
			return fmt.Errorf("record %d: %w", r.Seq, err)
		}
	}
	if n != records {
		return fmt.Errorf("%d records, want %d", n, records)
	}
	if n, err := s.Queue("q").Len(context.Background()); n != work || err != nil {
		return fmt.Errorf("len %d, %w, want %d", n, err, work)
	}
	return nil
}

// fillToLimit is a child: none of its files may grow beyond 20 MiB.
func fillToLimit(args []string) error {
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	roomy := limit
	limit.Cur = 20 << 20
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	return fullDisk(args[0], func() error { return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &roomy) })
}

func TestFullLimit(t *testing.T) {
	if out, err := child(t.Context(), "fill", storetest.TempDir(t)).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// A file that is as large as it may be, which there is with addresses of 32 bits, is as a full disk: writing fails
// cleanly, reading goes on, and nothing that was accepted is lost.
func TestFullFile(t *testing.T) {
	ctx := t.Context()
	dir := storetest.TempDir(t)
	s, err := bolt.Open(ctx, bolt.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.LimitFile(24 << 20) // bbolt looks 16 MiB ahead
	l := s.Log("l")
	body := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
	n := uint64(0)
	for {
		seq, err := l.Append(ctx, store.Any, body)
		if errors.Is(err, store.ErrFull) {
			break
		}
		if n++; err != nil || seq != n || n > 1000 {
			t.Fatalf("append %d: %d, %v, want ErrFull", n, seq, err)
		}
	}
	if err := holds(s, n, 0); err != nil {
		t.Error("full:", err)
	}
	if err := l.Trim(ctx, n); !errors.Is(err, store.ErrFull) { // as docs/deploy.md says
		t.Errorf("trim when full: %v, want ErrFull", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = bolt.Open(ctx, bolt.Config{Dir: dir}); err != nil { // without the limit
		t.Fatal(err)
	}
	defer s.Close()
	if seq, err := s.Log("l").Append(ctx, store.Any, body); err != nil || seq != n+1 {
		t.Errorf("append when there is space again: %d, %v, want %d", seq, err, n+1)
	}
	if err := holds(s, n+1, 0); err != nil {
		t.Error("when there is space again:", err)
	}
}

// A file that is too large for 32 bits is refused as that, and not as a damaged one, which would be replaced.
func TestFileTooLarge(t *testing.T) {
	file := filepath.Join(t.TempDir(), "parley.db")
	if err := os.WriteFile(file, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	var damage *refusal.DamagedError
	if err := bolt.CheckSize(file, 1<<20); err == nil || errors.As(err, &damage) || !strings.Contains(err.Error(), "32 bits") {
		t.Errorf("%v, want an error about 32 bits", err)
	}
	for _, most := range []int{0, 2 << 20} {
		if err := bolt.CheckSize(file, most); err != nil {
			t.Errorf("with %d bytes: %v", most, err)
		}
	}
}
