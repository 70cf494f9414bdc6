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
	"parley/store"
	"parley/texts"
	"parley/tools"
	"parley/workspace"
)

// Before a file is changed, its content is saved, with a note of the change: two
// numbered files per change, in the session's folder. After a crash at any moment, the
// content of a file tells whether its change was made, and whether it was undone.
const (
	undoDir   = ".parley/undo"
	undoKept  = 20        // changes per session, besides those of its last turn (D-066)
	undoBytes = 200 << 20 // bytes of saved files per session, more than two of the largest
)

// A change is the note of one change of a file.
type change struct {
	Turn    string   `json:"turn"`
	Path    string   `json:"path"`              // canonical name of the file
	Before  string   `json:"before,omitempty"`  // hash of the file before the change
	After   string   `json:"after,omitempty"`   // hash of the file after it
	Made    []string `json:"made,omitempty"`    // folders that the change created, the outermost first
	Author  *string  `json:"author,omitempty"`  // author of the old content, if the file has an origin
	Charged string   `json:"charged,omitempty"` // the person whose limit the old file counted towards

	place string // path of the saved file, and of the note without ".json"
}

// withUndoLock calls do while no other call changes files of w or undoes changes.
func withUndoLock(w *workspace.Workspace, do func() error) error {
	dir, err := w.Named(undoDir)
	if err != nil {
		return err
	}
	if err := w.MkdirAll(dir); err != nil {
		return err
	}
	return w.Lock(dir, do)
}

// What hashOf returns for anything but a file.
const (
	folder    = "folder"
	otherKind = "something else"
)

func digest(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// hashOf returns the hash of a file, or "" if there is no file.
func hashOf(w *workspace.Workspace, at workspace.Path) (string, error) {
	info, err := w.Stat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil || !info.IsDir() && !info.Mode().IsRegular():
		return otherKind, nil
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

// missingFolders returns the names of dir and its parents that do not exist, the
// outermost first.
func missingFolders(w *workspace.Workspace, dir workspace.Path) (dirs []string) {
	for ; dir.String() != "."; dir = dir.Dir() {
		if _, err := w.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		dirs = append(dirs, dir.String())
	}
	slices.Reverse(dirs)
	return dirs
}

// changes returns the changes that can be undone in a session, the latest last.
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
		ch, err := readChange(w, dir+"/"+place)
		if err != nil {
			return nil, fmt.Errorf("read %s/%s: %w", dir, e.Name(), err)
		}
		cs = append(cs, ch)
	}
	return cs, err
}

// readChange reads the note of the change whose file is saved at place.
func readChange(w *workspace.Workspace, place string) (change, error) {
	ch := change{place: place}
	data, err := w.Names().ReadFile(place + ".json")
	if err != nil {
		return ch, err
	}
	err = json.Unmarshal(data, &ch)
	return ch, err
}

// recordChange records a change in c's session so that it can be undone, and calls
// do to make it. A subagent's change is recorded in the session that it works for.
// The caller holds the undo lock.
func recordChange(c tools.Call, ch change, do func() error) error {
	if c.Root != "" {
		c.Session = c.Root
		c.Turn = c.RootTurn
	}
	cs, err := changes(c.Workspace, c.Session)
	if err != nil {
		return err
	}
	at, err := c.Workspace.Named(ch.Path)
	if err != nil {
		return err
	}
	ch.Before, err = hashOf(c.Workspace, at)
	switch {
	case err != nil:
		return err
	case ch.Before == folder, ch.Before == otherKind:
		return workspace.ErrNotFile
	case ch.Before == ch.After: // do fails or changes nothing
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
		last, _ = strconv.Atoi(path.Base(cs[len(cs)-1].place)) // which is a number
	}
	ch.place = fmt.Sprintf("%s/%08d", tools.Folder(undoDir, c.Session), last+1)
	if err := ch.save(c.Workspace, at); err != nil {
		return fmt.Errorf("save the file for /undo: %w", err)
	}
	for ; len(cs) >= undoKept && cs[0].Turn != c.Turn; cs = cs[1:] {
		_ = cs[0].discard(c.Workspace) // the next change tries again
	}
	trimKept(c.Workspace, append(cs, ch))
	tools.Prune(c.Workspace, undoDir)
	if err = do(); err != nil {
		if now, _ := hashOf(c.Workspace, at); now == ch.Before { // nothing to undo
			err = errors.Join(err, ch.discard(c.Workspace))
		}
	}
	return err
}

