package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptCommands are the commands of scripts, besides those of testscript.
func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	all := networkCommands()
	all["code"], all["mode"] = exitCode, fileMode
	return all
}

// exitCode runs a program and wants it to end with a code: code 2 parley sing.
func exitCode(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if end, ok := errors.AsType[*exec.ExitError](err); ok {
		got = end.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%v: exit code %d, want %d", args[1:], got, want)
	}
}

// fileMode wants a file to have permissions: mode 600 config.json.
func fileMode(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := fmt.Sprintf("%o", info.Mode().Perm()); got != args[0] {
		ts.Fatalf("%s: mode %s, want %s", args[1], got, args[0])
	}
}
