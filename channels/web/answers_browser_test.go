package web_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"parley/chat"
	"parley/web/webtest"
)

// TestAnswersInBrowser is about how answers look, and what becomes of them while they are being written.
func TestAnswersInBrowser(t *testing.T) {
	browser := webtest.Browser(t)
	for name, test := range map[string]func(*testing.T, context.Context){
		"blocks": showsBlocks, "finished blocks stay": blocksStay, "what cannot be read": unreadable, "hostile": hostileBlocks, "loads when needed": loadsWhenNeeded, "receipts": showsReceipts, "tasks in tasks": indentsTasks, "without tools": startsAtTheEdge,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, browser)
		})
	}
}

// paper is an answer with all kinds of blocks.
const paper = "## Falling bodies\n\nA stone that falls from rest covers $s = \\frac{1}{2} g t^2$, so after \\(t = 2\\,\\mathrm{s}\\) it has fallen 19.6 m. It costs $5 to find out, not $6.\n\n" +
	"$$\n\\int_0^T v\\,dt = \\sum_{n=1}^{\\infty} \\frac{a_n}{n!} \\begin{pmatrix} a & b \\\\ c & d \\end{pmatrix}\n$$\n\n" +
	"```python\nfrom math import sqrt\n\ndef fall(height: float, g: float = 9.81) -> float:\n    \"\"\"Return how long a fall takes.\"\"\"\n    return sqrt(2 * height / g)  # without air\n```\n\n" +
	"- [x] measure the height\n- [ ] drop the stone\n- [ ] compare\n\n" +
	"| Body | Height | Time | Speed on arrival | Where it was measured | Remark |\n|---|---:|---:|---:|---|---|\n| Stone | 19.6 m | 2.0 s | 19.6 m/s | the tower by the harbour | no wind |\n| Feather | 19.6 m | 14 s | 1.4 m/s | the same tower, a day later | a lot of wind |\n\n" +
	"```mermaid\ngraph TD\n  Drop --> Wait --> Listen\n```\n\n```\nno language\n```\n\n> Everything falls alike."

// formulasShown is true once the formulas are there.
const formulasShown = `document.querySelectorAll(".math math").length === 3`

// Code, tables, tasks, formulas and diagrams are shown as what they are, saved or just written.
func showsBlocks(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	r := b.tells(t, "Why do bodies fall?").Reply()
	r.Text = paper
	h.says(t, r)
	check := func(when string) {
		t.Helper()
		b.until(formulasShown)
		eval[bool](b, `(document.querySelectorAll(".code").forEach((c) => c.scrollIntoView()), true)`)
		eval[bool](b, `(document.querySelector(".code").scrollIntoView(), true)`)
		b.until(`document.querySelector(".code .hljs-keyword")`)
		if got := eval[string](b, `[...document.querySelectorAll(".code .bar span")].map((s) => s.innerText).join()`); got != "Python,Diagram (Mermaid),Text" {
			t.Errorf("%s: the code is called %q", when, got)
		}
		if got := eval[string](b, `document.querySelector(".code pre").innerText`); !strings.HasPrefix(got, "from math import sqrt\n\ndef fall(") || !strings.HasSuffix(got, "# without air\n") {
			t.Errorf("%s: the code is %q", when, got)
		}
		if n := eval[int](b, `document.querySelectorAll(".math.display math mtable, .math mfrac").length`); n < 3 {
			t.Errorf("%s: %d parts of formulas", when, n)
		}
		if got := eval[string](b, `document.querySelector(".parley .text p").innerText`); !strings.Contains(got, "costs $5 to find out, not $6.") {
			t.Errorf("%s: the money is in %q", when, got)
		}
		if got := eval[string](b, `[...document.querySelectorAll("li input")].map((i) => i.ariaLabel).join()`); got != "Done,To do,To do" {
			t.Errorf("%s: the tasks are %s", when, got)
		}
		if got := eval[string](b, `document.querySelectorAll(".code")[1].querySelector("pre").innerText`); !strings.Contains(got, "Drop --> Wait") {
			t.Errorf("%s: the diagram is %q", when, got)
		}
	}
	check("just written")
	b.do(chromedp.Reload())
	check("saved")
	for _, width := range []int64{1200, 390} {
		for _, scheme := range []string{"light", "dark"} {
			b.look(width, 800, scheme)
			for part, css := range map[string]string{"top": "h2", "end": "blockquote"} {
				eval[bool](b, fmt.Sprintf(`(document.querySelector(".text %s").scrollIntoView(), true)`, css))
				b.shot(fmt.Sprintf("blocks-%d-%s-%s", width, scheme, part))
			}
			if wide := eval[int64](b, `Math.max(document.documentElement.scrollWidth, document.querySelector("#scroll").scrollWidth)`); wide > width {
				t.Errorf("at %d the page is %d wide", width, wide)
			}
			if width == 390 && !eval[bool](b, `(() => { const w = document.querySelector(".wide"); return w.scrollWidth > w.clientWidth && w.tabIndex === 0 })()`) {
				t.Error("the table does not scroll by itself on a phone")
			}
		}
	}
	webtest.AxeEverywhere(b.ctx, t, "an answer with all kinds of blocks")
	b.look(1200, 800, "light")
	eval[bool](b, `(navigator.clipboard.writeText = async (text) => { window.copied = text }, document.querySelector(".copy").scrollIntoView(), true)`)
	b.click(".copy")
	b.until(`document.querySelector(".copy").innerText === "Copied" && window.copied.startsWith("from math") && window.copied.endsWith("air\n")`)
}

