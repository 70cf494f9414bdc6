package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"parley/chat"
	"parley/workspace"
)

// WorkDir is the folder of a workspace that programs may change, where they start, and which is
// their home.
const WorkDir = "work"

// WorkspaceFolders returns what the programs of a turn see of its workspace w, and the folder work,
// which is made if it is missing. They may change that one and read the rest, which holds standing
// instructions and memory (R-S12). Hidden are Parley's own files and what is known about other
// people or was sent by them (R-S14). What is hidden is made if it is missing, because a sandbox hides
// nothing that comes into being while a program runs.
func WorkspaceFolders(w *workspace.Workspace) (folders []Folder, work string, err error) {
	if err := makeWorkDir(w); err != nil {
		return nil, "", fmt.Errorf("make the folder that programs work in: %w", err)
	}
	home, err := filepath.EvalSymlinks(w.Dir())
	if err != nil {
		return nil, "", fmt.Errorf("find the workspace: %w", err)
	}
	work = filepath.Join(home, WorkDir)
	folders = []Folder{{home, ReadOnly}, {work, ReadWrite}}
	view := w.View()
	whole := strings.TrimSuffix(home, "/"+view.Home())
	add := func(name string, access Access) {
		folders = append(folders, Folder{filepath.Join(whole, name), access})
	}
	if view.Home() == "" {
		for _, name := range []string{".parley", chat.PeopleDir, "memory/people", chat.Inbox + "/people"} {
			if err := makeHidden(w, name); err != nil {
				return nil, "", fmt.Errorf("make %s, to hide it from programs: %w", name, err)
			}
			add(name, Hidden)
		}
		return folders, work, nil
	}
	for _, s := range view.Shares() {
		switch {
		case workspace.Within(s.Name, WorkDir):
			// It stays hidden: the owner's programs can put a link in its place at any moment (R-S18).
		case s.Hidden || s.Name == ".parley":
			add(s.Name, Hidden)
		default:
			add(s.Name, ReadOnly)
		}
	}
	return folders, work, nil
}

// A Visit is what a program sees of a workspace while it runs.
type Visit struct {
	Folders []Folder
	Work    string   // the folder work, in which it starts
	Sources []string // where untrusted content comes from that it may read; none if it reads none
	End     func()   // is called once the program has ended
}

// makeWorkDir makes the folder work, unless it is there. A symbolic link in its place is an error,
// because it could lead anywhere.
func makeWorkDir(w *workspace.Workspace) error {
	at, err := w.Resolve(WorkDir)
	if err != nil {
		return err
	}
	if w.View().Shown(at) != WorkDir {
		return fmt.Errorf("%s is a link to %s", WorkDir, at)
	}
	return w.MkdirAll(at)
}

// makeHidden makes a folder that programs are not to see, unless it is there. One that lies elsewhere, by a
// symbolic link, is not seen anyway.
func makeHidden(w *workspace.Workspace, name string) error {
	at, err := w.Resolve(name)
	if outside := new(workspace.OutsideError); errors.As(err, &outside) {
		return nil
	}
	if err != nil {
		return err
	}
	return w.MkdirAll(at)
}
