package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/chat"
	"parley/response"
	"parley/web/webtest"
)

// served serves a face on a real socket.
func served(t *testing.T, change ...func(*Config)) (at string, f *face) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f = newFace(t, append(change, func(c *Config) { c.Listen = l.Addr().String() })...)
	srv, done := f.HTTP(f.h), make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		srv.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String(), f
}

// In a real browser, under the real policy: the link signs in once and leaves no
// trace, the owner's buttons work, and nothing that others wrote runs.
func TestBrowser(t *testing.T) {
	ctx, end := context.WithTimeout(webtest.Browser(t), 5*time.Minute)
	defer end()
	var f *face
	at, f := served(t, func(c *Config) {
		c.Chat = func(w http.ResponseWriter, r *http.Request, who chat.Sender) {
			_ = response.Page(w, http.StatusOK, response.Document("Chat", nil, h.H1(g.Text("The chat of "+who.ID))))
		}
	})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	goTo := func(url string) {
		t.Helper()
		_, err := chromedp.Run(ctx, chromedp.Navigate(url))
		if err != nil && !strings.Contains(err.Error(), "ERR_ABORTED") { // the page went on by itself
			t.Fatal(err)
		}
	}
	js := func(script string) string {
		t.Helper()
		got, err := chromedp.Run(ctx, chromedp.Evaluate[string](script))
		must(err)
		return got
	}
	// until waits until script, which runs in the page, says yes.
	until := func(script string) {
		t.Helper()
		webtest.Until(ctx, t, script)
	}
	const chatShown = `document.querySelector("h1")?.textContent === "The chat of owner"`

	goTo(at + "/signin#wrong")
	until(`document.getElementById("said").textContent.includes("has expired or is invalid")`)
	if hash := js(`location.href`); hash != at+"/signin" {
		t.Errorf("the code stays in the address: %s", hash)
	}
	link, err := f.Link(t.Context(), ownerName)
	must(err)
	goTo("about:blank")
	goTo(link)
	until(chatShown)
	goTo(at + "/signin")
	until(chatShown) // signed in already

	js(`fetch("/signout", {method: "POST", headers: {"X-Parley": "1"}}).then(() => location.assign("/signin")); ""`)
	until(`location.pathname === "/signin" && document.readyState === "complete" && document.querySelector("#signin") !== null`)
	link, err = f.Link(ctx, ownerName)
	must(err)
	js(`location.href = ` + strconv.Quote(link) + `; ""`) // as if it was pasted into the tab: nothing is loaded anew
	until(chatShown)
	for _, page := range []string{"/owner", "/owner/talks", "/owner/talks/telegram:-100%2F7", "/owner/usage", "/owner/audit", "/owner/tools", "/owner/cron", "/owner/cron/rehearsal", "/owner/memory", "/owner/memory/changes", "/owner/memory/changes/2", "/owner/people/access"} {
		goTo(at + page)
		if n := js(`String(document.images.length + document.querySelectorAll("[onerror]").length)`); n != "0" {
			t.Errorf("%s: %s things that others wrote are markup", page, n)
		}
		// Whatever can be used has a name that a screen reader says.
		if bare := js(`[...document.querySelectorAll("a,button,input:not([type=hidden]),select,table")].filter(e => !(e.ariaLabel || e.getAttribute("aria-labelledby") || e.labels?.length || e.textContent.trim())).map(e => e.outerHTML).join()`); bare != "" {
			t.Errorf("%s: without a name: %s", page, bare)
		}
		if wide := js(`String(document.documentElement.scrollWidth > innerWidth)`); wide != "false" {
			t.Errorf("%s is wider than the window", page)
		}
		if section := js(`[...document.querySelectorAll("#nav [aria-current]")].map(e => e.pathname).join()`); !strings.HasPrefix(page, section) || section == "" || section == "/owner" && page != section {
			t.Errorf("%s is marked as of %q", page, section)
		}
		fitsPhone(t, ctx, page)
		shoot(t, ctx, page)
	}
	// The colours are those that were chosen in the chat.
	for _, theme := range []string{"dark", "light"} {
		js(`localStorage.setItem("theme", "` + theme + `"); ""`)
		goTo(at + "/owner/people/access")
		if got := js(`getComputedStyle(document.documentElement).colorScheme`); got != theme {
			t.Errorf("with %s chosen in the chat the page is %s", theme, got)
		}
	}
	js(`localStorage.removeItem("theme"); dispatchEvent(new StorageEvent("storage")); ""`) // as another tab does it
	if got := js(`getComputedStyle(document.documentElement).colorScheme`); got != "light dark" {
		t.Errorf("with no colours chosen the page is %s", got)
	}
	js(`document.getElementById("name").value = "anna"; document.querySelector("form[data-post='/api/people'] button").click(); ""`)
	until(`document.querySelector("output")?.textContent.includes("/signin#")`)
	js(`document.querySelector("form[data-post='/api/keys'] [name=prefix]").value = "phone"; document.querySelector("form[data-post='/api/keys'] button").click(); ""`)
	until(`document.querySelector("output")?.textContent.startsWith("parley_")`)
	goTo(at + "/owner")
	js(`window.before = true; document.querySelector("[data-post$=resend]").click(); ""`)
	until(`!window.before && document.readyState === "complete"`)
	goTo(at + "/owner/cron")
	_, err = chromedp.Run(ctx, chromedp.EmulateViewport(390, 800))
	must(err)
	if cut := js(`[...document.querySelectorAll("button,input,a")].filter(e => e.getBoundingClientRect().right > innerWidth).map(e => e.outerHTML).join()`); cut != "" {
		t.Errorf("on a phone one has to look for %s", cut)
	}
	js(`window.before = true; document.querySelector("[data-patch$=mallory]").click(); ""`)
	until(`!window.before && document.readyState === "complete" && document.querySelector("[data-patch$=mallory]")?.textContent === "Resume"`)
	js(`window.before = true; document.getElementById("new-message").value = "Make tea"; document.getElementById("new-when").value = "every day at 9"; document.querySelector("#new button.main").click(); ""`)
	until(`!window.before && document.querySelectorAll("[data-delete]").length === 2`)
	goTo(at + "/owner/memory/changes/2")
	js(`window.confirm = (sure) => { window.sure = sure; return false; }; document.querySelector("[data-sure]").click(); ""`)
	until(`window.sure === "Undo change 2? What came after it stays."`)
	js(`window.confirm = () => true; document.querySelector("[data-sure]").click(); ""`)
	until(`location.pathname === "/owner/memory/changes" && document.querySelectorAll("tbody tr").length === 3`)
	goTo(at + "/owner/memory/changes/2")
	js(`window.confirm = () => true; document.querySelector("[data-sure]").click(); ""`)
	until(`document.getElementById("said").textContent === "this change cannot be undone: what it wrote has been changed since."`)
	goTo(at + "/owner/people/access")
	js(`document.querySelector("[data-post='/signout']").click(); ""`)
	until(`location.pathname === "/signin" && document.readyState === "complete"`)
	js(`document.getElementById("token").value = "` + token + `"; document.querySelector("form button").click(); ""`)
	until(chatShown)
	f.mu.Lock()
	defer f.mu.Unlock()
	if strings.Join(f.did, ",") != "resend telegram//42/7,edit mallory,add Make tea" {
		t.Errorf("did %q", f.did)
	}
}

