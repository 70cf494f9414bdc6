package imports

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"parley/scheduler"
	"parley/workspace"
)

// receiptsName is the file of the data folder that says what was imported, so that a second
// import brings back nothing that was since changed or removed.
const receiptsName = "imported.json"

// A receipt says what was imported from one system.
type receipt struct {
	Files  map[string]string `json:"files"` // names in the workspace -> SHA-256
	Jobs   map[string]bool   `json:"jobs"`  // by ID
	Config string            `json:"config,omitempty"`
}

// readReceipts returns the receipts by system.
func readReceipts(dataDir string) (all map[string]receipt, err error) {
	text, err := os.ReadFile(filepath.Join(dataDir, receiptsName))
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]receipt{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what was imported before: %w", err)
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("read what was imported before: %s: %w", receiptsName, err)
	}
	return all, nil
}

// stagePrefix begins the names of folders in which an import prepares its files.
const stagePrefix = ".import-"

// Apply carries out p: all of it or, after an error, nothing. After a kill, it can be done again.
// Nothing is overwritten but Parley's own first files that nobody edited.
func (p *Plan) Apply(ctx context.Context, t Target) (err error) {
	if err := os.MkdirAll(t.DataDir, 0o700); err != nil {
		return err
	}
	s, done, err := t.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	w := work{plan: p, target: t}
	defer func() { err = errors.Join(err, w.end(err)) }()
	if err := w.prepare(); err != nil {
		return fmt.Errorf("prepare the files: %w", err)
	}
	w.step()
	if err := w.moveFiles(); err != nil {
		return fmt.Errorf("write the files: %w", err)
	}
	if err := w.addJobs(ctx, newScheduler(t, s)); err != nil {
		return fmt.Errorf("add the jobs: %w", err)
	}
	if err := w.writeConfig(); err != nil {
		return fmt.Errorf("write the config: %w", err)
	}
	w.step()
	if err := w.writeReceipt(); err != nil {
		return fmt.Errorf("note what was imported: %w", err)
	}
	p.Done = true
	return nil
}

// A work is an import that is being carried out.
type work struct {
	plan   *Plan
	target Target
	root   *os.Root // of the workspace
	stage  string   // the folder below root with files that are not in their places yet
	undo   []func() error
}

func (w *work) step() {
	if w.target.step != nil {
		w.target.step()
	}
}

// prepare writes all files into a folder of the workspace.
func (w *work) prepare() (err error) {
	if err := os.MkdirAll(w.target.Workspace, 0o700); err != nil {
		return err
	}
	if w.root, err = os.OpenRoot(w.target.Workspace); err != nil {
		return err
	}
	if err := w.sweep(); err != nil {
		return err
	}
	if err := w.seed(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(w.target.Workspace, stagePrefix+"*")
	if err != nil {
		return err
	}
	w.stage = filepath.Base(dir)
	for i, f := range w.plan.files {
		if err := w.write(w.staged(i), f.Data); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) staged(i int) string { return fmt.Sprint(w.stage, "/", i) }

// sweep removes what an import left that was killed. The data folder is locked.
func (w *work) sweep() error {
	entries, err := fs.ReadDir(w.root.FS(), ".")
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), stagePrefix) {
			err = errors.Join(err, w.root.RemoveAll(e.Name()))
		}
	}
	return err
}

// seed writes Parley's first files, and notes which files others than the owner wrote of.
func (w *work) seed() (err error) {
	files, err := workspace.Open(w.target.Workspace)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	if _, err := files.Seed(); err != nil {
		return err
	}
	for i, f := range w.plan.files { // some are written only now, or were meanwhile
		state, first := lookAt(w.root, f.Name, f.Data)
		if state == other {
			return fmt.Errorf("%s has changed meanwhile: try again", f.Name)
		}
		w.plan.files[i].replaces = first
		if !f.Untrusted {
			continue
		}
		at, err := files.Named(f.Name)
		if err != nil {
			return err
		}
		if err := files.SetOrigin(at, ""); err != nil {
			return err
		}
	}
	return nil
}

