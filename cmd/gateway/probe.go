package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// probeInChild has a child process read the whole store file: a damaged one
// can end the process that reads it (P18). Its error says what is wrong.
func probeInChild(ctx context.Context, file string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("probe store: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, "probe", file)
	cmd.Env = []string{} // not ours (R-S17)
	var out bytes.Buffer
	cmd.Stderr = &out
	switch err := cmd.Run(); {
	case ctx.Err() != nil:
		return fmt.Errorf("probe store: %w", ctx.Err())
	case err == nil:
		return nil
	default:
		said, _, _ := strings.Cut(strings.TrimPrefix(out.String(), "parley: "), "\n")
		if said == "" {
			return fmt.Errorf("probe store: %w", err)
		}
		return errors.New(said)
	}
}
