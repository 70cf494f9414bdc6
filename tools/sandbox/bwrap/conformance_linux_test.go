package bwrap_test

import (
	"os"
	"testing"

	"parley/tools/sandbox"
	"parley/tools/sandbox/bwrap"
	"parley/tools/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// R-S16: the conformance suite.
func TestConformance(t *testing.T) {
	runner := bwrap.New(bwrap.Config{})
	sandboxtest.Run(t, func(*testing.T) sandbox.Runner { return runner }, nil)
}
