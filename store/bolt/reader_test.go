package bolt_test

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"parley/store/bolt"
	"parley/store/storetest"
)

// While checkpoints go on, a reader sees all that was acknowledged before it began, and
// never an older value after a newer one.
func TestReadersDuringCheckpoints(t *testing.T) {
	s := open(t, storetest.TempDir(t))
	readWhile(t, s, s.BeginCheckpoint)
}

// The same holds while the file is exchanged again and again, and is copied meanwhile.
func TestReadersDuringCompactions(t *testing.T) {
	dir := storetest.TempDir(t)
	s := open(t, dir)
	readWhile(t, s, func(ctx context.Context) (err error) {
		var all sync.WaitGroup
		path := filepath.Join(dir, "backup")
		var err2 error
		all.Go(func() { err = s.Compact(ctx, 1<<30) })
		all.Go(func() { err2 = s.Backup(ctx, path) })
		all.Wait()
		return errors.Join(err, err2, os.Remove(path), s.Verify(ctx, 1<<30, func(where string) { t.Error(where) }))
	})
}

// readWhile writes and reads while disturb is called again and again.
func readWhile(t *testing.T, s *bolt.Store, disturb func(context.Context) error) {
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	free := context.WithoutCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil {
			if err := disturb(free); err != nil {
				t.Error(err)
			}
		}
	})
	var acknowledged sync.Map // the last number written to "b" and "l"
	acknowledged.Store("b", uint64(0))
	acknowledged.Store("l", uint64(0))
	all.Go(func() {
		for n := uint64(1); ctx.Err() == nil; n++ {
			if _, err := s.Bucket("b").Put(free, "k", binary.BigEndian.AppendUint64(nil, n), n-1); err != nil {
				t.Error(err)
				return
			}
			acknowledged.Store("b", n)
			if seq, err := s.Log("l").Append(free, n-1, []byte("record")); err != nil || seq != n {
				t.Errorf("record %d has number %d: %v", n, seq, err)
				return
			}
			acknowledged.Store("l", n)
			if n > 10 && n%7 == 0 {
				if err := s.Log("l").Trim(free, n-10); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for range 4 {
		all.Go(func() {
			for last := uint64(0); ctx.Err() == nil; {
				least, _ := acknowledged.Load("b")
				val, rev, err := s.Bucket("b").Get(free, "k")
				if err != nil && last == 0 && least.(uint64) == 0 {
					continue
				}
				if err != nil || binary.BigEndian.Uint64(val) != rev || rev < max(last, least.(uint64)) {
					t.Errorf("read %x at %d after %d and %d: %v", val, rev, last, least, err)
					return
				}
				last = rev
			}
		})
		all.Go(func() {
			for ctx.Err() == nil {
				least, _ := acknowledged.Load("l")
				first, last := uint64(0), uint64(0)
				for r, err := range s.Log("l").Since(free, 0) {
					if first == 0 {
						first = r.Seq
						last = r.Seq - 1
					}
					if last++; err != nil || r.Seq != last {
						t.Errorf("record %d after %d: %v", r.Seq, last-1, err)
						return
					}
				}
				if first > 0 && last < least.(uint64) { // otherwise all was trimmed meanwhile
					t.Errorf("the log ends at %d, acknowledged was %d", last, least)
					return
				}
			}
		})
	}
	all.Wait()
}
