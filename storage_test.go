package parley_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/store"
)

// TestStorage checks that docs/internals/storage.md lists the buckets, logs and
// queues of the catalogue, and no others. cmd/gateway.TestStorageIsDocumented
// knows what is in them.
func TestStorage(t *testing.T) {
	const page = "docs/internals/storage.md"
	row, placeholder := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|"), regexp.MustCompile(`<[^<>]+>`)
	variable := regexp.MustCompile(`[A-Z]{2,}`)
	for kind, title := range map[string]string{"bucket": "Buckets", "log": "Logs", "queue": "Queues"} {
		_, section, _ := strings.Cut(documents(t)[page], "\n## "+title+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		var listed []string
		for _, m := range row.FindAllStringSubmatch(section, -1) {
			listed = append(listed, placeholder.ReplaceAllString(m[1], "x"))
		}
		known := map[string]bool{}
		for _, c := range store.Catalogue() {
			if c.Kind != kind {
				continue
			}
			name := regexp.MustCompile("^" + variable.ReplaceAllString(c.Name, ".+") + "$")
			if !slices.ContainsFunc(listed, name.MatchString) {
				t.Errorf("%s does not list the %s %q", page, kind, c.Name)
			}
			for _, l := range listed {
				known[l] = known[l] || name.MatchString(l)
			}
		}
		for _, l := range listed {
			if !known[l] {
				t.Errorf("%s lists the %s %q, which the catalogue does not have", page, kind, l)
			}
		}
	}
}
