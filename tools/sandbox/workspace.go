package sandbox

import (
	"fmt"
	"path/filepath"

	"parley/chat"
	"parley/workspace"
)

// WorkDir is the folder of a workspace that programs may change, where they start, and which is
// their home.
const WorkDir = "work"

// peopleDir is the folder of a workspace with the folders of people who are not owners.
const peopleDir = "people"

// WorkspaceFolders returns what programs that run for who see of a workspace, and its folder work,
// which is made if it is missing. They may change that one and read the rest, which holds standing
// instructions and memory (R-S12). Hidden are Parley's own files and what is known about other
// people or was sent by them (R-S14).
func WorkspaceFolders(w *workspace.Workspace, who chat.Person) (folders []Folder, work string, err error) {
	dir, err := filepath.EvalSymlinks(w.Dir())
	if err != nil {
		return nil, "", fmt.Errorf("find the workspace: %w", err)
	}
	work = filepath.Join(dir, WorkDir)
	if err := makeWorkDir(w); err != nil {
		return nil, "", err
	}
	folders = []Folder{{dir, ReadOnly}, {work, ReadWrite}}
	add := func(name string, access Access) {
		folders = append(folders, Folder{filepath.Join(dir, name), access})
	}
	add(".parley", Hidden)
	add(peopleDir, Hidden)
	add(filepath.Join("memory", "people"), Hidden)
	if who == chat.TheOwner { // whose inbox has those of the others in it
		add(filepath.Join(chat.Inbox, "people"), Hidden)
		return folders, work, nil
	}
	add(chat.Inbox, Hidden)
	add(who.InboxFolder(), ReadOnly)
	for _, name := range []string{"memory", "MEMORY.md", "USER.md"} {
		add(name, Hidden)
	}
	add(who.Folder(), ReadOnly)
	return folders, work, nil
}

// makeWorkDir makes the folder work, unless it is there. A symbolic link in its place is an error,
// because it could lead anywhere.
func makeWorkDir(w *workspace.Workspace) error {
	at, err := w.Named(WorkDir)
	if err != nil {
		return fmt.Errorf("find the folder that programs work in: %w", err)
	}
	if err := w.MkdirAll(at); err != nil {
		return fmt.Errorf("make the folder that programs work in: %w", err)
	}
	return nil
}
