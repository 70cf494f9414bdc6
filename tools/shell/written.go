package shell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"parley/tools"
	"parley/workspace"
)

const (
	maxMarked = 100     // records of what one command wrote
	maxLooked = 1 << 20 // files that are looked at
)

// unfinished is recorded as the author of everything in work while a command writes there what is
// untrusted, and until it is known what that was.
const unfinished = "(a command at work)"

// A writing is the record of a command that may write untrusted content: it runs after such content was
// read, reads some, or reaches the network (R-S12). What a kill leaves of it, the next start makes use of.
type writing struct {
	Process string    `json:"process"` // of Parley
	Work    string    `json:"work"`    // the folder that it may change
	Began   time.Time `json:"began"`

	shell  *Shell
	key    string
	files  *workspace.Workspace
	before map[string]uint64 // the folders in work when it began, by inode; nil if that is not known
}

// writingPrefix begins the keys of writings. No session has such a name.
const writingPrefix = "untrusted/"

// beginWriting records that a command of c, which began at a time, may write untrusted content. Until end
// is called, everything in work counts as such content.
func (s *Shell) beginWriting(ctx context.Context, c tools.Call, began time.Time) (*writing, error) {
	work, err := inWork(c.Workspace, "")
	if err != nil {
		return nil, err
	}
	w := &writing{
		Process: s.id, Work: work.String(), Began: began,
		shell: s, key: writingPrefix + c.Key(), files: c.Workspace,
	}
	dir, err := w.dir()
	if err != nil {
		return nil, err
	}
	if time.Since(began) < waitTime {
		w.before, _ = foldersIn(dir) // without these it goes by the folders' times
	}
	s.marks.Lock()
	defer s.marks.Unlock()
	if err := s.writings.Set(context.WithoutCancel(ctx), w.key, *w); err != nil {
		return nil, fmt.Errorf("record that it may write untrusted content: %w", err)
	}
	origins := workspace.OriginsOf(c.Workspace)
	if _, found := origins.Below(work); !found {
		if err := origins.SetBelow(work, unfinished); err != nil {
			return nil, fmt.Errorf("record that it may write untrusted content: %w", err)
		}
	}
	return w, nil
}

// end marks as untrusted what the command has written. If that fails, everything stays marked until the
// next start, which tries again. A nil w wrote nothing untrusted.
func (w *writing) end() {
	if w == nil {
		return
	}
	if err := w.finish(context.Background()); err != nil {
		const text = "all files of commands count as untrusted until the next start"
		w.shell.cfg.Log.Error(text, "folder", w.Work, "err", err)
	}
}

// finish is end with its error.
func (w *writing) finish(ctx context.Context) error {
	work, err := w.files.Named(w.Work)
	if err != nil {
		return err
	}
	if err := w.mark(work); err != nil {
		return fmt.Errorf("mark what a command wrote: %w", err)
	}
	s := w.shell
	s.marks.Lock()
	defer s.marks.Unlock()
	if err := s.writings.Delete(ctx, w.key); err != nil {
		return err
	}
	for other, err := range s.writings.Each(ctx, writingPrefix) {
		if err != nil || other.Value.Work == w.Work {
			return err
		}
	}
	origins := workspace.OriginsOf(w.files)
	if author, _ := origins.Below(work); author == unfinished {
		return origins.ClearBelow(work)
	}
	return nil
}

// dir returns where work is.
func (w *writing) dir() (string, error) {
	folder := w.files.Dir()
	if home := w.files.View().Home(); home != "" {
		folder = strings.TrimSuffix(folder, "/"+home)
	}
	folder, err := filepath.EvalSymlinks(folder)
	return filepath.Join(folder, w.Work), err
}

// finishWritings makes up for what an earlier process could not mark.
func (s *Shell) finishWritings(ctx context.Context) {
	if s.cfg.Files == nil {
		return
	}
	var left []writing
	for entry, err := range s.writings.Each(ctx, writingPrefix) {
		if err != nil {
			s.cfg.Log.Error("what commands wrote cannot be read", "err", err)
			return
		}
		if w := entry.Value; w.Process != s.id {
			w.shell = s
			w.key = entry.Key
			w.files = s.cfg.Files()
			left = append(left, w)
		}
	}
	for _, w := range left {
		w.end()
	}
}

// mark records that the files which were written since w began may hold untrusted content. Where they are
// too many, it is the folders that they are in, with all that they hold.
func (w *writing) mark(work workspace.Path) error {
	dir, err := w.dir()
	if err != nil {
		return err
	}
	found, err := findWritten(dir, w.Began, w.before)
	if errors.Is(err, fs.ErrNotExist) { // somebody has removed the folder
		return nil
	}
	if err != nil {
		return err
	}
	for _, m := range found.marks() {
		if err := w.record(work, m); err != nil {
			return err
		}
	}
	return nil
}

