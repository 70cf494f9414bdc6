package main

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/png"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"parley/channels/telegram/telegramtest"
	"parley/web/webtest"
)

// TestFilm makes the moving picture of the README, docs/parley.gif, from the real program with the demo model, if
// PARLEY_FILM names the file to write (make film): one agent in a terminal, in Telegram, where a test server stands in
// for Telegram's, and on the web page. It needs a font with emoji (Debian's fonts-noto-color-emoji).
func TestFilm(t *testing.T) {
	file := os.Getenv("PARLEY_FILM")
	if file == "" {
		t.Skip("PARLEY_FILM names no file")
	}
	browser := webtest.Browser(t)
	g := newTestGateway(t, echo)
	g.model = map[string]any{"type": "demo"}
	g.more["agent"] = map[string]any{"titles": true}
	g.owners = append(g.owners, "web")
	g.start()
	base, code := g.face()
	f := &film{stage: newWindow(t, browser), page: newWindow(t, browser)}
	f.stage.does(chromedp.EmulateViewport(filmWidth, filmHeight))
	f.stage.visit("about:blank")
	f.stage.put("style", filmStyle)
	f.page.does(chromedp.EmulateViewport(filmWidth, filmHeight-captionHeight))
	f.page.visit(base + "/signin#" + code)
	f.page.until(`document.querySelector("#state")?.dataset.text === "" && document.querySelector("#send").ariaLabel === "Send"`)

	f.begin("Terminal", "parley chat: steps, answers, and what to try next")
	f.terminal(g.openTerminal(80, 23, "chat"))
	f.begin("Telegram", "the same agent, with the same memory <small>(a test server in Telegram’s place)</small>")
	f.telegram(g)
	f.begin("Web page", "a reminder comes by itself, and nothing is deleted without a yes")
	f.webPage()
	if err := f.write(file); err != nil {
		t.Fatal(err)
	}
}

// How large the film is, and of that the line at the top that says what is shown: pixels.
const (
	filmWidth     = 800
	filmHeight    = 600
	captionHeight = 48
)

// A film is a sequence of pictures.
type film struct {
	stage   *window // that shows what is in no browser
	page    *window // Parley's
	caption string  // at the top of all pictures
	frames  []frame
	scene   int
}

// A frame is a picture.
type frame struct {
	image.Image
	delay int // hundredths of a second
	scene int // those of a scene have their colours in common
}

// begin begins a scene at a place.
func (f *film) begin(place, text string) {
	f.scene++
	f.caption = `<header>`
	for _, name := range []string{"Terminal", "Telegram", "Web page"} {
		class := ""
		if name == place {
			class = "here"
		}
		f.caption += `<b class="` + class + `">` + name + `</b>`
	}
	f.caption += `<span>` + text + `</span></header>`
}

// show adds a picture of HTML that is shown for that many hundredths of a second.
func (f *film) show(html string, delay int) {
	f.stage.Helper()
	f.stage.put("main", f.caption+html)
	f.add(f.stage.picture(), delay)
}

func (f *film) add(picture image.Image, delay int) {
	f.frames = append(f.frames, frame{picture, delay, f.scene})
}

// shoot adds a picture of the page.
func (f *film) shoot(delay int) {
	f.page.Helper()
	f.stage.put("main", f.caption)
	whole := image.NewRGBA(image.Rect(0, 0, filmWidth, filmHeight))
	draw.Draw(whole, whole.Rect, f.stage.picture(), image.Point{}, draw.Src)
	draw.Draw(whole, whole.Rect.Add(image.Pt(0, captionHeight)), f.page.picture(), image.Point{}, draw.Src)
	f.add(whole, delay)
}

// put has an element of the window, which is made if need be, contain HTML.
func (w *window) put(element, html string) {
	w.Helper()
	w.eval(fmt.Sprintf(`(() => {
		const name = %q;
		const element = document.querySelector(name) ?? document.body.appendChild(document.createElement(name));
		element.innerHTML = %q;
		return "";
	})()`, element, html))
}

// picture returns what the window shows.
func (w *window) picture() image.Image {
	w.Helper()
	data, err := chromedp.Run(w.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		w.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		w.Fatal(err)
	}
	return picture
}

// pieces yields more and more of text, as it is typed.
func pieces(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		letters := []rune(text)
		for end := 3; end < len(letters)+3; end += 3 {
			if !yield(string(letters[:min(end, len(letters))])) {
				return
			}
		}
	}
}

