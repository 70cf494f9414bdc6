package llm_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"parley/llm"
)

// pngOf returns a PNG that claims these dimensions, whatever it contains.
func pngOf(t *testing.T, width, height uint32) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	data := b.Bytes()
	if width != 3 || height != 2 {
		binary.BigEndian.PutUint32(data[16:], width)
		binary.BigEndian.PutUint32(data[20:], height)
		binary.BigEndian.PutUint32(data[29:], crc32.ChecksumIEEE(data[12:29]))
	}
	return data
}

func webp(chunk string, rest ...byte) []byte {
	b := append([]byte("RIFF\x20\x00\x00\x00WEBP"+chunk+"\x14\x00\x00\x00"), rest...)
	return append(b, make([]byte, 64)...)
}

// TestNewImage checks that only pictures of types and sizes that providers accept
// pass, and that none is decoded: a decompression bomb is a small file.
func TestNewImage(t *testing.T) {
	var jpg, anim bytes.Buffer
	if err := errors.Join(jpeg.Encode(&jpg, image.NewGray(image.Rect(0, 0, 4, 4)), nil),
		gif.Encode(&anim, image.NewPaletted(image.Rect(0, 0, 4, 4), palette.Plan9), nil)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data []byte
		want string // the type, or part of the error
	}{
		"png":            {pngOf(t, 3, 2), "image/png"},
		"jpeg":           {jpg.Bytes(), "image/jpeg"},
		"gif":            {anim.Bytes(), "image/gif"},
		"webp lossy":     {webp("VP8 ", 0, 0, 0, 0x9d, 0x01, 0x2a, 0x40, 0x01, 0xf0, 0x00), "image/webp"},
		"webp lossless":  {webp("VP8L", 0x2f, 0x3f, 0xc1, 0x1d, 0x00), "image/webp"},
		"webp extended":  {webp("VP8X", 0, 0, 0, 0, 0x3f, 0x01, 0, 0xef, 0, 0), "image/webp"},
		"webp too wide":  {webp("VP8X", 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xef, 0, 0), "16777216 x 240 pixels"},
		"webp no size":   {webp("VP8 "), "0 x 0 pixels"},
		"webp of else":   {webp("VP8Z"), "unknown kind"},
		"webp cut":       {[]byte("RIFF\x20\x00\x00\x00WEBPVP8 \x14"), "EOF"},
		"bomb":           {pngOf(t, 50_000, 50_000), "50000 x 50000 pixels"},
		"as wide as may": {pngOf(t, 8000, 8000), "image/png"},
		"too high":       {pngOf(t, 1, 8001), "1 x 8001 pixels"},
		"too many bytes": {append(pngOf(t, 3, 2), make([]byte, llm.MaxImage)...), "more than 5242880"},
		"a page":         {[]byte("<html><script>"), "text/html"},
		"svg":            {[]byte("<svg xmlns='http://www.w3.org/2000/svg'/>"), "not a PNG"},
		"a zip":          {[]byte("PK\x03\x04"), "application/zip"},
		"only the head":  {pngOf(t, 3, 2)[:12], "picture:"},
		"nothing":        {nil, "not a PNG"},
	} {
		got, err := llm.NewImage(c.data)
		if err == nil && got.Type != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v; want %s", name, got.Type, err, c.want)
		}
	}
}

func FuzzNewImage(f *testing.F) {
	f.Add(webp("VP8L", 0x2f))
	f.Add([]byte("\x89PNG\r\n\x1a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, err := llm.NewImage(data); err == nil && (p.Type == "" || len(p.Data) != len(data)) {
			t.Errorf("%+v", p)
		}
	})
}
