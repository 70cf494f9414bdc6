package main

import (
	"testing"

	"parley/workspace"
)

// No model is asked while nothing is open.
func TestHasOpenItem(t *testing.T) {
	w, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Seed(); err != nil {
		t.Fatal(err)
	}
	first, err := w.ReadFile(heartbeatFile)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"":                                false,
		string(first):                     false,
		string(first) + "\n- [ ] water":   true,
		"# Tasks\n\n- [x] done\n* [X] so": false,
		"- water the plants":              true,
		"  + [ ] water":                   true,
		"- [ ]\n- \n-\n":                  false,
		"<!-- - [ ] an example -->\n":     false,
		"<!--\n- [ ] an example\n-->\n":   false,
		"<!--\n-->\n- [ ] real":           true,
		"```\n- [ ] code\n```\n":          false,
		"water the plants - [ ] twice":    false,
		"- [ ] \u65e5\u672c\u8a9e":        true,
	} {
		if got := hasOpenItem(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
