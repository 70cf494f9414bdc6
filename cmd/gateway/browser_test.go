package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"parley/llm"
	"parley/llm/llmtest"
	"parley/tools/network/networktest"
	"parley/web/webtest"
)

// A window is one of a real browser, with cookies of its own.
type window struct {
	testing.TB
	ctx context.Context
}

func newWindow(t testing.TB, browser context.Context) *window {
	ctx, end := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	ctx, cancel := context.WithTimeout(ctx, 8*time.Minute) // on a machine that is busy, too
	t.Cleanup(func() {
		cancel()
		end()
	})
	return &window{t, ctx}
}

// beside opens the same page in another tab.
func (w *window) beside() *window {
	w.Helper()
	ctx, end := chromedp.NewContext(w.ctx)
	w.Cleanup(end)
	tab := &window{w.TB, ctx}
	tab.visit(w.eval(`location.href`))
	return tab
}

func (w *window) visit(url string) {
	w.Helper()
	if err := chromedp.Do(w.ctx, chromedp.Navigate(url)); err != nil {
		w.Fatalf("%s: %v", url, err)
	}
}

// until waits until js is true.
func (w *window) until(js string) {
	w.Helper()
	var err error
	for late := time.Now().Add(waitTime); time.Now().Before(late); {
		var ok bool
		script := `new Promise((done) => setTimeout(() => { try { done(Boolean(` + webtest.Loaded(js) + `)) } catch { done(false) } }, 15))`
		if ok, err = chromedp.Run(w.ctx, chromedp.Evaluate[bool](script, chromedp.EvalAwaitPromise)); ok && err == nil {
			return
		}
	}
	body, _ := chromedp.Run(w.ctx, chromedp.Evaluate[string](`location + " " + document.body.innerText`))
	w.Fatalf("it did not come to %s (%v): %s", js, err, body)
}

// says types text, and sends it as a person does.
func (w *window) says(text string) {
	w.Helper()
	if err := chromedp.Do(w.ctx, chromedp.SendKeys(chromedp.CSS("#text"), text), chromedp.Click(chromedp.CSS("#send"), chromedp.NodeVisible)); err != nil {
		w.Fatalf("say %q: %v", text, err)
	}
}

// texts are what the conversation shows: who, and what they say.
func (w *window) texts() []string {
	w.Helper()
	all, err := chromedp.Run(w.ctx, chromedp.Evaluate[[]string](
		`[...document.querySelectorAll("article")].map((a) => a.className + ": " + a.querySelector(":scope > .text").innerText.trim())`))
	if err != nil {
		w.Fatal(err)
	}
	return all
}

// TestBrowser is a day with the page in a real browser: signing in with the link
// that the program printed, an answer that streams, one that is stopped, a
// crash of the program while the page is open, and the owner's page. Who has no
// link sees nothing (P3, P9, R-S2).
func TestBrowser(t *testing.T) {
	t.Parallel()
	browser := webtest.Browser(t)
	s := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		switch last := spokenLast(r); {
		case strings.HasPrefix(last, "slowly"):
			return llmtest.Reply{Text: strings.Repeat("one more word ", 200), Pause: 50 * time.Millisecond}
		case strings.HasPrefix(last, "look around") && !used(r):
			return llmtest.Reply{Calls: []llm.ToolCall{{ID: "c1", Name: "list_dir", Args: `{"path": "."}`}}}
		}
		reply := echo(ctx, r)
		reply.Text, reply.Piece, reply.Pause = "**"+reply.Text+"**", 4, 20*time.Millisecond
		return reply
	})
	s.more["http"] = map[string]any{"listen": networktest.FreeAddress(t)}
	s.start()
	base, code := s.face()
	w := newWindow(t, browser)
	w.visit(base + "/signin#" + code)
	const ready = `document.querySelector("#state")?.dataset.text === "" && document.querySelector("#send").ariaLabel === "Send"`
	w.until(ready)

	w.says("look around")
	w.until(`document.querySelector("article.parley strong")?.innerText === "heard look around"`)
	w.until(ready)
	w.says("slowly")
	w.until(`document.querySelector("#making .text").innerText.includes("one more word one") && document.querySelector("#send").ariaLabel === "Stop"`)
	if err := chromedp.Do(w.ctx, chromedp.Click(chromedp.CSS("#send"), chromedp.NodeVisible)); err != nil {
		t.Fatal(err)
	}
	w.until(ready + ` && document.querySelector("#entries").innerText.includes("one more word") && !document.querySelector("#making article")`)

	s.kill()
	for _, text := range []string{"are you there?", "hello?"} {
		w.says(text)
	}
	w.until(`document.querySelectorAll("#unsent article").length === 2`)
	s.start()
	w.until(`document.querySelectorAll("#unsent article").length === 0 && document.querySelector("#state").dataset.text === "" &&
		[...document.querySelectorAll("#entries article.parley")].at(-1).innerText.includes("hello?")`)
	w.until(ready)
	now := w.texts()
	for who, want := range map[string]int{"you: are you there?": 1, "you: hello?": 1, "you: slowly": 1, "you: look around": 1, "parley: heard look around": 1} {
		n := 0
		for _, text := range now {
			if text == who {
				n++
			}
		}
		if n != want {
			t.Errorf("%d times %q: %q", n, who, now)
		}
	}
	if n := strings.Count(fmt.Sprint(now), "heard are you there?"); n != 1 {
		t.Errorf("%d answers to what was said meanwhile: %q", n, now)
	}
	if err := chromedp.Do(w.ctx, chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	w.until(ready)
	if again := w.texts(); fmt.Sprint(again) != fmt.Sprint(now) {
		t.Errorf("loaded anew it shows %q, not %q", again, now)
	}

	w.visit(base + "/owner")
	w.until(`document.body.innerText.includes("telegram")`)
	w.visit(base + "/owner/talks/web:owner%2Ffirst")
	w.until(`document.body.innerText.includes("list_dir") && document.body.innerText.includes("heard look around")`)

	other := newWindow(t, browser)
	for _, page := range []string{"/", "/c/first", "/owner", "/owner/talks/web:owner%2Ffirst", "/signin#" + code} {
		other.visit(base + page)
		other.until(`location.pathname === "/signin" && document.body.innerText.includes("sign-in link")`)
		if body, err := chromedp.Run(other.ctx, chromedp.Evaluate[string](`document.documentElement.outerHTML`)); err != nil || strings.Contains(body, "look around") {
			t.Errorf("a stranger at %s sees %s (%v)", page, body, err)
		}
	}
}
