package doctor

import (
	"fmt"
	"strings"
)

// CustomTools tells how many custom tools there are, why others cannot be loaded (B-004), and which
// built-in tools nobody has because of that (C-035); err says why their folder cannot be read.
func CustomTools(loaded int, faults, replaced []string, err error) Finding {
	if err != nil {
		return Finding{Warn, err.Error(), "let Parley read the folder"}
	}
	text := fmt.Sprintf("%d loaded", loaded)
	var advice []string
	if len(faults) > 0 {
		text += "; not loaded: " + strings.Join(faults, "; ")
		advice = append(advice, "mend the files named; docs/custom-tools.md says what belongs in them")
	}
	if len(replaced) > 0 {
		text += "; offered to nobody: " + strings.Join(replaced, "; ")
		advice = append(advice, "mend the custom tool, or take it out of tools.override in the config")
	}
	if len(advice) > 0 {
		return Finding{Warn, text, strings.Join(advice, "; ")}
	}
	return Finding{OK, text, ""}
}
