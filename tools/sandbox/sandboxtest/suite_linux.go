package sandboxtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
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
	ordinaryUser   = 65534
	requireAll     = "PARLEY_REQUIRE" // "all": nothing may be skipped
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

// eat takes memory and keeps it.
func eat(args []string) int {
	size, err := strconv.Atoi(args[0])
	if err != nil {
		return 2
	}
	food := make([]byte, size)
	for i := 0; i < len(food); i += os.Getpagesize() {
		food[i] = 1
	}
	fmt.Println("full")
	time.Sleep(time.Minute)
	return int(food[0])
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
		t.Run("root", func(t *testing.T) { Skip(t, "this test does not run as root") })
		return
	}
	t.Run("root", s.runAll)
	t.Run("ordinary user", s.runAsUser)
}

// Skip skips t because of something that is missing here, which is an error where all of it must be
// there.
func Skip(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv(requireAll) == "all" {
		t.Fatal(reason)
	}
	t.Skip(reason)
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
	cmd := s.again(t, roleUser, ordinaryUser)
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
	t.Logf("as user %d:\n%s", ordinaryUser, told.String())
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
		requireAll + "=" + os.Getenv(requireAll),
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
	allowed := append(slices.Collect(maps.Keys(sandbox.BaseEnv())), "OWN", "HOME", "TMPDIR", "PWD", "OLDPWD", "SHLVL", "_")
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

// readInput: standard input is empty unless it is given, and need not be read.
func readInput(t *testing.T, s *suite) {
	if out := s.script(t, "cat; echo end", sandbox.Spec{}); out != "end\n" {
		t.Errorf("read %q", out)
	}
	large := bytes.Repeat([]byte("0123456789"), 100_000)
	if out := s.script(t, "cat", sandbox.Spec{Stdin: large}); out != string(large) {
		t.Errorf("of %d bytes, %d came back", len(large), len(out))
	}
	if out := s.script(t, "echo ignored", sandbox.Spec{Stdin: large}); out != "ignored\n" {
		t.Errorf("wrote %q", out)
	}
	var both bytes.Buffer
	spec := sandbox.Spec{Stdout: &both, Stderr: &both}
	s.script(t, "for i in 1 2 3; do echo out; echo err >&2; done", spec)
	if want := strings.Repeat("out\nerr\n", 3); both.String() != want {
		t.Errorf("wrote %q, not %q", both.String(), want)
	}
}

func exit(t *testing.T, s *suite) {
	for script, want := range map[string]int{"true": 0, "exit 3": 3, "exit 255": 255, "kill -9 $$": 137, "kill $$": 143} {
		r := s.run(t, sandbox.Spec{Args: []string{"sh", "-c", script}})
		if r.err != nil || r.outcome.End != sandbox.Exited || r.outcome.Exit != want {
			t.Errorf("%s: %+v, %v", script, r.outcome, r.err)
		}
	}
}

// useNetwork: with all of the network, this machine can be reached; that it cannot without is one of
// the attempts.
func useNetwork(t *testing.T, s *suite) {
	scene := newScene(t)
	host, port, _ := strings.Cut(scene.plan.TCP, ":")
	spec := sandbox.Spec{
		Args:    []string{"bash", "-c", "exec 3<>/dev/tcp/" + host + "/" + port},
		Network: sandbox.Network{All: true},
	}
	if r := s.run(t, spec); r.err != nil || r.outcome.Exit != 0 || !scene.reached(reachTCP) {
		t.Errorf("with a network: %+v, %v: %s", r.outcome, r.err, r.stderr.String())
	}
	spec.Network = sandbox.Network{}
	if r := s.run(t, spec); r.err != nil || r.outcome.Exit == 0 || scene.reached(reachTCP) {
		t.Errorf("without: %+v, %v: %s", r.outcome, r.err, r.stderr.String())
	}
}

// These have processes that fork as fast as they can, each in a session of its own, and not for ever,
// for the sake of the machine. Of fleas there are always twenty: each forks and ends.
const (
	fleas = `for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		perl -MPOSIX=setsid,_exit -e '$end = time + 60; while (time < $end) { $p = fork; _exit(0) if $p; setsid }' &
	done; sleep 0.2`
	swarm = `perl -MPOSIX=setsid -e '$end = time + 60;
		while (time < $end) { $p = fork; setsid if defined $p && !$p; select undef, undef, undef, 0.001 if !defined $p }'`
)

// bomb has processes double twelve times, and not for ever, for the sake of the machine.
const bomb = `b() { [ $1 -gt 0 ] && { b $(($1-1)) | b $(($1-1)) & }; sleep 50; }; b 12; sleep 50`

const (
	// eatTogether has six processes keep as many bytes each. The end of what they read is all they want.
	eatTogether = `for i in 1 2 3 4 5 6; do { head -c $0 /dev/zero; sleep 50; } | tail -c $0 & done; wait`
	// changeMode takes the time of those whom a sandbox asks about system calls.
	changeMode  = `$SIG{XCPU} = "IGNORE"; $end = time + 60; while (time < $end) { chmod 0600, "f" }`
	writeSparse = `truncate -s 10G sparse; dd if=/dev/zero of=sparse bs=1 count=1 seek=10G; exit 1`
)

// exceedLimits: what takes more than it may is ended, and the rest of the machine does not suffer.
func exceedLimits(t *testing.T, s *suite) {
	mb := int64(1 << 20)
	work := t.TempDir()
	for _, c := range []struct {
		name   string
		args   []string
		limits sandbox.Limits
		want   []sandbox.End
	}{
		{
			"time", []string{"sh", "-c", "trap '' TERM INT HUP; while :; do sleep 100; done"},
			sandbox.Limits{Wall: 300 * time.Millisecond}, []sandbox.End{sandbox.TimedOut},
		},
		{
			"CPU", []string{"sh", "-c", "while :; do :; done"},
			sandbox.Limits{CPU: time.Second}, []sandbox.End{sandbox.Exceeded},
		},
		{
			"CPU, ignored", []string{"sh", "-c", "trap '' XCPU; while :; do :; done"},
			sandbox.Limits{CPU: time.Second}, []sandbox.End{sandbox.Exceeded},
		},
		{
			"CPU, of requests", []string{"sh", "-c", "touch f; for i in 1 2 3 4; do perl -e '" + changeMode + "' & done; wait; exit 1"},
			sandbox.Limits{CPU: time.Second, Wall: 3 * time.Second},
			[]sandbox.End{sandbox.TimedOut, sandbox.Exceeded, sandbox.Exited},
		},
		{
			"memory of one", []string{s.self, commandEat, strconv.Itoa(memoryFactor * 800_000_000)},
			sandbox.Limits{Memory: memoryFactor * 200 * mb}, []sandbox.End{sandbox.Exceeded, sandbox.Exited},
		},
		{
			"memory of many", []string{"sh", "-c", eatTogether, strconv.Itoa(memoryFactor * 100_000_000)},
			sandbox.Limits{Memory: memoryFactor * 300 * mb}, []sandbox.End{sandbox.Exceeded},
		},
		{
			"processes", []string{"sh", "-c", "i=0; while [ $i -lt 200 ]; do sleep 50 & i=$((i+1)); done; wait"},
			sandbox.Limits{Processes: 20}, []sandbox.End{sandbox.Exceeded, sandbox.Exited},
		},
		{
			"fork bomb", []string{"sh", "-c", bomb},
			sandbox.Limits{Processes: 50, Wall: 3 * time.Second},
			[]sandbox.End{sandbox.Exceeded, sandbox.TimedOut, sandbox.Exited}, // where it cannot fork it ends

		},
		{
			"fork bomb of sessions", []string{"sh", "-c", swarm},
			sandbox.Limits{Processes: 50, Wall: 3 * time.Second},
			[]sandbox.End{sandbox.Exceeded, sandbox.TimedOut},
		},
		{
			"file", []string{"sh", "-c", "head -c 10000000 /dev/zero >large; exit 1"},
			sandbox.Limits{FileSize: mb}, []sandbox.End{sandbox.Exited},
		},
		{
			"sparse file", []string{"sh", "-c", writeSparse},
			sandbox.Limits{FileSize: mb}, []sandbox.End{sandbox.Exited},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.skipExcepted(t)
			mark := newMark()
			begin := time.Now()
			spec := sandbox.Spec{Args: append([]string{"env", mark}, c.args...), Limits: c.limits, Dir: work}
			spec.Folders = []sandbox.Folder{
				{Path: s.self, Access: sandbox.ReadOnly}, {Path: work, Access: sandbox.ReadWrite},
			}
			r := s.run(t, spec)
			if r.err != nil || !slices.Contains(c.want, r.outcome.End) {
				t.Errorf("ended with %+v, %v: %.300s", r.outcome, r.err, r.stderr.String())
			}
			if r.outcome.End == sandbox.Exited && r.outcome.Exit == 0 {
				t.Error("nothing went wrong")
			}
			if took := time.Since(begin); took > 3*patience {
				t.Errorf("took %v", took)
			}
			checkGone(t, mark)
		})
	}
	for _, name := range []string{"large", "sparse"} {
		info, err := os.Stat(filepath.Join(work, name))
		if err == nil && info.Size() > mb {
			t.Errorf("%s has %d bytes", name, info.Size())
		}
	}
}

