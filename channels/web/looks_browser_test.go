package web_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/chat"
	"parley/web/webtest"
)

// TestLooksInBrowser is about what is around the answers: files, colours, and where the page is scrolled to.
func TestLooksInBrowser(t *testing.T) {
	browser := webtest.Browser(t)
	for name, test := range map[string]func(*testing.T, context.Context){
		"theme": choosesTheme, "no flash": noFlash, "new messages": newMessages, "edges": edges,
		"voice": voice, "voice refused": voiceRefused,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, browser)
		})
	}
	whole := webtest.WholeBrowser(t) // which shows PDFs in the page
	for name, test := range map[string]func(*testing.T, context.Context){"files": looksIntoFiles, "files are inert": inertPreviews} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, whole)
		})
	}
}

// edges: nothing cuts off the ring around the message box, and what stands below the list of conversations has a row for the owner's
// pages and one for the rest.
func edges(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	for _, width := range []int64{1200, 390} {
		for _, scheme := range []string{"light", "dark"} {
			b.look(width, 800, scheme)
			eval[bool](b, `(document.activeElement.blur(), document.querySelector("#text").focus(), true)`)
			b.until(`getComputedStyle(document.querySelector(".box")).boxShadow.split(/,(?![^(]*\))/).every((s) => s.includes("inset"))`)
			b.shot(fmt.Sprintf("edges-%d-%s", width, scheme))
			if width == 390 {
				b.click("#menu")
				b.until(`document.querySelector("#side:popover-open")?.getAnimations().length === 0`)
				b.shot("edges-drawer-" + scheme)
			}
			b.until(`(() => {
				const [pages, bell, leave] = ["#side .foot a", "#bell", "#leave"].map((e) => document.querySelector(e).getBoundingClientRect());
				return document.querySelector("#side .foot a").innerText === "Owner's pages" && pages.bottom <= bell.top && bell.top === leave.top &&
					pages.left === bell.left && bell.right < leave.left;
			})()`)
			if width == 390 {
				eval[bool](b, `(document.querySelector("#side").hidePopover(), true)`)
			}
		}
	}
}

// file writes a file that the gateway can send.
func (h *home) file(t *testing.T, name, kind string, body []byte) chat.File {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, name), body, 0o600); err != nil {
		t.Fatal(err)
	}
	return chat.File{Path: name, Name: name, Type: kind}
}

