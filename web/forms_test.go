package web

import (
	"context"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"parley/web/webtest"
)

// TestFormsWithoutScripts: who clicks a button of a form before the scripts of the
// page have loaded keeps what was typed, and nothing of it gets into an address,
// which is in the history of the browser and in logs.
func TestFormsWithoutScripts(t *testing.T) {
	ctx, end := context.WithTimeout(webtest.Browser(t), 5*time.Minute)
	defer end()
	at, f := served(t)
	link, err := f.Link(t.Context(), ownerName)
	if err != nil {
		t.Fatal(err)
	}
	_ = chromedp.Do(ctx, chromedp.Navigate(link)) // the page goes on by itself
	for signedIn := false; !signedIn; {
		if ctx.Err() != nil {
			t.Fatal("never signed in")
		}
		signedIn, _ = chromedp.Run(ctx, chromedp.Evaluate[bool](`document.body.innerText.includes("chat / for owner")`))
	}
	forms := webtest.SubmitWithoutScripts(t, ctx, at, []string{"/signin", "/owner"}, "/owner", "/admin")
	if forms < 12 {
		t.Errorf("only %d forms were found", forms)
	}
}
