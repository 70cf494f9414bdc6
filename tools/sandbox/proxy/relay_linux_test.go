package proxy

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/requiretest"
)

// A program runs in a namespace without a network, with the relay.
type program struct {
	t       testing.TB
	config  Config
	hosts   []string
	folder  string // may be written
	shown   string // a folder that is seen besides; may be ""
	refused []string
}

// run runs a shell script, and returns what it writes and how it ends.
func (p *program) run(script string) (output string, code int) {
	p.t.Helper()
	return p.exec("/bin/sh", "-c", script)
}

func (p *program) exec(args ...string) (output string, code int) {
	p.t.Helper()
	proxy, err := Start(p.hosts, "tools.exec.network", p.config)
	if err != nil {
		p.t.Fatal(err)
	}
	defer proxy.Close()
	command := exec.CommandContext(p.t.Context(), "bwrap", append(p.bwrap(), RelayArgs(3, args)...)...)
	command.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + p.folder, "NODE_USE_ENV_PROXY=1", "GIT_TERMINAL_PROMPT=0"}
	command.ExtraFiles = []*os.File{proxy.File()}
	var out bytes.Buffer
	command.Stdout = &out
	command.Stderr = &out
	err = command.Start()
	proxy.Started()
	if err != nil {
		p.t.Fatal(err)
	}
	_ = command.Wait()
	proxy.Close()
	p.refused = proxy.Refused()
	return out.String(), command.ProcessState.ExitCode()
}

// bwrap returns the arguments with which bwrap runs the relay.
func (p *program) bwrap() []string {
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	args := []string{
		"--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent", "--new-session",
		"--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib",
		"--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
		"--bind", p.folder, p.folder, "--chdir", p.folder, "--ro-bind", self, "/run/parley",
	}
	if p.shown != "" {
		args = append(args, "--ro-bind", p.shown, p.shown)
	}
	return append(args, "--", "/run/parley")
}

// newProgram returns a program that may reach site.test and example.com at the ports of these servers.
func newProgram(t testing.TB, servers ...*httptest.Server) *program {
	requiretest.Program(t, "/usr/bin/bwrap")
	p := &program{t: t, folder: t.TempDir()}
	p.config = Config{Guard: loopback(), Resolver: names(t, map[string]string{
		"site.test": "127.0.0.1", "example.com": "127.0.0.1", "other.test": "127.0.0.1", "inner.test": "10.1.2.3",
	})}
	p.hosts = []string{"inner.test"}
	for _, s := range servers {
		p.hosts = append(p.hosts, "site.test:"+portOf(t, s.URL), "example.com:"+portOf(t, s.URL))
	}
	return p
}

// trust writes the certificate of s where a program finds it.
func (p *program) trust(s *httptest.Server) string {
	p.t.Helper()
	file := filepath.Join(p.folder, "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return file
}

// The relay is the program afterwards: its exit code, its signals, its arguments, and no file of Parley's.
func TestRelayBecomesTheProgram(t *testing.T) {
	p := newProgram(t)
	for _, c := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"echo", "a b", "--", "-c"}, "a b -- -c\n", 0},
		{[]string{"/bin/sh", "-c", "exit 7"}, "", 7},
		{[]string{"/bin/sh", "-c", "kill -9 $$"}, "", 128 + 9},
		{[]string{"/bin/sh", "-c", "trap 'exit 3' TERM; kill $$; exit 4"}, "", 3},
		{[]string{"/bin/sh", "-c", "ls -l /proc/self/fd | grep socket"}, "", 1},
		{[]string{"nowhere"}, "sandbox: exec: \"nowhere\": executable file not found in $PATH\n", exitNotFound},
		{[]string{"/etc/passwd"}, "sandbox: exec: \"/etc/passwd\": permission denied\n", exitNotFound},
	} {
		output, code := p.exec(c.args...)
		if output != c.want || code != c.code {
			t.Errorf("%q: %d %q, want %d %q", c.args, code, output, c.code, c.want)
		}
	}
	for _, args := range [][]string{nil, {"3"}, {"3", "--"}, {"x", "--", "true"}, {"99", "--", "true"}} {
		if code := Relay(args); code != exitRelay {
			t.Errorf("%q: %d", args, code)
		}
	}
}

