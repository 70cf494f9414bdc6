package workspace

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
)

const secret = "the secret"

// home is a workspace in a folder beside which there are things not to be had.
func home(t *testing.T) (w *Workspace, outside string) {
	t.Helper()
	base := t.TempDir()
	write(t, filepath.Join(base, "secret"), secret)
	write(t, filepath.Join(base, "work-evil", "secret"), secret)
	w, err := Open(filepath.Join(base, "work"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	write(t, filepath.Join(w.Dir(), "sub", "in.txt"), "inside")
	return w, base
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// D-029, D-049: how paths are understood.
func TestPath(t *testing.T) {
	w, base := home(t)
	must(t, os.Symlink("sub/in.txt", filepath.Join(w.Dir(), "link")))
	must(t, os.Symlink(filepath.Join(w.Dir(), "sub"), filepath.Join(w.Dir(), "absolute")))
	must(t, os.Symlink("..", filepath.Join(w.Dir(), "sub", "up")))
	must(t, os.Symlink("../..", filepath.Join(w.Dir(), "sub", "out")))
	must(t, os.Symlink("/etc", filepath.Join(w.Dir(), "etc")))
	for _, c := range []struct{ path, want string }{
		{"a.txt", "a.txt"},
		{"./sub/../a.txt", "a.txt"},
		{"", "."},
		{"~", "."},
		{"~/a.txt", "a.txt"},
		{"~a.txt", "~a.txt"},
		{w.Dir(), "."},
		{w.Dir() + "/sub/in.txt", "sub/in.txt"},
		{"link", "sub/in.txt"},
		{"absolute/in.txt", "sub/in.txt"},
		{"sub/up/sub/in.txt", "sub/in.txt"},
		{"link/../secret", "secret"}, // by its letters: still inside
		{"sub/up/../../secret", "secret"},
		{"not/there/yet", "not/there/yet"},
		{"..", ""},
		{"../secret", ""},
		{"sub/../../secret", ""},
		{"~/../secret", ""},
		{"/etc/passwd", ""},
		{"/", ""},
		{base + "/secret", ""},
		{w.Dir() + "-evil/secret", ""},
		{w.Dir() + "/../secret", ""},
		{"sub/out/secret", ""},
		{"etc/passwd", ""},
	} {
		got, err := w.Resolve(c.path)
		var outside *OutsideError
		switch {
		case c.want == "" && !errors.As(err, &outside):
			t.Errorf("Resolve(%q) = %q, %v; want an OutsideError", c.path, got, err)
		case c.want == "" && err.Error() != "Path "+c.path+" is outside allowed directory "+w.Dir():
			t.Errorf("Path(%q): %v", c.path, err)
		case c.want != "" && (got.String() != c.want || err != nil):
			t.Errorf("Resolve(%q) = %q, %v; want %q", c.path, got, err, c.want)
		}
	}
}

// R-S18: nothing that is not a plain file of the workspace is read or written.
func TestNoLeaks(t *testing.T) {
	w, base := home(t)
	at := func(name string) string { return filepath.Join(w.Dir(), name) }
	must(t, os.Symlink("../secret", at("relative")))
	must(t, os.Symlink(base+"/secret", at("absolute")))
	must(t, os.Symlink("relative", at("chain")))
	must(t, os.Symlink("..", at("parent")))
	must(t, os.Symlink("loop", at("loop")))
	must(t, os.Symlink("/dev/zero", at("zero")))
	must(t, os.Symlink("/proc/self/environ", at("environ")))
	must(t, os.Symlink(base+"/made", at("dangling")))
	must(t, os.Symlink("sub", at("parent-of-link")))
	must(t, os.Link(base+"/secret", at("hard")))
	must(t, os.Symlink("hard", at("soft-to-hard")))
	must(t, syscall.Mkfifo(at("pipe"), 0o600))
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", at("socket"))
	must(t, err)
	defer l.Close()
	must(t, w.Protect(base+"/secret"))

	for _, path := range []string{
		"relative", "absolute", "chain", "parent/secret", "parent", "loop", "zero", "environ", "dangling",
		"parent-of-link/../../secret", "hard", "soft-to-hard", "pipe", "socket", "sub", ".", "", "../secret",
		"bad\x00name", strings.Repeat("long", 100), "sub/in.txt/below",
	} {
		if data, err := readFileAt(w, path); err == nil {
			t.Errorf("ReadFile(%q) = %d bytes, want an error", path, len(data))
		} else if strings.Contains(err.Error(), base) && !errors.As(err, new(*OutsideError)) {
			t.Errorf("ReadFile(%q) tells where the workspace is: %v", path, err)
		}
	}
	for _, path := range []string{
		"relative", "absolute", "chain", "parent/secret", "parent/new", "loop", "zero", "environ", "dangling", "parent",
		"hard", "soft-to-hard", "pipe", "socket", "sub", ".", "", "../secret", "../new", "bad\x00name", "sub/in.txt/below",
	} {
		if err := writeFileAt(w, path, []byte("overwritten")); err == nil {
			t.Errorf("WriteFile(%q) = nil, want an error", path)
		}
	}
	data, err := os.ReadFile(base + "/secret")
	if string(data) != secret || err != nil {
		t.Errorf("the secret is now %q, %v", data, err)
	}
	for _, name := range []string{"made", "new"} {
		if _, err := os.Lstat(filepath.Join(base, name)); err == nil {
			t.Errorf("%s was made outside", name)
		}
	}
	noTemps(t, w)
}

// noTemps checks that no half-written file was left behind.
func noTemps(t *testing.T, w *Workspace) {
	t.Helper()
	must(t, filepath.WalkDir(w.Dir(), func(path string, d fs.DirEntry, err error) error {
		if strings.HasPrefix(d.Name(), ".new-") {
			t.Errorf("%s was left behind", path)
		}
		return err
	}))
}

// R-S18: a protected file is refused however late it comes to be, and by the folder it is in.
func TestProtect(t *testing.T) {
	w, base := home(t)
	must(t, w.Protect(filepath.Join(base, "later"), filepath.Join(base, "data")))
	if _, err := readFileAt(w, "sub/in.txt"); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(base, "later"), secret)
	write(t, filepath.Join(base, "data", "store.db"), secret)
	must(t, os.Link(filepath.Join(base, "later"), filepath.Join(w.Dir(), "a")))
	must(t, os.Link(filepath.Join(base, "data", "store.db"), filepath.Join(w.Dir(), "b")))
	for _, name := range []string{"a", "b"} {
		if _, err := readFileAt(w, name); !errors.Is(err, ErrProtected) {
			t.Errorf("ReadFile(%s) = %v, want ErrProtected", name, err)
		}
		if err := writeFileAt(w, name, nil); !errors.Is(err, ErrProtected) {
			t.Errorf("WriteFile(%s) = %v, want ErrProtected", name, err)
		}
	}
}

// R-S18: a link that is swapped while it is being read never leads outside.
func TestSwappedLink(t *testing.T) {
	w, base := home(t)
	inside, outside, link := filepath.Join(w.Dir(), "sub"), base, filepath.Join(w.Dir(), "link")
	write(t, filepath.Join(inside, "secret"), "inside")
	must(t, os.Symlink(inside, link))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			target := inside
			if i%2 == 0 {
				target = outside
			}
			temp := filepath.Join(w.Dir(), "temp")
			_ = os.Symlink(target, temp)
			_ = os.Rename(temp, link)
		}
	})
	for range 2000 {
		if data, err := readFileAt(w, "link/secret"); err == nil && string(data) == secret {
			t.Error("the secret was read")
			break
		}
		_ = writeFileAt(w, "link/secret", []byte("inside"))
	}
	close(stop)
	wg.Wait()
	if data, _ := os.ReadFile(filepath.Join(base, "secret")); string(data) != secret {
		t.Errorf("the secret is now %q", data)
	}
}

