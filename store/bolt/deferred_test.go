package bolt

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"parley/store"
	"parley/store/bolt/layer"
	"parley/store/storetest"
	"parley/timetest"
)

// A deferral is a Store with the number of its commits.
type deferral struct {
	*Store
	t       *testing.T
	disk    *disk
	commits int // to be read when nobody writes
}

func (d *deferral) put(key string) error {
	_, err := d.Bucket("b").Put(d.t.Context(), key, []byte(key), store.Any)
	return err
}

// putDeferred puts key, and wants it to be there at once.
func (d *deferral) putDeferred(key string) error {
	_, err := d.Bucket("b").Put(store.Deferred(d.t.Context()), key, []byte(key), store.Any)
	val, _, errGet := d.Bucket("b").Get(d.t.Context(), key)
	if string(val) != key {
		err = fmt.Errorf("a deferred change reads %q", val)
	}
	return errors.Join(err, errGet)
}

// fullDeferred puts a value while the disk takes nothing.
func (d *deferral) fullDeferred(key, val string) error {
	d.disk.fail(syscall.ENOSPC)
	defer d.disk.heal()
	_, err := d.Bucket("b").Put(store.Deferred(d.t.Context()), key, []byte(val), store.Any)
	return err
}

// wantOnDisk wants a crash to leave these keys, after so many commits.
func (d *deferral) wantOnDisk(commits int, keys ...string) {
	d.t.Helper()
	synctest.Wait()
	image := filepath.Join(storetest.TempDir(d.t), "image")
	if err := storetest.CopyDir(image, d.disk.dir); err != nil {
		d.t.Fatal(err)
	}
	s, err := Open(d.t.Context(), Config{Dir: image})
	if err != nil {
		d.t.Fatal(err)
	}
	defer s.Close()
	var got []string
	for key, err := range s.Bucket("b").Keys(d.t.Context(), "") {
		if err != nil {
			d.t.Fatal(err)
		}
		got = append(got, key)
	}
	if !slices.Equal(got, keys) || d.commits != commits {
		d.t.Errorf("after %d commits, a crash leaves %q; want %d and %q", d.commits, got, commits, keys)
	}
}

