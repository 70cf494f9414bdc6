package console

import (
	"bytes"
	"strings"
)

// Terminals put these around what is pasted, once pasteOn asks for it.
const (
	pasteOn    = "\x1b[?2004h"
	pasteOff   = "\x1b[?2004l"
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// What stands in the edited line, which is only one, for what was pasted.
const (
	lineBreakSign = "⏎"
	tabSign       = "⇥"
)

// A pasteFilter takes the marks around pasted text out of what is typed, and the line
// breaks and tabs out of the text: it is one message, whatever is in it. All other
// control characters in it are dropped, so that no text can press a key.
type pasteFilter struct {
	inside bool   // between the marks
	aborts int    // reads inside that were Ctrl-C alone, one after the other
	rest   []byte // the beginning of a mark, or a line break that may have a second byte
}

// translate returns what the editor is to read for the next bytes of the terminal.
func (p *pasteFilter) translate(typed []byte) []byte {
	if p.isAborted(typed) {
		*p = pasteFilter{}
		return typed
	}
	in := append(p.rest, typed...)
	p.rest = nil
	var out bytes.Buffer
	for len(in) > 0 {
		mark := pasteBegin
		if p.inside {
			mark = pasteEnd
		}
		before, after, isMarked := bytes.Cut(in, []byte(mark))
		if !isMarked {
			keep := p.cutMark(before, mark)
			if p.inside && keep == len(before) && bytes.HasSuffix(before, []byte("\r")) {
				keep--
			}
			p.rest = bytes.Clone(before[keep:])
			before = before[:keep]
		}
		p.copyText(&out, before)
		if isMarked {
			p.inside = !p.inside
		}
		in = after
	}
	return out.Bytes()
}

// isAborted reports whether a person presses Ctrl-C for the second time in what looks like
// pasted text: the mark of its end got lost. One alone may be pasted.
func (p *pasteFilter) isAborted(typed []byte) bool {
	if !p.inside || string(typed) != ctrlC {
		p.aborts = 0
		return false
	}
	p.aborts++
	return p.aborts == 2
}

// cutMark returns where the beginning of mark at the end of text starts. Alone and
// outside of pasted text, less than three bytes of it are a key.
func (p *pasteFilter) cutMark(text []byte, mark string) int {
	for n := len(mark) - 1; n > 0; n-- {
		isKey := !p.inside && n < 3 && n == len(text)
		if bytes.HasSuffix(text, []byte(mark[:n])) && !isKey {
			return len(text) - n
		}
	}
	return len(text)
}

// copyText writes text as the editor is to read it.
func (p *pasteFilter) copyText(out *bytes.Buffer, text []byte) {
	if !p.inside {
		out.Write(text)
		return
	}
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	for _, b := range text {
		switch {
		case b == '\r', b == '\n':
			out.WriteString(lineBreakSign)
		case b == '\t':
			out.WriteString(tabSign)
		case b >= ' ' && b != 0x7f:
			out.WriteByte(b)
		}
	}
}

// unfold returns an edited line as the message that it is.
func unfold(line string) string {
	line = strings.NewReplacer(lineBreakSign, "\n", tabSign, "\t").Replace(line)
	return strings.TrimRight(line, "\n")
}