// R-S16, R-S19: a program in the sandbox reaches the hosts that it may, by the proxy, and nothing else by any way.
func TestProgramReaches(t *testing.T) {
	requiretest.Program(t, "/usr/bin/python3")
	plain, _ := hello(t)
	port := portOf(t, plain.URL)
	p := newProgram(t, plain)
	const fetch = `
import sys, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1]).read().decode())
except urllib.error.HTTPError as e:
    print(e.code, e.read().decode())
except Exception as e:
    print(e)`
	for _, c := range []struct{ address, want, refused string }{
		{"http://site.test:" + port, "hello site.test:" + port, ""},
		{"http://other.test/", "403 refused by the sandbox: other.test is not among the hosts", "other.test:80"},
		{"https://other.test/", "Tunnel connection failed: 403 refused by the sandbox: other.test is not", "other.test:443"},
		{"http://inner.test/", "403 refused by the sandbox: inner.test has the private", "inner.test:80"},
		{"http://127.0.0.1:" + port, "Connection refused", ""}, // the loopback interface of the sandbox
	} {
		output, _ := p.exec("python3", "-c", fetch, c.address)
		if !strings.Contains(output, c.want) || strings.Join(p.refused, " ") != c.refused {
			t.Errorf("%s: %s, refused %q", c.address, output, p.refused)
		}
	}
	const direct = `
import socket
for family, kind, to in (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", %[1]s)), (socket.AF_INET, socket.SOCK_STREAM, ("93.184.216.34", 80)), \
        (socket.AF_INET, socket.SOCK_DGRAM, ("93.184.216.34", 53)), (socket.AF_INET6, socket.SOCK_STREAM, ("2606:4700::1111", 80)):
    s = socket.socket(family, kind)
    try:
        s.connect(to)
        print("reached", to)
    except OSError as e:
        print(e)`
	output, code := p.exec("python3", "-c", fmt.Sprintf(direct, port))
	if strings.Contains(output, "reached") || strings.Count(output, "\n") != 4 || code != 0 {
		t.Errorf("without the proxy: %d %s", code, output)
	}
}

// What people use works: curl and Node. Package shell has more of them.
func TestPrograms(t *testing.T) {
	content := t.TempDir()
	secure := httptest.NewTLSServer(http.FileServer(http.Dir(content)))
	t.Cleanup(secure.Close)
	p := newProgram(t, secure)
	site := "https://example.com:" + portOf(t, secure.URL) // the name of its certificate
	ca := p.trust(secure)
	if err := os.WriteFile(filepath.Join(content, "hello.txt"), []byte("hello there"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect := func(t *testing.T, script, want string, wantCode int) {
		t.Helper()
		output, code := p.run(script)
		if !strings.Contains(output, want) || (code == 0) != (wantCode == 0) {
			t.Errorf("%s: %d %s, want %q", script, code, output, want)
		}
	}
	t.Run("curl", func(t *testing.T) {
		requiretest.Program(t, "/usr/bin/curl")
		expect(t, "curl -sS --cacert "+ca+" "+site+"/hello.txt", "hello there", 0)
		expect(t, "curl -sS https://other.test/", "CONNECT tunnel failed, response 403", 1)
		expect(t, "curl -sS http://other.test/", "other.test is not among the hosts", 0)
	})
	t.Run("node", func(t *testing.T) {
		node := p.findNode(t)
		const fetch = `fetch(process.argv[1]).then(r => r.text()).then(console.log, e => console.log(e))`
		fetchOf := func(address string) string {
			return "NODE_EXTRA_CA_CERTS=" + ca + " " + node + " -e '" + fetch + "' " + address
		}
		expect(t, fetchOf(site+"/hello.txt"), "hello there", 0)
		expect(t, fetchOf("https://other.test/"), "fetch failed", 0)
		if !slices.Contains(p.refused, "other.test:443") {
			t.Errorf("refused: %q", p.refused)
		}
	})
}

// findNode returns the path of a Node that knows proxies, as from 22.21 on: that of PARLEY_NODE, which the program then
// sees, or the system's.
func (p *program) findNode(t *testing.T) string {
	t.Helper()
	node := os.Getenv("PARLEY_NODE")
	if node != "" {
		p.shown = filepath.Dir(node)
	} else {
		node = "/usr/bin/node"
	}
	output, _ := p.exec(node, "-p", "process.allowedNodeEnvironmentFlags.has('--use-env-proxy')")
	if !strings.HasSuffix(strings.TrimSpace(output), "true") { // after warnings
		message := "no Node of version 22.21 or later at " + node + "; PARLEY_NODE names another: " + output
		requiretest.Missing(t, message)
	}
	return node
}

// BenchmarkTrue compares the program true bare, in a sandbox, and in a sandbox with the relay.
func BenchmarkTrue(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if err := exec.CommandContext(b.Context(), "true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	p := newProgram(b)
	b.Run("bwrap", func(b *testing.B) {
		args := p.bwrap()
		for b.Loop() {
			command := exec.CommandContext(b.Context(), "bwrap", append(args[:len(args)-1:len(args)-1], "true")...)
			command.Env = []string{"PATH=/usr/bin:/bin"}
			if out, err := command.CombinedOutput(); err != nil {
				b.Fatal(err, string(out))
			}
		}
	})
	b.Run("bwrap and relay", func(b *testing.B) {
		for b.Loop() {
			if out, code := p.exec("true"); code != 0 {
				b.Fatal(out)
			}
		}
	})
}