// A log is read and grows at its end, however long it is; what may not be opened may not be one.
func TestOpenLog(t *testing.T) {
	w, base := home(t)
	must(t, writeFileAt(w, "log", []byte("one\n")))
	must(t, os.Symlink(base+"/secret", filepath.Join(w.Dir(), "out")))
	must(t, syscall.Mkfifo(filepath.Join(w.Dir(), "pipe"), 0o600))
	for range 2 {
		f, err := openLogAt(w, "log")
		must(t, err)
		_, err = f.Write([]byte("two\n"))
		must(t, errors.Join(err, f.Close()))
	}
	if data, _ := readFileAt(w, "log"); string(data) != "one\ntwo\ntwo\n" {
		t.Errorf("the log is %q", data)
	}
	must(t, os.Truncate(filepath.Join(w.Dir(), "log"), MaxOpen+1))
	f, err := openLogAt(w, "log")
	must(t, err)
	must(t, f.Close())
	for _, path := range []string{"out", "pipe", "sub", "../secret", "none"} {
		if f, err := openLogAt(w, path); err == nil {
			_ = f.Close()
			t.Errorf("OpenLog(%q) = nil, want an error", path)
		}
	}
}

// D-058: parents are made, what was there is replaced at once or not at all.
func TestWriteFile(t *testing.T) {
	w, _ := home(t)
	must(t, writeFileAt(w, "a/b/c.txt", []byte("one")))
	must(t, os.Chmod(filepath.Join(w.Dir(), "a/b/c.txt"), 0o755))
	old, err := openAt(w, "a/b/c.txt")
	must(t, err)
	defer old.Close()
	must(t, writeFileAt(w, "~/a/b/c.txt", []byte("two")))
	if data, err := readFileAt(w, "a/b/c.txt"); string(data) != "two" || err != nil {
		t.Errorf("read %q, %v; want two", data, err)
	}
	if data, _ := io.ReadAll(old); string(data) != "one" {
		t.Errorf("who had it open reads %q, want one", data)
	}
	if info, _ := os.Stat(filepath.Join(w.Dir(), "a/b/c.txt")); info.Mode().Perm() != 0o700 {
		t.Errorf("mode is %v, want it to run for its owner, and to be nothing for others", info.Mode())
	}
	must(t, os.Chmod(filepath.Join(w.Dir(), "a/b/c.txt"), 0o444))
	if err := writeFileAt(w, "a/b/c.txt", nil); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a read-only file was written: %v", err)
	}
	must(t, os.Symlink("a/b/d.txt", filepath.Join(w.Dir(), "link")))
	must(t, writeFileAt(w, "a/b/d.txt", []byte("three")))
	must(t, writeFileAt(w, "link", []byte("four")))
	if data, _ := readFileAt(w, "a/b/d.txt"); string(data) != "four" {
		t.Errorf("through the link was written %q, want four", data)
	}
	noTemps(t, w)
}

