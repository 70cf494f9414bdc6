package schedule_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"

	"parley/web/webtest"
)

// In a browser: after something was done to a job, the page says so, and what was looked at is where it was, also on
// a page whose address leads to a job. It is said once.
func TestDone(t *testing.T) {
	ctx := webtest.Browser(t)
	pages := serve(t, newPages(t, someJobs()...))
	mux := http.NewServeMux()
	mux.Handle("/", pages.Config.Handler)
	for _, pattern := range []string{"PATCH /api/cron/{id}", "POST /api/cron/{id}/run", "DELETE /api/cron/{id}"} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	if err := webtest.Look(ctx, 1200, 700, "light"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ at, button, says string }{
		{"", "[data-patch]", "“Morning briefing” is paused."},
		{"#job-rent", "[data-post$='/run']", "“Morning briefing” was started."},
		{"", "[data-delete]", "“Morning briefing” was removed."},
	} {
		if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
			t.Fatal(err)
		}
		if err := chromedp.Do(ctx, chromedp.Navigate(s.URL+"/owner/cron"+c.at)); err != nil {
			t.Fatal(err)
		}
		button := `document.querySelector("#job-morning ` + c.button + `")`
		webtest.Until(ctx, t, button)
		was, err := chromedp.Run(ctx, chromedp.Evaluate[float64](`(() => {
			window.confirm = () => window.before = true;
			const button = `+button+`;
			button.scrollIntoView({ block: "center" });
			window.before = true;
			setTimeout(() => button.click());
			return button.getBoundingClientRect().top;
		})()`))
		if err != nil {
			t.Fatal(err)
		}
		webtest.Until(ctx, t, `!window.before && document.getElementById("said").textContent === "`+c.says+`"`)
		now, err := chromedp.Run(ctx, chromedp.Evaluate[float64](button+`.getBoundingClientRect().top`))
		if err != nil || now < was-2 || now > was+2 {
			t.Errorf("%s: the button was at %v, and is at %v (%v)", c.button, was, now, err)
		}
	}
	if err := chromedp.Do(ctx, chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	webtest.Until(ctx, t, `document.getElementById("said").textContent === ""`)
}
