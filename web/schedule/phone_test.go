package schedule_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"parley/web/webtest"
)

// On phones what a card says of a job stays in its column.
func TestCardsOnPhones(t *testing.T) {
	ctx := webtest.Browser(t)
	s := serve(t, newPages(t, someJobs()...))
	for _, width := range []int64{390, 320} {
		if err := webtest.Look(ctx, width, 844, "light"); err != nil {
			t.Fatal(err)
		}
		if err := chromedp.Do(ctx, chromedp.Navigate(s.URL+"/owner/cron")); err != nil {
			t.Fatal(err)
		}
		webtest.Until(ctx, t, `document.querySelector(".jobs dd .times")`)
		over, err := chromedp.Run(ctx, chromedp.Evaluate[string](`[...document.querySelectorAll(".jobs dd .times")].filter((times) => {
			const dd = times.closest("dd");
			const words = document.createRange();
			words.selectNodeContents(times);
			return words.getBoundingClientRect().right > dd.getBoundingClientRect().right + 1;
		}).map((times) => times.textContent).join()`))
		if err != nil || over != "" {
			t.Errorf("at %d pixels these are wider than their columns: %s (%v)", width, over, err)
		}
	}
}