// scenery is a picture of hills under a sky.
func scenery(t *testing.T, hue uint8, width, height int) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for x := range width {
		hill := int(float64(height) * (0.65 + 0.12*math.Sin(float64(x)/float64(width)*7+float64(hue))))
		for y := range height {
			c := color.RGBA{hue / 2, 120 + uint8(y*100/height), 220 - uint8(y*60/height), 255}
			if y > hill {
				c = color.RGBA{40, 90 + hue/4, 50, 255}
			}
			img.Set(x, y, c)
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// tone is a second of sound.
func tone() []byte {
	const rate = 8000
	var b bytes.Buffer
	b.WriteString("RIFF")
	_ = binary.Write(&b, binary.LittleEndian, uint32(36+rate))
	b.WriteString("WAVEfmt ")
	_ = binary.Write(&b, binary.LittleEndian, []uint32{16, 1 | 1<<16, rate, rate, 1 | 8<<16})
	b.WriteString("data")
	_ = binary.Write(&b, binary.LittleEndian, uint32(rate))
	for i := range rate {
		b.WriteByte(byte(128 + 60*math.Sin(float64(i)*0.35)))
	}
	return b.Bytes()
}

const pdfPage = "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n" +
	"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 300]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>endobj\n" +
	"4 0 obj<</Length 60>>stream\nBT /F1 28 Tf 40 220 Td (The tides of May) Tj ET\nendstream endobj\n" +
	"5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\ntrailer<</Root 1 0 R>>\n"

// Pictures open over the page, texts show their first lines, PDFs their first page, and sound and video can be played.
func looksIntoFiles(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	r := b.tells(t, "Show me what there is").Reply()
	script := "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfmt.Println(\"tides\")\n}\n" + strings.Repeat("// more\n", 40) + "// the end\n"
	r.Text, r.Files = "Here it is.", []chat.File{
		h.file(t, "bay.png", "image/png", scenery(t, 40, 900, 600)),
		h.file(t, "cliff.png", "image/png", scenery(t, 200, 500, 900)),
		h.file(t, "dunes.png", "image/png", scenery(t, 120, 300, 200)),
		h.file(t, "tides.go", "", []byte(script)),
		h.file(t, "May.pdf", "application/pdf", []byte(pdfPage)),
		h.file(t, "horn.wav", "audio/wav", tone()),
		h.file(t, "data.bin", "", []byte{0, 1, 2, 3}),
	}
	h.says(t, r)
	b.until(`document.querySelectorAll(".picture img").length === 3 && document.querySelector("[data-kind=text].preview pre") && document.querySelector("[data-kind=pdf] iframe")`)
	b.do(chromedp.Reload()) // what the server renders is the same
	b.until(`[...document.querySelectorAll(".picture img")].every((i) => i.naturalWidth) && document.querySelector("[data-kind=text].preview pre") && document.querySelector("[data-kind=pdf] iframe")`)
	if got := eval[string](b, `[...document.querySelectorAll(".files li")].map((l) => l.dataset.kind).join()`); got != "picture,picture,picture,text,pdf,audio,other" {
		t.Errorf("the files are %s", got)
	}
	const fills = `(a, i) => Math.abs(a.width - i.width) < 1 && Math.abs(a.height - i.height) < 1`
	if !eval[bool](b, `[...document.querySelectorAll(".picture img")].every((i) => (`+fills+`)(i.parentNode.getBoundingClientRect(), i.getBoundingClientRect()))`) {
		t.Error("a picture does not fill its tile")
	}
	if got := eval[string](b, `document.querySelector(".preview pre").textContent`); !strings.HasPrefix(got, "package main\n\nimport") || strings.Count(got, "\n") != 6 {
		t.Errorf("the first lines are %q", got)
	}
	b.until(`document.querySelector("audio").controls && document.querySelector("audio").duration > 0.9`)
	b.look(1200, 800, "light")
	eval[bool](b, `(document.querySelector("iframe").scrollIntoView({block: "center"}), true)`)
	b.showsPaper(`document.querySelector("iframe").getBoundingClientRect()`)
	for _, width := range []int64{1200, 390} {
		for _, scheme := range []string{"light", "dark"} {
			b.look(width, 800, scheme)
			b.shot(fmt.Sprintf("files-%d-%s", width, scheme))
			if wide := eval[int64](b, `Math.max(document.documentElement.scrollWidth, document.querySelector("#scroll").scrollWidth)`); wide > width {
				t.Errorf("at %d the page is %d wide", width, wide)
			}
		}
	}
	webtest.AxeEverywhere(b.ctx, t, "files")

	// The pictures, by keyboard alone.
	b.look(1200, 800, "light")
	eval[bool](b, `(document.querySelector(".picture").focus(), true)`)
	b.enter(0)
	const shows = `document.querySelector("#lightbox[open] h2")?.textContent === %q && document.querySelector("#lightbox img")?.naturalWidth > 0`
	b.until(fmt.Sprintf(shows, "bay.png") + ` && document.querySelector("#lightbox .count").textContent === "1 of 3"`)
	b.shot("lightbox-1200")
	webtest.AxeEverywhere(b.ctx, t, "a picture")
	b.do(chromedp.KeyEvent(kb.ArrowRight))
	b.until(fmt.Sprintf(shows, "cliff.png"))
	if !eval[bool](b, `(() => { const i = document.querySelector("#lightbox img").getBoundingClientRect(); return i.top >= 0 && i.bottom <= innerHeight && i.right <= innerWidth; })()`) {
		t.Error("a picture is larger than the window")
	}
	b.shot("lightbox-390")
	b.do(chromedp.KeyEvent(kb.ArrowLeft), chromedp.KeyEvent(kb.ArrowLeft))
	b.until(fmt.Sprintf(shows, "dunes.png"))
	if got := eval[string](b, `document.querySelector("#lightbox .save").download`); got != "dunes.png" {
		t.Errorf("%q would be downloaded", got)
	}
	for range 8 { // the focus stays within
		b.do(chromedp.KeyEvent(kb.Tab))
		if !eval[bool](b, `document.activeElement === document.body || !!document.activeElement.closest("#lightbox")`) {
			t.Error("Tab leaves the picture: " + eval[string](b, `document.activeElement.outerHTML`))
		}
	}
	if small := eval[string](b, `[...document.querySelectorAll("#lightbox :is(button, a)")].map((e) => [e, e.getBoundingClientRect()]).filter(([, r]) => r.width < 44 || r.height < 44).map(([e]) => e.outerHTML).join()`); small != "" {
		t.Errorf("too small for a finger: %s", small)
	}
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until(`!document.querySelector("#lightbox[open]") && document.activeElement.matches(".picture") && document.activeElement.querySelector("img").alt === "dunes.png"`)
	if n := len(h.heard); n != 0 {
		t.Errorf("Escape stopped the answer, too: %d messages", n)
	}

	// A text, with its colours.
	b.click(".preview button")
	b.until(`document.querySelector("#lightbox[open] .code .hljs-keyword") && document.querySelector("#lightbox pre").textContent.endsWith("// the end\n")`)
	b.shot("reader-390")
	webtest.AxeEverywhere(b.ctx, t, "a text")
	b.shot("reader-dark-390")
	b.click(`#lightbox [aria-label="Close"]`)
	b.until(`!document.querySelector("#lightbox[open]") && document.activeElement.matches(".preview button")`)
}

// showsPaper waits until the middle of a rectangle of the page, which js returns, is white and some of it is dark:
// until the browser shows the page of a PDF there.
func (b *tab) showsPaper(js string) {
	b.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		shot, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			b.Fatal(err)
		}
		img, err := png.Decode(bytes.NewReader(shot))
		if err != nil {
			b.Fatal(err)
		}
		at := eval[[]int](b, `(() => { const r = `+js+`; return [r.left, r.top, r.right, r.bottom].map(Math.round) })()`)
		white, dark := 0, 0
		for x := at[0]; x < at[2]; x++ {
			for y := at[1]; y < at[3]; y++ {
				switch r, _, _, _ := img.At(x, y).RGBA(); {
				case r > 0xf000:
					white++
				case r < 0x1000:
					dark++
				}
			}
		}
		if white > (at[2]-at[0])*(at[3]-at[1])/4 && dark > 50 {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("%d white and %d dark pixels in %v", white, dark, at)
		}
	}
}

