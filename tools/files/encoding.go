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

// codecs maps names to encodings, except UTF-16, which has two byte orders.
var codecs = map[string]encoding.Encoding{
	"": encoding.Nop, "utf8": encoding.Nop,
	"gbk": simplifiedchinese.GBK, "gb2312": simplifiedchinese.GBK, "gb18030": simplifiedchinese.GB18030,
	"latin1": charmap.ISO8859_1, "iso88591": charmap.ISO8859_1,
}

// codec returns the encoding with this name, in any of its spellings. If text is to
// be appended to a file, there is the content of that file.
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

// encodeText encodes text that is to be appended to there.
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

// decodeText decodes data, the content of file.
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

// A legacy is an encoding other than UTF-8, with its name for people.
type legacy struct {
	encoding encoding.Encoding // nil: the file is UTF-8, or not text
	name     string
}

// legacyOf guesses from the beginning of a file whether its text is in another
// encoding than UTF-8: UTF-16 has a byte order mark or zero bytes, GBK has pairs of
// high bytes, and all other text counts as Windows-1252, a superset of Latin-1. kind
// is what http.DetectContentType returns for head: it tells text from binary files.
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

// zeros counts the zero bytes at odd and at even offsets.
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

// inPairs reports whether the bytes beyond ASCII come in pairs, as in GBK. In European
// text most of them stand alone.
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
