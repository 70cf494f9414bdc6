package mcptest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// A Scenario is what a suite found out about a server.
type Scenario struct {
	Name   string
	Passed int      // checks
	Faults []string // failures and warnings
}

// resultFolder is the name of the folder with a scenario's results.
var resultFolder = regexp.MustCompile(`^server-(.+)-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z$`)

// TestServer has the conformance suite of an npm package test the server at url. The arguments say which scenarios.
func TestServer(t testing.TB, suite, url string, args ...string) (all []Scenario) {
	t.Helper()
	results := t.TempDir()
	args = append([]string{Package(t, suite+"/dist/index.js"), "server", "--url", url, "--output-dir", results}, args...)
	out, err := exec.CommandContext(t.Context(), Node(), args...).CombinedOutput()
	folders, _ := os.ReadDir(results)
	if len(folders) == 0 {
		t.Fatalf("%s found out nothing: %v\n%s", suite, err, out)
	}
	for _, folder := range folders {
		s := Scenario{Name: resultFolder.FindStringSubmatch(folder.Name())[1]}
		text, err := os.ReadFile(filepath.Join(results, folder.Name(), "checks.json"))
		if err != nil {
			t.Fatal(err)
		}
		var checks []struct{ ID, Status, ErrorMessage string }
		if err := json.Unmarshal(text, &checks); err != nil {
			t.Fatal(err)
		}
		for _, c := range checks {
			switch c.Status {
			case "SUCCESS":
				s.Passed++
			case "INFO", "SKIPPED":
			default:
				s.Faults = append(s.Faults, c.Status+" "+c.ID+": "+c.ErrorMessage)
			}
		}
		all = append(all, s)
	}
	return all
}
