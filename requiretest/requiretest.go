// Package requiretest is for tests that need what a machine may lack: a program, a terminal, a kind of sandbox.
// There, they are skipped with a reason, unless the environment has PARLEY_REQUIRE=all: then they fail.
package requiretest

import (
	"os"
	"os/exec"
	"testing"
)

const (
	// Variable is the name in the environment that says what must be here.
	Variable = "PARLEY_REQUIRE"
	// All is the value of Variable that lets nothing be missing.
	All = "all"
)

// Program returns the path of a program that t needs.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, err)
	}
	return path
}

// Missing ends t because of what this machine lacks.
func Missing(t testing.TB, what ...any) {
	t.Helper()
	if os.Getenv(Variable) == All {
		t.Fatal(what...)
	}
	t.Skip(what...)
}
