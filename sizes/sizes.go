// Package sizes says what takes how much of the disk, and how that grows, and has the
// store compacted when half of its file is free.
package sizes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"parley/store"
	"parley/workspace"
)

const (
	interval = 20 * time.Hour // between two samples, at least: once a day, whenever Parley is started
	maxKept  = 31             // samples
	rate     = 32 << 20       // bytes a second that are read of the store
	// minFree is what a compaction must give back: bbolt reserves up to half of it.
	minFree = 32 << 20 // bytes
	key     = "sizes"
)

// A Sample is what took how much at one time.
type Sample struct {
	Time  time.Time        `json:"time"`
	Bytes map[string]int64 `json:"bytes"` // by part: "conversations", "backups"
}

// Free is the part that is free in the file of the store.
const Free = "free in the store"

// Total returns the sum of all parts.
func (s Sample) Total() (sum int64) {
	for _, n := range s.Bytes {
		sum += n
	}
	return sum
}

// A Keeper takes samples. It keeps them in the store.
type Keeper struct {
	Store     store.Store // measured and compacted if it can be, as bolt.Store can
	DataDir   string
	Workspace string
	// Room returns an error if a disk does not have space for so many more bytes.
	Room func(folder string, bytes uint64) error
	Log  *slog.Logger
	// Measured is told of each part; may be nil.
	Measured func(part string, bytes int64)
}

// A measurable store knows what takes how much of it, and can become smaller.
type measurable interface {
	Measure(ctx context.Context, bytesPerSecond int, add func(kind, name string, bytes int64)) (size int64, err error)
	Compact(ctx context.Context, bytesPerSecond int) error
}

// Pass takes a sample, unless there is one of today, and compacts the store if half of it
// is free.
func (k Keeper) Pass(ctx context.Context, now time.Time) error {
	known, err := Samples(ctx, k.Store)
	if err != nil {
		return err
	}
	if n := len(known); n > 0 {
		k.tell(known[n-1])
		if age := now.Sub(known[n-1].Time); age >= 0 && age < interval {
			return nil
		}
	}
	sample, size, err := k.measure(ctx, now)
	if err != nil {
		return err
	}
	if free := sample.Bytes[Free]; free >= minFree && 2*free >= size {
		if sample, err = k.compact(ctx, now, sample, size-free); err != nil {
			return err
		}
	}
	k.tell(sample)
	known = append(known, sample)
	return table(k.Store).Set(ctx, key, known[max(0, len(known)-maxKept):])
}

// compact compacts the store, of which that much is in use, and measures it again. If there is
// no space for that, sample stays what is known.
func (k Keeper) compact(ctx context.Context, now time.Time, sample Sample, used int64) (Sample, error) {
	if err := k.Room(k.DataDir, uint64(used+minFree)); err != nil {
		k.Log.Warn("no space to compact the store", "free in it", Format(sample.Bytes[Free]), "err", err)
		return sample, nil
	}
	s, ok := k.Store.(measurable)
	if !ok {
		return sample, nil
	}
	began := time.Now()
	if err := s.Compact(ctx, rate); err != nil {
		if ctx.Err() != nil {
			return sample, err
		}
		k.Log.Warn("the store was not compacted", "err", err)
		return sample, nil
	}
	k.Log.Info("the store was compacted", "free before", Format(sample.Bytes[Free]), "took", time.Since(began))
	sample, _, err := k.measure(ctx, now)
	return sample, err
}

func (k Keeper) tell(s Sample) {
	if k.Measured == nil {
		return
	}
	for part, n := range s.Bytes {
		k.Measured(part, n)
	}
}

// measure takes a sample, and returns the size of the file of the store, too.
func (k Keeper) measure(ctx context.Context, now time.Time) (s Sample, size int64, err error) {
	s = Sample{Time: now.UTC(), Bytes: map[string]int64{}}
	if m, ok := k.Store.(measurable); ok {
		used := int64(0)
		size, err = m.Measure(ctx, rate, func(kind, name string, bytes int64) {
			s.Bytes[partOf(kind, name)] += bytes
			used += bytes
		})
		if err != nil {
			return s, 0, fmt.Errorf("measure the store: %w", err)
		}
		s.Bytes[Free] = max(0, size-used)
	}
	for part, pattern := range k.folders() {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			return s, 0, err
		}
		for _, path := range matches {
			n, err := folderSize(ctx, path)
			if err != nil {
				return s, 0, fmt.Errorf("measure %s: %w", part, err)
			}
			s.Bytes[part] += n
		}
	}
	return s, size, nil
}

// folders returns what Parley writes besides the store, as patterns.
func (k Keeper) folders() map[string]string {
	return map[string]string{
		"log of the store": filepath.Join(escape(k.DataDir), "parley.db.wal"),
		"backups":          filepath.Join(escape(k.DataDir), "backups"),
		"archive":          filepath.Join(escape(k.DataDir), "archive"),
		"replaced":         filepath.Join(escape(k.DataDir), "before-restore-*"),
		"damaged":          filepath.Join(escape(k.DataDir), "damaged-*"),
		"inbox files":      filepath.Join(escape(k.Workspace), "inbox"),
		"results":          filepath.Join(escape(k.Workspace), ".parley", "tool-results"),
		"undo":             filepath.Join(escape(k.Workspace), ".parley", "undo"),
	}
}

// escape returns a pattern that matches path only.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// folderSize returns the bytes of the files in a folder. It follows no links.
func folderSize(ctx context.Context, folder string) (sum int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !d.Type().IsRegular():
			return ctx.Err()
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		sum += workspace.DiskBytes(info.Size())
		return ctx.Err()
	})
	return sum, err
}

// partOf returns the part that a collection of the store belongs to.
func partOf(kind, name string) string {
	switch {
	case kind == "seen":
		return "IDs that were seen"
	case kind == "queue" && name == store.QueueInbox:
		return "inbox"
	case kind == "queue":
		return "outbox"
	case name == store.LogAudit:
		return "audit"
	case strings.HasPrefix(name, store.LogSession("", "")), name == store.BucketSessions:
		return "conversations"
	case strings.HasPrefix(kind, "log"):
		return "pages and dead letters"
	case name == store.BucketPrompts, name == store.BucketPromptUses:
		return "prompts"
	case name == store.BucketJobs:
		return "jobs"
	case name == store.BucketLedger:
		return "usage"
	}
	return "other"
}

func table(s store.Store) store.Table[[]Sample] {
	bucket := s.Bucket(store.BucketGateway)
	return store.NewTable(bucket, store.Forget[[]Sample](slog.New(slog.DiscardHandler), "sizes"))
}

// Samples returns the samples of s, at most one a day, the latest last.
func Samples(ctx context.Context, s store.Store) ([]Sample, error) {
	all, _, err := table(s).Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return all, err
}