// Blocks that are finished keep their elements, and with them what is selected, while the answer goes on,
// ends, and is corrected.
func blocksStay(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	r := b.tells(t, "Write").Reply()
	blocks := strings.SplitAfter(paper, "\n\n")
	b.look(390, 800, "light")
	at := slices.IndexFunc(blocks, func(s string) bool { return strings.HasPrefix(s, "- [x]") })
	for _, end := range []int{at - 1, at} { // word by word, as models write
		r.Text = strings.Join(blocks[:end], "")
		h.Stream(r)
		b.until(fmt.Sprintf(`document.querySelector("#making .text")?.children.length >= %d`, min(end, 4)))
	}
	b.until(`document.querySelector("#making .math.display math")`)
	r.Text = strings.Join(blocks[:at+1], "")
	h.Stream(r)
	b.until(`document.querySelector("#making .code .hljs-keyword")`)
	if eval[bool](b, `!!document.querySelector("#making .text > :last-child.code")`) {
		t.Error("the last block is taken for finished")
	}
	eval[bool](b, `(() => {
		window.nodes = [...document.querySelectorAll("#making .text, #making .text > *, #making .text > :not(:last-child) *")];
		const words = document.querySelector("#making .text p").firstChild;
		getSelection().setBaseAndExtent(words, 2, words, 7);
		document.querySelector("#making .copy").focus({preventScroll: true});
		document.querySelector("#making .code pre").scrollLeft = 7;
		return true;
	})()`)
	count := eval[int](b, `window.nodes.length`)
	same := func(when string) {
		t.Helper()
		if lost := eval[string](b, `window.nodes.filter((n) => !n.isConnected).map((n) => n.outerHTML.slice(0, 100)).join("\n")`); lost != "" || count < 40 {
			t.Errorf("%s, of %d elements are gone: %s", when, count, lost)
		}
		if got := eval[string](b, `String(getSelection())`); got != "stone" {
			t.Errorf("%s, %q is selected", when, got)
		}
		if !eval[bool](b, `document.activeElement.matches(".copy") && document.querySelector(".code pre").scrollLeft === 7`) {
			t.Errorf("%s, focus or scroll position are gone", when)
		}
	}
	r.Text += "- [ ] one more"
	h.Stream(r)
	b.until(`document.querySelectorAll("#making li").length === 4`)
	same("when the list goes on")
	r.Text = strings.Join(blocks[:at], "") + strings.Join(blocks[at:], "")
	h.Stream(r)
	b.until(`document.querySelector("#making blockquote")`)
	same("when the answer goes on")
	h.says(t, r)
	b.until(`document.querySelector("#entries blockquote") && !document.querySelector("#making article")`)
	same("when the answer is there")
}

// What the libraries cannot read stays as it was written.
func unreadable(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	r := b.tells(t, "Write").Reply()
	r.Text = "A $\\nosuchcommand{x}$ and $\\frac{1$ and $x^2$.\n\n```klingon\nqapla\n```\n\n```go\nfunc main() {}\n```\n\nend"
	h.says(t, r)
	b.until(`document.querySelector(".math math") && document.querySelectorAll(".math.raw").length === 2 && document.querySelector(".hljs-keyword")`)
	if got := eval[string](b, `[...document.querySelectorAll(".raw")].map((e) => e.innerText).join()`); got != `$\nosuchcommand{x}$,$\frac{1$` {
		t.Errorf("formulas that cannot be read are %s", got)
	}
	if got := eval[string](b, `document.querySelector(".code").innerText`); !strings.Contains(got, "klingon") || !strings.Contains(got, "qapla") {
		t.Errorf("code of an unknown language is %q", got)
	}
}

