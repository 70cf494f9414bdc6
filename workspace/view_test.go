package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestFor checks what paths lead to in a part of a workspace.
func TestFor(t *testing.T) {
	dir := t.TempDir()
	all, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	for _, name := range []string{
		"notes.md", "people/a/notes.md", "people/ab/notes.md", "recipes/soup.md", "skills/x/SKILL.md", "recipes/drafts/pie.md",
	} {
		if err := all.Names().WriteFile(name, []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"people/a/out": "../../notes.md", "people/a/other": "../ab/notes.md", "people/a/mine": "notes.md", "recipes/secret": "../notes.md",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	part := all.For("people/a", []Share{{Name: "recipes", Writable: true}, {Name: "skills"}, {Name: "recipes/drafts"}})
	for text, want := range map[string]string{
		"notes.md":       "people/a/notes.md",
		"~/notes.md":     "people/a/notes.md",
		"new/file":       "people/a/new/file",
		".":              "people/a",
		"mine":           "people/a/notes.md",
		"recipes":        "recipes",
		"recipes/new.md": "recipes/new.md",
		"~/recipes/x":    "recipes/x",
		"recipesx":       "people/a/recipesx",

		filepath.Join(dir, "people/a/notes.md"):  "people/a/notes.md",
		filepath.Join(dir, "people/a/skills/x"):  "skills/x",
		filepath.Join(dir, "recipes/soup.md"):    "recipes/soup.md",
		filepath.Join(dir, "skills/x/../x/file"): "skills/x/file",
	} {
		p, err := part.Resolve(text)
		if err != nil || p.String() != want {
			t.Errorf("Resolve(%q) = %s, %v; want %s", text, p, err, want)
		}
	}
	for _, text := range []string{
		"../ab/notes.md", "../../notes.md", "..", "out", "other", "recipes/secret", "recipes/../../../notes.md",
		filepath.Join(dir, "notes.md"), filepath.Join(dir, "people/ab/notes.md"), dir, "/etc/passwd",
	} {
		var outside *OutsideError
		if p, err := part.Resolve(text); !errors.As(err, &outside) {
			t.Errorf("Resolve(%q) = %s, %v; want an OutsideError", text, p, err)
		} else if outside.Dir != filepath.Join(dir, "people/a") {
			t.Errorf("Resolve(%q) tells of the folder %s", text, outside.Dir)
		}
	}
	for text, want := range map[string]struct {
		shown     string
		mayChange bool
	}{
		".": {".", true}, "notes.md": {"notes.md", true}, "recipes/soup.md": {"recipes/soup.md", true},
		"recipes/drafts/pie.md": {"recipes/drafts/pie.md", false}, "skills/x/SKILL.md": {"skills/x/SKILL.md", false},
	} {
		p, err := part.Resolve(text)
		if err != nil {
			t.Fatal(err)
		}
		if shown := part.View().Shown(p); shown != want.shown || part.View().MayChange(p) != want.mayChange {
			t.Errorf("%s is shown as %s, may be changed: %t", text, shown, part.View().MayChange(p))
		}
		if again, err := part.Resolve(part.View().Shown(p)); err != nil || again != p {
			t.Errorf("%s is shown as %s, which is %s, %v", p, part.View().Shown(p), again, err)
		}
	}
	if part.Dir() != filepath.Join(dir, "people/a") || all.Dir() != dir {
		t.Errorf("folders %s and %s", part.Dir(), all.Dir())
	}
	p, err := all.Resolve("people/a/notes.md")
	if err != nil || all.View().Shown(p) != "people/a/notes.md" || !all.View().MayChange(p) {
		t.Errorf("owners see %s, %v", all.View().Shown(p), err)
	}
}
