package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// probeInChild has a child process read the whole store file: a damaged one
// can end the process that reads it (P18). It returns where single values are
// damaged; its error says what is wrong with the file itself.
func probeInChild(ctx context.Context, file string) (damaged []string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("probe store: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, "probe", file)
	cmd.Env = []string{} // not ours (R-S17)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err = cmd.Run()
	said, _, _ := strings.Cut(strings.TrimPrefix(stderr.String(), "parley: "), "\n")
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("probe store: %w", ctx.Err())
	case err != nil && cmd.ProcessState == nil: // it was never read
		return nil, fmt.Errorf("probe store: %w", err)
	case killed(cmd.ProcessState): // from outside, as for want of memory
		return nil, fmt.Errorf("probe store: %w: %w", err, syscall.EINTR)
	case err == nil:
		for line := range strings.Lines(out.String()) {
			damaged = append(damaged, strings.TrimSuffix(line, "\n"))
		}
		return damaged, nil
	case !cmd.ProcessState.Exited() || cmd.ProcessState.ExitCode() != exitFailure || said == "":
		return nil, fmt.Errorf("reading it ended the process that did: %w", err)
	}
	return nil, errors.New(said)
}

// killed reports whether somebody ended the process of s.
func killed(s *os.ProcessState) bool {
	status, ok := s.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && (status.Signal() == syscall.SIGKILL || status.Signal() == syscall.SIGTERM || status.Signal() == syscall.SIGINT)
}
