package web

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	h "maragu.dev/gomponents/html"

	g "maragu.dev/gomponents"

	"parley/chat"
	"parley/response"
	"parley/web/webtest"
)

// TestPastedLink: a sign-in link that is pasted into a tab works, whatever the tab shows: the chat, the chat of
// somebody else, or the sign-in page. One that is used up does not end what is there.
func TestPastedLink(t *testing.T) {
	ctx, end := context.WithTimeout(webtest.Browser(t), 5*time.Minute)
	defer end()
	at, f := served(t, func(c *Config) {
		c.Chat = func(w http.ResponseWriter, r *http.Request, who chat.Sender) {
			_ = response.Page(w, http.StatusOK, response.Document("Chat", nil, h.H1(g.Text("The chat of "+who.ID))))
		}
	})
	if err := f.access.people.add(t.Context(), "anna"); err != nil {
		t.Fatal(err)
	}
	paste := func(link string) {
		t.Helper()
		_, err := chromedp.Run(ctx, chromedp.Navigate(link))
		if err != nil && !strings.Contains(err.Error(), "ERR_ABORTED") { // the page went on by itself
			t.Fatal(err)
		}
	}
	linkOf := func(person string) string {
		t.Helper()
		link, err := f.Link(t.Context(), person)
		if err != nil {
			t.Fatal(err)
		}
		return link
	}
	shows := func(person string) {
		t.Helper()
		webtest.Until(ctx, t, `location.pathname === "/" && document.querySelector("h1")?.textContent === "The chat of `+person+`"`)
	}

	owners := linkOf(ownerName)
	paste(at + "/") // not signed in: the sign-in page
	webtest.Until(ctx, t, `location.pathname === "/signin" && document.querySelector("#said")`)
	paste(owners) // only what is after the # changes
	shows(ownerName)
	paste(linkOf("anna")) // signed in as somebody else
	shows("anna")
	paste(owners) // used up
	webtest.Until(ctx, t, `document.getElementById("said").textContent.includes("has expired or is invalid") && document.querySelector("#said a")`)
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.querySelector("#said a").click(); ""`)); err != nil {
		t.Fatal(err)
	}
	shows("anna")
	paste(at + "/signin#wrong")
	webtest.Until(ctx, t, `document.querySelector("#said a")`)
	paste(linkOf(ownerName)) // waiting at the sign-in page, while signed in
	shows(ownerName)
}