// terminal films a talk in a terminal.
func (f *film) terminal(t *terminal) {
	const prompt = "you>"
	t.until("something to try", prompt)
	f.show(t.html(), 150)
	for _, talk := range []struct {
		say, answer string
		delay       int
	}{
		{"remember that I like green tea", "I will remember", 200},
		{"write a note: buy milk", "a file in my folder", 250},
	} {
		typed := ""
		for text := range pieces(talk.say) {
			t.press(strings.TrimPrefix(text, typed))
			typed = text
			t.until(prompt + " " + strings.TrimRight(text, " "))
			f.show(t.html(), 8)
		}
		t.press("\r")
		t.until(talk.answer, prompt)
		f.show(t.html(), talk.delay)
	}
}

// telegram films a talk in Telegram.
func (f *film) telegram(g *testGateway) {
	g.t.Helper()
	const say, press = "what do you know about me?", "Calculate 17% of 240"
	chat := func() []telegramtest.Message { return g.tg.Chat(person) }
	answered := func(text string) (last telegramtest.Message) {
		g.sees(text, func(v telegramtest.View) bool {
			said := v.Chat(person)
			last = said[len(said)-1]
			return last.FromBot() && strings.Contains(last.Text, text) && len(last.Buttons) > 0
		})
		return last
	}
	for text := range pieces(say) {
		f.show(telegramChat(chat(), text), 8)
	}
	anna := telegramtest.As(person, "Anna")
	g.tg.Say(person, say, anna)
	f.show(telegramChat(chat(), ""), 40)
	last := answered("green tea")
	f.show(telegramChat(chat(), ""), 300)
	for i, button := range slices.Concat(last.Buttons...) {
		if button.Text == press {
			g.tg.Press(person, last.ID, i, anna)
		}
	}
	answered("40.8")
	f.show(telegramChat(chat(), ""), 250)
}

// telegramChat returns a chat as the person sees it who is about to send what was typed.
func telegramChat(messages []telegramtest.Message, typed string) string {
	var b strings.Builder
	b.WriteString(`<div class="telegram"><div class="chat">`)
	for _, m := range messages {
		class, text := "mine", html.EscapeString(m.Text)
		if m.FromBot() {
			class, text = "theirs", m.Raw // HTML of the few kinds that Telegram knows
		}
		b.WriteString(`<div class="` + class + `"><p>` + text + `</p>`)
		for _, row := range m.Buttons {
			b.WriteString(`<div class="row">`)
			for _, button := range row {
				b.WriteString(`<i>` + html.EscapeString(button.Text) + `</i>`)
			}
			b.WriteString(`</div>`)
		}
		b.WriteString(`</div>`)
	}
	placeholder := ""
	if typed == "" {
		placeholder = "Message"
	}
	b.WriteString(`</div><div class="typing"><em>` + placeholder + `</em>` + html.EscapeString(typed) + `</div></div>`)
	return b.String()
}

// webPage films a talk on the web page.
func (f *film) webPage() {
	f.shoot(80)
	f.say("remind me in 4 seconds to stretch", "I will remind you", 120)
	f.awaits("⏰ stretch", 150)
	f.say("read my notes", "buy milk", 150)
	f.say("delete notes.md", "Delete notes.md?", 250)
	f.page.eval(`(() => { [...document.querySelectorAll(".ask button")].find((b) => b.innerText === "Yes").click(); return "" })()`)
	f.awaits("is gone", 350)
}

// say types text into the page, sends it and films the answer, which contains answer.
func (f *film) say(text, answer string, delay int) {
	f.page.Helper()
	typed := ""
	for text := range pieces(text) {
		f.page.does(chromedp.SendKeys(chromedp.CSS("#text"), strings.TrimPrefix(text, typed)))
		typed = text
		f.shoot(8)
	}
	f.page.does(chromedp.Click(chromedp.CSS("#send"), chromedp.NodeVisible))
	f.awaits(answer, delay)
}

// awaits films the page once its last message contains text and nothing is under way.
func (f *film) awaits(text string, delay int) {
	f.page.Helper()
	f.page.until(`document.querySelector("#entries").innerText.includes("` + text + `") &&
		(document.querySelector("#send").ariaLabel === "Send" || document.querySelector(".ask button:not(:disabled)"))`)
	f.shoot(delay)
}