// fitsPhone fails t if on a phone something of the page is cut off: no table and no list has to be moved
// sideways to be read.
func fitsPhone(t *testing.T, ctx context.Context, page string) {
	t.Helper()
	if _, err := chromedp.Run(ctx, chromedp.EmulateViewport(390, 800)); err != nil {
		t.Fatal(err)
	}
	cut, err := chromedp.Run(ctx, chromedp.Evaluate[string](`[
		...[...document.querySelectorAll("main .wide")].filter(e => e.scrollWidth > e.clientWidth),
		...[...document.querySelectorAll("a,button,input:not([type=hidden]),select,textarea,th,td")].filter(e => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth),
	].map(e => e.outerHTML.slice(0, 300)).join("\n")`))
	if err != nil {
		t.Fatal(err)
	}
	if cut != "" {
		t.Errorf("%s: on a phone these are cut off:\n%s", page, cut)
	}
	if _, err := chromedp.Run(ctx, chromedp.EmulateViewport(1100, 800)); err != nil {
		t.Fatal(err)
	}
}

// shoot keeps a picture of the page where PARLEY_ARTIFACTS says.
func shoot(t *testing.T, ctx context.Context, page string) {
	t.Helper()
	dir := os.Getenv("PARLEY_ARTIFACTS")
	if dir == "" {
		return
	}
	for size, width := range map[string]int64{"wide": 1100, "phone": 390} {
		if _, err := chromedp.Run(ctx, chromedp.EmulateViewport(width, 800)); err != nil {
			t.Fatal(err)
		}
		png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
		if err != nil {
			t.Fatal(err)
		}
		name := strings.NewReplacer("/", "-", "?", "-", ":", "-").Replace(strings.Trim(page, "/"))
		if err := os.WriteFile(filepath.Join(dir, name+"-"+size+".png"), png, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := chromedp.Run(ctx, chromedp.EmulateViewport(1100, 800)); err != nil {
		t.Fatal(err)
	}
}

// On a phone the navigation is a drawer: a button opens it, and Escape closes it.
func TestNavigationOnAPhone(t *testing.T) {
	ctx, end := context.WithTimeout(webtest.Browser(t), 2*time.Minute)
	defer end()
	at, f := served(t)
	link, err := f.Link(t.Context(), ownerName)
	if err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(390, 800), chromedp.Navigate(link)); err != nil {
		t.Fatal(err)
	}
	webtest.Until(ctx, t, `document.body.innerText.includes("chat / for owner")`)
	if err := chromedp.Do(ctx, chromedp.Navigate(at+"/owner")); err != nil {
		t.Fatal(err)
	}
	const hidden = `!document.querySelector("#nav").checkVisibility()`
	webtest.Until(ctx, t, hidden)
	webtest.Until(ctx, t, `[...document.querySelectorAll("button, summary")].filter(e => e.checkVisibility()).every(e => e.getBoundingClientRect().height >= 44)`)
	if err := chromedp.Do(ctx, chromedp.Click(`[popovertarget=nav]`)); err != nil {
		t.Fatal(err)
	}
	webtest.Until(ctx, t, `document.querySelector("#nav").checkVisibility() && [...document.querySelectorAll("#nav li a")].every(e => e.getBoundingClientRect().height >= 44)`)
	shoot(t, ctx, "owner drawer")
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(390, 800), chromedp.KeyEvent("\x1b")); err != nil {
		t.Fatal(err)
	}
	webtest.Until(ctx, t, hidden)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1100, 800)); err != nil {
		t.Fatal(err)
	}
	webtest.Until(ctx, t, `document.querySelector("#nav").checkVisibility()`) // there is room for it beside the page
}
