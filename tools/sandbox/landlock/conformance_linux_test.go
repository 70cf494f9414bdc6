package landlock_test

import (
	"os"
	"testing"

	"parley/tools/sandbox"
	"parley/tools/sandbox/landlock"
	"parley/tools/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// R-S16: the conformance suite.
func TestConformance(t *testing.T) {
	runner := landlock.New()
	sandboxtest.Run(t, func(*testing.T) sandbox.Runner { return runner }, sandboxtest.Exceptions{
		"itself":              "the entry of a process in /proc has no name before the process begins, and / is no granted folder",
		"new beside narrower": "Landlock cannot take away: who may make files in a folder may do so in all below it",
	})
}
