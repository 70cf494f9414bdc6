package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A process of another pid namespace is no process that could be killed: 0 would be Parley's own group. And
// Parley does not kill itself when a thread of it is on its way out of a cgroup.
func TestProcessesOfOtherNamespaces(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "cgroup.procs"), fmt.Append(nil, "0\n17\n0\n-1\n", os.Getpid(), "\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := &cgroup{kept: []string{folder}}
	if got, want := g.processes(), []int{17}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}
