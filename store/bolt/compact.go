package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"parley/store"
	"parley/store/bolt/compact"
	"parley/store/bolt/layer"
	"parley/store/bolt/pages"
	"parley/store/bolt/usage"
	"parley/store/bolt/wal"
)

// bbolt never makes its file smaller: what was deleted leaves free pages. A compaction
// copies the file into a draft beside it, in the order of the keys and in short
// transactions. The checkpoints that are made meanwhile change the draft, too, as far as
// it has been copied. So it is complete as soon as the last key is: up to the same record
// of the log as the file. Then, while no changes are made for a moment:
//
//  1. a checkpoint moves what the log has into both;
//  2. the draft becomes a file of a later lineage that needs no log, and is synced;
//  3. the file becomes one that needs no log, the mark says so, and has the notes of both; the
//     log is removed;
//  4. the draft is renamed to the file, and the folder is synced;
//  5. new transactions begin in it. Those that are under way end in the former one.
//
// After a crash in 1 to 3, and after one in 4 if the name was lost, the file is there as it
// was; Open removes the draft. Later the new one is there: the mark does not know it, but
// it is of a later lineage, and has the same content.

// A compaction is one that is going on.
type compaction struct {
	path string // of the file; if that is a link, of what it points to
	step func(wal.Step) error

	copy *compact.Copy
	to   *database // the draft; nil: it has become the file
}

var errCompacting = errors.New("the store is being compacted already")

// Compact rewrites the file without its free pages, while others go on reading and writing.
// It copies at most bytesPerSecond. The disk needs space for what is in use of the file:
// see [Store.Measure]. With an error the Store is what it was, and goes on; only if the
// folder cannot be synced, it stops.
func (s *Store) Compact(ctx context.Context, bytesPerSecond int) error {
	err := s.compact(ctx, bytesPerSecond)
	switch {
	case err != nil && isFull(err) && !errors.Is(err, store.ErrFull):
		return fmt.Errorf("compact store: %w: %w", store.ErrFull, err)
	case err != nil:
		return fmt.Errorf("compact store: %w", err)
	}
	return nil
}

func (s *Store) compact(ctx context.Context, bytesPerSecond int) (err error) {
	if err := s.beginCall(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	var c *compaction
	if err := s.doAlone(func() error {
		c, err = s.writer.beginCompaction()
		return err
	}); err != nil {
		return err
	}
	former := s.db.file.Load()
	former.Acquire() // so that its space is not freed by the writer, which everybody waits for
	defer former.Release()
	err = s.copySlices(ctx, c, bytesPerSecond)
	return s.doAlone(func() error {
		defer s.writer.endCompaction(c)
		if err != nil {
			return err
		}
		return s.writer.adoptCompact(c)
	})
}

// doAlone has the writer do something alone, for a call that is under way.
func (s *Store) doAlone(do func() error) error {
	o := &op{alone: do, done: make(chan error, 1)}
	s.writer.ops <- o
	return <-o.done
}

// copySlices copies everything, and syncs it.
func (s *Store) copySlices(ctx context.Context, c *compaction, bytesPerSecond int) error {
	for {
		size, complete, err := c.copySlice()
		if err != nil {
			return err
		}
		if complete {
			return c.sync()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(size) * time.Second / time.Duration(bytesPerSecond)):
		}
		if s.isClosed() {
			return store.ErrClosed
		}
	}
}

func (s *Store) isClosed() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.closed
}

// beginCompaction begins a compaction, which the next checkpoint takes part in.
func (w *writer) beginCompaction() (*compaction, error) {
	switch {
	case w.broken != nil:
		return nil, w.broken
	case w.compaction != nil:
		return nil, errCompacting
	case w.suspectFreelist:
		return nil, errUnreadable
	}
	if w.checkpointing { // it does not take part
		if err := w.endCheckpoint(<-w.moves); err != nil {
			return nil, err
		}
	}
	c := &compaction{path: compact.Resolve(w.db.path), step: w.step}
	if err := c.create(w.db); err != nil {
		return nil, errors.Join(err, compact.RemoveDraft(w.db.path))
	}
	w.compaction = c
	return c, nil
}

// create creates the draft, which becomes a copy of from.
func (c *compaction) create(from *database) error {
	if err := c.before("create", c.path); err != nil {
		return err
	}
	if err := compact.RemoveDraft(c.path); err != nil {
		return err
	}
	o := options()
	o.NoSync = true // until it is complete
	db, err := openFile(compact.DraftOf(c.path), o)
	if err != nil {
		return err
	}
	to := newDatabase(db, compact.DraftOf(c.path))
	c.to = to
	c.copy = compact.New(compact.Config{
		View: from.view,
		Update: func(do func(*bbolt.Tx) error) error {
			_, err := to.update(do)
			return err
		},
		Put: putInFile,
		Split: func(key string) (top, name, k string, err error) {
			top, name, k, err = layer.SplitKey(key)
			return top, string(encodeKey(name)), k, err
		},
		FillPercent: fillPercent,
	})
	return compact.CopyOwner(compact.DraftOf(c.path), c.path)
}

