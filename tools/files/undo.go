package files

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"parley/chat"
	"parley/tools"
	"parley/workspace"
)

// Before a file is changed, what it holds is kept, and noted in a journal: one
// per session, which is written as a whole. Whatever crash comes between, what
// a file holds says whether its change was made, and whether it was undone.
const (
	undoDir   = ".parley/undo"
	undoKept  = 20      // changes of a session, but for its last turn (D-066)
	undoBytes = 1 << 40 // of a file
)

// A change is one that a tool makes.
type change struct {
	Turn   string   `json:"turn"`
	Path   string   `json:"path,omitempty"`   // of the file, as Workspace.Path has it; "": there is none, only Made
	Before string   `json:"before,omitempty"` // what sum says of it before the change
	After  string   `json:"after,omitempty"`  // and behind
	Old    string   `json:"old,omitempty"`    // the file that holds what was there
	Made   []string `json:"made,omitempty"`   // folders, the outermost first
}

// alone calls do while nobody else changes files of w or undoes a change.
func alone(w *workspace.Workspace, do func() error) error {
	if err := w.Root().MkdirAll(undoDir, 0o700); err != nil {
		return err
	}
	d, err := w.Root().Open(undoDir)
	if err != nil {
		return err
	}
	defer d.Close()
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return err
	}
	return do()
}

// elsewhat is what sum says of what is no file.
const elsewhat = "no file"

