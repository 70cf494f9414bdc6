package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"parley/llm"
	"parley/llm/llmtest"
	"parley/tools/network/networktest"
	"parley/web/webtest"
)

const probe = "<img src=x onerror=pwned=1>" // in a name, in words and in a page

// TestTourPage: on the page, the card of a call fills in while its arguments
// stream, runs, and shows what came of it; a reload in the middle shows the
// same; what is dangerous is agreed to by a button; nothing of it is markup
// (C-015, C-051, A-089, R-S5).
func TestTourPage(t *testing.T) {
	t.Parallel()
	browser, came, gate := webtest.Browser(t), make(chan struct{}), make(chan struct{})
	var url string
	s := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		calls := func(name, args string, more ...any) llmtest.Reply {
			return llmtest.Reply{Calls: []llm.ToolCall{{ID: name, Name: name, Args: fmt.Sprintf(args, more...)}}}
		}
		switch rs := results(r); {
		case spokenLast(r) != "work":
			return echo(ctx, r)
		case len(rs) == 0:
			reply := calls("write_file", `{"path": %q, "content": %q}`, probe+".md", probe+strings.Repeat(" and so on", 20))
			reply.Piece, reply.Pause = 4, 50*time.Millisecond
			reply.After = func(n int) {
				if n == 30 || n == 60 { // the page has seen some of it, and more
					select {
					case <-came:
					case <-ctx.Done():
					}
				}
			}
			return reply
		case len(rs) == 1:
			return calls("web_fetch", `{"url": %q}`, url)
		case len(rs) == 2:
			return calls("file_delete", `{"path": %q}`, probe+".md")
		}
		return llmtest.Reply{Text: "All " + probe + " done."}
	})
	s.owners = append(s.owners, "web")
	s.more["http"] = map[string]any{"listen": networktest.FreeAddress(t)}
	url = s.site(func(rw http.ResponseWriter, r *http.Request) {
		select {
		case <-gate:
		case <-r.Context().Done():
		}
		fmt.Fprint(rw, `<p>`+strings.ReplaceAll(probe, "<", "&lt;")+` stands on the page</p>`)
	})
	s.start()
	base, code := s.face()
	w := newWindow(t, browser)
	w.visit(base + "/signin#" + code)
	w.until(`document.querySelector("#state")?.dataset.text === "" && document.querySelector("#send").ariaLabel === "Send"`)
	w.says("work")

	card := func(name string) string { return `document.querySelector(".steps li[data-call='` + name + `']")` }
	w.until(card("write_file") + `.dataset.state === "wait" && [...` + card("write_file") + `.querySelectorAll("dd")].some((d) => d.previousElementSibling.textContent === "content" && (window.early = d.textContent).startsWith("<img src=x"))`)
	came <- struct{}{}
	w.until(card("write_file") + `.dataset.state === "wait" && [...` + card("write_file") + `.querySelectorAll("dd")].some((d) => d.previousElementSibling.textContent === "content" && d.textContent.length > window.early.length && d.textContent.startsWith(window.early))`)
	w.shot("tour-streaming")
	came <- struct{}{}
	w.until(card("write_file") + `.dataset.state === "success" && / \d+\.\d s/.test(` + card("write_file") + `.querySelector("summary small").textContent) &&
		` + card("write_file") + `.querySelector("p").textContent.startsWith("Successfully wrote ")`)
	w.until(card("web_fetch") + `.dataset.state === "doing" && document.querySelector(".steps summary").innerText.includes("Read page – running: http://127.0.0.1")`)

	cards := `JSON.stringify([...document.querySelectorAll(".steps li")].map((l) => [l.dataset.call, l.dataset.state, l.dataset.tip, l.querySelector("small").textContent, ...[...l.querySelectorAll("dd, p")].map((e) => e.textContent)]))`
	before := w.eval(cards)
	w.does(chromedp.Reload())
	w.until(`document.querySelectorAll(".steps li").length === 2`)
	if after := w.eval(cards); after != before {
		t.Errorf("loaded anew the cards are %s, not %s", after, before)
	}
	gate <- struct{}{}
	w.until(card("web_fetch") + `.dataset.state === "success" && ` + card("web_fetch") + `.querySelector("p").textContent.includes("External content")`)

	w.until(`[...document.querySelectorAll(".ask button")].map((b) => b.innerText).join() === "Yes,No" && ` + card("file_delete") + `.dataset.state === "wait"`)
	const inView = `[...document.querySelectorAll(".ask button")].every((b) => b.getBoundingClientRect().top >= document.querySelector("#scroll").getBoundingClientRect().top && b.getBoundingClientRect().bottom <= document.querySelector("#scroll").getBoundingClientRect().bottom)`
	w.until(inView)
	w.shot("tour-approval")
	w.does(chromedp.Reload())
	w.until(`document.querySelectorAll(".steps li").length === 3 && document.querySelectorAll(".ask button").length === 2 && ` + inView)
	path := filepath.Join(s.dir, "workspace", probe+".md")
	if !there(path) {
		t.Error("it was deleted before anybody agreed")
	}
	w.does(chromedp.Click(chromedp.CSS(".ask button"), chromedp.NodeVisible))
	w.until(`[...document.querySelectorAll("#entries article.parley > .text")].at(-1).textContent.trim() === "All ` + probe + ` done."`)
	if there(path) {
		t.Error("it is still there after a yes")
	}
	w.until(`document.querySelectorAll(".ask button:not(:disabled)").length === 0 && !document.querySelector("details.steps").open`)
	w.shot("tour-done")
	if got := w.eval(`[typeof window.pwned, document.querySelectorAll("#entries img").length, document.querySelectorAll(".steps li").length, document.querySelectorAll(".steps li[data-state=success]").length].join()`); got != "undefined,0,3,3" {
		t.Errorf("the page has %s", got)
	}
	w.does(chromedp.Reload())
	w.until(`/^3 steps( · [\d.]+ s)?$/.test(document.querySelector("#entries .steps > summary")?.innerText.trim()) && document.querySelector("#entries .steps").title.startsWith("🔧 Write file, Read page, Delete file – ")`)
	w.does(chromedp.Click("#entries .steps > summary", chromedp.NodeVisible))
	w.until(`[...document.querySelectorAll("#entries .steps li")].map((l) => l.dataset.tool + " " + l.dataset.state).join() === "Write file success,Read page success,Delete file success"`)
	if got := w.eval(`[typeof window.pwned, document.querySelectorAll("#entries img").length].join()`); got != "undefined,0" {
		t.Errorf("loaded anew the page has %s", got)
	}
}

func (w *window) does(a chromedp.Action[chromedp.Void]) {
	w.Helper()
	if err := chromedp.Do(w.ctx, a); err != nil {
		w.Fatal(err)
	}
}

// eval returns what js says.
func (w *window) eval(js string) string {
	w.Helper()
	v, err := chromedp.Run(w.ctx, chromedp.Evaluate[string](js))
	if err != nil {
		w.Fatalf("%s: %v", js, err)
	}
	return v
}

// shot keeps a picture of the page where PARLEY_ARTIFACTS says.
func (w *window) shot(name string) {
	w.Helper()
	dir := os.Getenv("PARLEY_ARTIFACTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(w.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	if err != nil {
		w.Error(err)
	}
}
