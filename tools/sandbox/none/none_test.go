package none_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/tools/sandbox"
	"parley/tools/sandbox/none"
)

// Programs end as their limits say.
func TestEnds(t *testing.T) {
	for _, c := range []struct {
		script string
		limits sandbox.Limits
		end    sandbox.End
		exit   int
		out    string
	}{
		{"cat; exit 3", sandbox.Limits{}, sandbox.Exited, 3, "input"},
		{"kill -9 $$", sandbox.Limits{}, sandbox.Exited, 137, ""},
		{"sleep 60 & echo held", sandbox.Limits{}, sandbox.Exited, 0, "held\n"},
		{"trap '' TERM; sleep 60", sandbox.Limits{Wall: 100 * time.Millisecond}, sandbox.TimedOut, -1, ""},
		{"while :; do :; done", sandbox.Limits{CPU: time.Second}, sandbox.Exceeded, -1, ""},
		{"yes | head -c 10000000", sandbox.Limits{Output: 4}, sandbox.Exited, 0, "y\ny\n"},
	} {
		var out bytes.Buffer
		o, err := (none.Runner{}).Run(t.Context(), sandbox.Spec{
			Args: []string{"sh", "-c", c.script}, Stdin: strings.NewReader("input"), Stdout: &out, Limits: c.limits,
		})
		if err != nil || o.End != c.end || o.Exit != c.exit || out.String() != c.out {
			t.Errorf("%q ended with %+v, %v and wrote %q", c.script, o, err, out.String())
		}
	}
}

// R-S17: a program gets nothing of Parley's environment.
func TestEnvironment(t *testing.T) {
	t.Setenv("PARLEY_SECRET", "canary")
	var out bytes.Buffer
	spec := sandbox.Spec{Args: []string{"env"}, Stdout: &out, Env: map[string]string{"OWN": "1"}}
	if _, err := (none.Runner{}).Run(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "canary") || !strings.Contains(out.String(), "OWN=1\n") {
		t.Errorf("the environment is %s", out.String())
	}
}

// Nothing confines a program to hosts, or to none: it runs, whatever it is to reach.
func TestHosts(t *testing.T) {
	spec := sandbox.Spec{Args: []string{"true"}, Network: sandbox.Network{Hosts: []string{"pypi.org"}}}
	if o, err := (none.Runner{}).Run(t.Context(), spec); err != nil || o.Exit != 0 || o.WithoutHosts {
		t.Errorf("%+v, %v", o, err)
	}
	if sandbox.ConfinesHosts(t.Context(), none.Runner{}) {
		t.Error("it says that it confines programs to hosts")
	}
}

func TestNoProgram(t *testing.T) {
	for _, args := range [][]string{nil, {"no-such-program"}} {
		if _, err := (none.Runner{}).Run(t.Context(), sandbox.Spec{Args: args}); !errors.Is(err, sandbox.ErrNoProgram) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// userVariable is set in the process of an ordinary user in which a test of root is run again.
const userVariable = "PARLEY_TEST_AS_USER"

// TestTempFolder finds that nothing is left of the temporary folder of a program, though the program took the
// rights to a folder in it from everybody. Root needs none.
func TestTempFolder(t *testing.T) {
	if os.Getuid() == 0 && os.Getenv(userVariable) == "" {
		const user = 65534
		temp, err := os.MkdirTemp("/tmp", "none-") // those of t can be entered by root only
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(temp)
		if err := os.Chown(temp, user, user); err != nil {
			t.Fatal(err)
		}
		again := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$")
		again.Dir = temp
		again.Env = []string{userVariable + "=1", "TMPDIR=" + temp}
		again.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		if out, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	var out bytes.Buffer
	script := `echo "$TMPDIR"; cd "$TMPDIR" && mkdir -p a/b && touch a/b/c && chmod 0 a/b a`
	spec := sandbox.Spec{Args: []string{"sh", "-c", script}, Stdout: &out}
	if _, err := (none.Runner{}).Run(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(strings.TrimSpace(out.String())); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there (%v)", out.String(), err)
	}
}
