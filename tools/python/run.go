package python

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"parley/tools"
	"parley/tools/sandbox"
)

//go:embed run.py
var program string

// What code may use, at each level.
const (
	maxMemory    = 512 << 20 // bytes
	maxProcesses = 64        // threads included
	maxFile      = 20 << 20  // bytes: more than networks take
	maxOutput    = 64 << 20  // bytes of both streams
	maxKept      = 1 << 20   // characters of each stream
	cpuReserve   = 5 * time.Second
)

// A finished is a run of code that has ended.
type finished struct {
	output  string
	result  json.RawMessage // nil if there is none
	problem string          // why it failed; "" if it did not
	code    string          // of the failure
}

// run runs code in folder.
func (p *Interpreter) run(ctx context.Context, folder scratch, level Level, code string) (done finished, err error) {
	path, err := p.find()
	if err != nil {
		return done, err
	}
	if p.draws(level, code) {
		if err := p.fonts.give(folder); err != nil {
			return done, err
		}
	}
	rules := p.levels[level]
	extra := p.extraModules(level)
	flags := []string{path, "-I", "-B", "-X", "utf8"}
	if level != Lenient && extra == "" {
		flags = append(flags, "-S") // without packages that are installed beside Python it starts faster
	}
	stdout := &sandbox.Ends{Max: maxKept}
	stderr := &sandbox.Ends{Max: maxKept}
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := folder.watch(cancel)
	s := folder.spec(append(flags, "-c", program), rules.timeout)
	s.Stdin = strings.NewReader(fmt.Sprintf("%s;%s;%s\n%s", level, rules.modules, extra, code))
	s.Stdout = stdout
	s.Stderr = stderr
	o, err := p.cfg.Sandbox.Run(limited, s)
	stop()
	if err != nil {
		return done, err
	}
	done.output = stdout.String()
	if o.Dropped > 0 {
		done.output += fmt.Sprintf("\n... (%d more bytes were left out)", o.Dropped)
	}
	switch {
	case errors.Is(context.Cause(limited), errScratchFull):
		done.problem = "Execution failed: " + errScratchFull.Error()
	case o.End == sandbox.TimedOut:
		done.problem = fmt.Sprintf("Execution timeout (%ds limit in '%s' mode)", int(rules.timeout/time.Second), level)
		done.code = tools.CodeTimeout
	case o.End == sandbox.Exceeded:
		done.problem = fmt.Sprintf("Execution failed: the code used more than it may: %d MB of memory, %d processes "+
			"and threads, %v of processor time", maxMemory>>20, maxProcesses, rules.timeout+cpuReserve)
	case o.Exit != 0:
		done.problem = cmp.Or(strings.TrimSpace(stderr.String()), "Execution failed")
	default:
		done.result = folder.result()
		return done, nil
	}
	if done.output != "" {
		done.problem += "\n\nIt had printed:\n" + done.output
	}
	return done, nil
}

// spec returns what runs args in the folder, for at most so long.
func (s scratch) spec(args []string, timeout time.Duration) sandbox.Spec {
	return sandbox.Spec{
		Args:    args,
		Dir:     s.dir,
		Env:     environment(s.dir),
		Folders: []sandbox.Folder{{Path: s.dir, Access: sandbox.ReadWrite}},
		Limits: sandbox.Limits{
			Wall:      timeout,
			CPU:       timeout + cpuReserve,
			Memory:    maxMemory,
			Processes: maxProcesses,
			FileSize:  maxFile,
			Output:    maxOutput,
		},
	}
}

// environment returns the variables of code that runs in dir. A library that draws must not look for a
// screen, and one that calculates must not start a thread for each processor of a large machine.
func environment(dir string) map[string]string {
	return map[string]string{
		"HOME":                 dir,
		"MPLBACKEND":           "Agg",
		"MPLCONFIGDIR":         filepath.Join(dir, fontFolder),
		"OMP_NUM_THREADS":      "4",
		"OPENBLAS_NUM_THREADS": "4",
	}
}
