package python

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/requiretest"
	"parley/tools/sandbox"
	"parley/tools/sandbox/bwrap"
	"parley/tools/sandbox/landlock"
	"parley/tools/sandbox/none"
)

// sandboxes returns the real sandboxes that work on this machine.
func sandboxes(t testing.TB) map[string]*open {
	t.Helper()
	skipWithoutPython(t)
	found := map[string]*open{}
	runners := map[string]sandbox.Runner{"bwrap": bwrap.New(bwrap.Config{Folder: t.TempDir()}), "landlock": landlock.New()}
	for name, runner := range runners {
		o, err := runner.Run(t.Context(), sandbox.Spec{Args: []string{"true"}})
		if err == nil && o.End == sandbox.Exited && o.Exit == 0 {
			found[name] = &open{runner: runner, choice: sandbox.Choice{Driver: name}, patience: patience}
			continue
		}
		if os.Getenv(requiretest.Variable) == requiretest.All {
			t.Fatalf("%s does not work: %+v, %v", name, o, err)
		}
	}
	if len(found) == 0 {
		t.Skip("no sandbox works on this machine")
	}
	return found
}

// A bait is what code must not reach: files, this process with its environment, servers.
type bait struct {
	canary string // in all of its files
	dir    string
	tcp    net.Listener
	unix   net.Listener
	udp    net.PacketConn
	hits   atomic.Int64 // what arrived at the servers
	pwd    string       // in the environment of this process
}

func layBait(t testing.TB) *bait {
	t.Helper()
	b := &bait{canary: "canary-90210", dir: t.TempDir(), pwd: "PWD=" + os.Getenv("PWD")}
	if err := os.Chmod(filepath.Dir(b.dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "secret.xml"), []byte("<a>"+b.canary+"</a>"), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	listen := net.ListenConfig{}
	if b.tcp, err = listen.Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if b.udp, err = listen.ListenPacket(t.Context(), "udp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	socket, err := os.MkdirTemp("", "bait") // the name of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	if b.unix, err = listen.Listen(t.Context(), "unix", filepath.Join(socket, "s")); err != nil {
		t.Fatal(err)
	}
	for _, l := range []net.Listener{b.tcp, b.unix} {
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				b.hits.Add(1)
				_ = c.Close()
			}
		}()
	}
	go func() {
		for {
			if _, _, err := b.udp.ReadFrom(make([]byte, 10)); err != nil {
				return
			}
			b.hits.Add(1)
		}
	}()
	t.Cleanup(func() {
		_ = b.tcp.Close()
		_ = b.unix.Close()
		_ = b.udp.Close()
		_ = os.RemoveAll(socket)
	})
	return b
}

// attack is a program that tries all that must be impossible, and prints what it got. It is run without a
// sandbox, too, and so touches nothing but this bait and this process, and prints no environment.
func (b *bait) attack() string {
	return fmt.Sprintf(`
import os, socket
print('escaped')
secret = %q
marker = %q
process = '/proc/%d'
for path in (secret, process + '/root' + secret):
    try: print(path, open(path, 'rb').read())
    except OSError: pass
try:
    if marker.encode() in open(process + '/environ', 'rb').read(): print('read the environment')
except OSError: pass
for act in (os.link, os.symlink):
    try: act(secret, act.__name__ + '.txt')
    except OSError: pass
try: open(os.path.dirname(secret) + '/written.txt', 'w').write('x')
except OSError: pass
def reach(family, kind, address):
    try:
        s = socket.socket(family, kind)
        s.settimeout(2)
        s.connect(address)
        s.send(b'x')
        if kind == socket.SOCK_STREAM: print('reached', address)
    except OSError: pass
reach(socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', %d))
reach(socket.AF_INET, socket.SOCK_DGRAM, ('127.0.0.1', %d))
reach(socket.AF_UNIX, socket.SOCK_STREAM, %q)
for name in os.environ:
    if name.startswith('PARLEY_TEST'): print(os.environ[name])
`, filepath.Join(b.dir, "secret.xml"), b.pwd, os.Getpid(), b.tcp.Addr().(*net.TCPAddr).Port, b.udp.LocalAddr().(*net.UDPAddr).Port, b.unix.Addr().String())
}

