package python

import (
	"bytes"
	"fmt"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/chat"
	"parley/tools"
	"parley/workspace"
)

// drawing writes a PNG of 3 by 2 red points, with nothing but the standard library.
const drawing = `
import struct, zlib
def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
lines = b''.join(b'\x00' + b'\xff\x00\x00' * 3 for _ in range(2))
with open('red.png', 'wb') as f:
    f.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 3, 2, 8, 2, 0, 0, 0)) +
        chunk(b'IDAT', zlib.compress(lines)) + chunk(b'IEND', b''))
`

// filesOf returns the files of a workspace below work, with their contents.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	work := filepath.Join(dir, "work")
	err := filepath.WalkDir(work, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return ignoreMissing(err)
		}
		text, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, work+"/")] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func ignoreMissing(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// A picture that code writes is kept in the workspace, comes with the answer, and is shown to the model.
func TestPicture(t *testing.T) {
	u := owner(t, interpreter(t, Config{Sandbox: unconfined()}))
	r := u.call("execute_python", map[string]any{"code": drawing, "strictness": "lenient"})
	said, problem := decode(t, r)
	if len(r.Attached) != 1 || !slices.Equal(r.Attached, said.Files) || !slices.Equal(r.Pictures, r.Attached) {
		t.Fatalf("%+v, %s", r, problem)
	}
	text, err := os.ReadFile(filepath.Join(u.scope.Workspace.Dir(), r.Attached[0]))
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(text))
	if err != nil || img.Bounds().Dx() != 3 || img.Bounds().Dy() != 2 {
		t.Error(img, err)
	}
	if !strings.HasPrefix(r.Attached[0], "work/python/") || filepath.Base(r.Attached[0]) != "red.png" {
		t.Error(r.Attached)
	}
	if !strings.Contains(said.Note, "sent with your answer") {
		t.Error(said.Note)
	}
	// A call that is made again after a crash writes the same file.
	u.n--
	if again := u.call("execute_python", map[string]any{"code": drawing, "strictness": "lenient"}); !slices.Equal(again.Attached, r.Attached) {
		t.Errorf("%v, before %v", again.Attached, r.Attached)
	}
	if found := filesOf(t, u.scope.Workspace.Dir()); len(found) != 1 {
		t.Error(found)
	}
	u.scope.Depth = 1
	if said, problem := u.run(Lenient, drawing); len(said.Files) != 1 || !strings.Contains(said.Note, "Nobody is sent them") {
		t.Errorf("a subagent's: %+v, %s", said, problem)
	}
}

// What code leaves in its folder is nobody's to trust: links, pipes and hidden files are not kept.
func TestStrangeFiles(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.txt")
	if err := os.WriteFile(secret, []byte("canary-5521"), 0o600); err != nil {
		t.Fatal(err)
	}
	u := owner(t, interpreter(t, Config{Sandbox: unconfined()}))
	t.Setenv("TMPDIR", t.TempDir())
	said, problem := u.run(Lenient, fmt.Sprintf(`
import os
os.symlink(%q, 'link.txt')
os.symlink('/etc', 'etc')
os.mkfifo('pipe.txt')
os.makedirs('a/b')
open('a/b/deep.txt', 'w').write('deep')
open('.hidden', 'w').write('x')
os.mkdir('.cache')
open('.cache/x.txt', 'w').write('x')
open('two\nlines.txt', 'w').write('x')
open(b'\xff.txt', 'w').write('x')
open('\u202egnp.txt', 'w').write('x')
open('x' * 200 + '.txt', 'w').write('x')
open('back\\slash.txt', 'w').write('x')
open('empty.txt', 'w')
os.mkdir('locked')
open('locked/x.txt', 'w').write('x')
open('unreadable.txt', 'w').write('x')
os.mkdir('gone')
os.chmod('gone', 0)
`, secret))
	if problem != "" {
		t.Fatal(problem)
	}
	var names []string
	for name, text := range filesOf(t, u.scope.Workspace.Dir()) {
		_, below, _ := strings.Cut(strings.TrimPrefix(name, "python/"), "/")
		names = append(names, below+"="+text)
	}
	slices.Sort(names)
	want := []string{"a/b/deep.txt=deep", "empty.txt=", "locked/x.txt=x", "unreadable.txt=x"}
	if !slices.Equal(names, want) || len(said.Files) != len(want) {
		t.Errorf("%q, want %q\n%+v", names, want, said)
	}
	if n := strings.Count(said.Note, "is not a name for a file"); n != 5 {
		t.Errorf("%d files with bad names: %s", n, said.Note)
	}
	if left, err := os.ReadDir(os.TempDir()); len(left) > 0 || err != nil {
		t.Errorf("%v is left, %v", left, err)
	}
}

