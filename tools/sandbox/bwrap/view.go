package bwrap

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"parley/tools/sandbox"
	"parley/workspace"
)

// A view is what a program sees of the machine's folders.
type view struct {
	mounts []mount           // the outer folders first, each path once
	links  map[string]string // from a path to what it leads to
}

// A mount is one path of the machine, without symbolic links.
type mount struct {
	path   string
	access sandbox.Access
	folder bool
}

// newView returns the view of a program that has been granted folders.
func newView(folders []sandbox.Folder) (*view, error) {
	real, links, err := sandbox.RealFolders(folders)
	if err != nil {
		return nil, err
	}
	v := &view{links: links}
	for _, f := range real {
		info, err := os.Lstat(f.Path)
		if err != nil {
			return nil, fmt.Errorf("look at a folder of the sandbox: %w", err)
		}
		v.mounts = append(v.mounts, mount{f.Path, f.Access, info.IsDir()})
	}
	return v, nil
}

// above returns the mount that path is on, if it is not one itself; nil if it is on none.
func (v *view) above(path string) *mount {
	var nearest *mount
	for i, m := range v.mounts {
		if m.path != path && workspace.Within(path, m.path) {
			nearest = &v.mounts[i]
		}
	}
	return nearest
}

// changeable reports whether a program can change what is at path.
func (v *view) changeable(path string) bool {
	over := v.above(path)
	return over != nil && over.access == sandbox.ReadWrite
}

// options returns the options of bwrap that make the view.
func (v *view) options() []string {
	var all, last []string
	fixed := map[string]bool{}
	for _, m := range v.mounts {
		for _, folder := range v.between(m.path) {
			if !fixed[folder] { // or else what is mounted in it already would be covered
				all = append(all, "--bind", folder, folder)
			}
			fixed[folder] = true
		}
		switch {
		case m.access == sandbox.ReadWrite:
			all = append(all, "--bind", m.path, m.path)
		case m.access == sandbox.ReadOnly:
			all = append(all, "--ro-bind", m.path, m.path)
		case m.folder:
			all = append(all, "--tmpfs", m.path)
			last = append(last, "--remount-ro", m.path) // what is shown in it needs a place first
		default:
			all = append(all, "--ro-bind", os.DevNull, m.path)
		}
	}
	for path, target := range v.links {
		if v.above(path) != nil {
			continue // it is seen where it is
		}
		all = append(all, "--symlink", target, path)
	}
	return append(all, last...)
}

// between returns the folders between path and the mount it is on, if a program could rename them and
// make others in their place. As mounts they cannot be renamed.
func (v *view) between(path string) []string {
	if !v.changeable(path) {
		return nil
	}
	var all []string
	over := v.above(path)
	for folder := filepath.Dir(path); folder != over.path; folder = filepath.Dir(folder) {
		all = append(all, folder)
	}
	slices.Reverse(all)
	return all
}
