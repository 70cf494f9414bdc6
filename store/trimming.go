package store

import (
	"context"
	"io"
	"iter"
	"time"
)

// A Trimming is a pass over one part of a Store that removes what is older than an
// owner wants to keep (P28). It may end at any moment, and the next one goes on.
type Trimming struct {
	// Before is the time from which on everything stays.
	Before time.Time
	// Archive appends lines to the file name, but for those of them that it was given
	// last: what they tell is removed after that, and a crash may come between. nil: nothing
	// is kept of that.
	Archive func(name string, lines ...[]byte) error
	// ArchiveFile writes a file called name, which has slashes, into the archive, in place of
	// one of that name, before it is removed. nil: nothing is kept of it.
	ArchiveFile func(name string, from io.Reader) error
	// Step is called after each change with the number of entries that were removed.
	// It lets others write, and returns an error when the pass is to end.
	Step func(removed int) error
}

// Save archives lines in the file name, if anything is to be archived.
func (t Trimming) Save(name string, lines ...[]byte) error {
	if t.Archive == nil {
		return nil
	}
	return t.Archive(name, lines...)
}

// An OldEntry is an entry of a Bucket that a Trimming removes.
type OldEntry struct {
	Key  string
	File string // of the archive
	Line []byte // what the archive tells of the entry; none if empty
}

// removalBatch is how many entries are archived together.
const removalBatch = 500

// Remove archives old entries of b and removes them.
func (t Trimming) Remove(ctx context.Context, b Bucket, entries iter.Seq2[OldEntry, error]) error {
	var batch []OldEntry
	for e, err := range entries {
		if err != nil {
			return err
		}
		batch = append(batch, e)
		if len(batch) < removalBatch {
			continue
		}
		if err := t.remove(ctx, b, batch); err != nil {
			return err
		}
		batch = nil
	}
	return t.remove(ctx, b, batch)
}

func (t Trimming) remove(ctx context.Context, b Bucket, batch []OldEntry) error {
	lines := map[string][][]byte{}
	for _, e := range batch {
		if len(e.Line) > 0 {
			lines[e.File] = append(lines[e.File], e.Line)
		}
	}
	for file, all := range lines {
		if err := t.Save(file, all...); err != nil {
			return err
		}
	}
	for _, e := range batch {
		if err := b.Delete(ctx, e.Key); err != nil {
			return err
		}
		if err := t.Step(1); err != nil {
			return err
		}
	}
	return nil
}