// view runs do in a transaction of the file that only reads.
func (d *database) view(do func(*bbolt.Tx) error) (err error) {
	defer catch(&err)()
	t, err := d.begin()
	if err != nil {
		return err
	}
	defer t.end()
	return do(t.file)
}

// move makes a checkpoint, in the draft of c, too, if that is not nil.
func (w *writer) move(c *compaction, changes *layer.Layer, seq uint64) (m move) {
	if c == nil {
		return w.db.move(changes, seq)
	}
	c.copy.Follow(changes, func() error {
		m = w.db.move(changes, seq)
		if m.stuck != nil {
			return errUnreadable
		}
		return m.err
	})
	return m
}

// before is called before each step: see Config.step.
func (c *compaction) before(call, path string) error {
	if c.step == nil {
		return nil
	}
	return c.step(wal.Step{Call: "compact: " + call, Path: path})
}

// copySlice copies what comes next.
func (c *compaction) copySlice() (size int, complete bool, err error) {
	if err := c.before("slice", c.to.path); err != nil {
		return 0, false, err
	}
	return c.copy.CopySlice()
}

// sync syncs the draft, so that there is little left to be synced in the end.
func (c *compaction) sync() error {
	if err := c.before("sync", c.to.path); err != nil {
		return err
	}
	return c.to.bolt().Sync()
}

// adoptCompact puts the complete draft of c in the place of the file.
func (w *writer) adoptCompact(c *compaction) error {
	if err := w.flush(); err != nil {
		return err
	}
	if err := c.copy.Err(); err != nil {
		return err
	}
	id, err := c.finish(w.id)
	if err != nil {
		return err
	}
	w.nextNote = pages.NoteOf(c.to.path, id.tx)
	if err := w.removeLog(); err != nil {
		return err
	}
	if err := c.before("rename", c.path); err != nil {
		return err
	}
	if err := os.Rename(compact.DraftOf(c.path), c.path); err != nil {
		return err
	}
	if err := errors.Join(c.before("sync folder", c.path), syncDir(filepath.Dir(c.path))); err != nil {
		return w.stop(err) // after a power cut either file may be there
	}
	w.id = id
	w.note = w.nextNote
	w.wal.SetLineage(uint64(id.lineage))
	w.wrote = true
	former := w.db.file.Swap(c.to.file.Load())
	w.db.layers.Store(&layers{base: id.tx})
	c.to = nil
	former.Retire(func(err error) { w.log.Warn("former file of the store not closed", "err", err) })
	if err := errors.Join(c.before("mark", c.path), w.mark(nil, true)); err != nil { // the file is of a later lineage
		w.log.Debug("mark of the store not written", "err", err)
	}
	return nil
}

// finish makes the draft a file that takes the place of the one with identity id, and
// returns its identity. It is on disk then.
func (c *compaction) finish(id identity) (identity, error) {
	if err := c.before("finish", c.to.path); err != nil {
		return identity{}, err
	}
	id.format = Format
	id.lineage = max(id.lineage+1, time.Now().UnixNano())
	id.logged = false
	c.to.bolt().NoSync = false
	c.to.bolt().NoFreelistSync = false
	_, err := c.to.update(func(tx *bbolt.Tx) error {
		return errors.Join(
			c.to.writeMetaNumber(tx, "format", Format),
			c.to.writeMetaNumber(tx, "lineage", uint64(id.lineage)),
			c.to.writeMoved(tx, id.moved),
		)
	})
	if err != nil {
		return id, err
	}
	// There is a note only of what comes after a commit with a free list.
	id.tx, err = c.to.update(func(tx *bbolt.Tx) error { return c.to.writeLogged(tx, false) })
	return id, err
}

// endCompaction ends c. If its draft did not become the file, it is removed.
func (w *writer) endCompaction(c *compaction) {
	w.compaction = nil
	w.nextNote = pages.Note{}
	c.copy.End()
	if c.to == nil {
		return
	}
	if err := errors.Join(c.to.file.Load().Close(), compact.RemoveDraft(c.path)); err != nil {
		w.log.Warn("draft of a compact store not removed", "err", err)
	}
}

// Measure calls add with the size in the file of each bucket, log and queue, and returns the
// size of the file, so that the difference is free. It reads at most bytesPerSecond.
func (s *Store) Measure(
	ctx context.Context, bytesPerSecond int, add func(kind, name string, bytes int64),
) (size int64, err error) {
	view := func(do func(*pages.Commit) error) error { return s.readCommit(ctx, do) }
	return usage.Measure(ctx, view, bytesPerSecond, func(top, name []byte, bytes int64) {
		add(string(top), decodeKey(name), bytes)
	})
}
