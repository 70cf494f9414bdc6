package tools

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"parley/lazyregexp"
)

// Lengths above which a line of a saved result is broken, in bytes.
const (
	maxShortLine = 400 // of JSON
	maxTextLine  = 1000
)

// layOut returns a result as it is saved in a file, which read_file and grep read
// line by line. JSON is indented, and a long string in it, which would still be
// one line, is written between two """ with its own line breaks.
func layOut(text string) string {
	var indented bytes.Buffer
	if first := strings.TrimSpace(text); first == "" || first[0] != '{' && first[0] != '[' ||
		json.Indent(&indented, []byte(first), "", "  ") != nil {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(indented.String()) {
		part := longString.FindStringSubmatch(line)
		var words string
		if len(line) <= maxShortLine || part == nil || json.Unmarshal([]byte(part[2]), &words) != nil {
			out.WriteString(line)
			continue
		}
		out.WriteString(part[1] + `"""` + "\n")
		for long := range strings.Lines(words) {
			out.WriteString(breakLine(long))
		}
		out.WriteString("\n" + `"""` + part[3])
	}
	return out.String()
}

// longString matches a line of indented JSON that ends with a string.
var longString = lazyregexp.New(`(?s)^( *(?:"(?:[^"\\]|\\.)*": )?)(".*")(,?\n?)$`)

// breakLine breaks a line that is too long, between words if possible.
func breakLine(line string) string {
	var out strings.Builder
	for len(line) > maxTextLine {
		end := maxTextLine
		for !utf8.RuneStart(line[end]) {
			end--
		}
		piece := line[:end]
		if at := strings.LastIndexByte(piece, ' '); at > 0 {
			piece = piece[:at+1]
		}
		out.WriteString(piece + "\n")
		line = line[len(piece):]
	}
	return out.String() + line
}
