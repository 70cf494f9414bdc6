package webtest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"parley/web/webtest"
)

// Axe finds what is wrong with a page, also under a policy that allows no scripts, and nothing where
// nothing is.
func TestAxe(t *testing.T) {
	const good = `<!doctype html><html lang="en"><title>x</title><main><h1>Title</h1><button>Go</button></main>`
	page := good
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'")
		_, _ = w.Write([]byte(page))
	}))
	defer server.Close()
	ctx := webtest.Browser(t)
	look := func() string {
		t.Helper()
		if err := chromedp.Do(ctx, chromedp.Navigate(server.URL)); err != nil {
			t.Fatal(err)
		}
		found, err := webtest.Violations(ctx, t)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if found := look(); found != "" {
		t.Errorf("axe finds %s", found)
	}
	webtest.AxeEverywhere(ctx, t, "a good page")
	page = strings.ReplaceAll(good, ">Go<", "><")
	if found := look(); !strings.Contains(found, "button-name") || !strings.Contains(found, "<button></button>") {
		t.Errorf("of a button without a name axe says %q", found)
	}
}