// taken returns what code got that it must not have.
func (b *bait) taken(t *testing.T, u *person, text string) (all []string) {
	t.Helper()
	for _, secret := range []string{b.canary, "read the environment", "env-canary-77", "reached"} {
		if strings.Contains(text, secret) {
			all = append(all, secret)
		}
	}
	if b.settle(t); b.hits.Swap(0) > 3 {
		all = append(all, "network")
	}
	if os.Remove(filepath.Join(b.dir, "written.txt")) == nil {
		all = append(all, "written")
	}
	for name, content := range filesOf(t, u.scope.Workspace.Dir()) {
		if strings.Contains(content, b.canary) {
			all = append(all, name)
		}
	}
	return all
}

// ways lead from what code of the levels may use to the module os, as known from other projects and R-S20. Each
// ends with a call of go(os). Those that the level refuses today are here for the day on which it does not.
var ways = map[string]string{
	"module attribute":     "import logging\ngo(logging.sys.modules['os'])",
	"warnings.sys":         "import warnings\ngo(warnings.sys.modules['os'])",
	"contextlib.os":        "import contextlib\ngo(contextlib.os)",
	"frame of a module":    "import statistics\ngo(statistics.sys._getframe(1).f_globals['sys'].modules['os'])",
	"subclasses":           "for c in ().__class__.__base__.__subclasses__():\n    if c.__name__ == '_wrap_close': go(c.__init__.__globals__['sys'].modules['os'])",
	"getattr":              "a = '__cla' + 'ss__'\ngo(getattr(getattr((), a), '__base__'))",
	"generator frame":      "g = (g.gi_frame.f_back.f_back.f_globals for _ in [1])\ngo(next(g)['sys'].modules['os'])",
	"traceback":            "try: 1 / 0\nexcept Exception as e: go(e.__traceback__.tb_frame.f_back.f_globals['sys'].modules['os'])",
	"attrgetter":           "import operator\ngo(operator.attrgetter('__globals__')(go)['__builtins__']['__import__'])",
	"attrgetter of a stub": "import operator\nf = operator.attrgetter('__init__.__globals__')\nimport contextlib\ngo(f(contextlib.ExitStack)['sys'].modules['os'])",
	"methodcaller":         "import operator\nfor c in operator.methodcaller('__subclasses__')(object):\n    if c.__name__ == '_wrap_close': go(operator.attrgetter('__init__.__globals__')(c)['sys'].modules['os'])",
	"string.Formatter":     "import string\nimport contextlib\no, _ = string.Formatter().get_field('0.__init__.__globals__[sys].modules[os]', (contextlib.ExitStack,), {})\ngo(o)",
	"match pattern":        "class A:\n    __match_args__ = ('__class__',)\nmatch A():\n    case A(c): go(c)",
	"match keyword":        "match go:\n    case object(__globals__=g): go(g)",
	"get_type_hints":       "import typing\nclass A:\n    x: '__import__(\"os\")' = 1\ngo(typing.get_type_hints(A)['x'])",
	"ForwardRef":           "import typing\ngo(typing.ForwardRef('__import__(\"os\")')._evaluate({}, {}, frozenset()))",
	"singledispatch":       "import functools\n@functools.singledispatch\ndef f(x): pass\n@f.register\ndef _(x: '__import__(\"os\")'): pass",
	"dictConfig":           "import logging.config\nlogging.config.dictConfig({'version': 1, 'handlers': {'h': {'()': 'os.system', 'command': RUN}}})",
	"reduce":               "import functools, operator\ngo(functools.reduce(lambda a, n: operator.attrgetter(n)(a), ['__class__', '__base__'], ()))",
	"decorated":            "import operator\nf = operator.attrgetter('__self__')\ngo(f(print).__import__('os'))",
	"builtins of a method": "import operator\ngo(operator.attrgetter('__self__')(print))",
	"loader":               "import json\ngo(json.__loader__.load_module('os'))",
	"spec":                 "import operator, json\nprint(operator.attrgetter('__spec__')(json))\ngo(operator.attrgetter('__init__.__globals__')(json.JSONDecoder)['re'])",
	"file handler":         "import logging\nlogging.FileHandler(WRITE).emit(logging.makeLogRecord({'msg': 'x'}))",
	"file parser":          "import xml.etree.ElementTree as ET\nprint(ET.parse(SECRET).getroot().text)",
}

