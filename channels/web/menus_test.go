package web_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/channels"
	"parley/channels/web"
	"parley/chat"
	"parley/web/webtest"
)

// TestMenus is what the message box proposes, and what can be done with a conversation.
func TestMenus(t *testing.T) {
	browser := webtest.Browser(t)
	for name, test := range map[string]func(*testing.T, context.Context){
		"commands": proposesCommands, "on a phone": proposesOnPhone, "models": proposesModels, "model in use": marksModel, "pin": pins, "export": exports,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, browser)
		})
	}
}

// withCommands gives the home commands.
func withCommands(t *testing.T, change ...func(*web.Config)) *home {
	h := newHome(t, change...)
	err := h.SetCommands(t.Context(), []channels.Command{
		{Name: "new", Help: "begin a new conversation"}, {Name: "stop", Help: "stop the answer under way"},
		{Name: "model", Help: "show or choose the model"}, {Name: "tool", Help: "run a tool"}, {Name: "tools", Help: "what I can use"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

const proposed = `[...document.querySelectorAll("#proposals:not([hidden]) b")].map((e) => e.innerText).join(" ")`

// Commands are proposed, filtered while one types, and chosen by keyboard.
func proposesCommands(t *testing.T, browser context.Context) {
	h := withCommands(t)
	b := h.tab(t, browser)
	b.look(1200, 800, "light")
	b.typed("#text", "/")
	b.until(proposed + ` === "/new /stop /model /tool /tools"`)
	webtest.Axe(b.ctx, b, "proposals")
	b.shot("menus-desktop")
	b.typed("#text", "mo")
	b.until(proposed + ` === "/model"`)
	b.do(chromedp.KeyEvent(kb.Tab))
	b.until(`document.querySelector("#text").value === "/model " && ` + proposed + ` === "fast thorough"`)
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	b.until(`document.querySelector("#text").getAttribute("aria-activedescendant") === "proposal-1"`)
	b.enter(0)
	h.hears(t, "/model thorough")
	b.until(`document.querySelector("#text").value === "" && document.querySelector("#proposals").hidden`)
	b.tells(t, "/tool") // what is typed whole is sent, although there are others
	b.typed("#text", "/conversation")
	b.until(proposed + ` === "/new"`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until(`document.querySelector("#proposals").hidden`)
	b.enter(0)
	h.hears(t, "/conversation")
	b.tells(t, "a / b") // no command
}

func proposesOnPhone(t *testing.T, browser context.Context) {
	h := withCommands(t)
	b := h.tab(t, browser)
	b.phone()
	b.do(chromedp.Reload())
	b.typed("#text", "/")
	b.until(proposed + ` === "/new /stop /model /tool /tools"`)
	b.shot("menus-phone")
	if wide := eval[int](b, `document.documentElement.scrollWidth`); wide > 390 {
		t.Errorf("the page is %d wide", wide)
	}
	if low := eval[bool](b, `[...document.querySelectorAll("#proposals li")].some((e) => e.offsetHeight < 44)`); low {
		t.Error("a proposal is too small for a finger")
	}
	b.click("#proposals li:nth-child(2)")
	b.until(`document.querySelector("#text").value === "/stop "`)
	b.click("#send")
	h.hears(t, "/stop")
	b.click("#more")
	b.until(`document.querySelector("#choices").matches(":popover-open")`)
	b.shot("menus-phone-more")
}

// The models are proposed by a button, which is there if there are several.
func proposesModels(t *testing.T, browser context.Context) {
	h := withCommands(t)
	b := h.tab(t, browser)
	b.typed("#text", "not sent yet")
	b.click("#model")
	b.until(proposed + ` === "fast thorough"`)
	b.click("#proposals li:nth-child(1)")
	h.hears(t, "/model fast")
	if got := eval[string](b, `document.querySelector("#text").value`); got != "not sent yet" {
		t.Errorf("the message box has %q", got)
	}
}

// The model in use is marked, and the one that Enter chooses at first: that changes nothing.
func marksModel(t *testing.T, browser context.Context) {
	var now atomic.Pointer[string]
	set := func(model string) { now.Store(&model) }
	set("thorough")
	h := withCommands(t, func(c *web.Config) {
		c.Model = func(_ context.Context, at chat.Address, _ chat.Sender) (string, error) {
			if at.Thread != "first" {
				t.Errorf("the model of %v is asked for", at)
			}
			return *now.Load(), nil
		}
	})
	b := h.tab(t, browser)
	b.until(`document.activeElement.id === "text"`)
	const marked = `[...document.querySelectorAll("#proposals:not([hidden]) li")].map((e) => [e.querySelector("b").innerText, e.innerText.includes("in use"), e.ariaSelected].join(" ")).join()`
	b.click("#model")
	b.until(marked + ` === "fast false false,thorough true true" && document.querySelector("#text").getAttribute("aria-activedescendant") === "proposal-1"`)
	b.shot("menus-model")
	b.enter(0)
	b.until(`document.querySelector("#proposals").hidden`)
	b.click("#model")
	b.until(marked + ` === "fast false false,thorough true true"`)
	b.do(chromedp.KeyEvent(kb.ArrowUp))
	b.enter(0)
	h.hears(t, "/model fast") // and nothing before
	set("fast")
	b.click("#model")
	b.until(marked + ` === "fast true true,thorough false false"`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.typed("#text", "/model fa")
	b.until(marked + ` === "fast true true"`)
	b.enter(0)
	h.hears(t, "/model fast") // it was asked for by name
	b.click("#model")
	b.until(marked + ` === "fast true true,thorough false false"`)
	webtest.Axe(b.ctx, b, "models")
}

// A pinned conversation is above the others, also for whoever loads the page, and not for others.
func pins(t *testing.T, browser context.Context) {
	h := withCommands(t)
	b := h.tab(t, browser)
	h.answers(t, b.tells(t, "The first"), "Yes.")
	b.click("#new")
	b.until(`location.pathname !== "/c/first" && document.activeElement.id === "text"`)
	second := eval[string](b, `document.body.dataset.talk`)
	m := b.tells(t, "The second")
	r := m.Reply()
	r.Text = "Yes."
	h.says(t, r)
	titles := `[...document.querySelectorAll("#talks a")].map((e) => e.innerText.trim()).join()`
	b.until(titles + ` === "The second,The first"`)
	b.until(allSeen) // what is not seen when the page is left is marked as new
	b.do(chromedp.Navigate(h.at + "/c/first"))
	b.click("#more")
	b.click("#pin")
	b.until(`document.querySelector("#talks a .pinned") && ` + titles + `.replace(/Pinned:\s*/, "") === "The first,The second"`)
	b.do(chromedp.Reload())
	b.until(`document.querySelector("#talks li:first-child .pinned") && document.querySelector("#pin").innerText === "" + document.querySelector("#pin").innerText`)
	b.shot("menus-pinned")
	b.do(chromedp.Navigate(h.at + "/"))
	if got := eval[string](b, `document.body.dataset.talk`); got != second {
		t.Errorf("the page begins with %s, not with what was said last", got)
	}
	b.do(chromedp.Navigate(h.at + "/c/first"))
	b.click("#more")
	b.click("#pin")
	b.until(`!document.querySelector("#talks .pinned") && ` + titles + ` === "The second,The first"`)
}

// What one exports has all branches, and is one's own.
func exports(t *testing.T, browser context.Context) {
	h := withCommands(t)
	b := h.tab(t, browser)
	m := b.tells(t, "Name *one*")
	h.answers(t, m, "**Misty**.")
	b.until(`document.querySelector("#entries .redo")`)
	b.presses(2, ".redo")
	h.answers(t, h.hears(t, "/regenerate"), "Rex.")
	b.version(2, "2/2")
	b.click("#more")
	b.until(`document.querySelector("#choices").matches(":popover-open")`)
	b.shot("menus-more")
	get := func(path string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.at+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusOK && !strings.HasPrefix(resp.Header.Get("Content-Disposition"), "attachment") {
			t.Errorf("%s is shown, not saved", path)
		}
		return resp.StatusCode, string(body)
	}
	_, text := get(eval[string](b, `document.querySelector("#choices a").getAttribute("href")`))
	for _, want := range []string{`# Name \*one\*`, "Name *one*\n", "version 2 of 2\n\nRex.", "## Other versions", "version 1 of 2\n\n**Misty**."} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q: %s", want, text)
		}
	}
	_, body := get("/c/first/export/json")
	var all struct {
		Messages []struct {
			Who, Text string
			Shown     bool
			Version   int
		}
	}
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, m := range all.Messages {
		if m.Shown {
			said = append(said, m.Text)
		}
	}
	if len(all.Messages) != 3 || !slices.Equal(said, []string{"Name *one*", "Rex."}) {
		t.Errorf("exported as JSON: %s", body)
	}
	if status, _ := get("/c/first/export/exe"); status != http.StatusNotFound {
		t.Errorf("an unknown form: status %d", status)
	}
	other := "ben"
	h.who.Store(&other)
	if _, body := get("/c/first/export/json"); strings.Contains(body, "Misty") {
		t.Error("somebody else's conversation is exported")
	}
	h.who.Store(nil)
}

var _ channels.CommandMenu = (*home)(nil)