func digest(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// sum returns the hash of the file called name, or "" if there is none.
func sum(w *workspace.Workspace, name string) (string, error) {
	if real, err := w.Path(at(name)); err != nil || real != name {
		return elsewhat, nil
	}
	f, err := w.Open(at(name))
	if errors.Is(err, workspace.ErrTooBig) {
		f, err = w.Root().Open(name)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case errors.Is(err, workspace.ErrNotFile), errors.Is(err, syscall.ENOTDIR):
		return elsewhat, nil
	case err != nil:
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// at returns the path of the file called name.
func at(name string) string {
	if strings.HasPrefix(name, "~") {
		return "./" + name
	}
	return name
}

// missing returns the folders that are not there of dir and those it is in,
// the outermost first.
func missing(w *workspace.Workspace, dir string) (dirs []string) {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, err := w.Root().Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}

// A journal is what can be undone in a session, the latest last.
type journal struct {
	w       *workspace.Workspace
	dir     string
	changes []change
}

func openJournal(w *workspace.Workspace, s chat.SessionID) (*journal, error) {
	j := &journal{w: w, dir: tools.Folder(undoDir, s)}
	data, err := w.ReadFile(j.dir + "/journal.json")
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &j.changes)
	}
	return j, err
}

// set makes cs the changes. What they do not need any more is removed.
func (j *journal) set(cs []change) error {
	data, err := json.Marshal(cs)
	if err == nil {
		err = j.w.WriteFile(j.dir+"/journal.json", data)
	}
	if err != nil {
		return err
	}
	for _, ch := range j.changes {
		if ch.Old != "" && !slices.ContainsFunc(cs, func(c change) bool { return c.Old == ch.Old }) {
			_ = j.w.Root().Remove(ch.Old) // what stays is pruned with the session
		}
	}
	j.changes = cs
	return nil
}

// record makes a change of c's session that can be undone: do makes it. Be alone.
func record(c tools.Call, ch change, do func() error) error {
	j, err := openJournal(c.Workspace, c.Session)
	if err == nil && ch.Path != "" {
		ch.Before, err = sum(j.w, ch.Path)
	}
	switch {
	case err != nil:
		return err
	case ch.Before == elsewhat:
		return workspace.ErrNotFile
	case ch.Before == ch.After && len(ch.Made) == 0: // do fails, or changes nothing
		return do()
	}
	ch.Turn = c.Turn
	if ch.Before != "" {
		ch.Old, err = j.keep(ch.Path)
	}
	cs := append(slices.Clone(j.changes), ch)
	for len(cs) > undoKept && cs[0].Turn != c.Turn {
		cs = cs[1:]
	}
	if err == nil {
		err = j.set(cs)
	}
	if err != nil {
		return fmt.Errorf("keep what is there: %w", err)
	}
	tools.Prune(j.w.Root(), undoDir)
	if err = do(); err != nil {
		if now, _ := sum(j.w, ch.Path); now == ch.Before { // nothing to undo
			err = errors.Join(err, j.set(cs[:len(cs)-1]))
		}
	}
	return err
}

// keep keeps what the file called name holds, and returns where. Files are
// replaced by others when they are written, so another name for it will do.
func (j *journal) keep(name string) (old string, err error) {
	old = path.Join(j.dir, rand.Text())
	if err := j.w.Root().MkdirAll(j.dir, 0o700); err != nil {
		return "", err
	}
	if j.w.Root().Link(name, old) == nil {
		return old, nil
	}
	return old, j.copy(name, old)
}

// copy makes to hold what from holds. A new file gets its mode, too.
func (j *journal) copy(from, to string) error {
	f, err := j.w.Root().Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	_, there := j.w.Root().Lstat(to)
	if _, err := j.w.Save(at(to), f, undoBytes); err != nil || there == nil {
		return err
	}
	return j.w.Root().Chmod(to, info.Mode().Perm())
}

// Undo takes back what the last turn of session s that changed files changed,
// the latest change first, and says of each file or folder what came of it:
// "a.md restored", "b.txt removed", "c.md was changed since; left alone".
// Nothing is said if there is nothing to undo. After an error or a crash it
// can be called again, and goes on.
func Undo(w *workspace.Workspace, s chat.SessionID) (changed []string, err error) {
	err = alone(w, func() error {
		j, err := openJournal(w, s)
		for err == nil && len(changed) == 0 && len(j.changes) > 0 {
			changed, err = j.undoTurn(j.changes[len(j.changes)-1].Turn)
		}
		return err
	})
	if err != nil {
		return changed, fmt.Errorf("undo: %w", err)
	}
	return changed, nil
}

func (j *journal) undoTurn(turn string) (changed []string, err error) {
	came := map[string]int{} // where in changed a path is
	for i := len(j.changes) - 1; i >= 0 && err == nil; i-- {
		ch := j.changes[i]
		if ch.Turn != turn {
			continue
		}
		path, what := ch.Path, ""
		if path == "" {
			path = ch.Made[len(ch.Made)-1] + "/"
		}
		if what, err = j.undo(ch); err == nil {
			err = j.set(slices.Delete(slices.Clone(j.changes), i, i+1))
		}
		if err != nil || what == "" {
			continue
		}
		if _, ok := came[path]; !ok {
			came[path] = len(changed)
			changed = append(changed, "")
		}
		changed[came[path]] = legible(path) + " " + what
	}
	return changed, err
}

// undo takes one change back and says what came of it; "" is nothing.
func (j *journal) undo(ch change) (what string, err error) {
	if ch.Path != "" {
		what, err = j.undoFile(ch)
	}
	for _, dir := range slices.Backward(ch.Made) {
		info, statErr := j.w.Root().Lstat(dir)
		if err != nil || statErr != nil || !info.IsDir() {
			continue
		}
		switch gone := j.w.Root().Remove(dir) == nil; { // only if it is empty
		case ch.Path != "" || what != "":
		case gone:
			what = "removed"
		default:
			what = "is not empty; left alone"
		}
	}
	return what, err
}

func (j *journal) undoFile(ch change) (what string, err error) {
	now, err := sum(j.w, ch.Path)
	switch {
	case err != nil:
		return "", err
	case now == ch.Before: // it was not made, or was undone before
		return "", nil
	case now != ch.After:
		return "was changed since; left alone", nil
	case ch.Before == "":
		return "removed", j.w.Root().Remove(ch.Path)
	}
	if kept, err := sum(j.w, ch.Old); err != nil || kept != ch.Before {
		return "cannot be restored: what it held is lost", err
	}
	return "restored", j.copy(ch.Old, ch.Path)
}
