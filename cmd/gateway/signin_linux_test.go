package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley/config"
	"parley/requiretest"
	"parley/tools/network/networktest"
)

// TestSignInLinkIsForTerminals: the output of a service is kept in logs, so it
// holds no link that signs its reader in as the owner; a person at a terminal
// gets one.
func TestSignInLinkIsForTerminals(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	w.start()
	w.base()
	w.logs("parley link", 1)
	if code := w.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if log := w.log.String(); strings.Contains(log, "/signin#") {
		t.Errorf("a link is in the log:\n%s", log)
	}

	master, slave, err := openPTY()
	if err != nil {
		requiretest.Missing(t, "no terminal:", err)
	}
	cmd := w.command()
	cmd.Stderr = slave
	w.starts++
	w.proc = startProcess(t, cmd)
	slave.Close()
	var copying sync.WaitGroup
	copying.Go(func() { _, _ = io.Copy(&w.log, master) }) // ends with an error once nobody has the other end
	w.logs("/signin#", 1)
	link := startLink.FindStringSubmatch(w.log.String())
	if link == nil {
		t.Fatalf("no link: %s", w.log.String())
	}
	w.signIn(link[1], link[2])
	w.kill()
	master.Close()
	copying.Wait()
}

// startProcess runs cmd, to be ended by the testGateway's kill.
func startProcess(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, ended: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait()
	}()
	return p
}

// openPTY returns the two ends of a terminal.
func openPTY() (master, slave *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	master = os.NewFile(uintptr(fd), "master")
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return nil, nil, errors.Join(errno, master.Close())
	}
	return master, os.NewFile(peer, "slave"), nil
}

// TestGuessesAreSummedUp: whoever guesses wrong makes the audit log no longer
// than one entry for all of it (R-S27).
func TestGuessesAreSummedUp(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	w.more["http"] = map[string]any{"listen": "127.0.0.1:0", "adminToken": adminToken}
	w.start()
	base, owner := w.base(), w.visit()
	for range 200 {
		req, err := http.NewRequestWithContext(t.Context(), "GET", base+"/v1/models", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer parley_wrong")
		resp, err := owner.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 401 && resp.StatusCode != 429 {
			t.Fatalf("got %d", resp.StatusCode)
		}
	}
	w.stop()
	out, _ := w.run("", "audit")
	if n := strings.Count(out, "refused"); n != 1 || !strings.Contains(out, "wrong API key from 127.0.0.1: 200") {
		t.Errorf("%d entries: %s", n, out)
	}
}

// TestPortInUse: another program at the default port does not end a first run;
// an address that somebody chose is kept to, and the error says what to do.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", config.DefaultListen)
	for late := time.Now().Add(20 * time.Second); err != nil && time.Now().Before(late); soon(t.Context()) {
		l, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", config.DefaultListen) // a gateway of another test may have it
	}
	if err == nil {
		defer l.Close()
	} // else somebody else has it for good, which does as well
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "parley", "--data", filepath.Join(home, "data"))
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}
	w := &testGateway{t: t, dir: filepath.Join(home, "data"), starts: 1}
	cmd.Stderr = &w.log
	w.proc = startProcess(t, cmd)
	t.Cleanup(w.kill)
	req, err := http.NewRequestWithContext(t.Context(), "GET", w.base()+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("health: %d", resp.StatusCode)
	}
	if log := w.log.String(); !strings.Contains(log, "in use by another program") {
		t.Errorf("it does not say why the port is another one: %s", log)
	}
	for _, command := range []string{"status", "doctor"} { // a terminal shows no log
		ask := exec.CommandContext(t.Context(), "parley", command, "--data", w.dir)
		ask.Env = cmd.Env
		out, _ := ask.Output() // doctor may have other things to say
		if out := string(out); !strings.Contains(out, config.DefaultListen+" is in use by another program") || !strings.Contains(out, strings.TrimPrefix(w.base(), "http://")) {
			t.Errorf("%s does not say where the page is, and why there: %s", command, out)
		}
	}

	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	chosen := newTestGateway(t, echo)
	chosen.more["http"] = map[string]any{"listen": taken.Addr().String()}
	chosen.start()
	<-chosen.proc.ended
	if log := chosen.log.String(); !strings.Contains(log, "another program uses "+taken.Addr().String()) || chosen.proc.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("exit %d: %s", chosen.proc.cmd.ProcessState.ExitCode(), log)
	}
}

// TestListenFlag: --listen wins over the address of the config, at each start, and is kept to: even if it is the one
// that nobody need choose, no other port is taken in its place.
func TestListenFlag(t *testing.T) {
	t.Parallel()
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	w := newTestGateway(t, echo)
	w.more["http"] = map[string]any{"listen": taken.Addr().String()} // with which it could not start
	wanted := networktest.FreeAddress(t)
	w.args = []string{"run", "--listen", wanted}
	w.start()
	if w.base() != "http://"+wanted {
		t.Errorf("the page is at %s, not at %s", w.base(), wanted)
	}
	w.visit()
	usual, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", config.DefaultListen)
	if err == nil {
		defer usual.Close()
	} // else somebody else has it, which does as well
	strict := newTestGateway(t, echo)
	strict.args = []string{"--listen", config.DefaultListen}
	strict.start()
	<-strict.proc.ended
	if log := strict.log.String(); !strings.Contains(log, "another program uses "+config.DefaultListen) {
		t.Errorf("it was not kept to the address: %s", log)
	}
}
