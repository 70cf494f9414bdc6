package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"parley/channels/telegram/telegramtest"
	"parley/tools/mcp/mcptest"
	"parley/tools/network/networktest"
	"parley/web/webtest"
)

// asking has the config name a server that asks people, and starts Parley.
func (w *testGateway) asking(earlier bool) *mcptest.Asking {
	w.t.Helper()
	remote := mcptest.NewAsking(w.t, earlier)
	w.mcpServers(map[string]any{"shop": map[string]any{"url": remote.URL, "for": []string{"everyone"}}})
	w.start()
	return remote
}

// orderCall has the server ask for a colour and a number.
const orderCall = `call mcp_shop_ask {"message": "What do you want?", "schema": {"type": "object", "properties": ` +
	`{"colour": {"type": "string", "enum": ["Red", "Blue"]}, "number": {"type": "integer", "minimum": 1}}, "required": ["colour", "number"]}}`

// P6, R-S22: a server's question reaches the person who talks to the agent, by buttons and in text. Parley is
// killed while each of the questions is open: the answers of before and after count, and the server is called
// once.
func TestMCPQuestionOutlivesKill(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	remote := w.asking(false)
	w.tg.Say(person, orderCall)
	colour := w.asks(person, "colour")
	if !strings.Contains(colour.Text, "The MCP server shop asks, for its tool mcp_shop_ask:") || !strings.Contains(colour.Text, "What do you want?") {
		t.Errorf("the question is %q", colour.Text)
	}
	w.kill()
	w.tg.PressData(person, colour.ID, colour.Buttons[0][1].Data, telegramtest.As(person, "Ada")) // while nobody is there
	w.start()
	number := func(n int) {
		t.Helper()
		w.told(person, "the question for a number", func(texts []string) bool {
			found := slices.DeleteFunc(texts, func(text string) bool { return !strings.Contains(text, "a whole number, at least 1") })
			return len(found) >= n
		})
	}
	number(1)
	w.kill()
	w.start()
	w.tg.Say(person, "none", telegramtest.As(person, "Ada"))
	number(2)
	w.tg.Say(person, "3", telegramtest.As(person, "Ada"))
	review := w.asks(person, "This would be sent")
	if !strings.Contains(review.Text, "Blue") || !strings.Contains(review.Text, "number: 3") {
		t.Errorf("the review is %q", review.Text)
	}
	w.tg.PressData(person, review.ID, review.Buttons[0][0].Data, telegramtest.As(person, "Ada"))
	w.told(person, "the result", func(texts []string) bool {
		return toldOf(texts, `the tools say: answered: {"action":"accept","content":{"colour":"Blue","number":3}}`)
	})
	if asked, done := remote.Asked.Load(), remote.Done.Load(); asked != 1 || done != 1 {
		t.Errorf("the server asked %d times, and got %d answers", asked, done)
	}
}

// Of an earlier protocol version the call is lost when Parley is killed: the person is told that it is too
// late, once, whatever they press, and the model that the call was interrupted.
func TestMCPQuestionTooLate(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	remote := w.asking(true)
	w.tg.Say(person, orderCall)
	colour := w.asks(person, "colour")
	w.kill()
	w.tg.PressData(person, colour.ID, colour.Buttons[0][1].Data, telegramtest.As(person, "Ada"))
	w.start()
	w.told(person, "that it is too late", func(texts []string) bool {
		return toldOf(texts, "it is too late to answer") && toldOf(texts, "the tools say: Error: interrupted while it ran.")
	})
	w.tg.Say(person, "go on")
	texts := w.told(person, "the next answer", func(texts []string) bool { return toldOf(texts, "heard") })
	late := slices.DeleteFunc(texts, func(text string) bool { return !strings.Contains(text, "too late to answer") })
	if len(late) != 1 || remote.Done.Load() != 0 {
		t.Errorf("told %q; the server got %d answers", late, remote.Done.Load())
	}
}

// R-S14: in a group only whoever has the call made may answer, owners neither.
func TestMCPQuestionInGroup(t *testing.T) {
	t.Parallel()
	const group = -1008
	w := newTestGateway(t, obedient)
	w.allowing("telegram")
	remote := w.asking(false)
	w.tg.Say(group, "@parleybot "+orderCall, telegramtest.As(asker, "Ada"))
	var colour telegramtest.Message
	w.shows(group, "the buttons", func(m telegramtest.Message) bool {
		colour = m
		return m.FromBot() && len(m.Buttons) > 0
	})
	press := func(who int64, button int) {
		t.Helper()
		pressed := w.tg.PressData(group, colour.ID, colour.Buttons[0][button].Data, telegramtest.As(who, "Somebody"))
		w.sees("the button let go", func(v telegramtest.View) bool { return v.Released(pressed) })
	}
	press(reader, 0)
	press(person, 0)
	press(asker, 2) // Decline
	w.told(group, "the result", func(texts []string) bool { return toldOf(texts, `the tools say: answered: {"action":"decline"}`) })
	if remote.Done.Load() != 1 {
		t.Errorf("the server got %d answers", remote.Done.Load())
	}
}

