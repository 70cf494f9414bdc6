package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"parley/store/bolt"
	"parley/store/bolt/dirlock"
	"parley/store/bolt/refusal"
)

// A Restorer replaces the data of one installation by that of a backup.
type Restorer struct {
	DataDir   string
	Workspace string
	Config    string // path of the config file
	HasConfig bool   // there is a config file, which a restore does not change
	// Settle turns what waited in a copied store into dead letters: it was
	// answered and sent after the copy was made (P20).
	Settle func(ctx context.Context, s *bolt.Store) (Waiting, error)
	Log    *slog.Logger
}

// Waiting counts the messages and replies that waited in a store when it was
// copied.
type Waiting struct{ Messages, Replies int }

// A Report describes a restore.
type Report struct {
	Made    time.Time // when the backup was made
	Put     []string  // paths of what was restored
	Moved   []string  // paths of the data that was there before
	MovedTo string    // the folder where that data is now
	Waiting Waiting   // what became dead letters
	Lost    error     // why the latest changes are lost: they were in a damaged log; nil if none are
}

// Restore replaces the data by the content of file, an archive or a copy of the
// store. If it fails, nothing has changed. Existing data is moved aside with
// force; without force, it is an error.
func (r Restorer) Restore(ctx context.Context, file string, force bool) (report Report, err error) {
	if err := os.MkdirAll(r.DataDir, 0o700); err != nil {
		return report, err
	}
	unlock, err := dirlock.Lock(r.DataDir, true) // no gateway may run meanwhile
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	db := filepath.Join(r.DataDir, StoreFile)
	if there := Existing(db, bolt.LogOf(db), db+".mark", r.Workspace); len(there) > 0 && !force {
		return report, fmt.Errorf("there is data already: %s; --force moves it aside", there[0])
	}
	report.Put = []string{db}
	if !isStore(file) {
		report.Put = append(report.Put, r.Workspace)
	}
	report.Moved = Existing(append([]string{bolt.LogOf(db)}, report.Put...)...)
	report.MovedTo = r.unusedFolder("before-restore-")
	err = r.exchange(ctx, &report, func(draft string) (err error) {
		if report.Made, err = unpackInto(ctx, file, draft); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		return nil
	})
	return report, err
}

// ReplaceStore replaces a damaged store by the copy file, or by what is sound of itself.
func (r Restorer) ReplaceStore(ctx context.Context, file string) (report Report, err error) {
	unlock, err := dirlock.Lock(r.DataDir, true)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	info, err := os.Stat(file)
	if err != nil {
		return report, err
	}
	db := filepath.Join(r.DataDir, StoreFile)
	report = Report{
		Made:    info.ModTime(),
		Moved:   Existing(bolt.LogOf(db), db),
		MovedTo: r.unusedFolder("damaged-"),
	}
	err = r.exchange(ctx, &report, func(draft string) error {
		return copyStore(filepath.Join(draft, StoreFile), file)
	})
	return report, err
}

// TakeIn puts the store that fill writes into a folder, as the file StoreFile, where there must be none. What waits in
// it goes on.
func (r Restorer) TakeIn(ctx context.Context, fill func(folder string) error) error {
	if err := os.MkdirAll(r.DataDir, 0o700); err != nil {
		return err
	}
	unlock, err := dirlock.Lock(r.DataDir, true)
	if err != nil {
		return err
	}
	db := filepath.Join(r.DataDir, StoreFile)
	if there := Existing(db, bolt.LogOf(db)); len(there) > 0 {
		return errors.Join(fmt.Errorf("there is a store already: %s", there[0]), unlock())
	}
	r.Settle = func(context.Context, *bolt.Store) (Waiting, error) { return Waiting{}, nil }
	return errors.Join(r.exchange(ctx, &Report{}, fill), unlock())
}

// Leave moves the store, which was copied into one of the type to, into a new folder whose name begins with prefix. No
// gateway goes on from it, or begins with an empty one: see [refusal.Leave]. The caller has the lock of DataDir.
func (r Restorer) Leave(prefix, to string) (folder string, err error) {
	db := filepath.Join(r.DataDir, StoreFile)
	folder = r.unusedFolder(prefix)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", err
	}
	if err := copyFile(filepath.Join(folder, StoreFile+".mark"), db+".mark"); err != nil {
		return "", err
	}
	if err := refusal.Leave(db, to); err != nil {
		return "", err
	}
	for _, path := range Existing(bolt.LogOf(db), db) {
		if err := os.Rename(path, filepath.Join(folder, filepath.Base(path))); err != nil {
			return "", err
		}
	}
	return folder, syncFolders(folder, r.DataDir)
}

