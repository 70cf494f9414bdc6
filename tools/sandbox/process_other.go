//go:build !linux

package sandbox

import (
	"errors"
	"os"
	"syscall"
	"time"

	"early.parley"
)

// SecretFile returns a file with content that has no name.
func SecretFile(name string, content []byte) (*os.File, error) {
	file, err := os.CreateTemp("", name)
	if err != nil {
		return nil, err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, os.Remove(file.Name())); err != nil {
		file.Close()
		return nil, err
	}
	if _, err := file.Seek(0, 0); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

type cgroupPlaces struct{}

// A process is a command that runs. On this system there is only its process group to find what it
// started, and nothing that limits memory and processes.
type process struct {
	handle *os.Process
	exited chan struct{} // closed when it has ended
	state  *os.ProcessState
}

func (*Supervisor) start(c Command, files []*os.File, _ Limits) (*process, error) {
	handle, err := os.StartProcess(c.Args[0], c.Args, &os.ProcAttr{
		Dir: c.Dir, Env: c.Env, Files: append(append(files[:len(files):len(files)], nil, nil), c.Files...),
		Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return nil, err
	}
	p := &process{handle: handle, exited: make(chan struct{})}
	go func() {
		p.state, _ = handle.Wait()
		close(p.exited)
	}()
	return p, nil
}

func (*process) exceeded(Limits) bool { return false }

func (*process) mayCrowd() bool { return false }

func (*process) crowds(Limits) bool { return false }

func (p *process) end() error {
	_ = syscall.Kill(-p.handle.Pid, syscall.SIGKILL)
	select {
	case <-p.exited:
		return nil
	case <-time.After(early.EndTimeout):
		return early.ErrAlive
	}
}

func (p *process) exitCode() (int, bool) {
	if wait, ok := p.state.Sys().(syscall.WaitStatus); ok && wait.Signaled() {
		return 128 + int(wait.Signal()), true
	}
	return p.state.ExitCode(), true
}
