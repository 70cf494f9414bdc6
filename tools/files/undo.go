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
	"parley/texts"
	"parley/tools"
	"parley/workspace"
)

// Before a file is changed, what it holds is kept, and beside it a note of the
// change: two files a change, numbered, in the session's folder. Whatever crash
// comes between, what a file holds reports whether its change was made, and
// whether it was undone.
const (
	undoDir  = ".parley/undo"
	undoKept = 20 // changes of a session, but for its last turn (D-066)

	undoBytes = 200 << 20 // of a session's kept files, whatever turn they are of: more than two of the largest
)

// A change is one that a tool makes.
type change struct {
	Turn    string   `json:"turn"`
	Path    string   `json:"path"`              // canonical name of the file
	Before  string   `json:"before,omitempty"`  // what sum says of it before the change
	After   string   `json:"after,omitempty"`   // and behind
	Made    []string `json:"made,omitempty"`    // folders it is in, the outermost first
	Author  *string  `json:"author,omitempty"`  // who wrote what the file held before, if it has an origin
	Charged string   `json:"charged,omitempty"` // whom it counted for

	place string // the kept file's path, and the note's without ".json"
}

// alone calls do while nobody else changes files of w or undoes a change.
func alone(w *workspace.Workspace, do func() error) error {
	dir, err := w.Named(undoDir)
	if err == nil {
		err = w.MkdirAll(dir)
	}
	if err != nil {
		return err
	}
	return w.Lock(dir, do)
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

// sum returns the hash of a file, or "" if there is none.
func sum(w *workspace.Workspace, at workspace.Path) (string, error) {
	info, err := w.Stat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil || !info.IsDir() && !info.Mode().IsRegular():
		return elsewhat, nil
	case info.IsDir():
		return folder, nil
	}
	f, err := w.OpenBig(at)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

// missing returns the names of the folders that are not there of dir and those
// it is in, the outermost first.
func missing(w *workspace.Workspace, dir workspace.Path) (dirs []string) {
	for ; dir.String() != "."; dir = dir.Dir() {
		if _, err := w.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		dirs = append(dirs, dir.String())
	}
	slices.Reverse(dirs)
	return dirs
}

// changes returns what can be undone in a session, the latest last.
func changes(w *workspace.Workspace, s chat.SessionID) (cs []change, err error) {
	dir := tools.Folder(undoDir, s)
	entries, err := w.Names().ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		place, isNote := strings.CutSuffix(e.Name(), ".json")
		if !isNote || place == "" || place[0] < '0' || place[0] > '9' {
			continue
		}
		note := dir + "/" + e.Name()
		ch := change{place: dir + "/" + place}
		data, err := w.Names().ReadFile(note)
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
	var at workspace.Path
	if err == nil {
		at, err = c.Workspace.Named(ch.Path)
	}
	if err == nil {
		ch.Before, err = sum(c.Workspace, at)
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
	if author, found := c.Workspace.Origin(at); found {
		ch.Author = &author
	}
	if ch.Charged, err = c.Workspace.ChargedTo(at); err != nil {
		return err
	}
	last := 0
	if len(cs) > 0 {
		last, _ = strconv.Atoi(path.Base(cs[len(cs)-1].place)) // it is a number
	}
	ch.place = fmt.Sprintf("%s/%08d", tools.Folder(undoDir, c.Session), last+1)
	if err := ch.keep(c.Workspace, at); err != nil {
		return fmt.Errorf("keep what is there: %w", err)
	}
	for ; len(cs) >= undoKept && cs[0].Turn != c.Turn; cs = cs[1:] {
		_ = cs[0].forget(c.Workspace) // the next change tries again
	}
	trim(c.Workspace, append(cs, ch))
	tools.Prune(c.Workspace, undoDir)
	if err = do(); err != nil {
		if now, _ := sum(c.Workspace, at); now == ch.Before { // nothing to undo
			err = errors.Join(err, ch.forget(c.Workspace))
		}
	}
	return err
}

// trim forgets the oldest changes of a session until what is kept of the others
// has no more than undoBytes: a large file that is changed again and again must not
// fill the disk.
func trim(w *workspace.Workspace, cs []change) {
	total := int64(0)
	for i, ch := range slices.Backward(cs) {
		if kept, err := w.Named(ch.place); err == nil {
			if info, err := w.Stat(kept); err == nil {
				total += info.Size()
			}
		}
		if total > undoBytes && i < len(cs)-1 {
			_ = ch.forget(w) // the next change tries again
		}
	}
}

// keep keeps what the file holds, and the note.
func (ch change) keep(w *workspace.Workspace, at workspace.Path) error {
	note, err := json.Marshal(ch)
	if err != nil {
		return err
	}
	kept, err := w.Named(ch.place)
	if err == nil {
		err = w.MkdirAll(kept.Dir())
	}
	if err == nil && ch.Before != "" {
		_ = w.Remove(kept) // of a change that a crash kept from being noted
		err = w.Copy(at, kept)
	}
	if err == nil {
		err = w.Names().WriteFile(ch.place+".json", note)
	}
	return err
}

// forget removes what keep made.
func (ch change) forget(w *workspace.Workspace) error {
	note, err := w.Named(ch.place + ".json")
	if err == nil {
		err = w.Remove(note)
	}
	if kept, lost := w.Named(ch.place); lost == nil {
		_ = w.Remove(kept) // what stays is pruned with the session
	}
	return err
}

// Undo takes back what the last turn of session s that changed files changed,
// the latest change first, and says of each file or folder what came of it:
// "a.md restored", "b.txt removed", "c.md was changed since; left alone", as say has it.
// Nothing is said if there is nothing to undo. After an error or a crash it
// can be called again, and goes on.
func Undo(w *workspace.Workspace, s chat.SessionID, say texts.Undo) (changed []string, err error) {
	err = alone(w, func() error {
		cs, err := changes(w, s)
		type place struct {
			i     int    // in changed
			after string // what the turn left there
		}
		came := map[string]place{} // of paths
		for i := len(cs) - 1; i >= 0 && err == nil; i-- {
			ch, what := cs[i], nothing
			if len(changed) > 0 && ch.Turn != cs[i+1].Turn {
				break
			}
			if what, err = ch.undo(w); err == nil {
				err = ch.forget(w)
			}
			if err != nil || what == nothing {
				continue
			}
			p, ok := came[ch.Path]
			if !ok {
				p = place{len(changed), ch.After}
				came[ch.Path], changed = p, append(changed, "")
			}
			if ch.Before == p.after && (what == removed || what == restored) {
				what = asBefore
			}
			changed[p.i] = what.text(say).With(ch.name())
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("undo: %w", err)
	}
	return changed, err
}

// undo takes one change back and returns what came of it.
func (ch change) undo(w *workspace.Workspace) (what undone, err error) {
	what, err = ch.restore(w)
	for _, dir := range slices.Backward(ch.Made) {
		if made, lost := w.Named(dir); err == nil && lost == nil {
			if info, gone := w.Stat(made); gone == nil && info.IsDir() {
				_ = w.Remove(made) // only if it is empty
			}
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

// undone is what came of a change that was undone.
type undone int

const (
	nothing undone = iota // it was not made, or was undone before
	removed
	restored
	asBefore
	changedSince
	notEmpty
	lost
)

// text returns what people are told of u.
func (u undone) text(say texts.Undo) texts.Format {
	return map[undone]texts.Format{
		removed: say.Removed, restored: say.Restored, asBefore: say.AsBefore,
		changedSince: say.Changed, notEmpty: say.NotEmpty, lost: say.Lost,
	}[u]
}

func (ch change) restore(w *workspace.Workspace) (what undone, err error) {
	at, err := w.Named(ch.Path)
	if err != nil { // a link has taken its place
		return changedSince, nil
	}
	now, err := sum(w, at)
	switch {
	case err != nil:
		return nothing, err
	case now == ch.Before:
		return nothing, nil
	case now != ch.After:
		return changedSince, nil
	case ch.Before == "":
		if err = w.Remove(at); errors.Is(err, syscall.ENOTEMPTY) {
			return notEmpty, nil
		}
		return removed, err
	}
	kept, err := w.Named(ch.place)
	if err != nil {
		return nothing, err
	}
	if hash, err := sum(w, kept); err != nil || hash != ch.Before {
		return lost, err
	}
	if err := w.MkdirAll(at.Dir()); err != nil {
		return nothing, err
	}
	return restored, ch.putBack(w, kept, at)
}

// putBack gives the file what it held before, the origin of that, and whom it
// counted for.
func (ch change) putBack(w *workspace.Workspace, kept, at workspace.Path) error {
	if err := w.Charge(at, ch.Charged); err != nil {
		return err
	}
	if ch.Author != nil {
		if err := w.SetOrigin(at, *ch.Author); err != nil {
			return err
		}
		return w.Rename(kept, at)
	}
	if err := w.Rename(kept, at); err != nil {
		return err
	}
	return w.ClearOrigin(at)
}