// writeMuch: output beyond the limit is read and counted, and takes no memory here.
func writeMuch(t *testing.T, s *suite) {
	const total, limit = 1 << 30, 1 << 20
	var out, complaint counter
	spec := sandbox.Spec{Limits: sandbox.Limits{Output: limit}, Stdout: &out, Stderr: &complaint}
	spec.Args = []string{"sh", "-c", "head -c " + strconv.Itoa(total) + " /dev/zero; head -c 1000 /dev/zero >&2"}
	before := memory(t)
	r := s.run(t, spec)
	if r.err != nil || r.outcome.End != sandbox.Exited || r.outcome.Exit != 0 {
		t.Errorf("ended with %+v, %v", r.outcome, r.err)
	}
	if got := out.bytes + complaint.bytes; got != limit || r.outcome.Dropped != total+1000-limit {
		t.Errorf("%d bytes came, and %d were dropped", got, r.outcome.Dropped)
	}
	if grown := memory(t) - before; grown > 64<<20 {
		t.Errorf("this process has grown by %d bytes", grown)
	}
}

// A counter counts what is written to it.
type counter struct{ bytes int64 }

func (c *counter) Write(data []byte) (int, error) {
	c.bytes += int64(len(data))
	return len(data), nil
}

// memory returns the memory of this process.
func memory(t *testing.T) int64 {
	t.Helper()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(data))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

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

