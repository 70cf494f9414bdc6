package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
	if limit := int64(28.8e6); info.Size() > limit {
		t.Errorf("the program has %d bytes, where %d are allowed", info.Size(), limit)
	}
}