// R-S5: what is in a file that is looked into does not act.
func inertPreviews(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser, "sandbox", "Content Security Policy", "Failed to load")
	r := b.tells(t, "Show me").Reply()
	const probe = `<script>parent.hit = top.hit = window.hit = 1</script><img src=x onerror="parent.hit=1">`
	r.Text, r.Files = "Here", []chat.File{
		h.file(t, "a.html", "text/html", []byte(probe)),
		h.file(t, "b.pdf", "application/pdf", []byte("<html>"+probe)),
		h.file(t, "c.svg", "image/svg+xml", []byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="parent.hit=1"/>`)),
		h.file(t, "d.txt", "text/plain", []byte{'a', 0, 'b'}),
		h.file(t, "e.txt", "text/plain", nil),
		h.file(t, "f.mp3", "audio/mpeg", []byte(probe)),
	}
	h.says(t, r)
	b.until(`document.querySelector(".preview pre")?.textContent.startsWith("<script>") && document.querySelectorAll(".preview pre").length === 2`)
	b.click(".preview button")
	b.until(`document.querySelector("#lightbox[open] pre")?.textContent.startsWith("<script>")`)
	if eval[bool](b, `"hit" in window || document.querySelectorAll("article script, #lightbox script").length > 0`) {
		t.Error("a file acts")
	}
	// Nothing but such a file can be framed, and no page of ours.
	eval[bool](b, `(document.body.append(Object.assign(document.createElement("iframe"), {src: "/c/first", id: "framed"})), true)`)
	b.until(`document.querySelector("#framed").contentDocument === null || document.querySelector("#framed").contentDocument.body.childElementCount === 0`)
}

const ground = `getComputedStyle(document.body).backgroundColor`

// The colours can be chosen, stay chosen, also in other tabs, and are those of code.
func choosesTheme(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	b.look(1200, 800, "light")
	light := eval[string](b, ground)
	b.look(1200, 800, "dark")
	dark := eval[string](b, ground)
	if light == dark {
		t.Fatalf("light and dark are both %s", light)
	}
	r := b.tells(t, "Write").Reply()
	r.Text = "```go\nfunc main() {}\n```"
	h.says(t, r)
	b.until(`document.querySelector(".hljs-keyword")`)
	const word = `getComputedStyle(document.querySelector(".hljs-keyword")).color`
	is := func(want string) string { return fmt.Sprintf(`%s === %q`, ground, want) }
	darkWord := eval[string](b, word)
	b.click(`#theme label:has([value=light])`)
	b.until(is(light))
	if eval[string](b, word) == darkWord {
		t.Error("code keeps its colours")
	}
	b.shot("theme-light")
	b.do(chromedp.Reload())
	b.until(is(light) + ` && document.querySelector("#theme [value=light]").checked && document.querySelector(".hljs-keyword")`)
	b.look(1200, 800, "light")
	b.do(chromedp.KeyEvent(kb.Tab))
	eval[bool](b, `(document.querySelector("#theme :checked").focus(), true)`)
	b.do(chromedp.KeyEvent(kb.ArrowRight)) // dark
	b.until(is(dark))
	b.shot("theme-dark")
	eval[bool](b, `(localStorage.setItem("theme", "<img>"), dispatchEvent(new StorageEvent("storage")), true)`) // as if another tab did
	b.until(is(light) + ` && document.querySelector("#theme [value='']").checked`)
	b.look(390, 800, "dark")
	b.click("#menu")
	b.until(`document.querySelector("#side").matches(":popover-open") && document.querySelector("#side").getAnimations().length === 0 && ` + is(dark))
	b.shot("theme-390")
	if small := eval[string](b, `[...document.querySelectorAll("#theme label")].map((e) => e.getBoundingClientRect()).filter((r) => r.width < 44 || r.height < 44).length + ""`); small != "0" {
		t.Errorf("%s choices are too small for a finger", small)
	}
	webtest.Axe(b.ctx, t, "the drawer")
}

// The page has the chosen colours from the first, although no module of it has loaded.
func noFlash(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser, "net::ERR_")
	b.look(1200, 800, "dark")
	dark := eval[string](b, ground)
	eval[bool](b, `(localStorage.setItem("theme", "light"), true)`)
	if _, err := chromedp.Call(b.ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	block := []*network.BlockPattern{{URLPattern: "*://*:*/assets/*/page.js", Block: true}}
	if _, err := chromedp.Call(b.ctx, network.SetBlockedURLs, network.SetBlockedURLsParams{URLPatterns: block}); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Reload())
	b.until(`document.readyState === "complete" && document.querySelector("#theme [value=light]").checked`)
	if got := eval[string](b, ground); got == dark {
		t.Errorf("without the modules of the page it is %s", got)
	}
	if got := eval[string](b, `performance.getEntriesByType("resource").find((r) => r.name.endsWith("/theme.js")).renderBlockingStatus`); got != "blocking" {
		t.Errorf("the page is drawn before its colours are known: %s", got)
	}
}

