package shell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"parley/tools"
	"parley/tools/shell/changes"
	"parley/workspace"
)

// unfinished is recorded as the author of everything in work while a command writes there what is
// untrusted, and until it is known what that was.
const unfinished = "(a command at work)"

// A writing is the record of a command that may write untrusted content: it runs after such content was
// read, reads some, or reaches the network (R-S12). After a kill, the next start marks what it may have written.
type writing struct {
	Process string    `json:"process"` // of Parley
	Work    string    `json:"work"`    // the folder that it may change
	Began   time.Time `json:"began"`

	// Late says that the record was made when the command was at work, because of hosts that it reached: it read
	// nothing that was untrusted before, and so has moved nothing such.
	Late bool `json:"late,omitempty"`

	shell  *Shell
	key    string
	files  *workspace.Workspace
	before map[string]uint64 // the folders in work when it began, by inode; nil if that is not known
}

// writingPrefix begins the keys of writings. No session has such a name.
const writingPrefix = "untrusted/"

// beginWriting records that a command of c, which begins now, may write untrusted content. Until end
// is called, everything in work counts as such content.
func (s *Shell) beginWriting(ctx context.Context, c tools.Call) (*writing, error) {
	return s.addWriting(ctx, c, &writing{Began: time.Now()})
}

// addLateWriting is beginWriting for a command that began earlier.
func (s *Shell) addLateWriting(ctx context.Context, c tools.Call, began time.Time) (*writing, error) {
	return s.addWriting(ctx, c, &writing{Began: began, Late: true})
}

func (s *Shell) addWriting(ctx context.Context, c tools.Call, w *writing) (*writing, error) {
	work, err := inWork(c.Workspace, "")
	if err != nil {
		return nil, err
	}
	w.Process = s.id
	w.Work = work.String()
	w.shell = s
	w.key = writingPrefix + c.Key()
	w.files = c.Workspace
	dir, err := w.dir()
	if err != nil {
		return nil, err
	}
	if !w.Late {
		w.before, _ = changes.Folders(dir) // without these it goes by the folders' times
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

// WhileNoneWrites calls do while no command is at work that may write untrusted content, and reports
// whether it did.
func (s *Shell) WhileNoneWrites(ctx context.Context, do func() error) (done bool, err error) {
	s.marks.Lock()
	defer s.marks.Unlock()
	for _, err := range s.writings.Each(ctx, writingPrefix) {
		return false, err
	}
	return true, do()
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
	found, err := changes.Find(dir, w.Began, w.isMoved)
	if errors.Is(err, fs.ErrNotExist) { // somebody has removed the folder
		return nil
	}
	if err != nil {
		return err
	}
	for _, m := range found.Marks() {
		if err := w.record(work, m); err != nil {
			return err
		}
	}
	return nil
}

// record records m as untrusted or, if no record can have its name, the folder that it is in.
func (w *writing) record(work workspace.Path, m changes.Mark) error {
	origins := workspace.OriginsOf(w.files)
	for m.Name != "." {
		at, err := w.files.Named(filepath.Join(w.Work, m.Name))
		switch {
		case err != nil: // it is no UTF-8, or too long, or a link by now
			m = changes.Mark{Name: filepath.Dir(m.Name), Below: true}
			continue
		case m.Name == gitConfig && isSeeded(w.files, at):
			return nil // Parley wrote it, right before the command
		case m.Below:
			return errors.Join(w.files.SetOrigin(at, ""), origins.SetBelow(at, ""))
		}
		return w.files.SetOrigin(at, "")
	}
	return origins.SetBelow(work, "")
}

// isMoved reports whether a folder may have come to where it is since w began. If it is not known what was
// there before, it goes by the folder's times, which also change when something in it does.
func (w *writing) isMoved(d fs.DirEntry, name string) bool {
	switch {
	case w.Late:
		return false
	case w.before == nil:
		return changes.IsSince(d, w.Began)
	}
	inode, known := w.before[name]
	return !known || inode != changes.Inode(d)
}