// TrimUndo removes what was saved for /undo of sessions that changed nothing since
// t.Before (P28).
func TrimUndo(w *workspace.Workspace, t store.Trimming) error {
	if _, err := w.Names().Stat(undoDir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return withUndoLock(w, func() error { return tools.TrimFolders(w, undoDir, t) })
}

// trimKept discards the oldest changes of a session until the saved files of the
// others have at most undoBytes: changing a large file again and again must not
// fill the disk.
func trimKept(w *workspace.Workspace, cs []change) {
	total := int64(0)
	for i, ch := range slices.Backward(cs) {
		total += savedBytes(w, ch.place)
		if total > undoBytes && i < len(cs)-1 {
			_ = ch.discard(w) // the next change tries again
		}
	}
}

// savedBytes returns the size of the file saved at place, 0 if there is none.
func savedBytes(w *workspace.Workspace, place string) int64 {
	kept, err := w.Named(place)
	if err != nil {
		return 0
	}
	info, err := w.Stat(kept)
	if err != nil {
		return 0
	}
	return info.Size()
}

// save saves the file's content and the note of the change.
func (ch change) save(w *workspace.Workspace, at workspace.Path) error {
	note, err := json.Marshal(ch)
	if err != nil {
		return err
	}
	kept, err := w.Named(ch.place)
	if err != nil {
		return err
	}
	if err := w.MkdirAll(kept.Dir()); err != nil {
		return err
	}
	if ch.Before != "" {
		_ = w.Remove(kept) // saved for a change whose note a crash has prevented
		if err := w.Copy(at, kept); err != nil {
			return err
		}
	}
	return w.Names().WriteFile(ch.place+".json", note)
}

// discard removes the files that save wrote.
func (ch change) discard(w *workspace.Workspace) error {
	err := remove(w, ch.place+".json")
	_ = remove(w, ch.place) // if it fails, the file is removed with the session's folder
	return err
}

// remove removes the file that the record name holds.
func remove(w *workspace.Workspace, name string) error {
	at, err := w.Named(name)
	if err != nil {
		return err
	}
	return w.Remove(at)
}

// Undo takes back the changes of the last turn of session s that changed files, the
// latest change first. It returns what became of each file or folder, in the wording
// of say: "a.md restored", "b.txt removed", "c.md was changed since; left alone", and
// nothing if there is nothing to undo. After an error or a crash it can be called
// again, and continues.
func Undo(w *workspace.Workspace, s chat.SessionID, say texts.Undo) (changed []string, err error) {
	err = withUndoLock(w, func() error {
		cs, err := changes(w, s)
		if err != nil {
			return err
		}
		type place struct {
			i     int    // index in changed
			after string // hash of what the turn left in the file
		}
		places := map[string]place{} // by path
		for i, ch := range slices.Backward(cs) {
			if len(changed) > 0 && ch.Turn != cs[i+1].Turn {
				break
			}
			what, err := ch.undo(w)
			if err != nil {
				return err
			}
			if err := ch.discard(w); err != nil {
				return err
			}
			if what == nothing {
				continue
			}
			p, ok := places[ch.Path]
			if !ok {
				p = place{len(changed), ch.After}
				places[ch.Path] = p
				changed = append(changed, "")
			}
			if ch.Before == p.after && (what == removed || what == restored) {
				what = asBefore
			}
			changed[p.i] = what.text(say).With(ch.name())
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("undo: %w", err)
	}
	return changed, err
}

// undo takes one change back, and returns what became of the file.
func (ch change) undo(w *workspace.Workspace) (what undone, err error) {
	what, err = ch.restore(w)
	if err != nil {
		return what, err
	}
	for _, dir := range slices.Backward(ch.Made) {
		removeEmptyFolder(w, dir)
	}
	return what, nil
}

// removeEmptyFolder removes the folder of that name if it is one and empty.
func removeEmptyFolder(w *workspace.Workspace, name string) {
	at, err := w.Named(name)
	if err != nil {
		return
	}
	info, err := w.Stat(at)
	if err != nil || !info.IsDir() {
		return
	}
	_ = w.Remove(at) // fails unless the folder is empty
}

// name returns the name of the file or folder for people.
func (ch change) name() string {
	if ch.After == folder {
		return legible(ch.Path + "/")
	}
	return legible(ch.Path)
}

// undone is the result of undoing a change.
type undone int

const (
	nothing undone = iota // the change was never made, or was undone before
	removed
	restored
	asBefore
	changedSince
	notEmpty
	lost
)

// text returns u in words for people.
func (u undone) text(say texts.Undo) texts.Format {
	return map[undone]texts.Format{
		removed: say.Removed, restored: say.Restored, asBefore: say.AsBefore,
		changedSince: say.Changed, notEmpty: say.NotEmpty, lost: say.Lost,
	}[u]
}

// restore restores the file as it was before the change, unless it was changed since.
func (ch change) restore(w *workspace.Workspace) (what undone, err error) {
	at, err := w.Named(ch.Path)
	if err != nil { // a link has replaced the file
		return changedSince, nil
	}
	now, err := hashOf(w, at)
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
	if hash, err := hashOf(w, kept); err != nil || hash != ch.Before {
		return lost, err
	}
	if err := w.MkdirAll(at.Dir()); err != nil {
		return nothing, err
	}
	return restored, ch.putBack(w, kept, at)
}

// putBack restores the file's old content and its origin, and the person whose limit it
// counted towards.
func (ch change) putBack(w *workspace.Workspace, kept, at workspace.Path) error {
	if err := w.Charge(at, ch.Charged); err != nil {
		return err
	}
	if ch.Author != nil {
		if err := w.SetOrigin(at, *ch.Author); err != nil {
			return err
		}
		return w.Copy(kept, at)
	}
	if err := w.Copy(kept, at); err != nil {
		return err
	}
	return w.ClearOrigin(at)
}
