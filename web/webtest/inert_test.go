package webtest_test

import (
	"testing"

	"parley/web/webtest"
)

func TestActive(t *testing.T) {
	for page, want := range map[string]int{
		`<p>text</p><a href="/owner">x</a><script src="/assets/a.js"></script><use href="#i">`: 0,
		`<a href="javascript:alert(1)">x</a>`:                                                  1,
		`<a href=" javascript:alert(1)">x</a>`:                                                 1,
		`<a href="//evil.example">x</a>`:                                                       1,
		`<button data-post="https://evil.example">x</button>`:                                  1,
		`<p onclick="x">x</p>`:                                                                 1,
		`<p style="x">x</p>`:                                                                   1,
		`<script>alert(1)</script>`:                                                            1,
		`<script src="#x"></script>`:                                                           1,
		`<base href="/">`:                                                                      1,
		`<img src=x onerror=x>`:                                                                2,
	} {
		if got := webtest.Active(page); len(got) != want {
			t.Errorf("%s: %q, want %d", page, got, want)
		}
	}
}

// Every hostile text is one: written as it is, it acts in some place of a page.
func TestHostile(t *testing.T) {
	for _, text := range webtest.Hostile {
		acts := 0
		for _, page := range []string{
			"<p>" + text + "</p>",
			`<p title="` + text + `">x</p>`,
			`<p title='` + text + `'>x</p>`,
			`<a href="` + text + `">x</a>`,
		} {
			acts += len(webtest.Active(page))
		}
		if acts == 0 {
			t.Errorf("%q is harmless everywhere", text)
		}
	}
}
