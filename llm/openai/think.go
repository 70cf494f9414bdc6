package openai

import "strings"

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
	whitespace = " \r\n\t"
)

// A thinkSplitter separates the reasoning that open models write between <think>
// and </think> at the very beginning of their text. It also drops the white space
// before the first word.
type thinkSplitter struct {
	inTags bool   // between the tags
	inText bool   // after them, or there are none
	held   string // may be part of a tag
}

// split divides the next piece of the text. After the last piece nothing is held back.
func (t *thinkSplitter) split(s string, last bool) (text, reasoning string) {
	t.held += s
	if !t.inTags && !t.inText {
		t.held = strings.TrimLeft(t.held, whitespace)
		if rest, ok := strings.CutPrefix(t.held, thinkOpen); ok {
			t.inTags = true
			t.held = rest
		} else if !last && strings.HasPrefix(thinkOpen, t.held) {
			return "", ""
		}
		t.inText = !t.inTags
	}
	if t.inTags {
		before, after, closed := strings.Cut(t.held, thinkClose)
		if !closed {
			return "", t.takeReasoning(last)
		}
		t.inTags = false
		reasoning = before
		t.held = strings.TrimLeft(after, whitespace)
		t.inText = t.held != "" // otherwise a second pair of tags may follow
	}
	text = t.held
	t.held = ""
	return text, reasoning
}

// takeReasoning returns what is held, except what may be part of the closing tag.
func (t *thinkSplitter) takeReasoning(last bool) string {
	n := len(t.held)
	if !last {
		n -= partialTagLen(t.held, thinkClose)
	}
	reasoning := t.held[:n]
	t.held = t.held[n:]
	return reasoning
}

// partialTagLen returns how many bytes at the end of s may begin tag.
func partialTagLen(s, tag string) int {
	for n := min(len(s), len(tag)-1); n > 0; n-- {
		if strings.HasPrefix(tag, s[len(s)-n:]) {
			return n
		}
	}
	return 0
}