// record records m as untrusted or, if no record can have its name, the folder that it is in.
func (w *writing) record(work workspace.Path, m mark) error {
	origins := workspace.OriginsOf(w.files)
	for m.name != "." {
		at, err := w.files.Named(filepath.Join(w.Work, m.name))
		switch {
		case err != nil: // it is no UTF-8, or too long, or a link by now
			m = mark{filepath.Dir(m.name), true}
			continue
		case m.name == gitConfig && isSeeded(w.files, at):
			return nil // Parley wrote it, right before the command
		case m.below:
			return errors.Join(w.files.SetOrigin(at, ""), origins.SetBelow(at, ""))
		}
		return w.files.SetOrigin(at, "")
	}
	return origins.SetBelow(work, "")
}

// What a command has written in a folder. Names are relative to it.
type written struct {
	files   []string
	folders []string        // that cannot be looked into
	kept    map[string]bool // folders in which there are other files, at any depth
	tooMany bool            // there are more files than are looked at
}

// findWritten looks for what was written in dir since a time. A folder that was not in before was moved or
// made, so that all in it counts.
func findWritten(dir string, since time.Time, before map[string]uint64) (w written, err error) {
	w.kept = map[string]bool{}
	moved := map[string]bool{}
	looked := 0
	err = filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, at) // it is below
		switch {
		case err != nil && name == ".":
			return err
		case err != nil && d != nil && d.IsDir() && !errors.Is(err, fs.ErrNotExist):
			w.folders = append(w.folders, name)
			return fs.SkipDir
		case err != nil:
			return nil // it is gone
		}
		if looked++; looked > maxLooked {
			w.tooMany = true
			return fs.SkipAll
		}
		folder := filepath.Dir(name)
		switch {
		case d.IsDir():
			moved[name] = name != "." && (moved[folder] || isMoved(d, name, since, before))
		case !d.Type().IsRegular():
		case moved[folder] || isChangedSince(d, since):
			w.files = append(w.files, name)
		default:
			for ; folder != "." && !w.kept[folder]; folder = filepath.Dir(folder) {
				w.kept[folder] = true
			}
		}
		return nil
	})
	return w, err
}

// A mark is a file to be recorded as untrusted, or a folder with all that it holds.
type mark struct {
	name  string
	below bool
}

// marks returns at most maxMarked marks that cover what was written.
func (w written) marks() (all []mark) {
	if w.tooMany {
		return []mark{{".", true}}
	}
	for _, name := range w.files {
		all = append(all, mark{name, false})
	}
	for _, name := range w.folders {
		all = append(all, mark{name, true})
	}
	for _, replace := range []func(mark) mark{w.inFolder, inWorkItself} {
		if len(all) <= maxMarked {
			break
		}
		chosen := map[mark]bool{}
		for _, m := range all {
			chosen[replace(m)] = true
		}
		all = slices.SortedFunc(maps.Keys(chosen), func(a, b mark) int { return strings.Compare(a.name, b.name) })
	}
	if len(all) > maxMarked {
		return []mark{{".", true}}
	}
	return all
}

// inFolder returns the outermost folder that m is in and that has nothing else, or m if there is none.
func (w written) inFolder(m mark) mark {
	for folder := filepath.Dir(m.name); folder != "." && !w.kept[folder]; folder = filepath.Dir(folder) {
		m = mark{folder, true}
	}
	return m
}

// inWorkItself returns what m is in and is in work itself.
func inWorkItself(m mark) mark {
	first, _, isBelow := strings.Cut(m.name, "/")
	return mark{first, isBelow || m.below}
}

// foldersIn returns the folders in dir with their inodes. The error says that there are too many files.
func foldersIn(dir string) (map[string]uint64, error) {
	all := map[string]uint64{}
	looked := 0
	err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if looked++; looked > maxLooked {
			return errors.New("there are more files than are looked at")
		}
		if err != nil || !d.IsDir() {
			return nil
		}
		name, _ := filepath.Rel(dir, at)
		all[name] = inodeOf(d)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

func inodeOf(d fs.DirEntry) uint64 {
	info, err := d.Info()
	if err != nil {
		return 0
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino
	}
	return 0
}

// isMoved reports whether a folder has come to where it is since a time. Where it is not known what was
// there before, it goes by the folder's times: moving it changes one of the two.
func isMoved(d fs.DirEntry, name string, since time.Time, before map[string]uint64) bool {
	if before != nil {
		inode, known := before[name]
		return !known || inode != inodeOf(d)
	}
	info, err := d.Info()
	return err == nil && isChangedSince(d, since) && info.ModTime().Before(since.Add(-clockTick))
}

// clockTick is how far the times of files may be behind the clock.
const clockTick = 20 * time.Millisecond

// isChangedSince reports whether a file was written, or its times were set, since then, as far as is known.
func isChangedSince(d fs.DirEntry, since time.Time) bool {
	info, err := d.Info()
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	changed := info.ModTime()
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		changed = time.Unix(stat.Ctim.Unix())
	}
	return !changed.Before(since.Add(-clockTick))
}
