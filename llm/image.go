package llm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
)

// Limits on an Image, which the strictest of the providers set.
const (
	MaxImage = 5 << 20 // bytes
	MaxSide  = 8000    // pixels of its width and of its height
)

// NewImage returns the picture that data holds. It reads no further than the
// picture's size, so that a small file of a huge picture does no harm; what
// models cannot be shown is an error.
func NewImage(data []byte) (Image, error) {
	if len(data) > MaxImage {
		return Image{}, fmt.Errorf("picture of %d bytes: more than %d", len(data), MaxImage)
	}
	kind := http.DetectContentType(data)
	read, ok := sizes[kind]
	if !ok {
		return Image{}, fmt.Errorf("picture: not a PNG, JPEG, GIF or WebP, but %s", kind)
	}
	size, err := read(bytes.NewReader(data))
	switch {
	case err != nil:
		return Image{}, fmt.Errorf("picture: %w", err)
	case size.Width < 1 || size.Height < 1 || size.Width > MaxSide || size.Height > MaxSide:
		return Image{}, fmt.Errorf("picture of %d x %d pixels: more than %d a side, or none", size.Width, size.Height,
			MaxSide)
	}
	return Image{Type: kind, Data: data}, nil
}

var sizes = map[string]func(io.Reader) (image.Config, error){
	"image/png": png.DecodeConfig, "image/jpeg": jpeg.DecodeConfig, "image/gif": gif.DecodeConfig,
	"image/webp": webpConfig,
}

// webpConfig reads the size of a WebP, which the standard library cannot:
// lossy, lossless or extended, as its first chunk says.
func webpConfig(r io.Reader) (size image.Config, err error) {
	b := make([]byte, 30)
	if _, err := io.ReadFull(r, b); err != nil {
		return size, err
	}
	le := binary.LittleEndian
	switch string(b[12:16]) {
	case "VP8 ":
		size.Width, size.Height = int(le.Uint16(b[26:])&0x3fff), int(le.Uint16(b[28:])&0x3fff)
	case "VP8L":
		bits := le.Uint32(b[21:])
		size.Width, size.Height = int(bits&0x3fff)+1, int(bits>>14&0x3fff)+1
	case "VP8X":
		size.Width, size.Height = int(le.Uint32(b[23:])>>8)+1, int(le.Uint32(b[26:])>>8)+1
	default:
		err = errors.New("unknown kind of WebP")
	}
	return size, err
}