func (r Restorer) unusedFolder(prefix string) string {
	return unusedPath(filepath.Join(r.DataDir, prefix+time.Now().Format("20060102-150405")))
}

// exchange replaces the data by what fill writes into a folder. report.Moved is
// moved aside, except for the mark of the store, which stays until there is
// another: without a mark, a gateway would start with an empty store after a kill
// (P18). The caller holds the lock.
func (r Restorer) exchange(ctx context.Context, report *Report, fill func(draft string) error) error {
	draft, err := os.MkdirTemp(r.DataDir, ".restore-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(draft)
	if err := fill(draft); err != nil {
		return err
	}
	if len(Existing(filepath.Join(draft, toolsFolder))) > 0 { // older archives have none
		report.Moved = append(report.Moved, Existing(filepath.Join(r.DataDir, toolsFolder))...)
	}
	if err := r.settle(ctx, report, draft); err != nil {
		return err
	}
	if err := syncTree(draft); err != nil {
		return err
	}
	if err := moveAll(report.MovedTo, report.Moved); err != nil {
		return err
	}
	if err = r.moveIn(draft); err != nil && len(report.Moved) > 0 {
		err = fmt.Errorf("%w; what was there is in %s", err, report.MovedTo)
	}
	return err
}

// settle prepares the copied store in the folder dir for use. If its log is damaged, what
// is sound of it is used.
func (r Restorer) settle(ctx context.Context, report *Report, dir string) (err error) {
	salvage := func(lost error) { report.Lost = lost }
	s, err := bolt.Open(ctx, bolt.Config{Dir: dir, Log: r.Log, Salvage: salvage})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Renew(ctx); err != nil {
		return err
	}
	report.Waiting, err = r.Settle(ctx, s)
	return err
}

// moveIn moves the content of the folder draft into place.
func (r Restorer) moveIn(draft string) error {
	if err := os.MkdirAll(filepath.Dir(r.Workspace), 0o700); err != nil {
		return err
	}
	db := filepath.Join(r.DataDir, StoreFile)
	type move struct{ from, to string }
	moves := []move{
		{workspaceFolder, r.Workspace},
		{toolsFolder, filepath.Join(r.DataDir, toolsFolder)},
		{bolt.LogOf(StoreFile), bolt.LogOf(db)}, // there is one if the disk was full
		{StoreFile, db},
		{StoreFile + ".mark", db + ".mark"}, // last: it says that there is a store
	}
	if !r.HasConfig {
		moves = append(moves, move{configFile, r.Config})
	}
	if isEmptyFolder(r.Workspace) {
		if err := os.Remove(r.Workspace); err != nil {
			return err
		}
	}
	for _, m := range moves {
		err := os.Rename(filepath.Join(draft, m.from), m.to)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		// Before the next: the order counts after a power cut, too.
		if err := syncFolders(filepath.Dir(m.to)); err != nil {
			return err
		}
	}
	return nil
}

func isEmptyFolder(name string) bool {
	entries, err := os.ReadDir(name)
	return err == nil && len(entries) == 0
}

// isStore reports whether file is a copy of a store, as opposed to an archive,
// which is a gzip file.
func isStore(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 2)
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) != "\x1f\x8b" && filepath.Ext(file) == filepath.Ext(StoreFile)
}

// unpackInto unpacks file into the folder dir, and returns when the backup was
// made.
func unpackInto(ctx context.Context, file, dir string) (made time.Time, err error) {
	if isStore(file) {
		info, err := os.Stat(file)
		if err != nil {
			return made, err
		}
		return info.ModTime(), copyStore(filepath.Join(dir, StoreFile), file)
	}
	f, err := os.Open(file)
	if err != nil {
		return made, err
	}
	defer f.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return made, err
	}
	defer root.Close()
	m, err := unpack(ctx, f, root)
	return m.Made, err
}
