package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"parley/backup"
	"parley/host"
	"parley/store/bolt"
	"parley/store/bolt/refusal"
)

// A Store is the store file to check.
type Store struct {
	Type    string // as the config has it; "": "bolt"
	DataDir string
	Restore func(file string) string // the command that restores file

	// MaxBytes is how large the file may get; 0: [bolt.MaxFile].
	MaxBytes int

	// Probe reads the whole file; nil: [bolt.Probe].
	Probe func(ctx context.Context, file string) (damaged []string, err error)
}

// Check looks for damage and loss. While a gateway runs, it is asked what it found.
func (s Store) Check(ctx context.Context, g Gateway) Finding {
	switch {
	case s.Type == "mem":
		const advice = `write "store": { "type": "bolt" }`
		return Finding{Warn, "in memory: everything is forgotten at the end", advice}
	case s.Type != "" && s.Type != "bolt":
		return Finding{OK, "configured: " + s.Type, ""}
	}
	file := filepath.Join(s.DataDir, backup.StoreFile)
	if g.Runs() {
		return s.warnOfSize(file, g.storeFinding(ctx))
	}
	if left, ok := errors.AsType[*refusal.LeftError](refusal.CheckLeft(file)); ok {
		return Finding{Fail, left.Error(), "with this config parley run does not start"}
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s.missing(file)
	case err == nil && info.Size() == 0:
		return Finding{Fail, file + " is empty", s.restoreAdvice()}
	}
	if err := bolt.CheckSize(file, s.maxBytes()); err != nil {
		return Finding{Fail, err.Error(), "move " + s.DataDir + " to a 64-bit machine, and try parley doctor there"}
	}
	segments, _ := filepath.Glob(filepath.Join(bolt.LogOf(file), "*")) // the pattern is valid
	for _, path := range append(backup.Existing(filepath.Join(s.DataDir, "lock"), file+".mark", file), segments...) {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return Finding{Fail, err.Error(), host.AccessAdvice(err)}
		}
		_ = f.Close()
	}
	probe := s.Probe
	if probe == nil {
		probe = bolt.Probe
	}
	damaged, err := probe(ctx, file)
	if ctx.Err() != nil {
		text := file + " is too large to be read here; what was read is sound"
		return Finding{Warn, text, "the gateway reads all of it while it runs, and says what is damaged"}
	}
	if err != nil {
		return Finding{Fail, err.Error(), s.restoreAdvice()}
	}
	if n := len(damaged); n > 0 {
		text := fmt.Sprintf("damaged values in %s: %d, the first is %s", file, n, damaged[0])
		return Finding{Fail, text, "the rest works; put the latest backup in its place to have them again"}
	}
	err = bolt.CheckLatest(file)
	if damage, ok := errors.AsType[*refusal.DamagedError](err); ok && damage.InLog {
		advice := "put the log back if it is elsewhere; or keep a copy of " + s.DataDir +
			" and start parley, which goes on without these changes"
		return Finding{Fail, err.Error(), advice}
	}
	if err != nil {
		advice := "put the right file back; with this one parley run does not start, and says how to go on"
		return Finding{Fail, err.Error(), advice}
	}
	return s.warnOfSize(file, Finding{OK, file + " is whole", ""})
}

// maxBytes returns how large the file may get; 0 is no limit.
func (s Store) maxBytes() int { return cmp.Or(s.MaxBytes, bolt.MaxFile()) }

// warnOfSize returns f, or if that is OK and the file will soon be as large as it may get, a
// warning: then it is too late for deletions. Of 1 GiB it leaves 124 MiB.
func (s Store) warnOfSize(file string, f Finding) Finding {
	most := s.maxBytes()
	if left, ok := errors.AsType[*refusal.LeftError](refusal.CheckLeft(file)); ok {
		return Finding{Fail, left.Error(), "with this config parley run does not start"}
	}
	info, err := os.Stat(file)
	if f.Status != OK || most == 0 || err != nil || info.Size() < int64(most/1024*900) {
		return f
	}
	const full = "once it is full, not even deletions are possible"
	text := fmt.Sprintf("%s has %d of the %d MiB that it may have with 32 bits; "+full, file, info.Size()>>20, most>>20)
	advice := "set shorter times in retention before it is full, or move " + s.DataDir + " to a 64-bit machine"
	return Finding{Warn, text, advice}
}

func (s Store) restoreAdvice() string {
	return "keep a copy of " + s.DataDir + ", put parley.db of the latest backup in place and remove parley.db.wal"
}

// missing tells a store that was lost from one that was never there, by the mark
// that a store leaves beside its file, and by the copies.
func (s Store) missing(file string) Finding {
	if _, err := os.Stat(file + ".mark"); err == nil {
		return Finding{Fail, file + " is missing", s.restoreAdvice()}
	}
	if copies := backup.Copies(s.DataDir); len(copies) > 0 {
		text := file + " is gone, though there are copies of it"
		return Finding{Fail, text, "put it back, or: " + s.Restore(copies[0])}
	}
	return Finding{OK, file + " is not there yet: parley makes it", ""}
}