// Save takes what a stream yields, whole or not at all.
func TestSave(t *testing.T) {
	w, _ := home(t)
	broken := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF))
	for _, c := range []struct {
		name string
		r    io.Reader
		most int64
		want error
	}{
		{"fits", iotest.OneByteReader(strings.NewReader("12345")), 5, nil},
		{"nothing", strings.NewReader(""), 0, nil},
		{"a byte too many", strings.NewReader("123456"), 5, ErrTooBig},
		{"breaks", broken, 5, io.ErrUnexpectedEOF},
	} {
		must(t, writeFileAt(w, "new/file", []byte("before")))
		n, err := saveAt(w, "new/file", c.r, c.most)
		data, _ := readFileAt(w, "new/file")
		if !errors.Is(err, c.want) || err == nil && int64(len(data)) != n || err != nil && (n != 0 || string(data) != "before") {
			t.Errorf("%s: Save = %d, %v; the file holds %q", c.name, n, err, data)
		}
	}
	if _, err := saveAt(w, "../out", strings.NewReader("x"), 5); !errors.As(err, new(*OutsideError)) {
		t.Errorf("saved outside: %v", err)
	}
	noTemps(t, w)
}

func TestTooBig(t *testing.T) {
	w, _ := home(t)
	for _, c := range []struct {
		size       int64
		open, read error
	}{{MaxRead, nil, nil}, {MaxRead + 1, nil, ErrTooBig}, {MaxOpen + 1, ErrTooBig, ErrTooBig}, {1 << 40, ErrTooBig, ErrTooBig}} {
		must(t, writeFileAt(w, "sparse", nil))
		must(t, os.Truncate(filepath.Join(w.Dir(), "sparse"), c.size))
		f, err := openAt(w, "sparse")
		if f != nil {
			f.Close()
		}
		if !errors.Is(err, c.open) {
			t.Errorf("Open of %d bytes: %v, want %v", c.size, err, c.open)
		}
		if _, err := readFileAt(w, "sparse"); !errors.Is(err, c.read) {
			t.Errorf("ReadFile of %d bytes: %v, want %v", c.size, err, c.read)
		}
	}
}

