package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"parley/web/webtest"
)

// do runs js in the window.
func (w *window) do(js string) {
	w.Helper()
	if _, err := chromedp.Run(w.ctx, chromedp.Evaluate[string](js+`; ""`)); err != nil {
		w.Fatalf("%s: %v", js, err)
	}
}

// shoot keeps pictures of the page where PARLEY_ARTIFACTS says, as on a desk and as on
// a phone.
func (w *window) shoot(name string) {
	w.Helper()
	dir := os.Getenv("PARLEY_ARTIFACTS")
	if dir == "" {
		return
	}
	for size, width := range map[string]int64{"wide": 1100, "phone": 390} {
		if _, err := chromedp.Run(w.ctx, chromedp.EmulateViewport(width, 800)); err != nil {
			w.Fatal(err)
		}
		png, err := chromedp.Run(w.ctx, chromedp.FullScreenshot(100))
		if err != nil {
			w.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+"-"+size+".png"), png, 0o600); err != nil {
			w.Fatal(err)
		}
	}
}

// TestToolPages: in a real browser an owner writes a tool, tests it, moves it to another
// group and has the agent call it; then the group is switched off, and the tool is gone
// from the chat at the next turn (B-016, B-017, B-018, B-063, B-070, B-073).
func TestToolPages(t *testing.T) {
	t.Parallel()
	browser := webtest.Browser(t)
	s := newTestGateway(t, obedient)
	s.customTools(map[string]any{})
	s.start()
	base, code := s.face()
	w := newWindow(t, browser)
	w.visit(base + "/signin#" + code)
	w.until(`document.querySelector("#send") !== null`)

	w.visit(base + "/admin/custom-tools/edit")
	w.until(`document.querySelector("#editor") !== null`)
	w.do(`for (const [id, value] of Object.entries({id: "shout", description: "Says something loudly", execution_code: "print({text}.upper() + '!')"})) document.getElementById(id).value = value;
		document.getElementById("arguments").value = '{"text": "hey"}'; document.querySelector("form[data-show] button").click()`)
	w.until(`document.querySelector("[data-out=output]").textContent.trim() === "HEY!" && document.querySelector("[data-out=return_code]").textContent === "0" && document.querySelector("[data-out=arguments]").textContent.includes("hey") && document.querySelector("[data-out=code_rendered]").textContent.includes("upper") && Number(document.querySelector("[data-out=elapsed_ms]").textContent) >= 0`)
	w.shoot("tool-tested")
	w.do(`document.querySelector("#editor button.main").click()`)
	w.until(`location.search === "?id=shout" && document.querySelector("[aria-labelledby=versions]") !== null`)

	const call = `shout {"text": "hey"}`
	if got := s.does(person, call); !strings.Contains(got, "HEY!") {
		t.Errorf("the agent's call: %s", got)
	}
	if got := s.does(guest, call); !strings.Contains(got, "Tool 'shout' not found") {
		t.Errorf("a guest's call: %s", got)
	}

	change := func(what string) {
		t.Helper()
		w.visit(base + "/admin/policy")
		w.until(`document.getElementsByName("tool:shout").length === 1`)
		w.do(`window.before = true; ` + what + `; document.querySelector("form[data-post] button.main").click()`)
		w.until(`!window.before && document.readyState === "complete" && document.getElementsByName("tool:shout").length === 1`)
	}
	change(`document.getElementsByName("tool:shout")[0].value = "loud"`)
	w.until(`document.getElementsByName("tool:shout")[0].value === "loud" && document.getElementsByName("state:loud").length === 1`)
	change(`document.getElementsByName("state:loud")[0].value = "off"`)
	w.shoot("tool-switched-off")
	if got := s.does(person, call); !strings.Contains(got, "Tool 'shout' not found") {
		t.Errorf("the agent's call when it is off: %s", got)
	}
	if got := s.does(person, `calc {"a": 1, "op": "+", "b": 2}`); !strings.Contains(got, "3") {
		t.Errorf("a tool of another group: %s", got)
	}
	requests := s.llm.Requests()
	last := requests[len(requests)-1]
	names, _ := offered(last, "")
	if told := fmt.Sprint(last.Messages[0].Content); strings.Contains(fmt.Sprint(names), "shout") || !strings.Contains(told, "tools off here: loud.") {
		t.Errorf("the model is offered %v and told %.300s", names, told)
	}
	change(`document.getElementsByName("state:loud")[0].value = "on"`)
	if got := s.does(guest, call); !strings.Contains(got, "Tool 'shout' not found") {
		t.Errorf("a guest's call when it is forced on: %s", got)
	}
	w.visit(base + "/admin/custom-tools/edit?id=shout")
	w.until(`document.querySelector("[data-delete]") !== null`)
	w.do(`window.confirm = () => true; document.querySelector("[data-delete]").click()`)
	w.until(`location.pathname === "/admin/custom-tools" && document.querySelector("[aria-labelledby=deleted]")?.textContent.includes("shout")`)
	w.visit(base + "/admin/policy")
	w.until(`document.getElementsByName("tool:calc").length === 1 && document.getElementsByName("tool:shout").length === 0`)
}
