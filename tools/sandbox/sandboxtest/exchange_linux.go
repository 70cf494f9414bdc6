package sandboxtest

import (
	"bytes"
	"context"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/tools/sandbox"
)

// readInput: standard input is empty unless it is given, and need not be read.
func readInput(t *testing.T, s *suite) {
	if out := s.script(t, "cat; echo end", sandbox.Spec{}); out != "end\n" {
		t.Errorf("read %q", out)
	}
	large := bytes.Repeat([]byte("0123456789"), 100_000)
	if out := s.script(t, "cat", sandbox.Spec{Stdin: bytes.NewReader(large)}); out != string(large) {
		t.Errorf("of %d bytes, %d came back", len(large), len(out))
	}
	if out := s.script(t, "echo ignored", sandbox.Spec{Stdin: bytes.NewReader(large)}); out != "ignored\n" {
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
	for script, want := range map[string]int{
		"true": 0, "exit 3": 3, "exit 255": 255, "kill -9 $$": 137, "kill $$": 143,
	} {
		r := s.run(t, sandbox.Spec{Args: []string{"sh", "-c", script}})
		if r.err != nil || r.outcome.End != sandbox.Exited || r.outcome.Exit != want {
			t.Errorf("%s: %+v, %v", script, r.outcome, r.err)
		}
	}
}

// useNetwork: with all of the network, this machine can be reached; that it cannot without is one of
// the attempts.
func useNetwork(t *testing.T, s *suite) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	host, port, _ := strings.Cut(listener.Addr().String(), ":")
	spec := sandbox.Spec{
		Args:    []string{"bash", "-c", "exec 3<>/dev/tcp/" + host + "/" + port},
		Network: sandbox.Network{All: true},
	}
	if r := s.run(t, spec); r.err != nil || r.outcome.Exit != 0 || !reached(listener) {
		t.Errorf("with a network: %+v, %v: %s", r.outcome, r.err, r.stderr.String())
	}
	spec.Network = sandbox.Network{}
	if r := s.run(t, spec); r.err != nil || r.outcome.Exit == 0 || reached(listener) {
		t.Errorf("without: %+v, %v: %s", r.outcome, r.err, r.stderr.String())
	}
}

// arrivalTimeout is how long is waited for who has connected before.
const arrivalTimeout = 20 * time.Millisecond

// reached reports whether somebody has connected to listener.
func reached(listener *net.TCPListener) bool {
	if listener.SetDeadline(time.Now().Add(arrivalTimeout)) != nil {
		return false
	}
	conn, err := listener.Accept()
	return err == nil && conn.Close() == nil
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

// askNonsense: what cannot be run is an error, and no panic.
func askNonsense(t *testing.T, s *suite) {
	ended, stop := context.WithCancel(t.Context())
	stop()
	r := s.runContext(ended, t, sandbox.Spec{Args: []string{"true"}})
	if r.err != nil || r.outcome.End != sandbox.Cancelled {
		t.Errorf("too late: %+v, %v", r.outcome, r.err)
	}
	withFolder := func(f sandbox.Folder) sandbox.Spec {
		return sandbox.Spec{Args: []string{"true"}, Folders: []sandbox.Folder{f}}
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
		"relative folder":   withFolder(sandbox.Folder{Path: "work", Access: sandbox.ReadWrite}),
		"no folder":         withFolder(sandbox.Folder{Access: sandbox.ReadWrite}),
		"NUL in folder":     withFolder(sandbox.Folder{Path: "/a\x00b"}),
		"the whole machine": withFolder(sandbox.Folder{Path: "/", Access: sandbox.ReadOnly}),
		"large argument":    {Args: []string{"echo", strings.Repeat("a", 10<<20)}},
		"unclean path":      withFolder(sandbox.Folder{Path: "/tmp/../../..", Access: sandbox.ReadWrite}),
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
