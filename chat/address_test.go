package chat

import (
	"strings"
	"testing"
)

// R-S26: a URL's user and password are shown to nobody.
func TestHideLogins(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "",
		"https://user:hunter2@example.com/a?b#c": "https://…@example.com/a?b#c",
		"Reading HTTPS://hunter2@example.com":    "Reading HTTPS://…@example.com",
		"clone git+ssh://git:hunter2@[::1]:22/x, then":                 "clone git+ssh://…@[::1]:22/x, then",
		"https://a:hunter2@b@example.com/":                             "https://…@example.com/",
		"https:/user:hunter2@example.com https:hunter2@example.com":    "https:/…@example.com https:…@example.com",
		`https:\\user:hunter2@example.com`:                             `https:\\…@example.com`,
		`https://user:hun"ter2@example.com/`:                           `https://…@example.com/`,
		`https://user:hun\ter2@example.com/`:                           `https://…@example.com/`,
		`{"url":"https://user:hunter2@example.com"}`:                   `{"url":"https://…@example.com"}`,
		`["https://example.com","user@example.com"]`:                   `["https://example.com","user@example.com"]`,
		"https://example.com/@user https://example.com?to=a@b":         "https://example.com/@user https://example.com?to=a@b",
		"write to user@example.com, see https://example.com":           "write to user@example.com, see https://example.com",
		`parse "https://user:hunter2@example.com/": invalid character`: `parse "https://…@example.com/": invalid character`,
		"postgres://user:hunter2@db/x":                                 "postgres://…@db/x",
		"3:2 at 10:30 a@b":                                             "3:2 at 10:30 a@b",
	} {
		if got := HideLogins(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	whole := "see https://user:hunter2@example.com/path and http://x/y"
	for n := range len(whole) + 1 {
		if got := HideUnfinishedLogins(whole[:n]); strings.Contains(got, "user") || strings.Contains(got, "hunter") || strings.Contains(got, ":h") {
			t.Errorf("%q is shown as %q", whole[:n], got)
		}
	}
	if got := HideUnfinishedLogins(whole); got != "see https://…@example.com/path and http://x/y" {
		t.Error(got)
	}
}