func TestSeed(t *testing.T) {
	w, _ := home(t)
	must(t, writeFileAt(w, "SOUL.md", []byte("mine")))
	must(t, os.Symlink("nowhere", filepath.Join(w.Dir(), "USER.md")))
	written, err := w.Seed()
	if got := strings.Join(written, " "); got != "AGENTS.md HEARTBEAT.md TOOLS.md agents skills" || err != nil {
		t.Errorf("Seed = %s, %v; want AGENTS.md, HEARTBEAT.md, TOOLS.md, agents and skills", got, err)
	}
	if data, _ := readFileAt(w, "SOUL.md"); string(data) != "mine" {
		t.Errorf("SOUL.md is now %q", data)
	}
	if data, err := readFileAt(w, "AGENTS.md"); !bytes.Contains(data, []byte("Never reveal keys")) {
		t.Errorf("AGENTS.md is %q, %v", data, err)
	}
	if again, err := w.Seed(); len(again) != 0 || err != nil {
		t.Errorf("the second Seed = %v, %v; want nothing", again, err)
	}
}

// A folder of the first files is written whole, and never again: neither what
// was deleted from it comes back, nor does anything join what is somebody's own.
func TestSeedFolders(t *testing.T) {
	w, _ := home(t)
	must(t, writeFileAt(w, "agents/mine.md", []byte("mine")))
	_, err := w.Seed()
	must(t, err)
	names := func(dir string) (names []string) {
		entries, err := w.Names().ReadDir(dir)
		must(t, err)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	if got := strings.Join(names("skills"), " "); got != "plan-a-day research-a-topic watch-a-page write-a-skill" {
		t.Errorf("skills: %s", got)
	}
	if got := strings.Join(names("agents"), " "); got != "mine.md" {
		t.Errorf("agents: %s", got)
	}
	must(t, os.RemoveAll(filepath.Join(w.Dir(), "skills", "plan-a-day")))
	if again, err := w.Seed(); len(again) != 0 || err != nil {
		t.Errorf("the second Seed = %v, %v; want nothing", again, err)
	}
	if got := names("skills"); len(got) != 3 {
		t.Errorf("skills: %s", got)
	}
}

// R-S18: a folder is listed that lies in the workspace, and no other.
func TestReadDir(t *testing.T) {
	w, _ := home(t)
	must(t, os.Symlink("..", filepath.Join(w.Dir(), "out")))
	must(t, os.Symlink("sub", filepath.Join(w.Dir(), "link")))
	for _, name := range []string{"out", "..", "/", "sub/../..", "sub/in.txt"} {
		if got, err := w.Names().ReadDir(name); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, name := range []string{"sub", "link"} {
		if got, err := w.Names().ReadDir(name); err != nil || len(got) != 1 || got[0].Name() != "in.txt" {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := w.Names().ReadDir("nowhere"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nowhere: %v", err)
	}
}

// D-118: the rules that the agent starts with.
func TestFirstRules(t *testing.T) {
	w, _ := home(t)
	_, err := w.Seed()
	must(t, err)
	agents, err := readFileAt(w, "AGENTS.md")
	must(t, err)
	hints, err := readFileAt(w, "TOOLS.md")
	must(t, err)
	for _, rule := range []string{
		"Act, rather than announce what you are about to do.", "Read a file before you change it",
		"When a tool fails, read its error and try differently.", "When a tool can find something out, use it before you ask or guess.",
		"Search files with glob and grep, and count before you read what was found.",
	} {
		if !bytes.Contains(append(agents, hints...), []byte(rule)) {
			t.Errorf("no %q", rule)
		}
	}
}

func TestOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	w, err := Open(dir)
	must(t, err)
	defer w.Close()
	if info, _ := os.Stat(dir); info.Mode().Perm() != 0o700 {
		t.Errorf("mode is %v, want 0700", info.Mode().Perm())
	}
	file := filepath.Join(dir, "file")
	write(t, file, "")
	if _, err := Open(file); err == nil || !strings.HasPrefix(err.Error(), "open workspace "+file) {
		t.Errorf("Open of a file: %v", err)
	}
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(dir, link))
	w2, err := Open(link)
	must(t, err)
	defer w2.Close()
	for _, path := range []string{link + "/file", dir + "/file", "file"} {
		if name, err := w2.Resolve(path); name.String() != "file" || err != nil {
			t.Errorf("Path(%s) = %s, %v; want file", path, name, err)
		}
	}
}

// R-S18: no path at all leads to a file outside, nor makes one there.
func FuzzPath(f *testing.F) {
	base := f.TempDir()
	w, err := Open(filepath.Join(base, "work"))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { w.Close() })
	for path, text := range map[string]string{base + "/secret": secret, w.Dir() + "-evil/secret": secret, w.Dir() + "/sub/in.txt": "inside"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			f.Fatal(err)
		}
	}
	for name, target := range map[string]string{"up": "..", "sub/up": "../..", "abs": base, "in": "sub"} {
		if err := os.Symlink(target, filepath.Join(w.Dir(), name)); err != nil {
			f.Fatal(err)
		}
	}
	for _, seed := range []string{"../secret", "up/secret", "sub/up/secret", "abs/secret", "in/../../secret", base + "/secret", w.Dir() + "-evil/secret", "~/../secret", "in/in.txt", "sub//./in.txt"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if data, err := readFileAt(w, path); err == nil && string(data) != "inside" {
			t.Errorf("ReadFile(%q) = %q", path, data)
		}
		p, err := w.Resolve(path)
		if err == nil && !filepath.IsLocal(p.String()) {
			t.Errorf("Resolve(%q) = %q", path, p)
		}
		if again, err2 := w.Named(p.String()); err == nil && (again != p || err2 != nil) {
			t.Errorf("Resolve(%q) = %q, and Named of that %q, %v", path, p, again, err2)
		}
	})
}

