package changes

import (
	"fmt"
	"testing"
)

// Files without number leave few records, and none of them is trusted.
func TestMarks(t *testing.T) {
	many := func(format string) (names []string) {
		for i := range 3 * maxMarked {
			names = append(names, fmt.Sprintf(format, i))
		}
		return names
	}
	for _, c := range []struct {
		name string
		w    Found
		want string // the marks
	}{
		{"few", Found{files: []string{"a", "b/c"}}, "[{a false} {b/c false}]"},
		{"in a new folder", Found{files: many("n/m/%d")}, "[{n true}]"},
		{"in an old folder", Found{files: many("o/n/%d"), kept: map[string]bool{"o": true}}, "[{o/n true}]"},
		{"beside others", Found{files: many("o/%d"), kept: map[string]bool{"o": true}}, "[{o true}]"},
		{"in work itself", Found{files: many("%d")}, "[{. true}]"},
		{"unreadable", Found{files: []string{"a"}, folders: []string{"x"}}, "[{a false} {x true}]"},
		{"unreadable ones", Found{folders: many("o/%d"), kept: map[string]bool{"o": true}}, "[{o true}]"},
		{"too many", Found{files: []string{"a"}, tooMany: true}, "[{. true}]"},
	} {
		if got := fmt.Sprint(c.w.Marks()); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
