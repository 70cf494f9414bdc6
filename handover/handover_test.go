package handover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"parley/store/bolt"
	"parley/store/bolt/dirlock"
	"parley/store/storetest"
)

// fill makes a data folder with a store that has something in it.
func fill(t *testing.T, dir string) {
	t.Helper()
	s, err := bolt.Open(t.Context(), bolt.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Bucket("test").Put(t.Context(), "key", []byte("value"), 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"config.json": "{}", "environment": "A=b", "workspace/people/x/MEMORY.md": "tea"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// isWhole reports whether dir has all that fill made.
func isWhole(ctx context.Context, t *testing.T, dir string) bool {
	t.Helper()
	s, err := bolt.Open(ctx, bolt.Config{Dir: dir})
	if err != nil {
		t.Error(err)
		return false
	}
	value, _, err := s.Bucket("test").Get(ctx, "key")
	text, err2 := os.ReadFile(filepath.Join(dir, "workspace/people/x/MEMORY.md"))
	info, err3 := os.Stat(filepath.Join(dir, "environment"))
	if err := errors.Join(err, err2, err3, s.Close()); err != nil {
		t.Error(err)
		return false
	}
	return string(value) == "value" && string(text) == "tea" && info.Mode() == 0o600
}

// TestKilled kills a move at each step. At each, one of the two folders can be started, never both, and
// nothing is lost; and the move can be done again.
func TestKilled(t *testing.T) {
	const dirName, stepName = "PARLEY_MOVE_DIR", "PARLEY_MOVE_STEP"
	if dir := os.Getenv(dirName); dir != "" {
		steps, err := strconv.Atoi(os.Getenv(stepName))
		if err != nil {
			t.Fatal(err)
		}
		step := func() {
			if steps--; steps == 0 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		}
		if err := (Move{From: dir + "/old", To: dir + "/new", step: step}).Do(); err != nil {
			t.Fatal(err)
		}
		return
	}
	for step := 1; ; step++ {
		dir := storetest.TempDir(t)
		from, to := dir+"/old", dir+"/new"
		fill(t, from)
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilled$")
		child.Env = append(os.Environ(), dirName+"="+dir, fmt.Sprint(stepName, "=", step))
		out, err := child.CombinedOutput()
		end, killed := errors.AsType[*exec.ExitError](err)
		if killed && end.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%s", out)
		}
		old, new := Check(from) == nil, Check(to) == nil
		if old == new {
			t.Errorf("step %d: old can be started: %v, new: %v", step, old, new)
		}
		if old && !isWhole(t.Context(), t, from) || new && !isWhole(t.Context(), t, to) {
			t.Errorf("step %d: something is lost", step)
		}
		if old {
			if err := (Move{From: from, To: to}).Do(); err != nil {
				t.Errorf("step %d: again: %v", step, err)
			}
		}
		if Check(from) == nil || Check(to) != nil || !isWhole(t.Context(), t, to) {
			t.Errorf("step %d: not moved: %v", step, Check(to))
		}
		if !killed {
			if step < 8 {
				t.Errorf("only %d steps", step)
			}
			return
		}
	}
}

// TestLinks: a data folder that is a symbolic link is moved whole, one folder is seen as itself by whatever name, and a
// link does not hide that one folder is in the other.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir+"/disk/old")
	for name, target := range map[string]string{"link": dir + "/disk/old", "around": dir + "/disk"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := (Move{From: dir + "/link", To: dir + "/around/old/x"}).Do(); err == nil || !strings.Contains(err.Error(), "in one another") {
		t.Error(err)
	}
	if err := (Move{From: dir + "/link", To: dir + "/around/new"}).Do(); err != nil {
		t.Fatal(err)
	}
	if !isWhole(t.Context(), t, dir+"/disk/new") || Check(dir+"/around/new") != nil {
		t.Error("not all of it arrived")
	}
	if Check(dir+"/link") == nil || Check(dir+"/disk/old") == nil {
		t.Error("the old folder can be started")
	}
}

// TestLinksInside: links in the folder that lead into it by its whole name lead into the new one afterwards; others lead
// where they did.
func TestLinksInside(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir+"/old")
	links := map[string][2]string{
		"whole": {dir + "/old/workspace/people", dir + "/new/workspace/people"}, "by-link": {dir + "/link/environment", dir + "/new/environment"},
		"itself": {dir + "/old", dir + "/new"}, "dangling": {dir + "/old/none", dir + "/new/none"},
		"relative": {"workspace", "workspace"}, "beside": {dir + "/older/x", dir + "/older/x"}, "away": {"/etc", "/etc"},
	}
	if err := os.Symlink(dir+"/old", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	for name, c := range links {
		if err := os.Symlink(c[0], filepath.Join(dir, "old", name)); err != nil {
			t.Fatal(err)
		}
	}
	m := Move{From: dir + "/old", To: dir + "/new", Instead: map[string][]byte{"config.json": []byte("{ }")}}
	if err := m.Do(); err != nil {
		t.Fatal(err)
	}
	for name, c := range links {
		if to, err := os.Readlink(filepath.Join(dir, "new", name)); err != nil || to != c[1] {
			t.Errorf("%s leads to %s, %v, and not to %s", name, to, err, c[1])
		}
	}
	old, err := os.ReadFile(dir + "/old/config.json")
	text, err2 := os.ReadFile(dir + "/new/config.json")
	if string(old) != "{}" || string(text) != "{ }" || errors.Join(err, err2) != nil {
		t.Errorf("the config was %s and is %s, %v, %v", old, text, err, err2)
	}
}

// TestRefusals checks that nothing is moved over other data, into itself, twice, or from under a gateway.
func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	from, to := dir+"/old", dir+"/new"
	fill(t, from)
	fill(t, dir+"/other")
	unlock, err := dirlock.Lock(from, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{from, to, "in use by process"},
		{from, from + "/x", "in one another"},
		{from, from, "in one another"},
		{dir + "/none", to, "no such file"},
	} {
		if err := (Move{From: c.from, To: c.to}).Do(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s to %s: %v", c.from, c.to, err)
		}
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if err := (Move{From: from, To: dir + "/other"}).Do(); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Error(err)
	}
	if err := (Move{From: from, To: to}).Do(); err != nil {
		t.Fatal(err)
	}
	if err := (Move{From: from, To: dir + "/third"}).Do(); err == nil || !strings.Contains(err.Error(), "was moved to "+to) {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(from, movedName)); err != nil { // as the error says
		t.Fatal(err)
	}
	if Check(from) != nil || !isWhole(t.Context(), t, from) {
		t.Error("taking it back failed")
	}
}
