package files

import (
	"strings"
	"unicode"

	"parley/workspace"
)

// runsByItself reports whether the file at is one that programs obey by themselves
// when a person merely works in its folder: a dot-file (shells, editors and git
// run what .envrc, .vscode and .git/config say), or a file of a bare git
// repository, which git takes any folder with a HEAD for.
func runsByItself(w *workspace.Workspace, at workspace.Path) bool {
	for part := range strings.SplitSeq(at.String(), "/") {
		part = strings.ToLower(strings.Map(visible, part))
		if part == "head" || part == "git~1" || strings.HasPrefix(part, ".") && part != "." {
			return true
		}
	}
	return w.IsBeside(at, "HEAD")
}

// visible drops what some disks do not take for a part of a name.
func visible(r rune) rune {
	if unicode.Is(unicode.Cf, r) {
		return -1
	}
	return r
}