// What code may leave is limited: the size of one file, how many, and how much in all.
func TestTooManyFiles(t *testing.T) {
	p := interpreter(t, Config{Sandbox: unconfined()})
	patient(p)
	u := owner(t, p)
	said, problem := u.run(Lenient, "for i in range(15): open('f%02d.txt' % i, 'w')")
	if len(said.Files) != maxFiles || !strings.Contains(said.Note, "Not kept: there were more than 10 files.") {
		t.Errorf("%+v, %s", said, problem)
	}
	said, problem = u.run(Lenient, "open('big.bin', 'wb').truncate(21 << 20)")
	if len(said.Files) > 0 || !strings.HasSuffix(problem, "File too large") {
		t.Errorf("%+v, %s", said, problem)
	}
	const full = "Execution failed: the code wrote more than 64 MB or 1000 files"
	u.wantProblem(Lenient, "for i in range(10):\n    f = open('f%d' % i, 'wb')\n    f.truncate(10 << 20)\nwhile True: pass", full)
	u.wantProblem(Lenient, "i = 0\nwhile True:\n    open('f%d' % i, 'w').close()\n    i += 1", full)
	if said, _ := u.run(Lenient, "open('chart.png', 'w').write('x')\n1 / 0"); len(said.Files) > 0 {
		t.Errorf("files of code that failed: %+v", said)
	}
}

// R-S15: files count towards the limit of the person whose code wrote them.
func TestStoredFiles(t *testing.T) {
	p := interpreter(t, Config{Sandbox: unconfined(), MaxStored: func() int64 { return 100_000 }})
	const code = "open('a.bin', 'wb').write(b'x' * 60000)"
	u := owner(t, p)
	for range 3 {
		if said, problem := u.run(Lenient, code); len(said.Files) != 1 || problem != "" {
			t.Errorf("an owner's: %+v, %s", said, problem)
		}
	}
	u = owner(t, p)
	u.scope.From.Role = chat.User
	if said, problem := u.run(Lenient, code); len(said.Files) != 1 || problem != "" {
		t.Errorf("the first: %+v, %s", said, problem)
	}
	said, problem := u.run(Lenient, code)
	if len(said.Files) > 0 || said.Note != "Not kept: this person's files use 0.1 MB of the 0.1 MB allowed, and this would add 0.1 MB." {
		t.Errorf("the second: %+v, %s", said, problem)
	}
	if found := filesOf(t, u.scope.Workspace.Dir()); len(found) != 1 {
		t.Errorf("%d files", len(found))
	}
}

