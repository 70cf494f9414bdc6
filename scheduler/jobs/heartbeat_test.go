package jobs

import (
	"strings"
	"testing"

	"parley/workspace"
)

// Without an open item, the model is not called.
func TestHasOpenItem(t *testing.T) {
	w, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Seed(); err != nil {
		t.Fatal(err)
	}
	first, err := w.Names().ReadFile("HEARTBEAT.md")
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
		if got := HasOpenItem(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// A file of megabytes is not sent to the model every half hour (R-S15).
func TestLongHeartbeat(t *testing.T) {
	short, long := "- [ ] water", strings.Repeat("- [ ] ä\n", 1<<20)
	if got := HeartbeatText("HEARTBEAT.md", short); !strings.HasSuffix(got, "\n\n"+short) {
		t.Errorf("told %q", got)
	}
	if got := HeartbeatText("HEARTBEAT.md", long); len(got) > maxHeartbeat+500 || !strings.HasSuffix(got, "\n(The rest of HEARTBEAT.md is left out: it is too long.)") {
		t.Errorf("told %d bytes", len(got))
	}
}
