package live

import (
	"fmt"
	"strings"
	"testing"
)

// However much a call takes, its step shows little of it (D-040, P15).
func TestStepsAreBrief(t *testing.T) {
	params := map[string]any{"n": 17, "list": []any{strings.Repeat("x", 1000)}, "content": strings.Repeat("ä", 1<<20), strings.Repeat("k", 100): true}
	for i := range 100 {
		params[fmt.Sprint("z", i)] = i
	}
	got := brief(params)
	if list, _ := got["list"].(string); len(got) != maxArgs || got["n"] != 17 || got[strings.Repeat("k", maxName)] != true ||
		got["content"] != strings.Repeat("ä", maxText) || !strings.HasPrefix(list, `["xxx`) || len(list) != maxText {
		t.Errorf("the step shows %.300v", got)
	}
}
