package redact

import (
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestShortSecretsAreWords(t *testing.T) {
	var r Redactor
	if r.String("x") != "x" {
		t.Error("the zero redactor changes text")
	}
	r.Add("none", "", "abcdef", "abcdefghi")
	if got := r.String("none abcdefghi abcdef"); got != "none [secret] [secret]" {
		t.Error(got)
	}
}

func TestRedactProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[ -~]{6,20}`).Draw(t, "secret")
		before, after := rapid.String().Draw(t, "before"), rapid.String().Draw(t, "after")
		var r Redactor
		r.Add(s)
		if strings.Contains(hidden, s) || strings.Contains(s, "secret]") || strings.Contains(s, "[secret") {
			t.Skip("hides itself")
		}
		got := r.String(before + s + after + quoted(s) + url.QueryEscape(s))
		if strings.Contains(got, s) && !strings.Contains(before+hidden+after, s) {
			t.Fatalf("%q in %q", s, got)
		}
	})
}
