package web_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"parley/chat"
	"parley/web/webtest"
)

// The steps of an answer say how each call can be checked, and one that was altered stands out; an answer without any says
// that no tools were used for it, and one of which nobody knows says nothing.
func showsReceipts(t *testing.T, browser context.Context) {
	h := newHome(t)
	at := time.Date(2026, 11, 20, 9, 30, 15, 0, time.UTC)
	h.steps = []chat.Step{
		{Call: "1", Tool: "web_search", Name: "Search the web", State: chat.Done, Tip: "tides today", Result: "High water at 14:10.", Began: at, Took: 800,
			Receipt: &chat.Receipt{Digest: "0123456789abcdef"}},
		{Call: "2", Tool: "message", Name: "Send message", State: chat.Done, Tip: "to Anna", Result: "Sent.", Began: at.Add(2 * time.Second),
			Receipt: &chat.Receipt{Digest: "fedcba9876543210", By: "<b>Ben</b>"}},
		{Call: "3", Tool: "write_file", Name: "Write file", State: chat.Done, Tip: "tides.md", Result: "Written.", Began: at.Add(3 * time.Second),
			Receipt: &chat.Receipt{Digest: "0f1e2d3c4b5a6978", Altered: true, Note: "its stored result is not the one that the receipt stands for"}},
		{Call: "4", Tool: "exec", Name: "Run command", State: chat.Interrupted, Tip: "make", Receipt: &chat.Receipt{Note: "interrupted; it may have taken effect"}},
	}
	b := h.tab(t, browser)
	r := b.tells(t, "When is high water? Tell Anna.").Reply()
	h.Step(r, chat.Step{Call: "1", Tool: "web_search", State: chat.Running})
	b.until(`document.querySelector("#making .steps[open] li")`)
	b.click("#making .steps > summary") // somebody looks, and goes on looking
	b.click("#making .steps > summary")
	h.Step(r, chat.Step{Call: "1", State: chat.Done})
	r.Text, r.Steps, r.Taken = "High water is at 14:10. Anna knows.", "🔧 web_search, message, write_file, exec", chat.CountSteps(h.steps)
	h.says(t, r)
	const digests = `[...document.querySelectorAll(".steps .facts code")].map((c) => c.textContent).join()`
	b.until(digests + ` === "0123456789abcdef,fedcba9876543210,0f1e2d3c4b5a6978"`) // without a reload
	r2 := b.tells(t, "Thank you").Reply()
	r2.Text, r2.Taken = "You are welcome.", &chat.StepCounts{}
	h.says(t, r2)
	r3 := b.tells(t, "/status").Reply()
	r3.Text = "I am doing nothing."
	h.says(t, r3)
	const notes = `[...document.querySelectorAll("#entries article")].map((a) => a.querySelector("footer .none")?.innerText ?? "").join("|")`
	b.until(notes + ` === "|||no tools used||"`)
	b.do(chromedp.Reload())
	b.until(notes + ` === "|||no tools used||"`)
	b.click("#entries .steps > summary")
	b.until(digests + `.length > 40`)
	eval[bool](b, `(document.querySelectorAll(".steps li > details").forEach((d) => (d.open = true)), true)`)
	for i, want := range []string{"", "approved by <b>Ben</b>", "altered", "interrupted; it may have taken effect"} {
		card := fmt.Sprintf(`document.querySelectorAll("#entries .steps li")[%d].innerText.toLowerCase()`, i)
		b.until(fmt.Sprintf(`%s.includes(%q.toLowerCase())`, card, want))
	}
	if got := eval[string](b, `[...document.querySelectorAll("#entries .steps li summary em")].map((e) => e.innerText).join()`); got != "altered,interrupted" {
		t.Errorf("the steps stand out as %s", got)
	}
	for _, width := range []int64{1200, 390} {
		for _, scheme := range []string{"light", "dark"} {
			b.look(width, 900, scheme)
			eval[bool](b, `(document.querySelector("#entries .steps").scrollIntoView(), true)`)
			b.shot(fmt.Sprintf("receipts-%d-%s", width, scheme))
			if wide := eval[int64](b, `Math.max(document.documentElement.scrollWidth, document.querySelector("#scroll").scrollWidth)`); wide > width {
				t.Errorf("at %d the page is %d wide", width, wide)
			}
		}
	}
	webtest.AxeEverywhere(b.ctx, t, "steps with receipts")
}