// stay: nothing that a program starts outlives it, however it ends, and what holds its output open
// keeps nobody waiting.
func stay(t *testing.T, s *suite) {
	for name, script := range escapes {
		for how, then := range map[string]string{"done": "exit 0", "time": "sleep 1000", "cancelled": "sleep 1000"} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel() // they wait most of the time
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
				if r.err != nil || r.outcome.End != want {
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

// askNonsense: what cannot be run is an error, and no panic.
func askNonsense(t *testing.T, s *suite) {
	ended, stop := context.WithCancel(t.Context())
	stop()
	if r := s.runContext(ended, t, sandbox.Spec{Args: []string{"true"}}); r.err != nil || r.outcome.End != sandbox.Cancelled {
		t.Errorf("too late: %+v, %v", r.outcome, r.err)
	}
	for name, spec := range map[string]sandbox.Spec{
		"no program":        {},
		"empty program":     {Args: []string{""}},
		"missing program":   {Args: []string{"no-such-program"}},
		"missing path":      {Args: []string{"/no/such/program"}},
		"folder":            {Args: []string{"/usr"}},
		"NUL":               {Args: []string{"echo", "a\x00b"}},
		"NUL in variable":   {Args: []string{"true"}, Env: map[string]string{"A": "\x00"}},
		"name of variable":  {Args: []string{"true"}, Env: map[string]string{"A=B": "1"}},
		"nameless variable": {Args: []string{"true"}, Env: map[string]string{"": "1"}},
		"relative start":    {Args: []string{"true"}, Dir: "work"},
		"missing start":     {Args: []string{"true"}, Dir: "/no/such/folder"},
		"relative folder":   {Args: []string{"true"}, Folders: []sandbox.Folder{{Path: "work", Access: sandbox.ReadWrite}}},
		"no folder":         {Args: []string{"true"}, Folders: []sandbox.Folder{{Access: sandbox.ReadWrite}}},
		"NUL in folder":     {Args: []string{"true"}, Folders: []sandbox.Folder{{Path: "/a\x00b"}}},
		"the whole machine": {Args: []string{"true"}, Folders: []sandbox.Folder{{Path: "/", Access: sandbox.ReadOnly}}},
		"large argument":    {Args: []string{"echo", strings.Repeat("a", 10<<20)}},
		"unclean path":      {Args: []string{"true"}, Folders: []sandbox.Folder{{Path: "/tmp/../../..", Access: sandbox.ReadWrite}}},
	} {
		t.Run(name, func(t *testing.T) {
			s.skipExcepted(t)
			if r := s.run(t, spec); r.err == nil {
				t.Errorf("ran: %+v: %s", r.outcome, r.stderr.String())
			}
		})
	}
	var odd = map[string]string{"A": "'\"$(x)\n", "B": "", "Ü": "ü"}
	out := s.script(t, `printf %s "$A"; printf %s "${1}"`, sandbox.Spec{Env: odd})
	if out != odd["A"] {
		t.Errorf("the variable came as %q", out)
	}
}