// R-S18: a path that no file can have is refused at once, however deep it seems.
func TestEndlessPath(t *testing.T) {
	w, _ := home(t)
	for _, path := range []string{strings.Repeat("a/", 50_000), strings.Repeat("x", 5000)} {
		if _, err := w.Resolve(path); !errors.Is(err, syscall.ENAMETOOLONG) {
			t.Errorf("%.10s…: %v", path, err)
		}
	}
}

// at calls do with the file that text means.
func at[T any](w *Workspace, text string, do func(Path) (T, error)) (result T, err error) {
	p, err := w.Resolve(text)
	if err != nil {
		return result, err
	}
	return do(p)
}

func readFileAt(w *Workspace, text string) ([]byte, error)  { return at(w, text, w.ReadFile) }
func openAt(w *Workspace, text string) (*os.File, error)    { return at(w, text, w.Open) }
func openLogAt(w *Workspace, text string) (*os.File, error) { return at(w, text, w.OpenLog) }
func saveAt(w *Workspace, text string, r io.Reader, most int64) (int64, error) {
	return at(w, text, func(p Path) (int64, error) { return w.Save(p, r, most) })
}
func writeFileAt(w *Workspace, text string, data []byte) error {
	_, err := saveAt(w, text, bytes.NewReader(data), int64(len(data)))
	return err
}
