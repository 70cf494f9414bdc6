package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestBinarySize checks that the program, stripped, stays small. If it grew by
// megabytes, a new library is large, or something calls methods by names that are
// known only at run time (reflect.Value.MethodByName, text/template), so that the
// linker keeps every exported method: go build -ldflags=-dumpdep marks the
// function with <ReflectMethod>.
func TestBinarySize(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the limit is for amd64")
	}
	file := filepath.Join(t.TempDir(), "parley")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s", "-o", file, "parley/cmd/gateway")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if limit := int64(34.5e6); info.Size() > limit {
		t.Errorf("the program has %d bytes, where %d are allowed", info.Size(), limit)
	}
	checkLoading(t, file)
}

// checkLoading checks that packages do little when the program in file is loaded, which each start and each
// command waits for. What the runtime counts does not depend on how busy the machine is.
func checkLoading(t *testing.T, file string) {
	const (
		ownLimit = 10_000    // bytes of memory that a package of ours may fill
		limit    = 2_000_000 // all packages together
	)
	cmd := exec.CommandContext(t.Context(), file, "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	trace, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("parley version: %v\n%s", err, trace)
	}
	packages, sum := 0, 0
	for line := range strings.Lines(string(trace)) {
		var name string
		var at, took float64
		var bytes int
		if _, err := fmt.Sscanf(line, "init %s @%f ms, %f ms clock, %d bytes", &name, &at, &took, &bytes); err != nil {
			continue // the version
		}
		packages++
		sum += bytes
		if strings.HasPrefix(name, "parley/") && bytes > ownLimit {
			t.Errorf("%s fills %d bytes when it is loaded, where %d are allowed", name, bytes, ownLimit)
		}
	}
	if sum > limit {
		t.Errorf("all packages fill %d bytes when they are loaded, where %d are allowed", sum, limit)
	}
	if packages < 50 {
		t.Errorf("%d packages were traced: the test is of no use:\n%s", packages, trace)
	}
}
