package files

import (
	"strings"
	"unicode"

	"parley/workspace"
)

// runsByItself reports whether programs execute or obey the file at when a person
// merely works in its folder. That is a dot-file (shells, editors and git run
// commands from .envrc, .vscode and .git/config), or a file in a bare git repository,
// which for git is any folder with a HEAD.
func runsByItself(w *workspace.Workspace, at workspace.Path) bool {
	for part := range strings.SplitSeq(at.String(), "/") {
		part = strings.ToLower(strings.Map(visible, part))
		if part == "head" || part == "git~1" || strings.HasPrefix(part, ".") && part != "." {
			return true
		}
	}
	return w.IsBeside(at, "HEAD")
}

// visible drops the characters that some file systems ignore in names.
func visible(r rune) rune {
	if unicode.Is(unicode.Cf, r) {
		return -1
	}
	return r
}
