package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/chat"
	"parley/tools/files"
	"parley/workspace"
)

// accessTo returns what a program may do with the file called name: the longest folder that it is
// in counts.
func accessTo(folders []Folder, name string) Access {
	best := Folder{}
	for _, f := range folders {
		inside := f.Path == name || strings.HasPrefix(name, f.Path+"/")
		if inside && len(f.Path) > len(best.Path) {
			best = f
		}
	}
	return best.Access
}

// R-S12, R-S14, R-S16: programs may change work, and no standing instructions. They read what the
// person may read, and neither Parley's own files nor what others sent or are known for.
func TestWorkspaceFolders(t *testing.T) {
	w, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ann := chat.Person("telegram:7")
	bob := chat.Person("telegram:8")
	hers := ann.Home() + "/"
	shared := []files.Shared{{Folder: "recipes", Write: []chat.Person{ann}}, {Folder: "secrets", Read: []chat.Person{bob}}}
	for _, name := range []string{"a/x", hers + "x", bob.Home() + "/x", "recipes/x", "secrets/x", "skills/a/SKILL.md"} {
		if err := w.Names().WriteFile(name, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		who  chat.Person
		name string
		want Access
	}{
		{chat.TheOwner, "work", ReadWrite},
		{chat.TheOwner, "work/a/b.txt", ReadWrite},
		{chat.TheOwner, ".", ReadOnly},
		{chat.TheOwner, "AGENTS.md", ReadOnly},
		{chat.TheOwner, "MEMORY.md", ReadOnly},
		{chat.TheOwner, "skills/a/SKILL.md", ReadOnly},
		{chat.TheOwner, "memory/history.jsonl", ReadOnly},
		{chat.TheOwner, "inbox/letter.txt", ReadOnly},
		{chat.TheOwner, ann.InboxFolder() + "/letter.txt", Hidden},
		{chat.TheOwner, ann.Folder() + "/USER.md", Hidden},
		{chat.TheOwner, hers + "notes.txt", Hidden},
		{chat.TheOwner, ".parley/origins/x", Hidden},
		{chat.TheOwner, ".parley", Hidden},
		{ann, hers + "work/a", ReadWrite},
		{ann, hers + "notes.txt", ReadOnly},
		{ann, ann.InboxFolder() + "/letter.txt", ReadOnly},
		{ann, ann.Folder() + "/USER.md", ReadOnly},
		{ann, "recipes/soup.md", ReadOnly},
		{ann, "skills/a/SKILL.md", ReadOnly},
		{ann, "work/a", Hidden},
		{ann, "AGENTS.md", ReadOnly},
		{ann, "notes.md", Hidden},
		{ann, "secrets/x", Hidden},
		{ann, "inbox/letter.txt", Hidden},
		{ann, bob.InboxFolder() + "/letter.txt", Hidden},
		{ann, bob.Folder() + "/USER.md", Hidden},
		{ann, bob.Home() + "/x", Hidden},
		{ann, "MEMORY.md", Hidden},
		{ann, "memory/history.jsonl", Hidden},
		{ann, ".parley/origins/x", Hidden},
	} {
		folders, work, err := WorkspaceFolders(files.WorkspaceOf(w, c.who, shared))
		if err != nil {
			t.Fatal(err)
		}
		if got := accessTo(folders, filepath.Join(w.Dir(), c.name)); got != c.want {
			t.Errorf("%s: %s is %d, want %d", c.who, c.name, got, c.want)
		}
		if info, err := os.Stat(work); err != nil || !info.IsDir() {
			t.Errorf("%s: %v, %v", work, info, err)
		}
	}
}

// R-S18: the folder that programs may change is no way out of the workspace.
func TestWorkDirIsNoLink(t *testing.T) {
	for name, make := range map[string]func(at string) error{
		"link": func(at string) error { return os.Symlink(t.TempDir(), at) },
		"file": func(at string) error { return os.WriteFile(at, nil, 0o600) },
	} {
		dir := t.TempDir()
		w, err := workspace.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if err := make(filepath.Join(dir, WorkDir)); err != nil {
			t.Fatal(err)
		}
		if folders, _, err := WorkspaceFolders(w); err == nil {
			t.Errorf("%s: %v", name, folders)
		}
	}
}

// R-S18: programs of others see no shared folder in whose place the owner's programs can put a link.
func TestSharedInWork(t *testing.T) {
	w, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	shares := []workspace.Share{{Name: "recipes"}, {Name: "work/site"}}
	folders, _, err := WorkspaceFolders(w.For("people/a", shares))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Access{"recipes/x": ReadOnly, "work/site/x": Hidden} {
		if got := accessTo(folders, filepath.Join(w.Dir(), name)); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
}

// R-S14: what programs must not see is there from the start: a sandbox does not hide what comes later.
func TestHiddenFoldersAreMade(t *testing.T) {
	w, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	folders, _, err := WorkspaceFolders(w)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if info, err := os.Stat(f.Path); err != nil || !info.IsDir() {
			t.Errorf("%s: %v", f.Path, err)
		}
	}
}
