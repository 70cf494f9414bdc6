package files

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"

	"parley/tools"
)

// A coding is a way to write text as bytes.
type coding struct{ encoding.Encoding }

var encodings = map[string]coding{
	"":     {},
	"utf8": {},
	"gbk":  {simplifiedchinese.GBK}, "gb18030": {simplifiedchinese.GB18030}, "gb2312": {simplifiedchinese.GBK},
	"latin1": {charmap.ISO8859_1}, "iso88591": {charmap.ISO8859_1},
	"utf16": {unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)},
}

// plain returns the name of an encoding as encodings has it.
func plain(name string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
}

var errCoding = errors.New("not of this encoding")

func (e coding) decode(data []byte) (string, error) {
	if e.Encoding != nil {
		text, err := e.NewDecoder().Bytes(data)
		return string(text), err
	}
	if !utf8.Valid(data) {
		return "", errCoding
	}
	return string(data), nil
}

// encode returns text as it goes behind what there is.
func (e coding) encode(text string, behind []byte) ([]byte, error) {
	if e.Encoding == nil {
		return []byte(text), nil
	}
	if e == encodings["utf16"] && len(behind) > 0 {
		e.Encoding = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
		if bytes.HasPrefix(behind, []byte("\xfe\xff")) {
			e.Encoding = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
		}
	}
	return e.NewEncoder().Bytes([]byte(text))
}

func noEncoding(name string) *tools.Result {
	return fail("Unknown encoding: %s. Use utf-8, gbk, gb18030, latin-1 or utf-16.", name)
}
