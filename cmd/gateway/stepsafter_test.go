package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"parley/llm"
	"parley/llm/llmtest"
	"parley/tools/network/networktest"
	"parley/web/webtest"
)

// The steps to an answer are there after a restart and a reload, with arguments, results and pictures; one that was
// not allowed does not look like one that failed. On a phone nothing is wider than the window.
func TestStepsStay(t *testing.T) {
	t.Parallel()
	browser := webtest.Browser(t)
	s := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		turns := [][2]string{
			{"read_file", `{"path": "shot.png"}`}, {"read_file", `{"path": "long.txt"}`},
			{"read_file", `{"path": "none.txt"}`}, {"file_delete", `{"path": "long.txt"}`},
		}
		switch rs := results(r); {
		case spokenLast(r) == "tell" && len(rs) == 0:
			return llmtest.Reply{Text: "I look at the *file* first.", Calls: []llm.ToolCall{{ID: "r", Name: "read_file", Args: `{"path": "long.txt"}`}}}
		case spokenLast(r) == "tell" && len(rs) == 1:
			return llmtest.Reply{Calls: []llm.ToolCall{{ID: "m", Name: "message", Args: `{"text": "It has **40** lines.", "buttons": ["Good", "Bad"]}`}}}
		case spokenLast(r) == "tell":
			return llmtest.Reply{}
		case spokenLast(r) != "work":
			return echo(ctx, r)
		case len(rs) < len(turns):
			return llmtest.Reply{Calls: []llm.ToolCall{{ID: fmt.Sprint("c", len(rs)), Name: turns[len(rs)][0], Args: turns[len(rs)][1]}}}
		}
		return llmtest.Reply{Text: "I looked, and left the file where it is."}
	})
	s.owners = append(s.owners, "web")
	s.more["http"] = map[string]any{"listen": networktest.FreeAddress(t)}
	var shot bytes.Buffer
	if err := png.Encode(&shot, image.NewGray(image.Rect(0, 0, 160, 90))); err != nil {
		t.Fatal(err)
	}
	s.start()
	s.file("shot.png", shot.String())
	s.file("long.txt", strings.Repeat("a line of many\n", 40))
	base, code := s.face()
	w := newWindow(t, browser)
	w.does(chromedp.EmulateViewport(1200, 800))
	w.visit(base + "/signin#" + code)
	w.until(`document.querySelector("#state")?.dataset.text === "" && document.querySelector("#send").ariaLabel === "Send"`)
	w.says("work")
	w.until(`document.querySelector(".ask button:enabled") && document.querySelector("article:has(.ask) > .text").innerText.startsWith("Delete long.txt?")`)
	w.shot("approval-1200")
	// The owner's pages show that something waits, until it is decided.
	control := w.beside()
	control.does(chromedp.EmulateViewport(1200, 800))
	const waits = `document.querySelector("#nav .waiting:not([hidden])")?.innerText.trim().replace(/\s+/g, " ") === "Waiting for you 1"`
	for _, page := range []string{"/owner/people", "/owner"} {
		control.visit(base + page)
		control.until(waits + ` && document.querySelector("#nav .waiting").getAttribute("href") === "/c/first"`)
	}
	control.shot("waiting-1200")
	control.does(chromedp.EmulateViewport(390, 800))
	control.until(`document.documentElement.scrollWidth === 390 && document.querySelector(".top .waiting").getBoundingClientRect().right <= 390`)
	control.shot("waiting-390")
	webtest.AxeEverywhere(control.ctx, t, "owner's page with something that waits")
	w.do(`[...document.querySelectorAll(".ask button")].find((b) => b.innerText === "No").click()`)
	const decided = `/^No · .*\d/.test(document.querySelector(".asks > .outcome > p")?.innerText) && !document.querySelector(".ask, #talks .badge") &&
		document.querySelector(".asker").innerText === "Parley asked for approval"`
	w.until(decided)
	control.until(`document.querySelectorAll(".waiting[hidden]").length === 2`)
	const fold = `document.querySelector("#entries .steps > summary")?.innerText.trim()`
	w.until(`/^4 steps( · [\d.]+ s)? · 1 failed · 1 not allowed$/.test(` + fold + `)`)

	s.kill()
	s.start()
	s.face() // it listens
	w.does(chromedp.Reload())
	w.until(decided)
	w.until(`/^4 steps( · [\d.]+ s)? · 1 failed · 1 not allowed$/.test(` + fold + `) && !document.querySelector("#entries .steps li")`)
	w.does(chromedp.Click("#entries .steps > summary", chromedp.NodeVisible))
	w.until(`[...document.querySelectorAll("#entries .steps li")].map((l) => l.dataset.tool + " " + l.dataset.tip + " " + l.dataset.state).join() ===
		"Read file shot.png success,Read file long.txt success,Read file none.txt error,Delete file long.txt refused"`)
	w.do(`document.querySelectorAll("#entries .steps li > details").forEach((d) => (d.open = true))`)
	w.until(`document.querySelector("#entries .steps .picture img")?.naturalWidth === 160`)
	const result = `document.querySelectorAll("#entries .steps .result")[1].textContent`
	w.until(result + `.split("\n").length === 6`)
	w.do(`document.querySelector("#entries .steps .more").click()`)
	w.until(result + `.includes("40| a line of many")`)
	if got := w.eval(`[...document.querySelectorAll("#entries .steps li")].slice(2).map((l) => l.querySelector("em").innerText + ": " + (l.querySelector(".bad") ? "bad" : "")).join()`); got != "failed: bad,not allowed: " {
		t.Errorf("the failed and the refused step say %s", got)
	}
	w.shot("steps-1200")
	w.does(chromedp.EmulateViewport(390, 800))
	w.until(`document.documentElement.scrollWidth === 390 && document.querySelector("#scroll").scrollWidth <= 390`)
	w.do(`document.querySelector("#entries .steps .more").click()`)
	w.shot("steps-390")

	receipts := strings.Split(w.eval(`[...document.querySelectorAll("#entries .steps .facts code")].map((c) => c.textContent).join()`), ",")
	w.says("/why")
	w.until(`document.querySelector("#entries > :last-child .text li:nth-child(4)")`)
	why := w.eval(`[...document.querySelectorAll("#entries > :last-child .text li")].map((l) => l.innerText.split("receipt ")[1]).join()`)
	if len(receipts) != 4 || why != strings.Join(receipts, ",") {
		t.Errorf("the steps have the receipts %q, and /why tells %q", receipts, why)
	}
	if got := w.eval(`String(document.querySelector("#entries > :last-child footer .none"))`); got != "null" {
		t.Errorf("the answer of a command says %s of tools", got)
	}
	w.says("hello")
	w.until(`document.querySelector("#entries > :last-child footer .none")?.innerText.includes("no tools used")`)

	// An answer that the tool message gives has its steps, too, once in every tab.
	tab := w.beside()
	tab.until(`document.querySelector("#state")?.dataset.text === ""`)
	w.says("tell")
	const told = `(() => {
		const all = [...document.querySelectorAll("article.parley")].filter((a) => a.querySelector(":scope > .text").innerText.trim().replace(/\s+/g, " ") === "I look at the file first. It has 40 lines.");
		return all.length === 1 && /^1 step/.test(all[0].querySelector(":scope > .steps > summary")?.innerText) &&
			document.querySelectorAll("article > .steps").length === 2 && !document.body.hasAttribute("data-busy");
	})()`
	w.until(told)
	tab.until(told)
	w.shot("steps-of-message-390")
	s.kill()
	s.start()
	s.face()
	for _, p := range []*window{w, tab} {
		p.until(told) // the page goes on where it was
		p.does(chromedp.Reload())
		p.until(told)
	}
	w.do(`[...document.querySelectorAll("#entries .steps > summary")].at(-1).click()`)
	w.until(`document.querySelector("#entries .steps .facts code")`)
	w.until(`[...document.querySelectorAll("#entries .steps li")].map((l) => l.dataset.tool ? l.dataset.tool + " " + l.dataset.state : l.innerText.trim()).join() === "I look at the file first.,Read file success" &&
		document.querySelector("#entries .steps .words em")`)
	w.does(chromedp.EmulateViewport(1200, 800))
	w.do(`document.querySelector("#entries .steps .words").scrollIntoView()`)
	w.shot("steps-of-message-1200")
	receipt := w.eval(`document.querySelector("#entries .steps .facts code").textContent`)
	w.says("/why")
	w.until(`document.querySelector("#entries > :last-child .text li")`)
	if got := w.eval(`document.querySelector("#entries > :last-child .text").innerText`); strings.Contains(got, "message") || strings.Count(got, "receipt "+receipt) != 1 {
		t.Errorf("the step has the receipt %s, and /why tells %s", receipt, got)
	}
}