// asksOnPage starts Parley with a server that asks people, and opens the page in a browser.
func (w *testGateway) asksOnPage() (*window, *mcptest.Asking) {
	w.t.Helper()
	browser := webtest.Browser(w.t)
	w.more["http"] = map[string]any{"listen": networktest.FreeAddress(w.t)}
	remote := w.asking(false)
	base, code := w.face()
	page := newWindow(w.t, browser)
	page.visit(base + "/signin#" + code)
	page.until(`document.querySelector("#state")?.dataset.text === "" && document.querySelector("#send").ariaLabel === "Send"`)
	return page, remote
}

// A server's question on the page, in a real browser: one choice is a row of buttons.
func TestBrowserMCPQuestion(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	page, remote := w.asksOnPage()
	page.says(`call mcp_shop_ask {"message": "Which?", "schema": {"type": "object", "properties": {"colour": {"type": "string", "enum": ["Red", "Blue"]}}}}`)
	page.until(`document.body.innerText.includes("The MCP server shop asks") && document.body.innerText.includes("Which?")`)
	page.until(`[...document.querySelectorAll(".ask button")].map((b) => b.innerText).join() === "Red,Blue,Skip,Decline"`)
	page.does(chromedp.Click(chromedp.CSS(".ask button:nth-child(2)"), chromedp.NodeVisible))
	page.until(`document.body.innerText.includes('the tools say: answered: {"action":"accept","content":{"colour":"Blue"}}')`)
	if remote.Done.Load() != 1 {
		t.Errorf("the server got %d answers", remote.Done.Load())
	}
}

// formIs is when the form of orderCall can be filled in.
const formIs = `document.querySelector("form.ask")?.oninput && document.querySelectorAll(".ask [data-field]").length === 2`

// Several values of a server's question are one form on the page. A wrong one is said at its field, and the
// others stay. The server gets the right ones, once, and the page shows what was sent, in another tab, too.
func TestBrowserMCPForm(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	page, remote := w.asksOnPage()
	page.says(orderCall)
	page.until(`document.body.innerText.includes("The MCP server shop asks") && document.body.innerText.includes("What do you want?")`)
	page.until(formIs)
	other := page.beside()
	other.until(formIs)
	page.does(chromedp.SendKeys(chromedp.CSS(".ask select"), "Blue"))
	page.does(chromedp.SendKeys(chromedp.CSS(".ask input"), "0"))
	page.does(chromedp.Click(chromedp.CSS(".ask [type=submit]"), chromedp.NodeVisible))
	page.until(`document.querySelector(".wrong:not([hidden])")?.innerText === "This must be at least 1." && document.activeElement.matches(".ask input:enabled")`)
	page.until(`document.querySelector(".ask select").value === "Blue" && document.querySelector(".ask input").value === "0"`)
	if remote.Done.Load() != 0 {
		t.Error("the server got a wrong value")
	}
	page.does(chromedp.SetValue(chromedp.CSS(".ask input"), "3"))
	page.does(chromedp.Click(chromedp.CSS(".ask [type=submit]"), chromedp.NodeVisible))
	page.until(`document.body.innerText.includes('the tools say: answered: {"action":"accept","content":{"colour":"Blue","number":3}}')`)
	for _, tab := range []*window{page, other} {
		tab.until(`!document.querySelector(".ask") && document.body.innerText.includes("colour: Blue\nnumber: 3")`)
	}
	if remote.Done.Load() != 1 {
		t.Errorf("the server got %d answers", remote.Done.Load())
	}
}

// P6: Parley is killed while a form is filled in, and once more while what was sent waits for it. The form stays
// as it is, and is sent when Parley is back: the server gets it, once.
func TestBrowserMCPFormOutlivesKill(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	page, remote := w.asksOnPage()
	page.says(orderCall)
	page.until(formIs)
	page.does(chromedp.SendKeys(chromedp.CSS(".ask input"), "0"))
	w.kill()
	page.does(chromedp.SendKeys(chromedp.CSS(".ask select"), "Blue"))
	w.start()
	page.does(chromedp.Click(chromedp.CSS(".ask [type=submit]"), chromedp.NodeVisible))
	page.until(`document.querySelector(".wrong:not([hidden])")?.innerText === "This must be at least 1."`)
	w.kill()
	page.does(chromedp.SetValue(chromedp.CSS(".ask input"), "3"))
	page.does(chromedp.Click(chromedp.CSS(".ask [type=submit]"), chromedp.NodeVisible))
	page.until(`document.querySelector(".ask [type=submit]").disabled && document.body.innerText.includes("Waiting to be sent")`)
	w.start()
	page.until(`document.body.innerText.includes('the tools say: answered: {"action":"accept","content":{"colour":"Blue","number":3}}')`)
	page.until(`!document.querySelector(".ask") && document.body.innerText.includes("colour: Blue\nnumber: 3")`)
	if asked, done := remote.Asked.Load(), remote.Done.Load(); asked != 1 || done != 1 {
		t.Errorf("the server asked %d times, and got %d answers", asked, done)
	}
}