// What a model writes as code or TeX does not act, nor take the place of what the page is made of.
func hostileBlocks(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	r := b.tells(t, "Write").Reply()
	const probe = `<img src=x onerror="window.hit=1"><script>window.hit=1</script>`
	r.Text = "```html\n" + probe + "\n```\n\n```js\nlet a = `" + probe + "`\n```\n\n" +
		`$\href{javascript:window.hit=1}{x}$ $\text{` + probe + `}$ $\includegraphics{http://127.0.0.1:1/x.png}$ $\class{ask}{x}$ $\htmlId{send}{x}$ $\style{color:red}{x}$` +
		"\n\n$$\nx \\tag{1} \\label{send}\n$$\n\n$$\n\\begin{align} a &= b \\label{scroll} \\end{align}\n$$\n\nend"
	h.says(t, r)
	b.until(`document.querySelectorAll(".hljs-tag, .hljs-string").length > 2 && document.querySelectorAll(".math:not(.raw)").length >= 3 && document.querySelectorAll(".raw").length >= 2`)
	if bad := eval[string](b, `[...document.querySelectorAll(".text *")].filter((e) => e.id || e.href || e.src || [...e.attributes].some((a) => a.name.startsWith("on")) ||
		/^(script|img|a|iframe)$/i.test(e.localName)).map((e) => e.outerHTML).join("\n")`); bad != "" {
		t.Errorf("this is made of text: %s", bad)
	}
	if eval[bool](b, `"hit" in window || document.querySelector("#send").localName !== "button"`) {
		t.Error("a script ran, or an element of the page was replaced")
	}
}

// A first visit is small, and has neither library: each comes when the first code or formula does.
func loadsWhenNeeded(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	loaded := func() string {
		t.Helper()
		return eval[string](b, `performance.getEntriesByType("resource").map((r) => r.name.split("/").pop()).filter((n) => /highlight|temml|maths|lightbox|preview/.test(n)).sort().join()`)
	}
	b.until(`performance.getEntriesByType("resource").length > 5`)
	n := h.bytes.Load()
	t.Logf("a first visit is %d bytes", n) // of 90,000 that it may have
	if n > 52_000 || n < 10_000 {
		t.Errorf("a first visit is %d bytes", n)
	}
	if got := loaded(); got != "" {
		t.Errorf("a first visit loads %s", got)
	}
	r := b.tells(t, "Write").Reply()
	r.Text = "**Words**, `code`, money: $5\n\n```text\nplain\n```\n\n| a |\n|---|\n| b |"
	h.says(t, r)
	b.until(`document.querySelector(".code") && document.querySelector(".wide")`)
	if got := loaded(); got != "" {
		t.Errorf("words load %s", got)
	}
	h.says(t, chat.Reply{ID: "code", Text: "```go\nvar x int\n```"})
	b.until(`document.querySelector(".hljs-keyword") && performance.getEntriesByType("resource").some((r) => r.name.endsWith("highlight.css"))`)
	if got := loaded(); got != "highlight.css,highlight.js,highlight.min.js" {
		t.Errorf("code loads %s", got)
	}
	h.says(t, chat.Reply{ID: "formula", Text: "$x^2$"})
	b.until(`document.querySelector("math") && performance.getEntriesByType("resource").some((r) => r.name.endsWith("maths.css"))`)
	if got := loaded(); got != "highlight.css,highlight.js,highlight.min.js,maths.css,maths.js,temml.min.js" {
		t.Errorf("a formula loads %s", got)
	}
}

// A task in a task stands below its words, not below its box.
func indentsTasks(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	h.says(t, chat.Reply{ID: "tasks", Text: "- [ ] bake\n  - [x] flour\n  - [ ] salt\n    - [ ] coarse\n- [ ] eat"})
	b.until(`document.querySelectorAll(".text li input").length === 5`)
	left := eval[[]float64](b, `[...document.querySelectorAll(".text li input")].map((i) => i.getBoundingClientRect().left)`)
	if left[1] < left[0]+20 || left[1] > left[0]+32 || left[2] != left[1] || left[3] < left[2]+20 || left[4] != left[0] {
		t.Errorf("the boxes are at %v", left)
	}
}

// What is seen below an answer while nobody points at it begins where the answer does.
func startsAtTheEdge(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	r := b.tells(t, "Hello").Reply()
	r.Text, r.Taken = "Good morning.", &chat.StepCounts{}
	h.says(t, r)
	b.until(`document.querySelector(".none")`)
	for _, when := range []string{"just written", "saved"} {
		if by := eval[float64](b, `document.querySelector(".none").getBoundingClientRect().left - document.querySelector(".parley > .text").getBoundingClientRect().left`); by < -1 || by > 1 {
			t.Errorf("%s, it begins %v beside the answer", when, by)
		}
		if got := eval[string](b, `getComputedStyle(document.querySelector(".none"), "::before").content`); got != "none" {
			t.Errorf("%s, %s separates it from what is not seen", when, got)
		}
		b.do(chromedp.Reload())
		b.until(`document.querySelector(".none")`)
	}
}