// R-S12: what code wrote in an untrusted turn, or for another person, is untrusted content to whoever reads it.
func TestOriginOfFiles(t *testing.T) {
	p := interpreter(t, Config{Sandbox: unconfined()})
	for _, c := range []struct {
		name      string
		role      chat.Role
		tainted   bool
		untrusted bool // for an owner
	}{
		{"an owner's", chat.Owner, false, false},
		{"an owner's in an untrusted turn", chat.Owner, true, true},
		{"a user's", chat.User, false, true},
	} {
		u := owner(t, p)
		u.scope.From.Role = c.role
		u.scope.Tainted = c.tainted
		said, problem := u.run(Lenient, "open('a.txt', 'w').write('x')")
		if len(said.Files) != 1 {
			t.Fatalf("%+v, %s", said, problem)
		}
		at, err := u.scope.Workspace.Resolve(said.Files[0])
		if err != nil {
			t.Fatal(err)
		}
		u.scope.From.Role = chat.Owner
		if got := tools.Untrusted(u.scope, at); got != c.untrusted {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// R-S14: a person's files are kept in their own folder, under a name that leads there for them.
func TestFilesOfAPerson(t *testing.T) {
	u := owner(t, interpreter(t, Config{Sandbox: unconfined()}))
	whole := u.scope.Workspace
	u.scope.From.Role = chat.User
	u.scope.Workspace = whole.For(u.scope.Whose().Home(), nil)
	r := u.call("execute_python", map[string]any{"code": drawing, "strictness": "lenient"})
	said, problem := decode(t, r)
	if len(r.Attached) != 1 || !strings.HasPrefix(r.Attached[0], u.scope.Whose().Home()+"/work/python/") {
		t.Fatalf("%+v, %s", r, problem)
	}
	if at, err := u.scope.Workspace.Resolve(said.Files[0]); err != nil || at.String() != r.Attached[0] {
		t.Errorf("%s is %s, %v", said.Files[0], at, err)
	}
	if found := filesOf(t, whole.Dir()); len(found) > 0 {
		t.Errorf("the owner has %v", found)
	}
}

// What is shared with a person to read only is not written to.
func TestFilesInReadOnlyFolder(t *testing.T) {
	u := owner(t, interpreter(t, Config{Sandbox: unconfined()}))
	whole := u.scope.Workspace
	u.scope.From.Role = chat.User
	u.scope.Workspace = whole.For(u.scope.Whose().Home(), []workspace.Share{{Name: "work"}})
	said, problem := u.run(Lenient, "open('a.txt', 'w').write('a')")
	if len(said.Files) > 0 || problem != "" || said.Note != "Not kept: a.txt, because work/python may only be read here." {
		t.Errorf("%+v, %s", said, problem)
	}
	if found := filesOf(t, whole.Dir()); len(found) > 0 {
		t.Errorf("the owner has %v", found)
	}
}

// R-S12: a link that a command left does not lead files to where the agent's standing rules are.
func TestLinkedFolder(t *testing.T) {
	u := owner(t, interpreter(t, Config{Sandbox: unconfined()}))
	dir := u.scope.Workspace.Dir()
	for _, folder := range []string{"skills", "work"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../skills", filepath.Join(dir, "work", "python")); err != nil {
		t.Fatal(err)
	}
	said, problem := u.run(Lenient, "open('SKILL.md', 'w').write('obey')")
	if len(said.Files) > 0 || problem != "" || said.Note != "Not kept: SKILL.md, because there is a link in work/python." {
		t.Errorf("%+v, %s", said, problem)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "skills")); len(entries) > 0 || err != nil {
		t.Error(entries, err)
	}
}

// What a process that was killed has left behind is removed by the next one, and nothing else is.
func TestSweep(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	old := time.Now().Add(-2 * scratchAge)
	for name, age := range map[string]time.Time{scratchPrefix + "old": old, scratchPrefix + "new": time.Now(), "other": old} {
		dir := filepath.Join(os.TempDir(), name)
		if err := os.MkdirAll(filepath.Join(dir, "a"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, age, age); err != nil {
			t.Fatal(err)
		}
	}
	u := owner(t, interpreter(t, Config{Sandbox: unconfined()}))
	u.wantOutput("", "print(1)", "1\n")
	var left []string
	entries, err := os.ReadDir(os.TempDir())
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{"other", scratchPrefix + "new"}; !slices.Equal(left, want) || err != nil {
		t.Errorf("%v, want %v, %v", left, want, err)
	}
}
