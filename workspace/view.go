package workspace

import (
	"path/filepath"
	"strings"
)

// A Share is a file or folder that has the same name for everybody, although people
// have folders of their own.
type Share struct {
	Name     string // its canonical name
	Writable bool   // people may change it, and what is in it
	Hidden   bool   // its name is taken, but people do not see what is in it
}

// For returns the part of w that people see whose files are in the folder home:
// relative paths begin there, except for those to a Share. Resolve reaches nothing
// else; that it finds what is Hidden is for the caller to refuse. Paths, records and
// limits are those of w.
func (w *Workspace) For(home string, shares []Share) *Workspace {
	part := *w
	part.at.view = View{home: home, shares: shares}
	return &part
}

// View returns which part of the workspace w is.
func (w *Workspace) View() View { return w.at.view }

// A View is a part of a workspace. The zero value is all of it.
type View struct {
	home   string // "" is the whole workspace
	shares []Share
}

// Home returns the name of the folder that relative paths begin in, "" for the whole
// workspace.
func (v View) Home() string { return v.home }

// Shown returns what people call the file p.
func (v View) Shown(p Path) string {
	if v.home != "" && p.name == v.home {
		return "."
	}
	return strings.TrimPrefix(p.name, v.home+"/")
}

// Shares returns what people see besides their home, nil for the whole workspace.
func (v View) Shares() []Share { return v.shares }

// IsHome reports whether p is the folder that relative paths begin in.
func (v View) IsHome(p Path) bool { return p.name == filepath.Clean(v.home) }

// MayChange reports whether people may change the file p.
func (v View) MayChange(p Path) bool {
	if v.home == "" || Within(p.name, v.home) {
		return true
	}
	share, found := v.shareOf(p.name)
	return found && share.Writable
}

// whole returns what the file is called in the whole workspace that is called name
// in v.
func (v View) whole(name string) string {
	if _, found := v.shareOf(name); found || v.home == "" {
		return name
	}
	return filepath.Join(v.home, name)
}

// sees reports whether the file of the whole workspace called name is in v.
func (v View) sees(name string) bool {
	_, found := v.shareOf(name)
	return found || v.home == "" || Within(name, v.home)
}

// shareOf returns the Share that the file called name is in: of two, the inner one.
func (v View) shareOf(name string) (share Share, found bool) {
	for _, s := range v.shares {
		if Within(name, s.Name) && len(s.Name) > len(share.Name) {
			share = s
			found = true
		}
	}
	return share, found
}

// Within reports whether path is folder, or in it.
func Within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}
