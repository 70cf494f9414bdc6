// Package requiretest is for tests that need what a machine may lack: a program, a terminal, a kind of sandbox.
// There, they are skipped with a reason, unless the environment has PARLEY_REQUIRE=all: then they fail.
package requiretest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const (
	// Variable is the name in the environment that says what must be here.
	Variable = "PARLEY_REQUIRE"
	// All is the value of Variable that lets nothing be missing.
	All = "all"
	// PackagesVariable is the name in the environment of the folder in which npm has installed the
	// packages that tests use, beside its node_modules.
	PackagesVariable = "PARLEY_MCP_PACKAGES"
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

// PackageFile returns the path of a file of an npm package that t needs, such as "axe-core/axe.min.js".
func PackageFile(t testing.TB, file string) string {
	t.Helper()
	path := filepath.Join(os.Getenv(PackagesVariable), "node_modules", file)
	if _, err := os.Stat(path); err != nil {
		Missing(t, PackagesVariable+" is to name a folder with the npm packages:", err)
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
