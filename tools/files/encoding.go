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
