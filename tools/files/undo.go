package files

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"parley/chat"
	"parley/tools"
	"parley/workspace"
)

// Before a file is changed, what it holds is kept, and beside it a note of the
// change: two files a change, numbered, in the session's folder. Whatever crash
// comes between, what a file holds says whether its change was made, and
// whether it was undone.
const (
	undoDir   = ".parley/undo"
	undoKept  = 20      // changes of a session, but for its last turn (D-066)
	undoBytes = 1 << 40 // of a file
)

// A change is one that a tool makes.
type change struct {
	Turn   string   `json:"turn"`
	Path   string   `json:"path"`             // of the file, as Workspace.Path has it
	Before string   `json:"before,omitempty"` // what sum says of it before the change
	After  string   `json:"after,omitempty"`  // and behind
	Made   []string `json:"made,omitempty"`   // folders it is in, the outermost first

	place string // the kept file's path, and the note's without ".json"
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

// What sum says of what is no file.
const (
	folder   = "folder"
	elsewhat = "something else"
)

func digest(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// sum returns the hash of the file called name, or "" if there is none.
func sum(w *workspace.Workspace, name string) (string, error) {
	info, err := w.Stat(name)
	real, lost := w.Path(at(name))
	switch {
	case lost == nil && real == name && errors.Is(err, fs.ErrNotExist):
		return "", nil
	case lost != nil || real != name || err != nil || !info.IsDir() && !info.Mode().IsRegular():
		return elsewhat, nil
	case info.IsDir():
		return folder, nil
	}
	f, err := w.Open(at(name))
	if errors.Is(err, workspace.ErrTooBig) {
		f, err = w.Root().Open(name)
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
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

// changes returns what can be undone in a session, the latest last.
func changes(w *workspace.Workspace, s chat.SessionID) (cs []change, err error) {
	notes, err := fs.Glob(w.Root().FS(), tools.Folder(undoDir, s)+"/[0-9]*.json")
	for _, note := range notes {
		ch := change{place: strings.TrimSuffix(note, ".json")}
		data, err := w.ReadFile(note)
		if err == nil {
			err = json.Unmarshal(data, &ch)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", note, err)
		}
		cs = append(cs, ch)
	}
	return cs, err
}

// record makes a change of c's session that can be undone, of a helper's in the
// session that it works for: do makes it. Be alone.
func record(c tools.Call, ch change, do func() error) error {
	if c.Root != "" {
		c.Session, c.Turn = c.Root, c.RootTurn
	}
	cs, err := changes(c.Workspace, c.Session)
	if err == nil {
		ch.Before, err = sum(c.Workspace, ch.Path)
	}
	switch {
	case err != nil:
		return err
	case ch.Before == folder, ch.Before == elsewhat:
		return workspace.ErrNotFile
	case ch.Before == ch.After: // do fails, or changes nothing
		return do()
	}
	ch.Turn = c.Turn
	last := 0
	if len(cs) > 0 {
		last, _ = strconv.Atoi(path.Base(cs[len(cs)-1].place)) // it is a number
	}
	ch.place = fmt.Sprintf("%s/%08d", tools.Folder(undoDir, c.Session), last+1)
	if err := ch.keep(c.Workspace); err != nil {
		return fmt.Errorf("keep what is there: %w", err)
	}
	for ; len(cs) >= undoKept && cs[0].Turn != c.Turn; cs = cs[1:] {
		_ = cs[0].forget(c.Workspace) // the next change tries again
	}
	tools.Prune(c.Workspace.Root(), undoDir)
	if err = do(); err != nil {
		if now, _ := sum(c.Workspace, ch.Path); now == ch.Before { // nothing to undo
			err = errors.Join(err, ch.forget(c.Workspace))
		}
	}
	return err
}

// keep keeps what the file holds, and the note. Files are replaced by others
// when they are written, so another name for it will do.
func (ch change) keep(w *workspace.Workspace) error {
	note, err := json.Marshal(ch)
	if err == nil {
		err = w.Root().MkdirAll(path.Dir(ch.place), 0o700)
	}
	if err == nil && ch.Before != "" {
		_ = w.Root().Remove(ch.place) // of a change that a crash kept from being noted
		if err = w.Root().Link(ch.Path, ch.place); err != nil {
			err = clone(w, ch.Path, ch.place)
		}
	}
	if err == nil {
		err = w.WriteFile(ch.place+".json", note)
	}
	return err
}

// forget removes what keep made.
func (ch change) forget(w *workspace.Workspace) error {
	err := w.Root().Remove(ch.place + ".json")
	_ = w.Root().Remove(ch.place) // what stays is pruned with the session
	return err
}

// clone makes a new file to that is as from.
func clone(w *workspace.Workspace, from, to string) error {
	f, err := w.Root().Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		_, err = w.Save(at(to), f, undoBytes)
	}
	if err == nil {
		err = w.Root().Chmod(to, info.Mode().Perm())
	}
	return err
}

// Undo takes back what the last turn of session s that changed files changed,
// the latest change first, and says of each file or folder what came of it:
// "a.md restored", "b.txt removed", "c.md was changed since; left alone".
// Nothing is said if there is nothing to undo. After an error or a crash it
// can be called again, and goes on.
func Undo(w *workspace.Workspace, s chat.SessionID) (changed []string, err error) {
	err = alone(w, func() error {
		cs, err := changes(w, s)
		type place struct {
			i     int    // in changed
			after string // what the turn left there
		}
		came := map[string]place{} // of paths
		for i := len(cs) - 1; i >= 0 && err == nil; i-- {
			ch, what := cs[i], ""
			if len(changed) > 0 && ch.Turn != cs[i+1].Turn {
				break
			}
			if what, err = ch.undo(w); err == nil {
				err = ch.forget(w)
			}
			if err != nil || what == "" {
				continue
			}
			p, ok := came[ch.Path]
			if !ok {
				p = place{len(changed), ch.After}
				came[ch.Path], changed = p, append(changed, "")
			}
			if ch.Before == p.after && (what == removed || what == restored) {
				what = "is as it was before the turn"
			}
			changed[p.i] = ch.name() + " " + what
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("undo: %w", err)
	}
	return changed, err
}

// undo takes one change back and says what came of it; "" is nothing.
func (ch change) undo(w *workspace.Workspace) (what string, err error) {
	what, err = ch.restore(w)
	for _, dir := range slices.Backward(ch.Made) {
		if info, gone := w.Root().Lstat(dir); err == nil && gone == nil && info.IsDir() {
			_ = w.Root().Remove(dir) // only if it is empty
		}
	}
	return what, err
}

// name is what people are told of.
func (ch change) name() string {
	if ch.After == folder {
		return legible(ch.Path + "/")
	}
	return legible(ch.Path)
}

// What came of a change that was undone.
const (
	removed  = "removed"
	restored = "restored"
)

func (ch change) restore(w *workspace.Workspace) (what string, err error) {
	now, err := sum(w, ch.Path)
	switch {
	case err != nil:
		return "", err
	case now == ch.Before: // it was not made, or was undone before
		return "", nil
	case now != ch.After:
		return "was changed since; left alone", nil
	case ch.Before == "":
		if err = w.Root().Remove(ch.Path); errors.Is(err, syscall.ENOTEMPTY) {
			return "is not empty; left alone", nil
		}
		return removed, err
	}
	if kept, err := sum(w, ch.place); err != nil || kept != ch.Before {
		return "cannot be restored: what it held is lost", err
	}
	if err := w.Root().MkdirAll(path.Dir(ch.Path), 0o755); err != nil {
		return "", err
	}
	return restored, w.Root().Rename(ch.place, ch.Path)
}
