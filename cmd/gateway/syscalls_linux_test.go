package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// needs returns the path of a program, without which the test is skipped, or
// fails where all programs are required.
func needs(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	if os.Getenv("PARLEY_REQUIRE") == "all" {
		t.Fatal(err)
	}
	t.Skip(err)
	return ""
}

// TestTortureSyscalls has the real program's calls of the system fail, each in
// its turn: whatever was answered is kept, what was there before stays, and the
// next start goes on (P18, P19).
func TestTortureSyscalls(t *testing.T) {
	t.Parallel()
	strace := needs(t, "strace")
	rnd := seeded(t)
	base := newTown(t, echo)
	base.config()
	if out, code := base.run("", "chat", "-m", "the first"); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	calls := []string{"fsync", "fdatasync", "pwrite64", "ftruncate", "renameat", "openat", "mkdirat", "unlinkat", "write"}
	faults := []string{"EIO", "ENOSPC"}
	confirmed := 0
	for i := range bouts(9, 400) {
		call, fault := calls[i%len(calls)], faults[rnd.IntN(len(faults))]
		when := 1 + rnd.IntN(12)
		name := fmt.Sprintf("%s:error=%s:when=%d", call, fault, when)
		w := &town{t: t, dir: t.TempDir(), tg: base.tg, llm: base.llm}
		if err := os.CopyFS(w.dir, os.DirFS(base.dir)); err != nil {
			t.Fatal(err)
		}
		cmd := w.command("chat", "-m", "the second")
		cmd.Path = strace
		cmd.Args = append([]string{"strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + call, "-e", "inject=" + name, ourselves(t)}, cmd.Args[1:]...)
		var out strings.Builder
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		killer := time.AfterFunc(4*time.Second, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		killer.Stop()
		answered := err == nil && strings.Contains(out.String(), "heard the second")
		if after, code := w.run("", "chat", "-m", "the third"); code != 0 || !strings.Contains(after, "the third") { // with the second, if that waited
			t.Fatalf("after %s: exit code %d: %s\nlog:\n%s", name, code, after, w.log.String())
		}
		said := w.exported("console:local")
		if !strings.Contains(said, "heard the first") || answered && !strings.Contains(said, "heard the second") {
			t.Errorf("after %s: answered %v, and there is\n%s", name, answered, said)
		}
		if answered {
			confirmed++
		}
		aside, _ := filepath.Glob(filepath.Join(w.dir, "parley.db*damaged*"))
		if len(aside) > 0 {
			t.Errorf("after %s the store was damaged: %q", name, aside)
		}
	}
	t.Logf("answered %d times", confirmed)
}

// ourselves returns the path of the program under test.
func ourselves(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("parley")
	if err != nil {
		t.Fatal(err)
	}
	return path
}
