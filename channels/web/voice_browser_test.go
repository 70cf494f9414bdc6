package web_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/channels/web"
	"parley/chat"
	"parley/web/webtest"
)

func hears(c *web.Config) { c.Hears = true }

// A voice message is recorded in the place of the message box, with time and level, by mouse and by keyboard; it can be
// discarded, and is sent with what was written. The microphone is given back.
func voice(t *testing.T, browser context.Context) {
	h := newHome(t, hears)
	b := h.tab(t, browser)
	eval[bool](b, `(window.streams = [], navigator.mediaDevices.getUserMedia = ((real) => async (want) => {
		const s = await real.call(navigator.mediaDevices, want);
		streams.push(s);
		return s;
	})(navigator.mediaDevices.getUserMedia), true)`)
	const records = `document.querySelector("#recorder") && document.activeElement.id === "speak" && Number(document.querySelector("#recorder canvas").dataset.level) > 0.01`
	const silent = `!document.querySelector("#recorder") && streams.at(-1).getTracks().every((t) => t.readyState === "ended") && document.activeElement.id === "text"`

	b.typed("#text", "Listen to this:")
	b.click("#record")
	b.until(records + ` && document.querySelector("#recorder .time").textContent >= "0:02" && !document.querySelector("#text").checkVisibility()`)
	b.shot("voice-light")
	webtest.Axe(b.ctx, t, "recording")
	b.look(390, 800, "dark")
	b.until(records)
	b.shot("voice-390")
	webtest.Axe(b.ctx, t, "recording on a phone in the dark")
	if small := eval[string](b, `[...document.querySelectorAll("#recorder button")].map((e) => e.getBoundingClientRect()).filter((r) => r.width < 44 || r.height < 44).length + ""`); small != "0" {
		t.Errorf("%s buttons are too small for a finger", small)
	}
	if eval[bool](b, `document.documentElement.scrollWidth > innerWidth`) {
		t.Error("the page scrolls sideways")
	}
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until(silent + ` && document.querySelector("#text").value === "Listen to this:" && !document.querySelector("#tray li")`)

	eval[bool](b, `(document.querySelector("#record").focus(), true)`)
	b.enter(0)
	b.until(records + ` && document.querySelector("#recorder .time").textContent >= "0:02"`)
	eval[bool](b, `(document.querySelector("#speak").click(), document.querySelector("#speak").click(), true)`) // twice is once
	b.until(silent)
	m := b.hears(t, "Listen to this:")
	if len(m.Files) != 1 || !m.Files[0].Voice || m.Files[0].Name != "Voice message.weba" {
		t.Fatalf("the gateway heard %+v", m.Files)
	}
	body, err := os.ReadFile(filepath.Join(h.dir, path.Base(m.Files[0].Path)))
	if err != nil || !bytes.HasPrefix(body, []byte("\x1aE\xdf\xa3")) || int64(len(body)) != m.Files[0].Size {
		t.Errorf("the recording is %d bytes, begins with %.4x: %v", len(body), body, err)
	}
	// It is whole: the browser plays it, and hears the beeps.
	const loudest = `(async (data) => {
		const sound = await new OfflineAudioContext(1, 48000, 48000).decodeAudioData(Uint8Array.fromBase64?.(data).buffer ?? (await (await fetch("data:;base64," + data)).arrayBuffer()));
		return Math.max(...sound.getChannelData(0));
	})`
	if loud := eval[float64](b, loudest+`("`+base64.StdEncoding.EncodeToString(body)+`")`); loud < 0.01 {
		t.Errorf("the loudest that was recorded is %v", loud)
	}
	b.until(`document.querySelector("article.you audio")?.controls && document.querySelector("#text").value === ""`)
	b.look(1200, 800, "light")
	b.shot("voice-sent")

	b.click("#record")
	b.until(records)
	eval[bool](b, `(streams.at(-1).getTracks().forEach((t) => (t.stop(), t.dispatchEvent(new Event("ended")))), true)`) // unplugged
	b.until(`document.querySelector("#recorder.over .said").textContent.startsWith("The recording has ended")`)
	b.shot("voice-over")
	b.click("#speak")
	if m := b.hears(t, ""); len(m.Files) != 1 || !m.Files[0].Voice {
		t.Errorf("what was recorded until then came as %+v", m.Files)
	}

	b.click("#record")
	b.until(records)
	eval[bool](b, `(window.requestAnimationFrame = () => 0, performance.now = ((real) => () => real.call(performance) + 900_000)(performance.now), true)`) // hidden, for long
	b.until(`document.querySelector("#recorder.over .said").textContent.startsWith("The recording has ended")`)
	b.click("#discard")
	b.until(silent)
}

// Who refuses the microphone, or has none, is told so in one sentence, and can go on writing. Where voice messages are
// not understood, or nothing may be uploaded, there is no button, and no file counts as a voice message.
func voiceRefused(t *testing.T, window context.Context) {
	h := newHome(t, hears)
	h.mute.Store(true)
	b := h.tab(t, window, "Permissions policy violation")
	b.click("#record")
	b.until(`document.querySelector("#why").textContent.startsWith("Your browser does not let this page use the microphone.") && document.activeElement.id === "record"`)
	b.shot("voice-refused")
	webtest.Axe(b.ctx, t, "the microphone was refused")
	h.mute.Store(false)
	b.do(chromedp.Reload())
	b.click("#record")
	b.until(`document.querySelector("#recorder") && document.querySelector("#why").textContent === ""`)
	b.click("#discard")
	for name, want := range map[string]string{"NotFoundError": "There is no microphone here.", "NotReadableError": "The microphone is in use by another program.", "AbortError": "Recording does not work in this browser."} {
		eval[bool](b, `(navigator.mediaDevices.getUserMedia = async () => { throw new DOMException("no", "`+name+`") }, true)`)
		b.click("#record")
		b.until(`document.querySelector("#why").textContent.startsWith("` + want + `")`)
	}
	b.tells(t, "Then I write.")

	deaf := newHome(t).tab(t, window)
	if eval[bool](deaf, `document.querySelector("#record") !== null`) {
		t.Error("there is a button although nobody listens")
	}
	if got := eval[string](deaf, `fetch("/files?name=a.weba&voice", {method: "PUT", body: "x", headers: {"X-Parley": "1", "Content-Type": "application/octet-stream"}}).then((r) => r.json()).then((f) => fetch("/c/first/messages", {method: "POST", body: JSON.stringify({id: "12345678", text: "as a file", files: [f.id]}), headers: {"X-Parley": "1", "Content-Type": "application/json"}})).then((r) => r.status + "")`); got != "202" {
		t.Fatalf("the message was answered with %s", got)
	}
	if m := deaf.hears(t, "as a file"); len(m.Files) != 1 || m.Files[0].Voice {
		t.Errorf("the gateway heard %+v", m.Files)
	}
	blocked := newHome(t, hears, func(c *web.Config) {
		c.Blocked = func(_ context.Context, _ chat.Sender, part string) bool { return part == "block_upload" }
	}).tab(t, window)
	if eval[bool](blocked, `document.querySelector("#record").checkVisibility()`) {
		t.Error("there is a button although nothing may be uploaded")
	}
}
