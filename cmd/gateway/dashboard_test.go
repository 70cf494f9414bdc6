package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/llm"
	"parley/llm/llmtest"
	"parley/tools/network/networktest"
	"parley/web/webtest"
)

// keepPicture keeps a picture of the whole page where PARLEY_ARTIFACTS says.
func keepPicture(t *testing.T, ctx context.Context, name string, width int64, scheme string) {
	t.Helper()
	dir := os.Getenv("PARLEY_ARTIFACTS")
	if err := webtest.Look(ctx, width, 800, scheme); err != nil || dir == "" {
		return
	}
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDashboard: the dashboard shows a turn as it begins, without being loaded again; its button stops the real
// turn, says what was stopped, and works with the keyboard. Charts say their numbers.
func TestDashboard(t *testing.T) {
	t.Parallel()
	browser := webtest.Browser(t)
	s := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		switch last := spokenLast(r); {
		case strings.HasPrefix(last, "think for ever"):
			<-ctx.Done()
			return llmtest.Reply{}
		case strings.HasPrefix(last, "go off") && !used(r):
			return llmtest.Reply{Calls: []llm.ToolCall{{ID: "c1", Name: "spawn", Args: `{"task": "think for ever about tea", "label": "Tea research"}`}}}
		}
		return echo(ctx, r)
	})
	s.more["http"] = map[string]any{"listen": networktest.FreeAddress(t)}
	s.start()
	base, code := s.face()
	w := newWindow(t, browser)
	w.visit(base + "/signin#" + code)
	const ready = `document.querySelector("#state")?.dataset.text === "" && document.querySelector("#send").ariaLabel === "Send"`
	w.until(ready)
	w.says("hello")
	w.until(ready + ` && document.querySelector("#entries").innerText.includes("heard hello")`)

	board := w.beside()
	board.visit(base + "/owner")
	board.until(`document.getElementById("live").textContent === "Live" && document.getElementById("work").innerText.includes("Nothing")`)
	board.eval(`window.before = "the same page"; ""`)
	const messages = `document.querySelector("#figures dd b").textContent`
	board.until(messages + ` === "1"`)
	w.says("think for ever")
	board.until(`document.querySelector("#work [data-post]")?.ariaLabel.startsWith("Stop the turn in web:owner") && ` + messages + ` === "2"`)
	for _, width := range []int64{1200, 390} {
		if err := webtest.Look(board.ctx, width, 800, "light"); err != nil {
			t.Fatal(err)
		}
		board.until(`document.documentElement.scrollWidth <= innerWidth`)
		board.until(`[...document.querySelectorAll(".chart .value")].every((bar) => bar.getBoundingClientRect().right <= bar.closest("svg").getBoundingClientRect().right)`)
	}
	webtest.AxeEverywhere(board.ctx, t, "the dashboard")
	keepPicture(t, board.ctx, "dashboard-wide", 1200, "light")
	keepPicture(t, board.ctx, "dashboard-dark", 1200, "dark")
	keepPicture(t, board.ctx, "dashboard-phone", 390, "light")
	board.eval(`document.querySelector("#work [data-post]").focus(); ""`)
	if err := chromedp.Do(board.ctx, chromedp.KeyEvent(kb.Enter)); err != nil {
		t.Fatal(err)
	}
	board.until(`document.getElementById("said").textContent.startsWith("Stopped the turn in web:owner")`)
	board.until(`document.getElementById("work").innerText.includes("Nothing")`)
	w.until(ready + ` && [...document.querySelectorAll("#entries article.parley")].at(-1).innerText.includes("Stopped")`)

	w.says("go off")
	board.until(`document.querySelector("#work [data-post]")?.ariaLabel.includes("Stop the background task Tea research")`)
	board.eval(`[...document.querySelectorAll("#work [data-post]")].find((e) => e.ariaLabel.includes("Tea research")).click(); ""`)
	board.until(`document.getElementById("said").textContent === "Stopped the background task Tea research."`)
	board.until(`!document.getElementById("work").innerText.includes("Tea research")`)

	board.eval(`document.querySelector("#tokens .column[tabindex='0']").focus(); ""`)
	board.until(`!document.getElementById("tip").hidden && document.getElementById("tip").textContent === document.activeElement.ariaLabel`)
	today := board.eval(`document.activeElement.ariaLabel`)
	if err := chromedp.Do(board.ctx, chromedp.KeyEvent(kb.ArrowLeft)); err != nil {
		t.Fatal(err)
	}
	board.until(`document.activeElement.matches("#tokens .column") && document.activeElement.ariaLabel !== ` + strconv.Quote(today) + ` && document.getElementById("tip").textContent === document.activeElement.ariaLabel`)
	keepPicture(t, board.ctx, "dashboard-tip", 390, "dark")
	if before := board.eval(`String(window.before)`); before != "the same page" {
		t.Errorf("the page was loaded again: %s", before)
	}

	const shown = `document.querySelector("#figures dd b").textContent + " " + document.querySelector("#messages .column[tabindex='0']").ariaLabel`
	before := board.eval(shown)
	s.stop()
	s.start()
	s.logs("prints a link that signs you in", 2)
	board.visit(base + "/owner") // the counts outlive a restart
	board.until(`document.getElementById("live").textContent === "Live" && ` + shown + ` === ` + strconv.Quote(before))
	webtest.AxeEverywhere(board.ctx, t, "the dashboard after a restart")
	keepPicture(t, board.ctx, "dashboard-history", 1200, "light")
	keepPicture(t, board.ctx, "dashboard-history-phone", 390, "light")
}
