package sandboxtest

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/tools/sandbox"
)

// seeSystem: programs of the machine run, with a temporary folder, devices and processes of their
// own, and without the machine's secrets.
func seeSystem(t *testing.T, s *suite) {
	out := s.script(t, `
		echo x >/dev/null && head -c 4 /dev/urandom | wc -c
		echo mine >$TMPDIR/file && cat $TMPDIR/file
		pwd >/dev/null
		grep -c :0:0: /etc/passwd
		for f in /etc/shadow /etc/sudoers /etc/ssh /root/.bashrc /var/run/docker.sock /run/docker.sock /etc/gshadow; do
			{ cat $f || ls $f/; } >/dev/null 2>&1 && echo $f can be read
		done
		true`, sandbox.Spec{})
	if want := "4\nmine\n1\n"; out != want {
		t.Errorf("wrote %q, not %q", out, want)
	}
	if out := s.script(t, "ls -A $TMPDIR", sandbox.Spec{}); out != "" {
		t.Errorf("the temporary folder of another program has %q", out)
	}
}

// seeItself: programs find themselves in /proc, and what there is in /.
func seeItself(t *testing.T, s *suite) {
	if out := s.script(t, "ls / >/dev/null; cat /proc/self/comm", sandbox.Spec{}); out != "cat\n" {
		t.Errorf("wrote %q", out)
	}
}

// makeBeside: something new can be made in a folder that holds one which must not be changed.
func makeBeside(t *testing.T, s *suite) {
	base := t.TempDir()
	read := filepath.Join(base, "read")
	if err := os.Mkdir(read, 0o755); err != nil {
		t.Fatal(err)
	}
	s.script(t, "echo new >file", sandbox.Spec{Dir: base, Folders: []sandbox.Folder{
		{Path: base, Access: sandbox.ReadWrite}, {Path: read, Access: sandbox.ReadOnly},
	}})
	if got := readAll(t, base); got["file"] != "new\n" {
		t.Errorf("left %q", got)
	}
}

// seeFolders: of a folder and one below it, the longer path counts, in whatever order they are.
func seeFolders(t *testing.T, s *suite) {
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, name) }
	for _, name := range []string{"a/read", "a/hidden/shown", "b"} {
		if err := os.MkdirAll(at(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"top", "a/file", "a/read/file", "a/hidden/file", "a/hidden/shown/file", "b/file"} {
		if err := os.WriteFile(at(name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	folders := []sandbox.Folder{
		{Path: at("a/hidden/shown"), Access: sandbox.ReadOnly},
		{Path: at("a"), Access: sandbox.ReadWrite},
		{Path: at("a/read"), Access: sandbox.ReadOnly},
		{Path: base, Access: sandbox.ReadOnly},
		{Path: at("a/hidden"), Access: sandbox.Hidden},
		{Path: at("missing"), Access: sandbox.ReadWrite},
	}
	script := `for f in top a/file a/read/file a/hidden/file a/hidden/shown/file b/file; do
			cat $f 2>/dev/null && echo
			(echo changed >$f) 2>/dev/null
			[ $f = a/file ] || (echo changed >$f-new) 2>/dev/null
		done; true`
	for range len(folders) {
		folders = append(folders[1:], folders[0])
		spec := sandbox.Spec{Dir: base, Folders: slices.Clone(folders)}
		out := s.script(t, script, spec)
		if want := "top\na/file\na/read/file\na/hidden/shown/file\nb/file\n"; out != want {
			t.Errorf("read %q, not %q", out, want)
		}
		wantFiles := map[string]string{
			"top": "top", "a/file": "changed\n", "a/read/file": "a/read/file",
			"a/hidden/file": "a/hidden/file", "a/hidden/shown/file": "a/hidden/shown/file", "b/file": "b/file",
		}
		if got := readAll(t, base); !maps.Equal(got, wantFiles) {
			t.Errorf("left %q, not %q", got, wantFiles)
		}
		if err := os.WriteFile(at("a/file"), []byte("a/file"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// readAll returns what the files below a folder have in them.
func readAll(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		all[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// seeEnvironment: R-S17. Programs get what Spec and BaseEnv say and nothing of Parley's, neither
// from their own environment nor from that of others.
func seeEnvironment(t *testing.T, s *suite) {
	t.Setenv("PARLEY_CANARY", "canary-"+"of-the-environment")
	spec := sandbox.Spec{Env: map[string]string{"OWN": "with space", "PAGER": "less"}}
	out := s.script(t, "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'", spec)
	if strings.Contains(out, "canary-of-the-environment") {
		t.Errorf("the environment of Parley is in %q", out)
	}
	allowed := append(slices.Collect(maps.Keys(sandbox.BaseEnv())),
		"OWN", "HOME", "TMPDIR", "PWD", "OLDPWD", "SHLVL", "_")
	got := map[string]string{}
	for line := range strings.Lines(s.script(t, "env", spec)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		got[name] = value
		if !slices.Contains(allowed, name) && !strings.HasPrefix(name, "GIT_") {
			t.Errorf("there is %s", strings.TrimSpace(line))
		}
	}
	want := map[string]string{"OWN": "with space", "PAGER": "less", "GIT_TERMINAL_PROMPT": "0", "LANG": "C.UTF-8"}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, not %q", name, got[name], value)
		}
	}
}
