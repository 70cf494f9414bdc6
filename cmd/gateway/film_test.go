package main

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"

	"parley/web/webtest"
)

// TestFilm makes the moving picture of the README, docs/parley.gif, from the real program with the demo model, if
// PARLEY_FILM names the file to write (make film). It is at most 1 MB.
func TestFilm(t *testing.T) {
	file := os.Getenv("PARLEY_FILM")
	if file == "" {
		t.Skip("PARLEY_FILM names no file")
	}
	browser := webtest.Browser(t)
	g := newTestGateway(t, echo)
	g.model = map[string]any{"type": "demo"}
	g.owners = append(g.owners, "web")
	g.start()
	base, code := g.face()
	w := newWindow(t, browser)
	w.does(chromedp.EmulateViewport(860, 560))
	w.visit(base + "/signin#" + code)
	w.until(`document.querySelector("#state")?.dataset.text === "" && document.querySelector("#send").ariaLabel === "Send"`)

	f := &film{window: w}
	f.shoot(100)
	f.say("remind me in 5 seconds to stretch", "I will remind you", 200)
	f.awaits("⏰ stretch", 200)
	f.say("write a note: buy milk", "notes.md", 200)
	f.say("delete notes.md", "Delete notes.md?", 250)
	w.eval(`(() => { [...document.querySelectorAll(".ask button")].find((b) => b.innerText === "Yes").click(); return "" })()`)
	f.awaits("is gone", 400)
	if err := f.write(file); err != nil {
		t.Fatal(err)
	}
}

// A film is a sequence of pictures of a window.
type film struct {
	window *window
	frames []image.Image
	delays []int // hundredths of a second
}

// shoot adds a picture that is shown for that many hundredths of a second.
func (f *film) shoot(delay int) {
	f.window.Helper()
	data, err := chromedp.Run(f.window.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		f.window.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		f.window.Fatal(err)
	}
	f.frames, f.delays = append(f.frames, picture), append(f.delays, delay)
}

// say types text, sends it and films the answer, which contains answer.
func (f *film) say(text, answer string, delay int) {
	f.window.Helper()
	for begin := 0; begin < len(text); begin += 3 {
		f.window.does(chromedp.SendKeys(chromedp.CSS("#text"), text[begin:min(begin+3, len(text))]))
		f.shoot(10)
	}
	f.window.does(chromedp.Click(chromedp.CSS("#send"), chromedp.NodeVisible))
	f.awaits(answer, delay)
}

// awaits films the page once its last message contains text and nothing is under way.
func (f *film) awaits(text string, delay int) {
	f.window.Helper()
	f.window.until(`document.querySelector("#entries").innerText.includes("` + text + `") &&
		(document.querySelector("#send").ariaLabel === "Send" || document.querySelector(".ask button:not(:disabled)"))`)
	f.shoot(delay)
}

// write writes the film as a GIF that shows of each picture what has changed.
func (f *film) write(file string) error {
	palette := commonColours(f.frames)
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
	out := &gif.GIF{}
	var before *image.Paletted
	for i, frame := range f.frames {
		whole := image.NewPaletted(frame.Bounds(), palette)
		for y := range whole.Rect.Dy() {
			for x := range whole.Rect.Dx() {
				whole.SetColorIndex(x, y, index(frame.At(x, y)))
			}
		}
		out.Image = append(out.Image, changed(before, whole))
		out.Delay = append(out.Delay, f.delays[i])
		out.Disposal = append(out.Disposal, gif.DisposalNone)
		before = whole
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, out); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
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
func commonColours(frames []image.Image) color.Palette {
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
