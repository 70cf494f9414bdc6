package web

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// An assigned handler that returns false cancels its event, such as a key that was pressed. An arrow function without
// braces returns whatever its expression comes to.
func TestHandlersReturnNothing(t *testing.T) {
	modules, err := filepath.Glob("page/*.js")
	if err != nil || len(modules) < 10 {
		t.Fatal(modules, err)
	}
	returns := regexp.MustCompile(`\.on[a-z]+ = (async )?(\([^=]*\)|\w+) => [^{].*`)
	for _, name := range modules {
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range returns.FindAllString(string(body), -1) {
			t.Errorf("%s: this handler returns what its expression comes to: %s", name, line)
		}
	}
}
