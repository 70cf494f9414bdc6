package probe_test

import (
	"os"
	"os/exec"
	"testing"

	"parley/requiretest"
	"parley/tools/sandbox"
	"parley/tools/sandbox/bwrap"
	"parley/tools/sandbox/landlock"
	"parley/tools/sandbox/none"
	"parley/tools/sandbox/probe"
)

// Where nothing is confined, every attempt succeeds. So the probe can tell.
func TestNothingHolds(t *testing.T) {
	attempts, err := probe.Run(t.Context(), none.Runner{})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range attempts {
		t.Log(a)
		if a.Held != (a.Name == "use its own folder") {
			t.Errorf("%s: held %t, %s", a.Name, a.Held, a.Detail)
		}
	}
}

// R-S16: the drivers hold.
func TestHolds(t *testing.T) {
	runners := map[string]sandbox.Runner{"landlock": landlock.New()}
	if _, err := exec.LookPath("bwrap"); err == nil || os.Getenv(requiretest.Variable) == requiretest.All {
		runners["bwrap"] = bwrap.New(bwrap.Config{Folder: t.TempDir()})
	}
	for name, r := range runners {
		attempts, err := probe.Run(t.Context(), r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, a := range attempts {
			t.Log(name, a)
			if !a.Held {
				t.Errorf("%s: %s succeeded", name, a.Name)
			}
		}
	}
}
