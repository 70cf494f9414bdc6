package openai

import "strings"

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
	blank      = " \r\n\t"
)

// think moves what an open model writes between <think> and </think> at the
// very start of its text over to the reasoning, and drops the space before the
// first word.
type think struct {
	within bool   // between the tags
	past   bool   // in the text
	held   string // text that may be part of a tag
}

// split divides the next piece of text. With the last one nothing is held back.
func (t *think) split(s string, last bool) (text, thoughts string) {
	t.held += s
	if !t.within && !t.past {
		t.held = strings.TrimLeft(t.held, blank)
		if rest, ok := strings.CutPrefix(t.held, thinkOpen); ok {
			t.within, t.held = true, rest
		} else if !last && strings.HasPrefix(thinkOpen, t.held) {
			return "", ""
		}
		t.past = !t.within
	}
	if t.within {
		before, after, closed := strings.Cut(t.held, thinkClose)
		if !closed {
			n := len(t.held)
			if !last {
				n -= tail(t.held, thinkClose)
			}
			thoughts, t.held = t.held[:n], t.held[n:]
			return "", thoughts
		}
		t.within = false
		thoughts = before
		t.held = strings.TrimLeft(after, blank)
		t.past = t.held != "" // or else a second pair of tags may follow
	}
	text, t.held = t.held, ""
	return text, thoughts
}

// tail is how many bytes at the end of s may begin tag.
func tail(s, tag string) int {
	for n := min(len(s), len(tag)-1); n > 0; n-- {
		if strings.HasPrefix(tag, s[len(s)-n:]) {
			return n
		}
	}
	return 0
}
