package web_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"parley/chat"
	"parley/web/webtest"
)

// TestBranches is what can be done with messages: other versions of them, and the way back.
func TestBranches(t *testing.T) {
	browser := webtest.Browser(t)
	for name, test := range map[string]func(*testing.T, context.Context){
		"versions": versions, "versions on a phone": versionsOnPhone, "answer to what was left": answerToLeft,
		"copy": copies, "change of several": changeOfSeveral, "answer while it loads": answerWhileLoading,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, browser)
		})
	}
}

// answers has the gateway answer m.
func (h *home) answers(t *testing.T, m chat.Message, text string) {
	t.Helper()
	r := m.Reply()
	r.Text = text
	h.says(t, r)
}

// shows waits until the page shows the texts.
func (b *tab) shows(texts ...string) {
	b.Helper()
	js := fmt.Sprintf(`JSON.stringify([...document.querySelectorAll("#entries article > .text")].map((e) => e.innerText.trim())) === JSON.stringify(%s)`, quoted(texts))
	b.until(js)
}

func quoted(texts []string) string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = fmt.Sprintf("%q", text)
	}
	return "[" + strings.Join(all, ",") + "]"
}

const nthFooter = `#entries > :nth-child(%d) footer `

// presses presses a button below the nth message.
func (b *tab) presses(n int, button string) {
	b.Helper()
	b.until(fmt.Sprintf(`document.querySelector("`+nthFooter+`%s:enabled")`, n, button))
	b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector("`+nthFooter+`%s").click()`, n, button)))
}

// version waits until the nth message is shown as that version, such as "2/3".
func (b *tab) version(n int, want string) {
	b.Helper()
	b.until(fmt.Sprintf(`document.querySelector("`+nthFooter+`.versions")?.innerText === %q`, n, want))
}

// branchOf is the branch of m as texts: what it is instead of, and what it comes after.
func branchOf(m chat.Message) string {
	if m.Branch == nil {
		return ""
	}
	return "instead " + m.Branch.Instead + " after " + strings.Join(m.Branch.After, " ")
}

// A message is changed, an answer is asked for again, and each version can be gone back to and
// gone on with, also after the page is loaded again and in another tab.
func versions(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	b.look(1200, 800, "light")
	m1 := b.tells(t, "What is a good name for a cat?")
	h.answers(t, m1, "**Misty**.")
	m2 := b.tells(t, "And for a dog?")
	h.answers(t, m2, "Rex.")
	b.shows(m1.Text, "Misty.", m2.Text, "Rex.")

	other := h.tab(t, browser)
	other.do(chromedp.Navigate(h.at + "/"))
	other.shows(m1.Text, "Misty.", m2.Text, "Rex.")

	b.presses(3, ".pen")
	b.until(`document.activeElement.matches(".change textarea")`)
	b.shot("branches-change")
	b.do(chromedp.SetValue(chromedp.CSS(".change textarea"), "And for a parrot?"))
	b.click(".change .main")
	m3 := h.hears(t, "And for a parrot?")
	if got, want := branchOf(m3), "instead "+m2.ID+" after "+m1.ID; got != want {
		t.Errorf("the agent is told %q, want %q", got, want)
	}
	h.answers(t, m3, "Polly.")
	b.shows(m1.Text, "Misty.", m3.Text, "Polly.")
	b.version(3, "2/2")
	other.shows(m1.Text, "Misty.", m3.Text, "Polly.")

	b.presses(4, ".redo")
	again := h.hears(t, "/regenerate")
	if got, want := branchOf(again), "instead  after "+m3.ID; got != want {
		t.Errorf("the agent is told %q, want %q", got, want)
	}
	b.shows(m1.Text, "Misty.", m3.Text)
	h.answers(t, again, "Coco.")
	b.shows(m1.Text, "Misty.", m3.Text, "Coco.")
	b.version(4, "2/2")
	b.presses(4, ".redo")
	again2 := h.hears(t, "/regenerate")
	h.answers(t, again2, "Kiwi.")
	b.version(4, "3/3")
	b.shot("branches-desktop")

	b.presses(4, ".back")
	b.version(4, "2/3")
	b.shows(m1.Text, "Misty.", m3.Text, "Coco.")
	m4 := b.tells(t, "Why?")
	if got, want := branchOf(m4), "instead  after "+again.ID+" "+m3.ID+" "+m1.ID; got != want {
		t.Errorf("the agent is told %q, want %q", got, want)
	}
	h.answers(t, m4, "It is short.")
	m5 := b.tells(t, "Thanks")
	if got := branchOf(m5); got != "" {
		t.Errorf("the agent is told %q where the conversation goes on anyway", got)
	}
	h.answers(t, m5, "Any time.")
	whole := []string{m1.Text, "Misty.", m3.Text, "Coco.", m4.Text, "It is short.", m5.Text, "Any time."}
	b.shows(whole...)

	b.presses(3, ".back")
	b.shows(m1.Text, "Misty.", m2.Text, "Rex.")
	b.version(3, "1/2")
	b.do(chromedp.Reload())
	b.shows(m1.Text, "Misty.", m2.Text, "Rex.")
	b.presses(3, ".on")
	b.shows(whole...) // as it was left
	other.shows(whole...)
	other.version(4, "2/3")
	other.presses(1, ".pen")
	other.do(chromedp.SetValue(chromedp.CSS(".change textarea"), "What is a good name for a boat?"))
	other.click(".change .main")
	m6 := h.hears(t, "What is a good name for a boat?")
	if got, want := branchOf(m6), "instead "+m1.ID+" after "; got != want {
		t.Errorf("the agent is told %q, want %q", got, want)
	}
	h.answers(t, m6, "Wanderer.")
	b.shows(m6.Text, "Wanderer.")
	b.presses(1, ".back")
	b.shows(whole...)
	b.look(1200, 800, "dark")
	b.shot("branches-dark")
}

// An answer that comes while the branch is being loaded is not taken away by what was loaded.
func answerWhileLoading(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	m1 := b.tells(t, "What is a good name for a cat?")
	h.answers(t, m1, "Misty.")
	b.shows(m1.Text, "Misty.")
	b.do(chromedp.Evaluate[chromedp.Void](`{
		const real = fetch;
		window.fetch = async (url, set) => {
			const r = await real(url, set);
			if (url.includes("/before?")) await new Promise((done) => (window.loaded = done));
			return r;
		};
	}`))
	b.presses(1, ".pen")
	b.do(chromedp.SetValue(chromedp.CSS(".change textarea"), "What is a good name for a boat?"))
	b.click(".change .main")
	m2 := h.hears(t, "What is a good name for a boat?")
	b.until("window.loaded")
	h.answers(t, m2, "Wanderer.")
	b.until(`document.querySelector("#entries").innerText.includes("Wanderer.")`)
	b.do(chromedp.Evaluate[chromedp.Void](`setInterval(() => loaded(), 10)`))
	b.shows(m2.Text, "Wanderer.")
}

func versionsOnPhone(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	b.phone()
	b.do(chromedp.Reload())
	b.typed("#text", "Tell me about the tide") // there Enter makes a new line
	b.click("#send")
	h.answers(t, h.hears(t, "Tell me about the tide"), lesson)
	b.until(`document.querySelector("#entries .redo")`)
	b.presses(2, ".redo")
	h.answers(t, h.hears(t, "/regenerate"), "It comes **twice** a day, because the Earth turns under two bulges of water.")
	b.version(2, "2/2")
	b.presses(1, ".pen")
	b.until(`document.activeElement.matches(".change textarea")`)
	b.shot("branches-phone-change")
	b.click(".change button[type=button]")
	b.shot("branches-phone")
	small := eval[[]string](b, `[...document.querySelectorAll("#entries footer button")].filter((e) => e.checkVisibility())
		.filter((e) => { const r = e.getBoundingClientRect(); return r.width < 43.9 || r.height < 43.9; }).map((e) => e.ariaLabel)`)
	if len(small) > 0 {
		t.Errorf("too small for a finger: %q", small)
	}
	if wide := eval[int](b, `document.documentElement.scrollWidth`); wide > 390 {
		t.Errorf("the page is %d wide", wide)
	}
	webtest.Axe(b.ctx, b, "versions")
}

// What is answered in a branch that was left meanwhile is found there.
func answerToLeft(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	m1 := b.tells(t, "One")
	h.answers(t, m1, "1")
	b.shows("One", "1")
	m2 := b.tells(t, "Two")
	b.until(`document.querySelectorAll("article.you[data-seq]").length === 2`)
	b.presses(1, ".pen")
	b.do(chromedp.SetValue(chromedp.CSS(".change textarea"), "Uno"))
	b.click(".change .main")
	m3 := h.hears(t, "Uno")
	b.shows("Uno")
	h.answers(t, m2, "(Stopped.)")
	h.answers(t, m3, "Unidad")
	b.shows("Uno", "Unidad")
	b.presses(1, ".back")
	b.shows("One", "1", "Two", "(Stopped.)")
}

func copies(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	m := b.tells(t, "Say *it*")
	const source = "It is **so**:\n\n- [x] $a^2$\n- [ ] 2\n\n```go\nfunc main() {}\n```"
	h.answers(t, m, source)
	b.until(`document.querySelector("#entries .redo") && document.querySelector(".code")`)
	copied := func(when, js, want string, nth int) {
		t.Helper()
		eval[bool](b, `(window.copied = undefined, `+js+`, true)`)
		b.click(fmt.Sprintf(`#entries > :nth-child(%d) footer [aria-label="Copy"]`, nth))
		b.until(`window.copied !== undefined && document.querySelector('footer [aria-label="Copied"]')`)
		if got := eval[string](b, `window.copied`); got != want {
			t.Errorf("%s, %q is copied", when, got)
		}
		b.until(`!document.querySelector('footer [aria-label="Copied"]')`)
	}
	const clipboard = `navigator.clipboard.write = async ([item]) => { window.copied = await (await item.getType("text/plain")).text(); }`
	const without = `navigator.clipboard.write = async () => { throw new Error("not allowed"); }, document.addEventListener("copy", () => { window.copied = getSelection().toString(); })`
	copied("just written", clipboard, source, 2)
	copied("the message", clipboard, "Say *it*", 1)
	b.do(chromedp.Reload())
	b.until(`document.querySelector("#entries .redo") && document.querySelector(".code")`)
	copied("without a clipboard", without, source, 2)
	b.do(chromedp.Reload())
	b.until(`document.querySelector("#entries .redo") && document.querySelector(".code")`)
	copied("saved", clipboard, source, 2)
}