// R-S20, A-052: whatever way code finds round its level, it reaches no file, network or environment of the machine.
func TestEscapes(t *testing.T) {
	t.Setenv("PARLEY_TEST_CANARY", "env-canary-77")
	b := layBait(t)
	// It is the sandbox that holds: without one, the same program gets at all of it.
	u := owner(t, interpreter(t, Config{Sandbox: unconfined()}))
	said, problem := u.run(Lenient, b.attack())
	if got := b.taken(t, u, said.Output+problem); len(got) < 5 {
		t.Errorf("the attack is harmless: %q of %s %s", got, said.Output, problem)
	}
	for name, box := range sandboxes(t) {
		t.Run(name, func(t *testing.T) {
			u := owner(t, interpreter(t, Config{Sandbox: box}))
			said, problem := u.run(Lenient, b.attack())
			if got := b.taken(t, u, said.Output+problem); len(got) > 0 || !strings.Contains(said.Output, "escaped") {
				t.Errorf("lenient: %q of %s, %s", got, said.Output, problem)
			}
			b.checkLevels(t, u)
		})
	}
}

// settle reaches each server itself, and waits until they have noted that: what arrived before is noted, too.
func (b *bait) settle(t *testing.T) {
	t.Helper()
	before := b.hits.Load()
	for _, at := range []net.Addr{b.tcp.Addr(), b.unix.Addr(), b.udp.LocalAddr()} {
		c, err := (&net.Dialer{}).DialContext(t.Context(), at.Network(), at.String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("x")); err != nil && at.Network() == "udp" {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	for b.hits.Load() < before+3 {
		time.Sleep(time.Millisecond)
	}
}

// checkLevels tries all ways at the levels that forbid them.
func (b *bait) checkLevels(t *testing.T, u *person) {
	dir := b.dir
	run := fmt.Sprintf("/usr/bin/python3 -I -c %s", shellQuoted(b.attack()))
	escaped := map[string]bool{}
	for way, code := range ways {
		for _, level := range []Level{Standard, Strict} {
			code := fmt.Sprintf("RUN = %q\nSECRET = %q\nWRITE = %q\ndef go(os):\n    print('escaped', flush=True)\n    os.system(RUN)\n%s\n",
				run, filepath.Join(dir, "secret.xml"), filepath.Join(dir, "written.txt"), code)
			said, problem := u.run(level, code)
			if got := b.taken(t, u, said.Output+problem); len(got) > 0 {
				t.Errorf("%s, %s: %q of %s, %s", way, level, got, said.Output, problem)
			}
			if strings.Contains(said.Output+problem, "escaped\nescaped\n") {
				escaped[way] = true
			}
		}
	}
	// If nothing gets round a level, this test tests no sandbox.
	if len(escaped) == 0 {
		t.Error("no way leads round the levels any more: find new ones")
	}
	t.Logf("ways round the levels, which the sandbox holds: %v", escaped)
}

func shellQuoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// R-S20: what takes memory, processes or time without end is ended, and nothing of it is left.
func TestBombs(t *testing.T) {
	for name, box := range sandboxes(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box.patience = 1
			p := interpreter(t, Config{Sandbox: box})
			shorter := p.levels[Lenient]
			shorter.timeout = time.Second
			p.levels[Lenient] = shorter
			u := owner(t, p)
			for bomb, code := range map[string]string{
				"memory":     "x = bytearray(4 << 30)",
				"slowly":     "x = []\nwhile True: x.append(bytearray(1 << 20))",
				"processes":  "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
				"sessions":   "import os\nwhile True:\n    try:\n        if os.fork() == 0: os.setsid()\n    except OSError: pass",
				"threads":    "import threading, time\nfor i in range(1000): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
				"orphans":    "import os, signal, time\nif os.fork() == 0:\n    os.setsid()\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    if os.fork() == 0: time.sleep(60)\n    time.sleep(60)\nwhile True: pass",
				"big file":   "f = open('x.bin', 'wb')\nwhile True: f.write(b'x' * (1 << 20))",
				"many files": "i = 0\nwhile True:\n    open('f%d' % i, 'wb').write(b'x' * (5 << 20))\n    i += 1",
				"endless":    "while True: print('x' * 1000000)",
				"no reader":  "import os, sys\nos.close(0)\nos.kill(os.getpid(), 19)",
			} {
				if said, problem := u.run(Lenient, code); problem == "" {
					t.Errorf("%s: %+v", bomb, said)
				}
				if left := processesIn(t, box.spec().Dir); len(left) > 0 {
					t.Errorf("%s: %v are left", bomb, left)
				}
			}
			u.wantOutput("", "print(1)", "1\n")
		})
	}
}

