package files

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
)

// codecs are the encodings by name, but for UTF-16, which has two forms.
var codecs = map[string]encoding.Encoding{
	"": encoding.Nop, "utf8": encoding.Nop,
	"gbk": simplifiedchinese.GBK, "gb2312": simplifiedchinese.GBK, "gb18030": simplifiedchinese.GB18030,
	"latin1": charmap.ISO8859_1, "iso88591": charmap.ISO8859_1,
}

// codec returns the encoding of a name, in any of its spellings, for what goes
// behind what is there.
func codec(name string, there []byte) (encoding.Encoding, error) {
	plain := strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name))
	e := codecs[plain]
	switch {
	case plain == "utf16" && len(there) == 0:
		e = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	case plain == "utf16" && bytes.HasPrefix(there, []byte("\xfe\xff")):
		e = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	case plain == "utf16":
		e = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case e == nil:
		return nil, fmt.Errorf("unknown encoding %s: use utf-8, gbk, gb18030, latin-1 or utf-16", name)
	}
	return e, nil
}

// encodeText returns text as it goes behind what is there.
func encodeText(text, name string, there []byte) ([]byte, error) {
	e, err := codec(name, there)
	if err != nil {
		return nil, err
	}
	data, err := e.NewEncoder().Bytes([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	return data, nil
}

// decodeText returns the text of a file.
func decodeText(file string, data []byte, name string) (string, error) {
	e, err := codec(name, nil)
	if err != nil {
		return "", err
	}
	text, err := e.NewDecoder().Bytes(data)
	if err != nil || !utf8.Valid(text) {
		return "", fmt.Errorf("%s is not %s: try another encoding", file, cmp.Or(name, "utf-8"))
	}
	return string(text), nil
}

// A legacy is a text that is not UTF-8: how to decode it, and how people call that.
type legacy struct {
	encoding encoding.Encoding // nil: it is UTF-8, or no text
	name     string
}

// legacyOf guesses from the beginning of a file which text it is that is not
// UTF-8: UTF-16 by its mark or its zeros, GBK by its pairs of bytes, and else
// Windows-1252, which has all of Latin-1. Whether it is text at all the kind,
// that of http.DetectContentType, says.
func legacyOf(head []byte, kind string) legacy {
	odd, even := zeros(head)
	half := max(len(head)/2, 2)
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe")), odd > half*3/4 && even == 0:
		return legacy{unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "UTF-16"}
	case bytes.HasPrefix(head, []byte("\xfe\xff")), even > half*3/4 && odd == 0:
		return legacy{unicode.UTF16(unicode.BigEndian, unicode.UseBOM), "UTF-16"}
	case odd+even > 0, !strings.HasPrefix(kind, "text/"), utf8.Valid(whole(head)):
		return legacy{}
	case inPairs(head):
		return legacy{simplifiedchinese.GB18030, "GBK"}
	}
	return legacy{charmap.Windows1252, "Windows-1252 (Latin-1)"}
}

// zeros counts the zero bytes at odd and at even places.
func zeros(data []byte) (odd, even int) {
	for i, b := range data {
		switch {
		case b != 0:
		case i%2 == 1:
			odd++
		default:
			even++
		}
	}
	return odd, even
}

// inPairs reports whether the bytes beyond ASCII come in twos as those of
// Chinese characters do; in European texts most stand alone.
func inPairs(head []byte) bool {
	pairs := 0
	for i := 0; i < len(head); i++ {
		if head[i] < utf8.RuneSelf {
			continue
		}
		if i+1 == len(head) {
			break
		}
		if head[i] < 0xa1 || head[i+1] < 0xa1 || head[i] == 0xff || head[i+1] == 0xff {
			return false
		}
		pairs++
		i++
	}
	return pairs > 0
}