// Of messages that were answered together one is changed: the agent is told the others again.
func changeOfSeveral(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	m1 := b.tells(t, "Buy milk")
	m2 := b.tells(t, "and bread")
	r := m1.Reply()
	r.Also = []string{m2.ID}
	r.Text = "Noted."
	h.says(t, r)
	b.shows("Buy milk", "and bread", "Noted.")
	b.presses(2, ".pen")
	b.do(chromedp.SetValue(chromedp.CSS(".change textarea"), "and butter"))
	b.click(".change .main")
	m3 := h.hears(t, "Buy milk\n\nand butter")
	if got, want := branchOf(m3), "instead "+m2.ID+" after "+m1.ID; got != want {
		t.Errorf("the agent is told %q, want %q", got, want)
	}
	b.shows("Buy milk", "and butter")
}

// post sends a request of the page, and returns the status.
func (h *home) post(t *testing.T, path, body string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.at+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Parley", "1")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

// P3: a message that the gateway did not take is sent again by the browser, and says the same
// about its branch. What names no message of the conversation is refused.
func TestBranchIsSentAgain(t *testing.T) {
	h := newHome(t)
	if got := h.post(t, "/c/first/messages", `{"id":"aaaaaaaa","text":"hi","files":[]}`); got != http.StatusAccepted {
		t.Fatal(got)
	}
	m := h.hears(t, "hi")
	h.answers(t, m, "ho")
	for _, c := range []struct{ body, text string }{
		{`{"id":"bbbbbbbb","text":"hey","files":[],"instead":1}`, "hey"},
		{`{"id":"cccccccc","text":"","files":[],"again":2}`, "/regenerate"},
	} {
		h.deaf.Store(true)
		if got := h.post(t, "/c/first/messages", c.body); got != http.StatusServiceUnavailable {
			t.Errorf("%s: status %d", c.body, got)
		}
		h.deaf.Store(false)
		if got := h.post(t, "/c/first/messages", c.body); got != http.StatusAccepted {
			t.Errorf("%s: status %d", c.body, got)
		}
		again := h.hears(t, c.text)
		if again.Branch == nil || !strings.HasSuffix(branchOf(again), m.ID) && again.Branch.Instead != m.ID {
			t.Errorf("the agent is told %q", branchOf(again))
		}
	}
	for _, body := range []string{
		`{"id":"dddddddd","text":"x","files":[],"instead":2}`, `{"id":"dddddddd","text":"x","files":[],"instead":99}`,
		`{"id":"dddddddd","text":"","files":[],"again":1}`, `{"id":"dddddddd","text":"","files":[],"again":99}`,
	} {
		if got := h.post(t, "/c/first/messages", body); got != http.StatusConflict {
			t.Errorf("%s: status %d", body, got)
		}
	}
	if got := h.post(t, "/c/first/messages", `{"id":"dddddddd","text":"x","files":[],"again":2}`); got != http.StatusBadRequest {
		t.Errorf("an answer that is asked for again with a text: status %d", got)
	}
	if got := h.post(t, "/c/first/version", `{"version":99}`); got != http.StatusConflict {
		t.Errorf("a version that is not there: status %d", got)
	}
	h.list.Lock()
	defer h.list.Unlock()
	if n := len(h.all); n != 3 {
		t.Errorf("the gateway heard %d messages", n)
	}
}

// A command between a switch to another version and the next message does not hide the switch from the agent, and takes
// no message's place.
func TestCommandAfterSwitch(t *testing.T) {
	h := newHome(t)
	say := func(id, text, more string, status int) {
		t.Helper()
		body := fmt.Sprintf(`{"id":%q,"text":%q,"files":[]%s}`, id, text, more)
		if got := h.post(t, "/c/first/messages", body); got != status {
			t.Fatalf("%s: status %d", body, got)
		}
	}
	say("aaaaaaaa", "hi", "", http.StatusAccepted)
	h.answers(t, h.hears(t, "hi"), "ho")
	say("bbbbbbbb", "hey", `,"instead":1`, http.StatusAccepted)
	h.answers(t, h.hears(t, "hey"), "hum")
	say("eeeeeeee", "/status", `,"instead":1`, http.StatusConflict)
	if got := h.post(t, "/c/first/version", `{"version":1}`); got >= 300 {
		t.Fatalf("switching: status %d", got)
	}
	say("cccccccc", "/status", "", http.StatusAccepted)
	h.answers(t, h.hears(t, "/status"), "I am idle.")
	say("dddddddd", "and now?", "", http.StatusAccepted)
	if m := h.hears(t, "and now?"); m.Branch == nil {
		t.Error("the agent is not told of the switch")
	}
}