// processesIn returns the processes that work in a folder.
func processesIn(t *testing.T, dir string) (found []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range all {
		if at, _ := os.Readlink(link); strings.HasPrefix(at, dir) {
			found = append(found, link)
		}
	}
	return found
}

// Ordinary code runs in the real sandboxes as it does without one.
func TestInSandbox(t *testing.T) {
	for name, box := range sandboxes(t) {
		t.Run(name, func(t *testing.T) {
			u := owner(t, interpreter(t, Config{Sandbox: box}))
			u.wantOutput("", "import json; print(json.dumps({'key': 'value'}))", "{\"key\": \"value\"}\n")
			u.wantOutput(Strict, "result = sum([1,2,3,4,5]); print(result)", "15\n")
			u.wantOutput("", "import datetime, statistics\nimport xml.etree.ElementTree as ET\n"+
				"print(datetime.date(2026, 1, 2), statistics.median([1, 2, 9]), ET.fromstring('<a>ü</a>').text)", "2026-01-02 2 ü\n")
			u.wantOutput(Lenient, "import threading, subprocess, tempfile\nwith tempfile.TemporaryFile() as f: f.write(b'x')\n"+
				"print(subprocess.run(['echo', 'hello'], capture_output=True, text=True).stdout)", "hello\n\n")
			said, problem := u.run(Lenient, drawing)
			if len(said.Files) != 1 || !strings.HasSuffix(said.Files[0], "/red.png") {
				t.Errorf("%+v, %s", said, problem)
			}
			u.wantProblem(Strict, "import time", "Blocked imports: time. These modules are not allowed in 'strict' mode.")
		})
	}
}

// BenchmarkPrint compares print(1) in execute_python, at the level strict, with the bare interpreter.
func BenchmarkPrint(b *testing.B) {
	skipWithoutPython(b)
	path, err := Find()
	if err != nil {
		b.Fatal(err)
	}
	bare := sandbox.Spec{Args: []string{path, "-I", "-S", "-B", "-c", "print(1)"}}
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if o, err := (none.Runner{}).Run(context.Background(), bare); err != nil || o.Exit != 0 {
				b.Fatal(o, err)
			}
		}
	})
	boxes := sandboxes(b)
	boxes["none"] = unconfined()
	for name, box := range boxes {
		b.Run(name, func(b *testing.B) {
			u := owner(b, interpreter(b, Config{Sandbox: box}))
			for b.Loop() {
				if said, problem := u.run(Strict, "print(1)"); said.Output != "1\n" {
					b.Fatal(problem)
				}
			}
		})
	}
}
