package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"parley/channels/console"
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
	case err == nil:
		for line := range strings.Lines(out.String()) {
			damaged = append(damaged, strings.TrimSuffix(line, "\n"))
		}
		return damaged, nil
	case cmd.ProcessState == nil || !cmd.ProcessState.Exited() || cmd.ProcessState.ExitCode() != exitFailure || said == "":
		return nil, fmt.Errorf("reading it ended the process that did: %w", err)
	}
	return nil, errors.New(said)
}

// holder returns the process id of the gateway that runs, 0 for none. It takes
// no lock, which might keep a gateway from starting.
func holder(ctx context.Context, dataDir string) int {
	if !console.Running(ctx, filepath.Join(dataDir, "parley.sock")) {
		return 0
	}
	text, _ := os.ReadFile(filepath.Join(dataDir, "lock"))
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return -1
	}
	return pid
}
