// Gateway is the program parley: it reads config.json, opens all parts from the
// store up to the HTTP server, runs them, and shuts them down in order.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	_ "time/tzdata" // the zone of the config must be known on any machine

	"parley/admin/commands"
	"parley/config"
	"parley/host"
	"parley/store/bolt/dirlock"
	"parley/tools/sandbox/proxy"
)

// What the process ends with.
const (
	exitFailure = 1
	exitUsage   = 2 // also a faulty config: trying again cannot help
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == proxy.RelayCommand {
		os.Exit(proxy.Relay(os.Args[2:]))
	}
	log.SetOutput(io.Discard) // what libraries say, until a gateway has a log for it
	os.Exit(newProgram(drivers()).run(context.Background(), os.Args[1:]))
}

// newProgram returns the program with what its config can name.
func newProgram(d config.Drivers) *program {
	return &program{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		environ: config.NewEnviron(os.Environ()), drivers: d,
	}
}

// run does what args say and returns the exit code.
func (p *program) run(ctx context.Context, args []string) int {
	root := p.commands()
	root.SetArgs(args)
	c, err := root.ExecuteContextC(ctx)
	var end exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &end):
	case !p.begun: // cobra did not understand
		end = exit{exitUsage, commands.Misunderstood(c, err)}
	default:
		end = exit{exitFailure, err}
	}
	if end.err != nil {
		text := end.Error()
		if todo := host.AccessAdvice(end.err); todo != "" {
			text += "\n" + todo
		}
		if locked, ok := errors.AsType[*dirlock.LockedError](end.err); ok && !locked.Brief && locked.Answers == "" {
			text += "\nif that is a gateway, parley chat talks to it and parley status shows how it is"
		}
		fmt.Fprintln(p.stderr, "parley:", p.redact.String(text))
	}
	return end.code
}

// exit is an error that says how the process is to end. Without err, all has
// been said already.
type exit struct {
	code int
	err  error
}

func (e exit) Error() string { return e.err.Error() }
func (e exit) Unwrap() error { return e.err }
