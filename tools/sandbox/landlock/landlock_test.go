package landlock_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/tools/sandbox"
	"parley/tools/sandbox/landlock"
)

// A workspace is a folder that programs may read, with one that they may change and one that they
// must not see.
func workspace(t *testing.T) (dir string, folders []sandbox.Folder) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range map[string]string{
		"AGENTS.md": "rules", "work/mine": "mine", ".parley/secret": "canary", "skills/a/SKILL.md": "skill",
	} {
		file := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(file), 0o700)
		if err == nil {
			err = os.WriteFile(file, []byte(content), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir, []sandbox.Folder{
		{Path: dir, Access: sandbox.ReadOnly},
		{Path: filepath.Join(dir, "work"), Access: sandbox.ReadWrite},
		{Path: filepath.Join(dir, ".parley"), Access: sandbox.Hidden},
	}
}

// R-S16: what Landlock itself does not know about is refused, too, and what ordinary programs do
// works. Each script is run in the folder that it may change.
func TestScripts(t *testing.T) {
	const no = `(Operation not permitted|Permission denied|Invalid cross-device link)`
	for _, c := range []struct{ name, script, want string }{
		{"read", "cat ../AGENTS.md ../skills/a/SKILL.md mine", `^rulesskillmine$`},
		{"hidden", "cat ../.parley/secret; ls ../.parley", no + `(.|\n)*` + no},
		{"write", "echo x >> ../AGENTS.md", no},
		{"new file beside", "echo x > ../new", no},
		{"rename over", "mv mine ../AGENTS.md", no},
		{"link out", "ln ../AGENTS.md a", no},
		{"link to hidden", "ln ../.parley/secret a", no},
		{"symbolic link", "ln -s ../AGENTS.md a && echo x >> a", no},
		{"truncate", "truncate -s 0 ../AGENTS.md", no},
		{"remove", "rm -f ../AGENTS.md", no},
		{"cut off by opening", `python3 -c 'import os; os.open("../AGENTS.md", os.O_RDONLY|os.O_TRUNC)'`, no},
		{"cut off its own", "truncate -s 1 mine && cat mine", `^m$`},
		{"mode by path", "chmod 666 ../AGENTS.md", no},
		{"mode by file", `python3 -c 'import os; os.fchmod(os.open("../AGENTS.md", os.O_RDONLY), 0o666)'`, no},
		{"mode by link", "ln -s ../AGENTS.md a && chmod 666 a", no},
		{"mode of hidden", "chmod 777 ../.parley", no},
		{"mode of its own", "chmod 750 mine && stat -c %a mine", `^750$`},
		{"mode of an open file", `python3 -c 'import os; os.fchmod(os.open("mine", os.O_RDONLY), 0o640)'; stat -c %a mine`, `^640$`},
		{"set-user-id", "cp /bin/true a && chmod 4755 a", no},
		{"times", "touch -d 2001-01-01 ../AGENTS.md", no},
		{"times of its own", "touch -d 2001-01-01T00:00:00Z mine && stat -c %Y mine", `^978307200$`},
		{"owner", "chown 12345 mine", no},
		{"same owner", "chown $(id -u) mine && echo ok", `^ok$`},
		{"attributes", `python3 -c 'import os; os.setxattr("../AGENTS.md", "user.a", b"x")'`, `Operation not supported`},
		{"watch", `python3 -c '
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.inotify_add_watch(libc.inotify_init(), b"../.parley", 0xfff)
print(os.strerror(ctypes.get_errno()))'`, no},
		{"socket", `python3 -c 'import socket; socket.socket()'`, no},
		{"other socket", `python3 -c 'import socket; socket.socket(socket.AF_UNIX)'`, no},
		{"pair of sockets", `python3 -c 'import socket; socket.socketpair(); print("ok")'`, `^ok$`},
		{"another's limits", `prlimit --nofile=10 --pid $PPID`, no},
		{"own limits", "ulimit -n 100 && ulimit -n", `^100$`},
		{"another's priority", "renice 19 $PPID", no},
		{"own priority", `until [ "$(nice)" = 10 ]; do :; done; nice -n 5 nice`, `^15$`}, // which it is given just after it began
		{"launcher", "kill -9 $PPID", no},
		{"launcher, by a file", `python3 -c 'import fcntl; fcntl.fcntl(0, 10, 9)'`, no}, // F_SETSIG
		{"own child", "sleep 60 & kill $! && wait $!; echo $?", `^143$`},
		{"namespace", "unshare --user true", no},
		{"shared memory", "ipcmk -M 10", no},
		{"capabilities", `python3 -c '
import ctypes
sets = (ctypes.c_uint32 * 6)()
ctypes.CDLL(None).capget((ctypes.c_uint32 * 2)(0x20080522, 0), sets)
print(sum(sets))'`, `^0$`},
		{"processes", "ls /proc; cat /proc/1/cmdline", no + `(.|\n)*` + no},
		{"substitution", "cat <(echo ok)", `^ok$`},
		{"git", "git init -q a && cd a && git config user.name a && git config user.email a@b && " +
			"echo x > y && git add y && git commit -qm z && git log --format=%s", `^z$`},
		{"archive", "mkdir a b && echo x > a/y && chmod 705 a && tar cf a.tar a && tar xf a.tar -C b && stat -c %a b/a", `^705$`},
		{"virtual environment", "python3 -m venv --without-pip a && a/bin/python -c 'print(1)'", `^1$`},
		{"temporary file", "cat $(mktemp) && python3 -c 'import tempfile; tempfile.TemporaryFile()' && echo ok", `^ok$`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, folders := workspace(t)
			before := state(t, dir)
			var out bytes.Buffer
			o, err := landlock.New().Run(t.Context(), sandbox.Spec{
				Args: []string{"bash", "-c", c.script}, Dir: filepath.Join(dir, "work"), Folders: folders,
				Stdout: &out, Stderr: &out,
			})
			if err != nil || o.End != sandbox.Exited {
				t.Fatal(o, err)
			}
			if text := bytes.TrimSpace(out.Bytes()); !regexp.MustCompile(c.want).Match(text) {
				t.Errorf("%s\nexit code %d, output %s\nwant %s", c.script, o.Exit, text, c.want)
			}
			if after := state(t, dir); after != before {
				t.Errorf("%s\nchanged what it must not: %s, before %s", c.script, after, before)
			}
		})
	}
}

// state returns what the protected file and the hidden folder are.
func state(t *testing.T, dir string) string {
	t.Helper()
	var text string
	for _, name := range []string{"AGENTS.md", ".parley"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		text += info.Mode().String() + info.ModTime().String()
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "AGENTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text += " " + filepath.Base(name)
	}
	return text + " " + string(content)
}

func TestNotRun(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		spec sandbox.Spec
		want string
	}{
		{sandbox.Spec{Args: []string{"no-such-program"}}, sandbox.ErrNoProgram.Error()},
		{sandbox.Spec{Args: []string{"true"}, Network: sandbox.Network{Hosts: []string{"pypi.org"}}}, sandbox.ErrHosts.Error()},
		{sandbox.Spec{Args: []string{script}}, "permission denied"}, // it is in no folder that the program sees
	} {
		o, err := landlock.New().Run(t.Context(), c.spec)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %+v, %v, want %s", c.spec.Args, o, err, c.want)
		}
	}
}
