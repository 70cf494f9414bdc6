package safetext

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// R-S18: whatever a file is called, its name is one plain element of a path.
func FuzzFileName(f *testing.F) {
	for _, s := range []string{"a.txt", "../x", "a\x00b", "\u202egpj.exe", "...", strings.Repeat("é", 100) + ".tar.gz", "x. .. ", "a\\b:c", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name := FileName(s)
		bad := func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune("/\\<>:\"|?*`$", r) }
		if name != "" && (!filepath.IsLocal(name) || filepath.Base(name) != name) || strings.HasPrefix(name, ".") ||
			len(name) > maxFileNameBytes || !utf8.ValidString(name) || strings.ContainsFunc(name, bad) {
			t.Errorf("FileName(%q) = %q", s, name)
		}
		if again := FileName(name); again != name {
			t.Errorf("FileName(%q) = %q, and of that %q", s, name, again)
		}
	})
}