// write writes a new file and waits for the disk.
func (w *work) write(name string, data []byte) error {
	f, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// moveFiles puts the files into their places.
func (w *work) moveFiles() error {
	folders := map[string]bool{".": true}
	for i, f := range w.plan.files {
		if err := w.makeFolder(path.Dir(f.Name)); err != nil {
			return err
		}
		folders[path.Dir(f.Name)] = true
		if err := w.moveFile(i, f); err != nil {
			return err
		}
		w.step()
	}
	for folder := range folders {
		d, err := w.root.Open(folder)
		if err != nil {
			return err
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			return err
		}
	}
	return nil
}

// moveFile puts one file into its place, which is free, or has a first file that nobody edited.
func (w *work) moveFile(i int, f placed) error {
	if f.replaces != nil {
		if err := w.root.Rename(w.staged(i), f.Name); err != nil {
			return err
		}
		w.undo = append(w.undo, func() error {
			return errors.Join(w.root.Remove(f.Name), w.write(f.Name, f.replaces))
		})
		return nil
	}
	err := w.root.Link(w.staged(i), f.Name) // fails where Rename would overwrite
	if errors.Is(err, fs.ErrExist) {
		if state, _ := lookAt(w.root, f.Name, f.Data); state == same {
			return nil
		}
	}
	if err != nil {
		return err
	}
	w.undo = append(w.undo, func() error { return w.root.Remove(f.Name) })
	return nil
}

// makeFolder makes a folder with those above it.
func (w *work) makeFolder(name string) error {
	if name == "." {
		return nil
	}
	if err := w.makeFolder(path.Dir(name)); err != nil {
		return err
	}
	err := w.root.Mkdir(name, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	w.undo = append(w.undo, func() error { return w.root.Remove(name) })
	return nil
}

func (w *work) addJobs(ctx context.Context, s *scheduler.Scheduler) error {
	for _, j := range w.plan.jobs {
		_, err := s.Job(ctx, j.ID)
		isNew := err != nil
		if _, err := s.Add(ctx, j.Job); err != nil {
			return fmt.Errorf("%s: %w", line(j.Name), err)
		}
		if isNew {
			w.undo = append(w.undo, func() error { return s.Remove(context.WithoutCancel(ctx), j.ID) })
		}
		w.step()
	}
	return nil
}

func (w *work) writeConfig() error {
	name := w.plan.configName
	if w.plan.config == nil {
		return nil
	}
	there, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		there = nil
	case err != nil:
		return err
	case !bytes.Equal(there, w.target.NewConfig):
		return fmt.Errorf("%s has changed meanwhile: try again", name)
	}
	if err := replaceFile(name, w.plan.config); err != nil {
		return err
	}
	w.undo = append(w.undo, func() error {
		if there == nil {
			return os.Remove(name)
		}
		return replaceFile(name, there)
	})
	return nil
}

func (w *work) writeReceipt() error {
	all, err := readReceipts(w.target.DataDir)
	if err != nil {
		return err
	}
	r := all[w.plan.System]
	if r.Files == nil {
		r.Files = map[string]string{}
	}
	if r.Jobs == nil {
		r.Jobs = map[string]bool{}
	}
	for _, f := range w.plan.files {
		r.Files[f.as] = digest(f.Data)
	}
	for _, j := range w.plan.jobs {
		r.Jobs[j.ID] = true
	}
	if w.plan.config != nil {
		r.Config = w.plan.configSum
	}
	all[w.plan.System] = r
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(w.target.DataDir, receiptsName), append(text, '\n'))
}

// replaceFile writes a file that only its owner can read, whole or not at all.
func replaceFile(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// end removes what was prepared and, after an error, takes back what was done.
func (w *work) end(failed error) (err error) {
	if failed != nil {
		for _, undo := range slices.Backward(w.undo) {
			err = errors.Join(err, undo())
		}
		if err != nil {
			err = fmt.Errorf("take back what was done: %w", err)
		}
	}
	if w.root == nil {
		return err
	}
	if w.stage != "" {
		err = errors.Join(err, w.root.RemoveAll(w.stage))
	}
	return cmp.Or(err, w.root.Close())
}
