package parley_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/store"
)

// TestStorage checks that docs/internals/storage.md lists the buckets, logs and
// queues of the catalogue, and no others. TestCatalogue checks that the code has
// no others, and cmd/gateway.TestStorageIsDocumented knows what is in them.
func TestStorage(t *testing.T) {
	const page = "docs/internals/storage.md"
	_, sections, _ := strings.Cut(documents(t)[page], "\n## Buckets\n")
	sections, _, _ = strings.Cut(sections, "\n## Layout")
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(sections, -1) {
		listed = append(listed, m[1])
	}
	different := regexp.MustCompile("CHANNEL|PERSON|CONVERSATION|SESSION")
	var stored []*regexp.Regexp
	for _, c := range store.Catalogue() {
		name := regexp.MustCompile("^" + different.ReplaceAllString(c.Name, ".+") + "$")
		stored = append(stored, name)
		if !slices.ContainsFunc(listed, name.MatchString) {
			t.Errorf("%s does not list %q", page, c.Name)
		}
	}
	for _, l := range listed {
		if !slices.ContainsFunc(stored, func(name *regexp.Regexp) bool { return name.MatchString(l) }) {
			t.Errorf("%s lists %q, which the catalogue does not have", page, l)
		}
	}
}
