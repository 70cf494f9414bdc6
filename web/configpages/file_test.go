package configpages

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"parley/store"
	"parley/store/storetest"
)

func put(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
}

func says(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The file is replaced with its permissions, where a link leads; what it said is kept, and can be had back; what
// somebody else wrote meanwhile is not lost.
func TestSave(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real.json"), filepath.Join(dir, "config.json")
	put(t, real, "one", 0o640)
	if err := os.Symlink("real.json", link); err != nil {
		t.Fatal(err)
	}
	f := &File{Path: link, History: filepath.Join(dir, "history")}
	now, err := f.Read()
	if err != nil || now.Text != "one" || !now.Found || now.Locked != "" {
		t.Fatalf("%+v, %v", now, err)
	}
	if err := f.Save(now.Sum, "two"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&os.ModeSymlink == 0 || says(t, real) != "two" {
		t.Errorf("the link is %v, the file says %q, %v", info.Mode(), says(t, real), err)
	}
	if info, err := os.Stat(real); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the file has the permissions %v, %v", info.Mode(), err)
	}
	if err := f.Save(now.Sum, "three"); !errors.Is(err, store.ErrConflict) || says(t, real) != "two" {
		t.Errorf("an old page saved %q: %v", says(t, real), err)
	}
	all, err := f.Versions()
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	if text, err := f.Version(all[0].ID); text != "one" || err != nil {
		t.Errorf("it said %q, %v", text, err)
	}
	for _, id := range []string{"", "../config.json", "new", "20261123-000000.000000000"} {
		if _, err := f.Version(id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("version %q: %v", id, err)
		}
	}
	if info, err := os.Stat(f.version(all[0].ID)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others can read what it said: %v, %v", info.Mode(), err)
	}
	for i := range maxVersions + 5 {
		now, _ := f.Read()
		if err := f.Save(now.Sum, fmt.Sprint("text ", i)); err != nil {
			t.Fatal(err)
		}
	}
	if all, err = f.Versions(); len(all) != maxVersions || err != nil {
		t.Errorf("%d texts are kept, %v", len(all), err)
	}
}

// A file that is marked as read-only stays, and one that is not there is created for its owner only.
func TestLockedAndNew(t *testing.T) {
	dir := t.TempDir()
	f := &File{Path: filepath.Join(dir, "config.json"), History: filepath.Join(dir, "history")}
	now, err := f.Read()
	if err != nil || now.Found || now.Sum != "" {
		t.Fatalf("%+v, %v", now, err)
	}
	if err := f.Save("", "{}"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(f.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := f.Save("", "[]"); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a file that is there was created: %v", err)
	}
	if err := os.Chmod(f.Path, 0o400); err != nil {
		t.Fatal(err)
	}
	now, _ = f.Read()
	if err := f.Save(now.Sum, "[]"); err == nil || !strings.Contains(now.Locked, "read-only") || says(t, f.Path) != "{}" {
		t.Errorf("%+v, %v", now, err)
	}
	f.rename = func(string, string) error { return syscall.EBUSY } // as a file that is mounted by itself
	put(t, f.Path, "{}", 0o600)
	now, _ = f.Read()
	if err := f.Save(now.Sum, "[]"); !errors.Is(err, syscall.EBUSY) || says(t, f.Path) != "{}" {
		t.Errorf("%q, %v", says(t, f.Path), err)
	}
	if left, _ := filepath.Glob(f.Path + ".*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A process that is killed after it has written and before it has renamed leaves the file as it was, and the next
// save works.
func TestKillBeforeRename(t *testing.T) {
	const folder = "PARLEY_KILLED_IN"
	if dir := os.Getenv(folder); dir != "" {
		f := &File{Path: filepath.Join(dir, "config.json"), History: filepath.Join(dir, "history")}
		f.rename = func(string, string) error { return syscall.Kill(os.Getpid(), syscall.SIGKILL) }
		now, err := f.Read()
		t.Fatal(err, f.Save(now.Sum, "two"))
	}
	dir := storetest.TempDir(t)
	f := &File{Path: filepath.Join(dir, "config.json"), History: filepath.Join(dir, "history")}
	put(t, f.Path, "one", 0o600)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKillBeforeRename$")
	cmd.Env = append(os.Environ(), folder+"="+dir)
	out, err := cmd.CombinedOutput()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("%v: %s", err, out)
	}
	if says(t, f.Path) != "one" || says(t, f.Path+".new") != "two" {
		t.Errorf("it says %q, and beside it is %q", says(t, f.Path), says(t, f.Path+".new"))
	}
	now, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Save(now.Sum, "three"); err != nil || says(t, f.Path) != "three" {
		t.Errorf("%q, %v", says(t, f.Path), err)
	}
	if all, err := f.Versions(); len(all) != 1 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := os.Stat(f.Path + ".new"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the draft is still there: %v", err)
	}
}

func TestFaultsOf(t *testing.T) {
	err := errors.Join(errors.New("/etc/p.json:3:7: owners: is text, must be a list"), errors.New("models: is missing"))
	got := FaultsOf("/etc/p.json", err)
	want := []Fault{{3, 7, "owners: is text, must be a list"}, {0, 0, "models: is missing"}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// quotedSecrets finds what begins with "sk-".
func quotedSecrets(text string) (all []Secret) {
	for at := 0; ; {
		n := strings.Index(text[at:], `"sk-`)
		if n < 0 {
			return all
		}
		s := Secret{Start: at + n, End: at + n + 1 + strings.Index(text[at+n+1:], `"`) + 1}
		s.Value = strings.ReplaceAll(text[s.Start+1:s.End-1], `\u002d`, "-")
		all = append(all, s)
		at = s.End
	}
}

// onDisk returns all that is in a folder.
func onDisk(t *testing.T, dir string) (all string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all += says(t, filepath.Join(dir, e.Name()))
	}
	return all
}

// TestSecrets: a secret of the file is shown by its last four characters, stays as it is written when its mask is
// saved, wherever that stands, and can be replaced. Earlier texts have none, also those that an earlier program kept;
// what the file does not have any more cannot come back, and that is said with its place.
func TestSecrets(t *testing.T) {
	dir := t.TempDir()
	path, history := filepath.Join(dir, "config.json"), filepath.Join(dir, "history")
	const first = "{ \"é\": \"sk-first-secret-\\u002d1f3a\",\n  \"b\": \"sk-short\", \"c\": \"plain\" }"
	put(t, path, first, 0o600)
	open := func() *File { return &File{Path: path, History: history, Secrets: quotedSecrets} }
	f := open()
	state := func() Text {
		t.Helper()
		now, err := f.Read()
		if err != nil || strings.Contains(now.Text, "sk-") {
			t.Fatalf("%q, %v", now.Text, err)
		}
		return now
	}
	save := func(text string) {
		t.Helper()
		if err := f.Save(state().Sum, text); err != nil {
			t.Fatal(err)
		}
	}
	now := state()
	masks := mask.FindAllStringIndex(now.Text, -1)
	if len(masks) != 2 || now.Secrets != 2 {
		t.Fatalf("it is shown as %s", now.Text)
	}
	a, b := now.Text[masks[0][0]:masks[0][1]], now.Text[masks[1][0]:masks[1][1]]
	if !strings.HasPrefix(a, `"••••1f3a #`) || !strings.HasPrefix(b, `"•••• #`) {
		t.Errorf("the masks are %s and %s", a, b)
	}
	f = open() // after a restart
	save(strings.Replace(now.Text, "plain", "other", 1))
	if text := says(t, path); text != strings.Replace(first, "plain", "other", 1) {
		t.Errorf("the file says %s", text)
	}
	save(`{ "moved": ` + a + `, "b": "sk-another" }`)
	if text := says(t, path); text != `{ "moved": "sk-first-secret-\u002d1f3a", "b": "sk-another" }` {
		t.Errorf("the file says %s", text)
	}
	put(t, filepath.Join(history, "20250101-000000.000000000"), first, 0o600)
	all, err := f.Versions()
	if err != nil || len(all) != 3 {
		t.Fatalf("%v, %v", all, err)
	}
	for _, v := range all {
		if text, err := f.Version(v.ID); err != nil || strings.Contains(text, "sk-") || !strings.Contains(text, a) {
			t.Errorf("the earlier text is %s, %v", text, err)
		}
	}
	earlier, err := f.Version(all[len(all)-1].ID)
	if err != nil {
		t.Fatal(err)
	}
	before := says(t, path)
	to := f.fill(earlier, state())
	if len(to.missing) != 1 || to.missing[0].Line != 2 || to.missing[0].Column != 8 {
		t.Errorf("missing is %v", to.missing)
	}
	if err := f.Save(state().Sum, earlier); err == nil || says(t, path) != before {
		t.Errorf("a text without a secret was saved: %v", err)
	}
	save(strings.Replace(earlier, b, `"sk-again"`, 1))
	if text := says(t, path); text != strings.Replace(first, "sk-short", "sk-again", 1) {
		t.Errorf("the file says %s", text)
	}
	if kept := onDisk(t, history); strings.Contains(kept, "sk-") {
		t.Errorf("the folder of earlier texts has %s", kept)
	}
}

// The mask of a secret that somebody puts where no secret belongs stays a mask, and is a fault: neither differences nor
// what is said of faults show what it stands for (R-S6).
func TestMisplacedMask(t *testing.T) {
	dir := t.TempDir()
	token := regexp.MustCompile(`"token": ("[^"]*")`)
	f := &File{Path: filepath.Join(dir, "config.json"), History: filepath.Join(dir, "history"), Secrets: func(text string) (all []Secret) {
		for _, m := range token.FindAllStringSubmatchIndex(text, -1) {
			all = append(all, Secret{m[2], m[3], text[m[2]+1 : m[3]-1]})
		}
		return all
	}}
	put(t, f.Path, `{"token": "a-secret-of-some-length", "zone": "UTC"}`, 0o600)
	now, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	a := mask.FindString(now.Text)
	for _, text := range []string{
		strings.Replace(now.Text, `"UTC"`, a, 1), `{"zone": ` + a + `}`, `{"unknown": ` + a + `, "token": ` + a + `}`, "// " + a + "\n" + now.Text,
	} {
		to := f.fill(text, now)
		if strings.Contains(f.hide(to.text), "of-some") || len(to.missing) != 1 || !strings.Contains(to.missing[0].Text, "cannot stand here") {
			t.Errorf("%s is filled as %s, with the faults %v", text, to.text, to.missing)
		}
		if err := f.Save(now.Sum, text); err == nil || !strings.Contains(says(t, f.Path), `"UTC"`) {
			t.Errorf("%s was saved: %v", text, err)
		}
	}
}

// A mask shows no more of a secret than its end, also where the secret is only a part of the text.
func TestShownEnd(t *testing.T) {
	f := &File{History: t.TempDir()}
	for value, want := range map[string]string{
		"sk-first-secret-1f3a": "1f3a", "short-1f3a": "", "--api-key=xyz": "", "--api-key=sk-first-secret-1f3a": "1f3a",
		"https://me:LOGIN@a.example/v1": "", "https://a.example/mcp?token=abcd": "", "c2VjcmV0LW9mLXRoaXM=": "aXM=",
	} {
		got, _, _ := strings.Cut(strings.TrimPrefix(f.maskOf(Secret{Value: value}), `"••••`), " #")
		if got != want {
			t.Errorf("of %s %q is shown, want %q", value, got, want)
		}
	}
}

// A fault is shown where it is in the text with masks.
func TestShownFault(t *testing.T) {
	dir := t.TempDir()
	f := &File{Path: filepath.Join(dir, "config.json"), History: filepath.Join(dir, "history"), Secrets: quotedSecrets}
	put(t, f.Path, "{\n\"é\": \"sk-a\", \"b\": \"sk-a-very-long-secret-of-many-characters-indeed\", \"x\": 1 }", 0o600)
	now, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	to := f.fill(now.Text, now)
	for _, what := range []string{`"é"`, `"b"`, `"x"`} {
		line, column := placeOf(to.text[:strings.Index(to.text, what)])
		wantLine, wantColumn := placeOf(now.Text[:strings.Index(now.Text, what)])
		if got := to.shown(Fault{Line: line, Column: column}); got.Line != wantLine || got.Column != wantColumn {
			t.Errorf("%s is at %d:%d, shown at %d:%d, and not at %d:%d", what, line, column, got.Line, got.Column, wantLine, wantColumn)
		}
	}
	line, column := placeOf(to.text[:strings.Index(to.text, "very")])
	_, want := placeOf(now.Text[:strings.LastIndex(now.Text, `"••••`)])
	if got := to.shown(Fault{Line: line, Column: column}); got.Column != want {
		t.Errorf("a fault in a secret is shown at column %d, not %d", got.Column, want)
	}
}
