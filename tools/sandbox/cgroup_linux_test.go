package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A process of another pid namespace is no process that could be killed: 0 would be Parley's own group.
func TestProcessesOfOtherNamespaces(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "cgroup.procs"), []byte("0\n17\n0\n-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := &cgroup{kept: []string{folder}}
	if got, want := g.processes(), []int{17}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}
