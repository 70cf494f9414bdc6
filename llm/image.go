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

// Limits of an Image: those of the strictest provider.
const (
	MaxImage = 5 << 20 // bytes
	MaxSide  = 8000    // pixels, of its width and of its height
)

// NewImage returns the picture in data, or an error if models do not accept it. It
// decodes nothing but the picture's size, so that a small file of a huge picture
// does no harm.
func NewImage(data []byte) (Image, error) {
	if len(data) > MaxImage {
		return Image{}, fmt.Errorf("picture of %d bytes: more than %d", len(data), MaxImage)
	}
	kind := http.DetectContentType(data)
	readConfig, ok := imageConfigs[kind]
	if !ok {
		return Image{}, fmt.Errorf("picture: not a PNG, JPEG, GIF or WebP, but %s", kind)
	}
	size, err := readConfig(bytes.NewReader(data))
	if err != nil {
		return Image{}, fmt.Errorf("picture: %w", err)
	}
	if min(size.Width, size.Height) < 1 || max(size.Width, size.Height) > MaxSide {
		return Image{}, fmt.Errorf("picture of %d x %d pixels: more than %d a side, or none",
			size.Width, size.Height, MaxSide)
	}
	return Image{Type: kind, Data: data}, nil
}

// imageConfigs read the sizes of pictures, by type.
var imageConfigs = map[string]func(io.Reader) (image.Config, error){
	"image/png":  png.DecodeConfig,
	"image/jpeg": jpeg.DecodeConfig,
	"image/gif":  gif.DecodeConfig,
	"image/webp": decodeWebPConfig,
}

const webPHeader = 30 // bytes

// decodeWebPConfig reads the size of a WebP, which the standard library cannot. Its
// first chunk says whether it is lossy, lossless or extended.
func decodeWebPConfig(r io.Reader) (size image.Config, err error) {
	b := make([]byte, webPHeader)
	if _, err := io.ReadFull(r, b); err != nil {
		return size, err
	}
	le := binary.LittleEndian
	switch string(b[12:16]) {
	case "VP8 ":
		size.Width = int(le.Uint16(b[26:]) & 0x3fff)
		size.Height = int(le.Uint16(b[28:]) & 0x3fff)
	case "VP8L":
		bits := le.Uint32(b[21:])
		size.Width = int(bits&0x3fff) + 1
		size.Height = int(bits>>14&0x3fff) + 1
	case "VP8X":
		size.Width = int(le.Uint32(b[23:])>>8) + 1
		size.Height = int(le.Uint32(b[26:])>>8) + 1
	default:
		return size, errors.New("unknown kind of WebP")
	}
	return size, nil
}
