package bwrap_test

import (
	"testing"

	"parley/tools/sandbox"
	"parley/tools/sandbox/bwrap"
	"parley/tools/sandbox/sandboxtest"
)

// R-S16: the conformance suite.
func TestConformance(t *testing.T) {
	runner := bwrap.New(bwrap.Config{Folder: t.TempDir()})
	sandboxtest.Run(t, func(*testing.T) sandbox.Runner { return runner }, nil)
}
