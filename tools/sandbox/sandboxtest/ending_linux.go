package sandboxtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/tools/sandbox"
)

// newMark returns a text by which processes can be found that have it among their arguments.
func newMark() string { return "MARK=" + rand.Text() }

// marked returns the processes of this machine with that among their arguments or in their
// environment.
func marked(t *testing.T, mark string) []string {
	t.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, folder := range folders {
		if folder == "/proc/"+strconv.Itoa(os.Getpid()) {
			continue
		}
		for _, name := range []string{"cmdline", "environ"} {
			content, _ := os.ReadFile(filepath.Join(folder, name)) // it may have ended
			if !bytes.Contains(content, []byte(mark)) {
				continue
			}
			shown := bytes.ReplaceAll(content, []byte{0}, []byte(" "))
			all = append(all, filepath.Base(folder)+" "+string(shown))
			break
		}
	}
	return all
}

// checkGone checks that no process with a mark is alive. Nothing is waited for.
func checkGone(t *testing.T, mark string) {
	t.Helper()
	left := marked(t, mark)
	if len(left) > 0 {
		t.Errorf("alive: %q", left)
	}
	for _, one := range left { // these are of this test
		number, _, _ := strings.Cut(one, " ")
		if pid, err := strconv.Atoi(number); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// escapes are ways to outlive the program that was run. MARK is in the environment of all of them.
var escapes = map[string]string{
	"background":      `sleep 1000 & sleep 1000 &`,
	"new session":     `setsid sleep 1000 & sleep 0.1`,
	"double fork":     `(setsid sh -c '(setsid sh -c "trap \"\" TERM HUP INT; sleep 1000; sleep 1000" &) &' &); sleep 0.1`,
	"deaf":            `sh -c 'trap "" TERM HUP INT; while :; do sleep 1000; done' & sleep 0.1`,
	"held-open pipes": `(setsid sh -c 'exec sleep 1000' &)`,
	"stopped":         `sh -c 'kill -STOP $$; sleep 1000' & sleep 0.1`,
	"fleas":           fleas,
	"while it ends":   `f() { [ $1 -gt 0 ] && { (sleep 0.001; f $(($1-1))) & }; }; f 3000; f 3000`,
}

// multiplying are the escapes that have as many processes as they may. Where there are no cgroups the kernel counts those
// of a user, and beside them another program of that user may not start.
var multiplying = map[string]bool{"fleas": true, "while it ends": true}

// stay: nothing that a program starts outlives it, however it ends, and what holds its output open
// keeps nobody waiting.
func stay(t *testing.T, s *suite) {
	for name, script := range escapes {
		for how, then := range map[string]string{"done": "exit 0", "time": "sleep 1000", "cancelled": "sleep 1000"} {
			t.Run(name+", "+how, func(t *testing.T) {
				if !multiplying[name] {
					t.Parallel() // they wait most of the time
				}
				s.skipExcepted(t)
				mark := newMark()
				spec := sandbox.Spec{Args: []string{"env", mark, "sh", "-c", script + "\n" + then}}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				want := sandbox.Exited
				switch how {
				case "time":
					want = sandbox.TimedOut
					spec.Limits.Wall = 300 * time.Millisecond
				case "cancelled":
					want = sandbox.Cancelled
					defer time.AfterFunc(300*time.Millisecond, stop).Stop()
				}
				begin := time.Now()
				r := s.runContext(ctx, t, spec)
				checkGone(t, mark)
				// Fleas may reach the limit of processes before the program has ended.
				ended := r.outcome.End == want || name == "fleas" && r.outcome.End == sandbox.Exceeded
				if r.err != nil || !ended {
					t.Errorf("ended with %+v, %v: %s", r.outcome, r.err, r.stderr.String())
				}
				if took := time.Since(begin); took > patience {
					t.Errorf("took %v", took)
				}
			})
		}
	}
}

// stayUnderLoad: nothing outlives a program on a machine that has no time for those that end it.
func stayUnderLoad(t *testing.T, s *suite) {
	for range spinners {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}()
	}
	for name, script := range map[string]string{"fleas": fleas + "; sleep 60", "swarm": swarm} {
		for range 2 {
			mark := newMark()
			r := s.run(t, sandbox.Spec{
				Args:   []string{"env", mark, "sh", "-c", script},
				Limits: sandbox.Limits{Processes: 50, Wall: time.Second / 2},
			})
			if r.err != nil || r.outcome.End == sandbox.Exited {
				t.Errorf("%s ended with %+v, %v: %.300s", name, r.outcome, r.err, r.stderr.String())
			}
			if r.outcome.Took > 3*patience {
				t.Errorf("%s took %v", name, r.outcome.Took)
			}
			checkGone(t, mark)
		}
	}
}

// spinners is how many processes make the load of stayUnderLoad.
const spinners = 8

// leaveZombies: what ends unnoticed by the program does not stay as a zombie of Parley.
func leaveZombies(t *testing.T, s *suite) {
	s.script(t, `i=0; while [ $i -lt 20 ]; do (sleep 0.01 &); i=$((i+1)); done; sleep 0.2`, sandbox.Spec{})
	s.run(t, sandbox.Spec{
		Args:   []string{"sh", "-c", `i=0; while [ $i -lt 20 ]; do (setsid sleep 100 &); i=$((i+1)); done; sleep 100`},
		Limits: sandbox.Limits{Wall: 300 * time.Millisecond},
	})
	children, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range children {
		content, _ := os.ReadFile(file) // a thread may have ended
		if len(bytes.TrimSpace(content)) > 0 {
			t.Errorf("there are still the children %s", content)
		}
	}
}

// gatewayScript is what a process runs that is killed: it has a double fork that ignores signals.
const gatewayScript = `(setsid sh -c '(setsid sh -c "trap \"\" TERM HUP INT; echo ready; sleep 1000" &) &' &); sleep 1000`

// beGateway runs a program until this process is killed.
func (s *suite) beGateway(t *testing.T) {
	spec := sandbox.Spec{Args: []string{"env", os.Getenv(markVariable), "sh", "-c", gatewayScript}, Stdout: os.Stdout}
	r := s.run(t, spec)
	t.Errorf("the program ended first: %+v, %v: %s", r.outcome, r.err, r.stderr.String())
}

// killGateway: if Parley is killed, its programs do not stay, neither those that left the session.
func killGateway(t *testing.T, s *suite) {
	mark := newMark()
	cmd := s.again(t, roleGateway, os.Getuid())
	cmd.Env = append(cmd.Env, markVariable+"="+mark)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	told := &bytes.Buffer{}
	for one := make([]byte, 256); !strings.Contains(told.String(), "ready"); {
		n, err := out.Read(one)
		told.Write(one[:n])
		if err != nil {
			t.Fatalf("the gateway ended: %v\n%s", err, told)
		}
	}
	if len(marked(t, mark)) < 2 {
		t.Error("the program does not run")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
	for deadline := time.Now().Add(patience); len(marked(t, mark)) > 0 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	checkGone(t, mark)
}

// runTogether: programs at the same time do not disturb one another.
func runTogether(t *testing.T, s *suite) {
	runner := s.open(t)
	const programs = 8
	results := make(chan string, programs)
	ctx, stop := context.WithCancel(t.Context())
	for i := range programs {
		go func() {
			var out bytes.Buffer
			own := t.Context()
			script := fmt.Sprintf("(setsid sleep 1 &); sleep 0.3; echo %d", i)
			if i%2 == 1 {
				own = ctx
				script = "(setsid sleep 1000 &); sleep 1000"
			}
			o, err := runner.Run(own, sandbox.Spec{Args: []string{"sh", "-c", script}, Stdout: &out})
			results <- fmt.Sprintf("%s %d %v %s", o.End, o.Exit, err, strings.TrimSpace(out.String()))
		}()
	}
	time.AfterFunc(100*time.Millisecond, stop)
	var got, want []string
	for i := range programs {
		got = append(got, <-results)
		if i%2 == 1 {
			want = append(want, "cancelled -1 <nil> ")
		} else {
			want = append(want, fmt.Sprintf("exited 0 <nil> %d", i))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("ended with %q, not %q", got, want)
	}
}
