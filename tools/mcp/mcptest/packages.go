// Package mcptest has what tests of MCP need: where the servers of other people are, and a server that
// does what no server should.
package mcptest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley/requiretest"
)

// PackagesVariable is the environment variable that names a folder in which npm has installed the
// packages that tests use, beside its node_modules.
const PackagesVariable = requiretest.PackagesVariable

// Package returns the path of a file of an npm package of the scope @modelcontextprotocol, such as
// "server-memory/dist/index.js". A test that needs one that is missing, or Node, ends as
// requiretest says.
func Package(t testing.TB, file string) string {
	t.Helper()
	requiretest.Program(t, "node")
	return requiretest.PackageFile(t, filepath.Join("@modelcontextprotocol", file))
}

// ClientScenarios returns the names of the scenarios of the conformance suite at path that are for clients.
func ClientScenarios(t testing.TB, path string) (names []string) {
	t.Helper()
	listed, err := exec.CommandContext(t.Context(), Node(), path, "list", "--client").Output()
	if err != nil {
		t.Fatalf("list the scenarios: %v\n%s", err, listed)
	}
	for line := range strings.Lines(string(listed)) {
		if item, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok {
			name, _, _ := strings.Cut(item, " ")
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		t.Fatalf("the suite lists no scenarios:\n%s", listed)
	}
	return names
}

// Node returns the Node to run packages with that want a later one than the system's: that of the npm package
// node, if it is installed beside them.
func Node() string {
	own := filepath.Join(os.Getenv(PackagesVariable), "node_modules", ".bin", "node")
	if _, err := os.Stat(own); err != nil {
		return "node"
	}
	return own
}
