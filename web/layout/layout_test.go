package layout_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	g "maragu.dev/gomponents"

	"parley/chat"
	"parley/web/layout"
	"parley/web/webtest"
)

// The section of a page, and of what is below it, is marked in the navigation, and
// no other is.
func TestNavigationMarksTheSection(t *testing.T) {
	for path, want := range map[string]string{
		"/owner":                  "/owner",
		"/owner/memory":           "/owner/memory",
		"/owner/memory/changes/2": "/owner/memory",
		"/owner/memoryless":       "",
		"/admin/custom-tools":     "/admin/custom-tools",
	} {
		page := layout.Page(path, "Title", nil).(interface{ String() string }).String()
		got := ""
		if before, _, found := strings.Cut(page, `" aria-current="true"`); found {
			got = before[strings.LastIndex(before, `"`)+1:]
		}
		if n := strings.Count(page, "aria-current"); got != want || n > 1 {
			t.Errorf("%s: %q is marked, and %d sections are, want %q", path, got, n, want)
		}
	}
}

// A page loads its own scripts and styles, and Assets serves them. What others wrote is no markup.
func TestFrame(t *testing.T) {
	for _, text := range webtest.Hostile {
		w := httptest.NewRecorder()
		f := layout.Frame{
			Path: "/owner", Title: text, Lead: text,
			Actions: g.Group{layout.PostButton("/api/x", text, text), layout.LinkButton("/owner", text)},
			Assets:  []string{"jobs.css", "jobs.js"},
			Content: g.Group{
				layout.Grid(layout.Card(text, g.Text(text))),
				layout.Stats(layout.Stat(text, text, text)),
				layout.Status(layout.Bad, text),
				layout.Empty(text, text, layout.LinkButton("/", text)),
			},
		}
		if err := f.Write(w); err != nil {
			t.Fatal(err)
		}
		page := w.Body.String()
		if faults := webtest.Active(page); len(faults) > 0 || !webtest.Shows(page, text) {
			t.Errorf("%q: %q in %s", text, faults, page)
		}
		for _, want := range []string{`<link rel="stylesheet" href="/assets/jobs.css">`, `<script type="module" src="/assets/jobs.js">`} {
			if !strings.Contains(page, want) {
				t.Errorf("the page lacks %s", want)
			}
		}
	}
	routes := layout.Assets(fstest.MapFS{"assets/jobs.js": {Data: []byte("go()")}, "other.js": {}})
	if len(routes) != 1 || routes[0].Pattern != "GET /assets/jobs.js" || routes[0].Anybody {
		t.Fatalf("routes are %+v", routes)
	}
	w := httptest.NewRecorder()
	if err := routes[0].Handle(w, httptest.NewRequestWithContext(t.Context(), "GET", "/assets/jobs.js", nil), chat.Sender{}); err != nil || w.Body.String() != "go()" {
		t.Errorf("%v: %d %s", err, w.Code, w.Body)
	}
}

func TestFigures(t *testing.T) {
	for n, want := range map[int]string{
		0: "0", 999: "999", 1000: "1\u202f000", 1234567: "1\u202f234\u202f567", 100000: "100\u202f000", -123: "-123", -1234: "-1\u202f234",
	} {
		if got := layout.Grouped(n); got != want {
			t.Errorf("%d is %q", n, got)
		}
	}
	for v, want := range map[float64]string{0: "0.00", .0312: "0.0312", .00004: "0.0000", .1: "0.10", 12.345: "12.35", 1234: "1234.00"} {
		if got := layout.Money(v); got != want {
			t.Errorf("%v is %q", v, got)
		}
	}
}
