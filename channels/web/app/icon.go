package app

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
)

// An icon is the picture of the app: a speech bubble with two lines. It is drawn when it is asked for: a browser asks
// for each of them once.
type icon struct {
	size int
	full bool // it fills the square, because systems cut their own shape out of it
	mono bool // only its shape counts: the mark of a notification in a status bar
}

var (
	ink   = color.NRGBA{0x23, 0x61, 0x7a, 0xff}
	paper = color.NRGBA{0xfb, 0xfa, 0xf8, 0xff}
)

const samples = 4 // of a pixel, each way

// png returns the icon as a file.
func (i icon) png() []byte {
	picture := image.NewNRGBA(image.Rect(0, 0, i.size, i.size))
	for y := range i.size {
		for x := range i.size {
			picture.SetNRGBA(x, y, i.pixel(x, y))
		}
	}
	var b bytes.Buffer
	_ = png.Encode(&b, picture) // memory takes it, and it is not empty
	return b.Bytes()
}

// pixel returns the colour of a pixel: the mean of samples.
func (i icon) pixel(x, y int) color.NRGBA {
	var sum [3]float64
	var alpha float64
	for n := range samples * samples {
		u := (float64(x) + (float64(n%samples)+0.5)/samples) / float64(i.size)
		v := (float64(y) + (float64(n/samples)+0.5)/samples) / float64(i.size)
		c := i.at(u, v)
		a := float64(c.A) / 255
		alpha += a
		for k, part := range []uint8{c.R, c.G, c.B} {
			sum[k] += a * float64(part)
		}
	}
	if alpha == 0 {
		return color.NRGBA{}
	}
	part := func(k int) uint8 { return uint8(math.Round(sum[k] / alpha)) }
	return color.NRGBA{part(0), part(1), part(2), uint8(math.Round(255 * alpha / (samples * samples)))}
}

// at returns the colour at a place, whose coordinates are from 0 to 1.
func (i icon) at(u, v float64) color.NRGBA {
	bubble, ground := ink, color.NRGBA{}
	lines := paper
	scale := 32.0 // the drawing is 32 wide, as in the SVG
	switch {
	case i.mono:
		bubble, lines = color.NRGBA{255, 255, 255, 255}, color.NRGBA{}
	case i.full: // the bubble lies in the circle that systems leave of a maskable icon
		bubble, lines = paper, ink
		ground = ink
		scale = 48
	}
	x, y := 16+(u-0.5)*scale, 16+(v-0.5)*scale
	switch {
	case onLine(x, y, 10.5, 21.5, 13), onLine(x, y, 10.5, 17.5, 18):
		return lines
	case inBubble(x, y):
		return bubble
	}
	return ground
}

// onLine reports whether a place is on the line with round ends from left to right.
func onLine(x, y, left, right, at float64) bool {
	return math.Hypot(x-min(max(x, left), right), y-at) <= 1.25
}

// inBubble reports whether a place is in the ellipse of the bubble, or in its tail.
func inBubble(x, y float64) bool {
	if math.Pow((x-16)/13, 2)+math.Pow((y-14.95)/10.95, 2) <= 1 {
		return true
	}
	corners := [3][2]float64{{7.3, 22.5}, {7, 28}, {13.5, 25}}
	for n, a := range corners {
		b := corners[(n+1)%3]
		if (b[0]-a[0])*(y-a[1])-(b[1]-a[1])*(x-a[0]) > 0 {
			return false
		}
	}
	return true
}
