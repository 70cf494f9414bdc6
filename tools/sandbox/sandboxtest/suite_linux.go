package sandboxtest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/requiretest"
	"parley/tools/sandbox"
)

// Exceptions are tests that a driver cannot pass by its nature, and why. They are named as the last
// part of what go test shows.
type Exceptions map[string]string

// What a process of the test's own program does, by its first argument.
const (
	commandAttempts = "sandboxtest-attempts"
	commandEat      = "sandboxtest-eat" // takes as many bytes of memory as it is told
)

// What a test in a process of its own is, by a variable of its environment.
const (
	roleVariable   = "PARLEY_SANDBOXTEST"
	roleUser       = "user"    // the suite, as an ordinary user
	roleGateway    = "gateway" // a process that runs a program, and is killed
	markVariable   = "PARLEY_SANDBOXTEST_MARK"
	firstUser      = 61000 // of users that are not on any machine
	patience       = 10 * time.Second
	gatewayTimeout = time.Minute
)

// Main is to be what the TestMain of a driver's tests calls: their program is also run in sandboxes.
func Main(m *testing.M) int {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case commandAttempts:
			return runAttempts(os.Args[2:])
		case commandEat:
			return eat(os.Args[2:])
		}
	}
	return m.Run()
}

// Run checks the runners that open returns.
func Run(t *testing.T, open func(t *testing.T) sandbox.Runner, except Exceptions) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &suite{open: open, except: except, self: self}
	switch os.Getenv(roleVariable) {
	case roleGateway:
		s.beGateway(t)
		return
	case roleUser:
		s.runAll(t)
		return
	}
	if os.Getuid() != 0 {
		t.Run("ordinary user", s.runAll)
		t.Run("root", func(t *testing.T) { requiretest.Missing(t, "this test does not run as root") })
		return
	}
	t.Run("root", s.runAll)
	t.Run("ordinary user", s.runAsUser)
}

// A suite tests one driver.
type suite struct {
	open   func(t *testing.T) sandbox.Runner
	except Exceptions
	self   string // the program of this test
}

func (s *suite) skipExcepted(t *testing.T) {
	t.Helper()
	name := t.Name()[strings.LastIndex(t.Name(), "/")+1:]
	if reason, is := s.except[strings.ReplaceAll(name, "_", " ")]; is {
		t.Skip(reason)
	}
}

// runAll runs every test.
func (s *suite) runAll(t *testing.T) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *suite)
	}{
		{"get out", tryToGetOut},
		{"system", seeSystem},
		{"itself", seeItself},
		{"folders", seeFolders},
		{"new beside narrower", makeBeside},
		{"environment", seeEnvironment},
		{"input", readInput},
		{"exit codes", exit},
		{"network", useNetwork},
		{"limits", exceedLimits},
		{"output", writeMuch},
		{"nothing stays", stay},
		{"nothing stays under load", stayUnderLoad},
		{"zombies", leaveZombies},
		{"gateway killed", killGateway},
		{"at the same time", runTogether},
		{"bad input", askNonsense},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.skipExcepted(t)
			test.run(t, s)
		})
	}
}

// runAsUser runs the test again in a process of an ordinary user.
func (s *suite) runAsUser(t *testing.T) {
	user := firstUser + os.Getpid()%1000 // the kernel counts what a user has, and other tests run at the same time
	cmd := s.again(t, roleUser, user)
	out, err := cmd.CombinedOutput()
	var told strings.Builder
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "=== ") && !strings.Contains(line, "--- PASS") {
			told.WriteString(line)
		}
	}
	if err != nil {
		t.Fatalf("%v:\n%s", err, told.String())
	}
	t.Logf("as user %d:\n%s", user, told.String())
}

// again returns a command that runs the test that t is part of in a process with another role and
// user. Everything that it needs is where that user can reach it.
func (s *suite) again(t *testing.T, role string, user int) *exec.Cmd {
	t.Helper()
	folder, err := os.MkdirTemp("/tmp", "sandboxtest-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	program := filepath.Join(folder, "program.test")
	content, err := os.ReadFile(s.self)
	if err != nil {
		t.Fatal(err)
	}
	temp := filepath.Join(folder, "tmp")
	if err := os.WriteFile(program, content, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{folder, temp} {
		if err := os.Chown(path, user, user); err != nil {
			t.Fatal(err)
		}
	}
	name, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^"+name+"$", "-test.v")
	cmd.Dir = folder
	cmd.Env = []string{
		"PATH=" + sandbox.Path, "HOME=" + folder, "TMPDIR=" + temp, roleVariable + "=" + role,
		requiretest.Variable + "=" + os.Getenv(requiretest.Variable),
	}
	credential := syscall.Credential{Uid: uint32(user), Gid: uint32(user)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &credential}
	if user == os.Getuid() {
		cmd.SysProcAttr = nil
	}
	return cmd
}

// A ran is a program that has ended.
type ran struct {
	outcome        sandbox.Outcome
	err            error
	stdout, stderr bytes.Buffer
}

// run runs a program in a new sandbox.
func (s *suite) run(t *testing.T, spec sandbox.Spec) *ran {
	t.Helper()
	return s.runContext(t.Context(), t, spec)
}

func (s *suite) runContext(ctx context.Context, t *testing.T, spec sandbox.Spec) *ran {
	t.Helper()
	r := &ran{}
	if spec.Stdout == nil {
		spec.Stdout = &r.stdout
	}
	if spec.Stderr == nil {
		spec.Stderr = &r.stderr
	}
	if spec.Limits.Wall == 0 {
		spec.Limits.Wall = gatewayTimeout
	}
	r.outcome, r.err = s.open(t).Run(ctx, spec)
	return r
}

// script runs a shell script, which is to end with code 0, and returns what it wrote.
func (s *suite) script(t *testing.T, text string, spec sandbox.Spec) string {
	t.Helper()
	spec.Args = []string{"sh", "-c", text}
	r := s.run(t, spec)
	if r.err != nil || r.outcome.End != sandbox.Exited || r.outcome.Exit != 0 {
		t.Errorf("%q ended with %+v, %v\n%s", text, r.outcome, r.err, r.stderr.String())
	}
	return r.stdout.String()
}
