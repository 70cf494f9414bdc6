package web

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// TestStorageFields: docs/internals/storage.md lists what entries of conversations can have, also what few do.
func TestStorageFields(t *testing.T) {
	page, err := os.ReadFile("../../docs/internals/storage.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `web/<person>/<conversation>` .*$").Find(page)
	entry := reflect.TypeFor[logEntry]()
	for i := range entry.NumField() {
		name, _, _ := strings.Cut(entry.Field(i).Tag.Get("json"), ",")
		if stored := name != "seq"; stored != strings.Contains(string(row), "`"+name+"`") {
			t.Errorf("the field %q of the logs of the page is stored, %v: the row is %s", name, stored, row)
		}
	}
}
