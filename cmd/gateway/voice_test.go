package main

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"parley/llm/llmtest"
	"parley/tools/network/networktest"
	"parley/web/webtest"
)

// TestVoicePage: a voice message that is recorded on the page, with the headers of the real server, is transcribed by
// the configured model, and what was said is answered. Without one the page has no such button.
func TestVoicePage(t *testing.T) {
	t.Parallel()
	browser := webtest.Browser(t)
	w := newTestGateway(t, echo)
	w.llm.Hear = func(_ context.Context, s llmtest.Speech) llmtest.Reply {
		return llmtest.Reply{Text: "words of a beep"}
	}
	w.more["transcription"] = map[string]any{"baseUrl": w.llm.URL(), "apiKey": "${TOWN_MODEL_KEY}", "model": "whisper-1"}
	w.more["http"] = map[string]any{"listen": networktest.FreeAddress(t)}
	w.start()
	base, code := w.face()
	tab := newWindow(t, browser)
	tab.visit(base + "/signin#" + code)
	const ready = `document.querySelector("#state")?.dataset.text === "" && document.querySelector("#send").ariaLabel === "Send"`
	tab.until(ready)
	click := func(css string) {
		t.Helper()
		if err := chromedp.Do(tab.ctx, chromedp.Click(chromedp.CSS(css), chromedp.NodeVisible)); err != nil {
			t.Fatalf("click %s: %v", css, err)
		}
	}
	click("#record")
	tab.until(`Number(document.querySelector("#recorder canvas").dataset.level) > 0.01`)
	click("#speak")
	tab.until(`document.querySelector("article.parley .text")?.innerText === "heard words of a beep"`)
	speeches := w.llm.Speeches()
	if len(speeches) != 1 || speeches[0].Refused != "" || speeches[0].Name != "voice.webm" || !bytes.HasPrefix(speeches[0].Audio, []byte("\x1aE\xdf\xa3")) {
		t.Errorf("%d recordings were transcribed: %.200s", len(speeches), fmt.Sprintf("%+v", speeches))
	}

	delete(w.more, "transcription")
	w.config()
	w.start()
	w.logs("signs you in", 2)
	tab.visit(base + "/c/first")
	tab.until(ready + ` && document.querySelector("article audio") && !document.querySelector("#record")`)
}
