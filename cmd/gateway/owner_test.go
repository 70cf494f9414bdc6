package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"parley/chat"
	"parley/config"
	"parley/store/bolt"
)

const otherUser = 4711 // of this machine, not root

// ownedBy gives the testGateway's data folder to the user uid, who runs its gateway.
func (w *testGateway) ownedBy(uid int) {
	w.t.Helper()
	if os.Geteuid() != 0 {
		w.t.Skip("only root can act as other users")
	}
	for dir := w.dir; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			w.t.Fatal(err)
		}
	}
	self, err := exec.LookPath("parley")
	if err != nil {
		w.t.Fatal(err)
	}
	program := filepath.Join(w.t.TempDir(), "parley") // the test's own is where only root gets
	for dir := filepath.Dir(program); len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := copyProgram(program, self); err != nil {
		w.t.Fatal(err)
	}
	w.program = program
	w.config()
	err = filepath.WalkDir(w.dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, uid, uid))
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.uid = uid
}

// TestRootLeavesNothingBehind: what root asks in the data folder of another user
// is done as that user, whose gateway starts afterwards as before, whether it
// was running or not.
func TestRootLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	w.ownedBy(otherUser)
	asRoot := func() {
		t.Helper()
		for _, args := range [][]string{{"sessions", "list"}, {"status"}, {"chat", "-m", "hi"}, {"doctor"}, {"link"}} {
			cmd := w.command(args...)
			cmd.SysProcAttr = nil
			if out, err := cmd.Output(); err != nil && args[0] != "doctor" {
				t.Errorf("%v: %v\n%s", args, err, out)
			}
		}
		err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
			info, err2 := d.Info()
			if err := errors.Join(err, err2); err != nil {
				return err
			}
			if s := info.Sys().(*syscall.Stat_t); s.Uid != otherUser {
				t.Errorf("%s belongs to user %d", path, s.Uid)
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	asRoot()
	w.start()
	w.tg.Say(person, "one")
	w.says(person, "heard one")
	asRoot()
	w.stop()
	for _, socket := range []string{"parley.sock", "admin.sock"} {
		if _, err := os.Lstat(filepath.Join(w.dir, socket)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left behind: %v", socket, err)
		}
	}
}

// TestSocketsOfAnotherUser: sockets that a process of root has left in the data
// folder are replaced; a lock of root's is told of in words.
func TestSocketsOfAnotherUser(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	w.ownedBy(otherUser)
	for _, name := range []string{"parley.sock", "admin.sock"} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(w.dir, name), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		if err := errors.Join(l.Close(), os.Chmod(filepath.Join(w.dir, name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	w.start()
	w.tg.Say(person, "one")
	w.says(person, "heard one")
	if out, code := w.run("", "status"); code != 0 || !strings.Contains(out, "up since") {
		t.Errorf("status: %d\n%s", code, out)
	}
	w.stop()
	if err := os.Chown(filepath.Join(w.dir, "lock"), 0, 0); err != nil {
		t.Fatal(err)
	}
	w.start()
	<-w.proc.ended
	if want := fmt.Sprintf("belongs to user 0, and this is user %d", otherUser); !strings.Contains(w.log.String(), want) {
		t.Errorf("the log does not say %q", want)
	}
}

// TestFilesOfNoUse: files that the user who runs Parley may not write to are
// told of by the program and by doctor alike, with what helps, and nothing
// changes.
func TestFilesOfNoUse(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	w.ownedBy(otherUser)
	if _, code := w.run("", "chat", "-m", "one"); code != 0 {
		t.Fatalf("chat: %d", code)
	}
	toRoot := func(path string) error { return os.Lchown(path, 0, 0) }
	toNone := func(path string) error { return os.Chmod(path, 0o500) }
	back := func(path string, mode fs.FileMode) error {
		return errors.Join(os.Lchown(path, otherUser, otherUser), os.Chmod(path, mode))
	}
	another := fmt.Sprintf("belongs to user 0, and this is user %d; run Parley as that user, or: sudo chown -R %[1]d %s", otherUser, w.dir)
	for _, tt := range []struct {
		name  string // of the file; "": the data folder
		spoil func(string) error
		want  string
	}{
		{"lock", toRoot, another},
		{"parley.db", toRoot, another},
		{"parley.db.mark", toRoot, another},
		{"workspace", toRoot, another + "/workspace"},
		{"config.json", toRoot, another},
		{"lock", toNone, "chmod u+rwX " + w.dir + "/lock"},
		{"parley.db", toNone, "chmod u+rwX " + w.dir + "/parley.db"},
		{"", toNone, "chmod u+rwX " + w.dir},
	} {
		path := filepath.Join(w.dir, tt.name)
		info, err := os.Stat(path)
		if err == nil {
			err = tt.spoil(path)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"run"}, {"sessions", "list"}, {"chat", "-m", "two"}, {"doctor"}} {
			before := len(w.log.String())
			out, code := w.run("", args...)
			if said := out + w.log.String()[before:]; code == 0 || !strings.Contains(said, tt.want) {
				t.Errorf("%v, %s of %d, mode %v: exit code %d, and it does not say %q:\n%s", args, tt.name, otherUser, info.Mode(), code, tt.want, said)
			}
		}
		if err := back(path, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	if out, code := w.run("", "sessions", "show", "console:local"); code != 0 || strings.Contains(out, "two") {
		t.Errorf("afterwards: %d\n%s", code, out)
	}
}

// TestStartDuringBriefCommand: P17. A gateway that starts while a command has
// the data folder waits for it.
func TestStartDuringBriefCommand(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	w.config()
	s, err := bolt.Open(t.Context(), bolt.Config{Dir: w.dir, Brief: true})
	if err != nil {
		t.Fatal(err)
	}
	w.start()
	w.logs("waiting for another process", 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	w.tg.Say(person, "one")
	w.says(person, "heard one")
}

// TestCommandsBesideRestarts: whatever is asked while the gateway is started
// anew, time and again, each start succeeds and each question is answered.
func TestCommandsBesideRestarts(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	w.start()
	w.tg.Say(person, "one")
	w.says(person, "heard one")
	ctx, stop := context.WithCancel(t.Context())
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for n := 0; ctx.Err() == nil; n++ {
			cmd := w.command([][]string{{"chat", "-m", "hi"}, {"sessions", "list"}}[n%2]...)
			if out, err := cmd.Output(); err != nil {
				t.Errorf("%v: %v\n%s", cmd.Args[3:], err, out)
			}
		}
	}()
	for i := range 4 {
		if code := w.stop(); code != 0 {
			t.Errorf("the gateway ended with %d", code)
		}
		w.start()
		w.tg.Say(person, fmt.Sprint("again ", i))
		w.says(person, fmt.Sprint("heard again ", i))
	}
	stop()
	<-asked
}

// TestSharedWorkspace: two gateways with one workspace tell their owners.
func TestSharedWorkspace(t *testing.T) {
	t.Parallel()
	one, two := newTestGateway(t, echo), newTestGateway(t, echo)
	two.more["workspace"] = filepath.Join(one.dir, "workspace")
	one.start()
	one.tg.Say(person, "one")
	one.says(person, "heard one")
	two.start()
	two.told(person, "that the workspace is shared", func(texts []string) bool {
		return len(texts) > 0 && strings.Contains(texts[0], "Another gateway uses my workspace")
	})
	if out, _ := two.run("", "doctor"); !regexp.MustCompile(`warn +gateway +runs.*\n.*Another gateway uses my workspace`).MatchString(out) {
		t.Errorf("doctor says nothing of it:\n%s", out)
	}
}

// copyProgram copies a program so that every user can run it.
func copyProgram(to, from string) error {
	code, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(to, code, 0o755), os.Chmod(to, 0o755))
}

// TestGatewayEndsBetweenRequests checks that a command which asked a running
// gateway goes on if that gateway ends before the next request.
func TestGatewayEndsBetweenRequests(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	w.start()
	w.tg.Say(person, "one")
	w.says(person, "heard one")
	p := &program{
		stderr: &w.log, data: w.dir, drivers: drivers(),
		environ: config.NewEnviron([]string{"TOWN_MODEL_KEY=" + canaryKey, "TOWN_BOT_TOKEN=" + w.tg.Token()}),
	}
	a, err := p.admin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Status(t.Context()); err != nil || !a.Running() {
		t.Fatalf("status: %v, want that of the gateway that runs", err)
	}
	w.stop()
	var sessions struct{ Talks []chat.Talk }
	err = a.Ask(t.Context(), "GET", "/api/sessions", nil, &sessions)
	if err != nil || len(sessions.Talks) != 1 || a.Running() {
		t.Errorf("sessions: %v, %v", sessions, err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}