// TestDeferred: a deferred change shares the commit of the next one, and has one of its
// own only if none comes. A crash before that undoes it.
func TestDeferred(t *testing.T) {
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, d *deferral) error
	}{
		{"with the next change", func(t *testing.T, d *deferral) error {
			err := d.putDeferred("a")
			d.wantOnDisk(0)
			err = errors.Join(err, d.put("b"))
			d.wantOnDisk(1, "a", "b")
			err = errors.Join(err, d.putDeferred("c"), d.putDeferred("a"))
			d.wantOnDisk(1, "a", "b")
			return err
		}},
		{"with a change that it makes superfluous", func(t *testing.T, d *deferral) error {
			q := d.Queue("q")
			err := errors.Join(d.putDeferred("a"), q.Push(store.Deferred(t.Context()), "id", nil))
			d.wantOnDisk(0)
			err = errors.Join(err, q.Push(t.Context(), "id", nil))
			d.wantOnDisk(1, "a")
			return err
		}},
		{"after a moment", func(t *testing.T, d *deferral) error {
			err := d.putDeferred("a")
			timetest.Sleep(store.DeferLimit / 2)
			err = errors.Join(err, d.putDeferred("b"))
			timetest.Sleep(store.DeferLimit/2 - 1)
			d.wantOnDisk(0)
			timetest.Sleep(1)
			d.wantOnDisk(1, "a", "b")
			timetest.Sleep(time.Hour)
			d.wantOnDisk(1, "a", "b")
			return err
		}},
		{"no commit of its own while there are others", func(t *testing.T, d *deferral) error {
			for i := range 10 {
				if err := errors.Join(d.put("a"), d.putDeferred("b")); err != nil {
					return err
				}
				timetest.Sleep(store.DeferLimit * 9 / 10)
				d.wantOnDisk(i+1, []string{"a", "b"}[:min(i+1, 2)]...)
			}
			return nil
		}},
		{"at the end", func(t *testing.T, d *deferral) error {
			err := errors.Join(d.putDeferred("a"), d.Close())
			d.wantOnDisk(0, "a")
			return err
		}},
		{"with a checkpoint", func(t *testing.T, d *deferral) error {
			err := errors.Join(d.putDeferred("a"), d.Flush(t.Context()))
			d.wantOnDisk(0, "a")
			timetest.Sleep(store.DeferLimit) // it is in the log now, and no change of its own
			err = errors.Join(err, d.Close())
			d.wantOnDisk(1, "a")
			return err
		}},
		{"beside a checkpoint", func(t *testing.T, d *deferral) error {
			err := errors.Join(d.putDeferred("a"), d.BeginCheckpoint(t.Context()), d.put("b"), d.putDeferred("a"))
			d.wantOnDisk(1, "a", "b")
			timetest.Sleep(store.DeferLimit)
			d.wantOnDisk(2, "a", "b")
			return err
		}},
		{"with the first that finds space", func(t *testing.T, d *deferral) error {
			err := errors.Join(d.put("a"), d.putDeferred("b"))
			d.disk.fail(syscall.ENOSPC)
			if err := d.put("c"); !errors.Is(err, store.ErrFull) {
				t.Errorf("put on a full disk: %v", err)
			}
			d.wantOnDisk(1, "a")
			d.disk.fail(syscall.ENOSPC)
			timetest.Sleep(store.DeferLimit)
			d.wantOnDisk(1, "a")
			timetest.Sleep(store.DeferLimit)
			d.wantOnDisk(2, "a", "b")
			return err
		}},
		{"too many", func(t *testing.T, d *deferral) error {
			for range layer.MaxBacklog {
				if err := d.putDeferred("a"); err != nil { // each with a revision
					return err
				}
			}
			d.wantOnDisk(1, "a")
			return nil
		}},
		{"too many on a full disk", func(t *testing.T, d *deferral) error {
			err := d.put("a")
			refused := 0
			const fit, more = layer.MaxBacklog / 2, 20 // each with a revision
			for range fit + more {
				if err := d.fullDeferred("b", "x"); err != nil {
					refused++
				}
			}
			if refused != more {
				t.Errorf("%d changes were refused", refused)
			}
			timetest.Sleep(store.DeferLimit)
			d.wantOnDisk(2, "a", "b")
			return err
		}},
		{"too large", func(t *testing.T, d *deferral) error {
			large := strings.Repeat("x", layer.MaxBacklogBytes/4)
			for range 4 + 3 {
				if _, err := d.Bucket("b").Put(store.Deferred(t.Context()), "a", []byte(large), store.Any); err != nil {
					return err
				}
			}
			d.wantOnDisk(1, "a")
			return nil
		}},
		{"too large on a full disk", func(t *testing.T, d *deferral) error {
			err := d.put("a")
			large := strings.Repeat("x", layer.MaxBacklogBytes/4)
			for i := range 6 {
				err := d.fullDeferred("b", large)
				if full := errors.Is(err, store.ErrFull); full != (i >= 3) || !full && err != nil {
					t.Errorf("change %d: %v", i, err)
				}
			}
			if err := d.fullDeferred("c", "small"); err != nil {
				t.Errorf("a small change: %v", err)
			}
			timetest.Sleep(store.DeferLimit)
			d.wantOnDisk(2, "a", "b", "c")
			if val, _, err := d.Bucket("b").Get(t.Context(), "b"); len(val) != len(large) || err != nil {
				t.Errorf("%d bytes are left, %v", len(val), err)
			}
			return err
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				d := &deferral{t: t, disk: &disk{dir: storetest.TempDir(t)}}
				s, err := d.disk.open(t.Context(), Config{Committed: func(time.Duration) { d.commits++ }})
				if err != nil {
					t.Fatal(err)
				}
				d.Store = s
				if err := errors.Join(tt.run(t, d), d.Close()); err != nil {
					t.Error(err)
				}
				if s, err = Open(t.Context(), Config{Dir: d.disk.dir}); err != nil {
					t.Fatalf("after Close: %v", err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
