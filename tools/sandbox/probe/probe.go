// Package probe finds out whether a sandbox holds: it has a program in the sandbox try what none there
// may be able to do, and checks what came of it.
package probe

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"early.parley"
	"parley/tools/sandbox"
)

// listenTimeout is how long a message of a program that has ended is waited for.
const listenTimeout = 20 * time.Millisecond

// Run is a [sandbox.Probe].
func Run(ctx context.Context, r sandbox.Runner) ([]sandbox.Attempt, error) {
	temp, err := sandbox.MakeTemp()
	if err != nil {
		return nil, err
	}
	defer temp.Remove()
	dir, err := filepath.EvalSymlinks(temp.Path)
	if err != nil {
		return nil, err
	}
	s, err := newScene(ctx, dir)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	attempts, err := s.probe(ctx, r)
	return attempts, errors.Join(err, s.close())
}

// A scene is what the program tries to get at: files, sockets, and a process.
type scene struct {
	dir       string
	target    early.Target
	listeners map[string]listener // by the attempt that reaches them
	victim    *exec.Cmd
	died      chan struct{} // closed when victim has ended
}

// A listener is a socket of some kind.
type listener interface {
	SetDeadline(t time.Time) error
	Close() error
}

const protectedText = "standing instructions"

// changes are the attempts to change a protected file.
var changes = []string{
	early.WriteFile, early.Truncate, early.Replace, early.Remove, early.Link, early.ChangeMode,
}

// newScene makes a scene in dir. It must be closed, also if there is an error.
func newScene(ctx context.Context, dir string) (*scene, error) {
	canary := rand.Text()
	s := &scene{dir: dir, listeners: map[string]listener{}, died: make(chan struct{})}
	s.target = early.Target{
		Hidden:    filepath.Join(dir, "read", "hidden", "secret"),
		Protected: filepath.Join(dir, "read"),
		Work:      filepath.Join(dir, "read", "work"),
		Canary:    canary,
		Unix:      filepath.Join(dir, "socket"),
		Abstract:  "parley-probe-" + rand.Text(),
	}
	for _, folder := range []string{s.target.Protected, s.target.Work, filepath.Dir(s.target.Hidden)} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return s, err
		}
	}
	files := map[string]string{s.target.Hidden: canary}
	for _, name := range changes {
		files[filepath.Join(s.target.Protected, name)] = protectedText
	}
	for file, text := range files {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return s, err
		}
	}
	if err := s.listen(ctx); err != nil {
		return s, err
	}
	return s, s.startVictim(ctx)
}

// listen opens the sockets of s.
func (s *scene) listen(ctx context.Context) error {
	var config net.ListenConfig
	for name, at := range map[string][2]string{
		early.ConnectTCP:  {"tcp4", "127.0.0.1:0"},
		early.ConnectUnix: {"unix", s.target.Unix},
		early.Abstract:    {"unix", "@" + s.target.Abstract},
	} {
		l, err := config.Listen(ctx, at[0], at[1])
		if err != nil {
			return err
		}
		s.listeners[name] = l.(listener)
		if tcp, ok := l.Addr().(*net.TCPAddr); ok {
			s.target.TCP = tcp.Port
		}
	}
	packets, err := config.ListenPacket(ctx, "udp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.listeners[early.SendUDP] = packets
	s.target.UDP = packets.LocalAddr().(*net.UDPAddr).Port
	return nil
}

// startVictim starts a process that can be killed without harm.
func (s *scene) startVictim(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	victim := exec.CommandContext(ctx, self, early.Victim, s.target.Canary)
	victim.Env = []string{"SECRET=" + s.target.Canary}
	input, err := victim.StdinPipe() // open as long as this process lives
	if err != nil {
		return err
	}
	if err := victim.Start(); err != nil {
		return fmt.Errorf("start a process to be attacked: %w", err)
	}
	s.victim = victim
	s.target.Victim = s.victim.Process.Pid
	go func() {
		_ = s.victim.Wait()
		_ = input.Close()
		close(s.died)
	}()
	return nil
}

// close ends what newScene began.
func (s *scene) close() error {
	var errs []error
	for _, l := range s.listeners {
		errs = append(errs, l.Close())
	}
	if s.victim != nil {
		_ = s.victim.Process.Kill() // it may be dead
		<-s.died
	}
	return errors.Join(errs...)
}

// probe has r run a program that makes all attempts, and returns how they went.
func (s *scene) probe(ctx context.Context, r sandbox.Runner) ([]sandbox.Attempt, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var out, complaint bytes.Buffer
	o, err := r.Run(ctx, sandbox.Spec{
		Args:   s.target.Command(self),
		Dir:    s.target.Work,
		Stdout: &out, Stderr: &complaint,
		Folders: []sandbox.Folder{
			{Path: self, Access: sandbox.ReadOnly},
			{Path: s.target.Protected, Access: sandbox.ReadOnly},
			{Path: filepath.Dir(s.target.Hidden), Access: sandbox.Hidden},
			{Path: s.target.Work, Access: sandbox.ReadWrite},
		},
		Limits: sandbox.Limits{Wall: 10 * time.Second},
	})
	if err != nil {
		return nil, err
	}
	if o.End != sandbox.Exited || o.Exit != 0 {
		return nil, fmt.Errorf("the program that tries it ended with %s, code %d: %.200s", o.End, o.Exit, &complaint)
	}
	return s.judge(out.String())
}

// judge returns how the attempts went, by the report that the program wrote and by their effects.
func (s *scene) judge(report string) (all []sandbox.Attempt, err error) {
	effects, err := s.effects()
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(report) {
		name, quoted, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		detail, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, fmt.Errorf("the program that tries it wrote %.100q", line)
		}
		done := detail == early.Done
		if effect, watched := effects[name]; watched {
			done = done && effect // what a program does to a copy is no harm
		}
		a := sandbox.Attempt{Name: name, Held: !done, Detail: detail}
		if name == early.UseWork { // it must succeed
			a.Held = done
		}
		all = append(all, a)
	}
	if len(all) < early.NumAttempts {
		return nil, errors.New("the program that tries it ended too early")
	}
	return all, nil
}

// effects reports, for each attempt whose success can be seen from outside, whether it succeeded.
func (s *scene) effects() (map[string]bool, error) {
	found := map[string]bool{}
	for name, l := range s.listeners {
		if err := l.SetDeadline(time.Now().Add(listenTimeout)); err != nil {
			return nil, err
		}
		found[name] = received(l)
	}
	select {
	case <-s.died:
		found[early.Signal] = true
	default:
		found[early.Signal] = false
	}
	_, err := os.Stat(filepath.Join(s.target.Protected, "made"))
	found[early.MakeFile] = err == nil
	_, err = os.Stat(filepath.Join(s.target.Work, "made"))
	found[early.UseWork] = err == nil
	for _, name := range changes {
		file := filepath.Join(s.target.Protected, name)
		text, err := os.ReadFile(file)
		info, err2 := os.Stat(file)
		found[name] = err != nil || err2 != nil || string(text) != protectedText || info.Mode().Perm() != 0o600
	}
	return found, nil
}

// received reports whether somebody has connected to l, or sent it something.
func received(l listener) bool {
	switch l := l.(type) {
	case net.Listener:
		c, err := l.Accept()
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	case net.PacketConn:
		_, _, err := l.ReadFrom(make([]byte, 1))
		return err == nil
	}
	return false
}