// filmStyle is how the stage looks.
const filmStyle = `
	* { box-sizing: border-box; margin: 0 }
	body { width: 800px; height: 600px; overflow: hidden; background: #fff; color: #1f2328; font: 16px/1.4 sans-serif }
	header { height: 48px; padding: 0 16px; display: flex; align-items: center; gap: 4px; background: #fff; border-bottom: 1px solid #d0d7de }
	header b { font-size: 14px; padding: 3px 10px; border-radius: 12px; color: #57606a; white-space: nowrap }
	header b.here { background: #1a5fb4; color: #fff }
	header span { margin-left: auto; font-size: 14px; text-align: right; line-height: 1.25 }
	header small { display: block; font-size: 12px; color: #57606a }
	.terminal { height: 552px; padding: 14px 20px; overflow: hidden; background: #fafafa; font: 15px/22px "DejaVu Sans Mono", monospace;
		white-space: pre }
	.c1 { font-weight: bold } .c2 { color: #5f6770 } .c3 { font-style: italic } .c4 { text-decoration: underline }
	.c31 { color: #b3261e } .c32 { color: #1a7f37 } .c33 { color: #8a5a00 } .c34 { color: #1a5fb4 } .c35 { color: #8250df } .c36 { color: #0b6b80 }
	.cursor { background: #1f2328; color: #fff }
	.telegram { height: 552px; display: flex; flex-direction: column; background: #dfe8ef }
	.chat { flex: 1; min-height: 0; overflow: hidden; padding: 12px 90px; display: flex; flex-direction: column; justify-content: flex-end; gap: 8px }
	.chat > div { max-width: 78%; flex: none }
	.chat p { padding: 8px 14px; border-radius: 14px; white-space: pre-wrap; background: #fff }
	.mine { align-self: flex-end } .mine p { background: #d5f5c5 }
	.theirs { align-self: flex-start }
	.row { display: flex; gap: 4px; margin-top: 4px }
	.row i { flex: 1; padding: 5px 10px; border-radius: 9px; background: #fff; color: #1a5fb4; font-style: normal; font-size: 14px; text-align: center }
	.telegram code, .telegram pre { font-family: "DejaVu Sans Mono", monospace; font-size: 14px; color: #0b6b80 }
	.telegram blockquote { border-left: 3px solid #1a5fb4; padding-left: 8px; font-size: 14px; color: #414a53 }
	.typing { height: 50px; padding: 0 24px; display: flex; align-items: center; background: #fff; white-space: pre }
	.typing em { color: #6b747d; font-style: normal }
`

// write writes the film as a GIF that shows of each picture what has changed.
func (f *film) write(file string) error {
	out := &gif.GIF{}
	for rest := f.frames; len(rest) > 0; {
		end := slices.IndexFunc(rest, func(other frame) bool { return other.scene != rest[0].scene })
		if end < 0 {
			end = len(rest)
		}
		addScene(out, rest[:end])
		rest = rest[end:]
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, out); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}

// addScene adds frames that have their colours in common.
func addScene(out *gif.GIF, frames []frame) {
	palette := commonColours(frames)
	nearest := map[color.RGBA]uint8{}
	index := func(c color.Color) uint8 {
		rgba := color.RGBAModel.Convert(c).(color.RGBA)
		n, known := nearest[rgba]
		if !known {
			n = uint8(1 + palette[1:].Index(rgba))
			nearest[rgba] = n
		}
		return n
	}
	var before *image.Paletted
	for _, f := range frames {
		whole := image.NewPaletted(f.Bounds(), palette)
		for y := range whole.Rect.Dy() {
			for x := range whole.Rect.Dx() {
				whole.SetColorIndex(x, y, index(f.At(x, y)))
			}
		}
		out.Image = append(out.Image, changed(before, whole))
		out.Delay = append(out.Delay, f.delay)
		out.Disposal = append(out.Disposal, gif.DisposalNone)
		before = whole
	}
}

// changed returns the part of frame that differs from before; what does not is transparent.
func changed(before, frame *image.Paletted) *image.Paletted {
	if before == nil {
		return frame
	}
	var area image.Rectangle
	for y := range frame.Rect.Dy() {
		for x := range frame.Rect.Dx() {
			if before.ColorIndexAt(x, y) != frame.ColorIndexAt(x, y) {
				area = area.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	if area.Empty() {
		area = image.Rect(0, 0, 1, 1) // a picture has at least one pixel
	}
	part := image.NewPaletted(area, frame.Palette)
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			if n := frame.ColorIndexAt(x, y); n != before.ColorIndexAt(x, y) {
				part.SetColorIndex(x, y, n)
			}
		}
	}
	return part
}

// commonColours returns the 255 colours that frames have most of, behind a transparent one.
func commonColours(frames []frame) color.Palette {
	count := map[color.RGBA]int{}
	for _, frame := range frames {
		for y := range frame.Bounds().Dy() {
			for x := range frame.Bounds().Dx() {
				count[color.RGBAModel.Convert(frame.At(x, y)).(color.RGBA)]++
			}
		}
	}
	all := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	palette := color.Palette{color.RGBA{}}
	for _, c := range all[:min(255, len(all))] {
		palette = append(palette, c)
	}
	return palette
}
