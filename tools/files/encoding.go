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

// codec returns the encoding of a name, in any of its spellings, for
// what goes behind what is there.
func codec(name string, there []byte) (encoding.Encoding, error) {
	switch strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name)) {
	case "", "utf8":
		return encoding.Nop, nil
	case "gbk", "gb2312":
		return simplifiedchinese.GBK, nil
	case "gb18030":
		return simplifiedchinese.GB18030, nil
	case "latin1", "iso88591":
		return charmap.ISO8859_1, nil
	case "utf16":
		end, mark := unicode.LittleEndian, unicode.UseBOM
		if bytes.HasPrefix(there, []byte("\xfe\xff")) {
			end = unicode.BigEndian
		}
		if len(there) > 0 {
			mark = unicode.IgnoreBOM
		}
		return unicode.UTF16(end, mark), nil
	}
	return nil, fmt.Errorf("unknown encoding %s: use utf-8, gbk, gb18030, latin-1 or utf-16", name)
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
