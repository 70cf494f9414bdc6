package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/backup"
	"parley/requiretest"
)

// TestTortureSyscalls has the real program's calls of the system fail, each in
// its turn: whatever was answered is kept, what was there before stays, and the
// next start goes on (P18, P19).
func TestTortureSyscalls(t *testing.T) {
	t.Parallel()
	strace := requiretest.Program(t, "strace")
	rnd := seeded(t)
	base := newTestGateway(t, echo)
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
		w := &testGateway{t: t, dir: t.TempDir(), tg: base.tg, llm: base.llm}
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
func ourselves(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("parley")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTortureUpgrade kills the program at the moments when it writes to the
// store of an older release for the first time: all that was said is there after
// the next start, and what is said meanwhile is answered once (P1, P3, P18).
func TestTortureUpgrade(t *testing.T) {
	t.Parallel()
	strace := requiretest.Program(t, "strace")
	rnd := seeded(t)
	stores, err := filepath.Glob("testdata/releases/*.db.gz")
	if err != nil || len(stores) == 0 {
		t.Fatalf("no stores of releases: %v", err)
	}
	calls := []string{"pwrite64", "fdatasync", "fsync", "renameat", "ftruncate", "write", "openat", "unlinkat"}
	killed := 0
	for i := range bouts(4, 200) {
		w := newTestGateway(t, echo)
		unzip(t, filepath.Join(w.dir, backup.StoreFile), stores[i%len(stores)])
		w.fillWorkspace()
		w.config()
		w.tg.Say(person, "during the upgrade")
		for range 1 + rnd.IntN(2) {
			fault := fmt.Sprintf("%[1]s:signal=KILL:when=%[2]d", calls[rnd.IntN(len(calls))], 1+rnd.IntN(8))
			patience := 2 * time.Second
			if i == 0 {
				fault = "pwrite64:signal=KILL:when=1" // every start makes this call
				patience = waitTime
			}
			w.program, w.args = strace, []string{"-f", "-qq", "-o", "/dev/null", "-e", "inject=" + fault}
			if w.killedIn(patience) {
				killed++
			}
		}
		w.program, w.args = "", nil
		w.start()
		w.tg.Say(person, "after the upgrade")
		texts := w.told(person, "both answers", func(texts []string) bool {
			said := strings.Join(texts, "\n")
			return strings.Contains(said, "during the upgrade") && strings.Contains(said, "after the upgrade")
		})
		if said := strings.Join(texts, "\n"); strings.Count(said, "during the upgrade") != 1 || strings.Count(said, "after the upgrade") != 1 {
			t.Errorf("the bot said %q", texts)
		}
		w.holdsRelease()
		w.stop()
	}
	if killed == 0 {
		t.Error("nothing was killed")
	}
	t.Logf("%d kills", killed)
}

// killedIn runs the gateway under strace, which has it killed, and kills it
// otherwise when patience is over. It reports whether strace did.
func (w *testGateway) killedIn(patience time.Duration) bool {
	w.t.Helper()
	cmd := w.command()
	cmd.Args = slices.Concat([]string{w.program}, w.args, []string{ourselves(w.t)}, cmd.Args[1:])
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what strace has started is killed with it
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	killer := time.AfterFunc(patience, func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended
	})
	_ = cmd.Wait() // it was killed
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return killer.Stop() && status.Signaled() // as strace ends if what it has started does
}
