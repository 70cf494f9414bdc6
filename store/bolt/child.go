package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// exitDamaged is the exit code of a process that ran [PrintProbe] and could read
// what is wrong with the file.
const exitDamaged = 1

// PrintProbe is what the child of [ProbeInChild] does: it probes the file and prints
// the damaged places. The process must then print the error to standard error after
// "parley: ", and exit with 1 if there is one.
func PrintProbe(out io.Writer, file string) error {
	damaged, err := Probe(file)
	for _, place := range damaged {
		fmt.Fprintln(out, place)
	}
	return err
}

// ProbeInChild is [Probe] in a process of its own, which runs this program with the
// arguments args and then file: a damaged file can end the process that reads it (P18).
func ProbeInChild(ctx context.Context, file string, args ...string) (damaged []string, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("probe store: %w", err)
	}
	var out, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, append(args, file)...)
	cmd.Env = []string{} // not ours (R-S17)
	cmd.Stdout = &out
	cmd.Stderr = &stderr
	err = cmd.Run()
	if err == nil {
		for line := range strings.Lines(out.String()) {
			damaged = append(damaged, strings.TrimSuffix(line, "\n"))
		}
		return damaged, nil
	}
	fault, _, _ := strings.Cut(strings.TrimPrefix(stderr.String(), "parley: "), "\n")
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("probe store: %w", ctx.Err())
	case cmd.ProcessState == nil: // it never ran
		return nil, fmt.Errorf("probe store: %w", err)
	case killed(cmd.ProcessState): // from outside, as when memory runs out
		return nil, fmt.Errorf("probe store: %w: %w", err, syscall.EINTR)
	case cmd.ProcessState.ExitCode() != exitDamaged || fault == "":
		return nil, fmt.Errorf("reading it ended the process that did: %w", err)
	}
	return nil, errors.New(fault)
}

// killed reports whether another process ended the process of s.
func killed(s *os.ProcessState) bool {
	status, ok := s.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return false
	}
	switch status.Signal() {
	case syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT:
		return true
	}
	return false
}