// At the end the page follows what comes; elsewhere it stays, and says how many messages came.
func newMessages(t *testing.T, browser context.Context) {
	h := newHome(t)
	for i := range 20 {
		h.says(t, chat.Reply{ID: fmt.Sprint("old", i), Text: strings.Repeat("Said before. ", 30)})
	}
	b := h.tab(t, browser)
	b.look(390, 800, "light")
	r := b.tells(t, "Go on").Reply()
	const top = `document.querySelector("#scroll").scrollTop`
	r.Text = strings.Repeat("A long answer.\n\n", 40)
	h.Stream(r)
	b.until(`document.querySelectorAll("#making p").length === 40`)
	if at := eval[float64](b, top); at != 0 {
		t.Errorf("at the end, the page does not follow: %v", at)
	}
	if !eval[bool](b, `document.querySelector("#down").hidden`) {
		t.Error("at the end, there is a button to the end")
	}
	eval[bool](b, `(document.querySelector("#scroll").scrollTop = -700, true)`)
	b.until(top + ` === -700`)
	eval[bool](b, `(window.seen = [...document.querySelectorAll("#making p")].find((p) => p.getBoundingClientRect().top > 200), window.top0 = seen.getBoundingClientRect().top, true)`)
	r.Text += strings.Repeat("It goes on.\n\n", 20)
	h.Stream(r)
	b.until(`document.querySelectorAll("#making p").length === 60 && !document.querySelector("#down").hidden`)
	h.says(t, r)
	h.says(t, chat.Reply{ID: "b", Text: "And another thing."})
	b.until(`document.querySelector("#entries").innerText.includes("And another thing.")`)
	b.until(`document.querySelector("#down").innerText.trim() === "2 new messages"`)
	b.shot("pill-390")
	if by := eval[float64](b, `Math.abs(seen.getBoundingClientRect().top - top0)`); by > 1 || !eval[bool](b, `seen.isConnected`) {
		t.Errorf("what is read moved by %v", by)
	}
	eval[bool](b, `(document.querySelector("#text").focus(), true)`)
	for range 6 { // backwards from the message box
		b.do(chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(8)))
		if eval[bool](b, `document.activeElement.id === "down"`) {
			break
		}
	}
	b.enter(0)
	if at := eval[float64](b, top); at != 0 { // who wants no motion is there at once
		t.Errorf("the button leads to %v", at)
	}
	b.until(`document.querySelector("#down").hidden && document.activeElement.id === "scroll"`)
	h.says(t, chat.Reply{ID: "c", Text: "One more."})
	b.until(`document.querySelector("#entries").innerText.includes("One more.")`)
	if at := eval[float64](b, top); at != 0 {
		t.Errorf("back at the end, the page does not follow: %v", at)
	}
	eval[bool](b, `(document.querySelector("#scroll").scrollTop = -700, true)`)
	b.until(top + ` === -700`)
	h.says(t, chat.Reply{ID: "d", Text: "The last."})
	b.until(`document.querySelector("#down").innerText.trim() === "New message"`)
}
