package doctor

import (
	"fmt"
	"strings"
)

// CustomTools tells how many custom tools there are, and why others cannot be loaded (B-004); err says
// why their folder cannot be read.
func CustomTools(loaded int, faults []string, err error) Finding {
	switch {
	case err != nil:
		return Finding{Warn, err.Error(), "let Parley read the folder"}
	case len(faults) > 0:
		text := fmt.Sprintf("%d loaded; not loaded: %s", loaded, strings.Join(faults, "; "))
		return Finding{Warn, text, "mend the files named; docs/custom-tools.md says what belongs in them"}
	}
	return Finding{OK, fmt.Sprintf("%d loaded", loaded), ""}
}
