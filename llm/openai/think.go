package openai

import "strings"

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
	maxHeld    = 1 << 10 // bytes of space before the first tag
)

// think moves what an open model writes between <think> and </think> at the
// very start of its text over to the reasoning.
type think struct {
	state thinking
	held  string // text that may be part of a tag
}

type thinking int

const (
	maybe   thinking = iota // nothing but space so far, or the beginning of the tag
	within                  // between the tags
	between                 // after the second tag, before the first word
	past                    // in the text
)

// split divides the next piece of text.
func (t *think) split(s string) (text, thoughts string) {
	if s == "" || t.state == past {
		return s, ""
	}
	t.held += s
	if t.state == maybe {
		start := strings.TrimLeft(t.held, " \r\n\t")
		switch {
		case strings.HasPrefix(start, thinkOpen):
			t.state, t.held = within, start[len(thinkOpen):]
		case strings.HasPrefix(thinkOpen, start) && len(t.held) < maxHeld:
			return "", ""
		default:
			t.state = past
			return t.rest()
		}
	}
	if t.state == within {
		before, after, closed := strings.Cut(t.held, thinkClose)
		if !closed {
			n := len(t.held) - tail(t.held, thinkClose)
			thoughts, t.held = t.held[:n], t.held[n:]
			return "", thoughts
		}
		thoughts = before
		t.state, t.held = between, after
	}
	if t.held = strings.TrimLeft(t.held, " \r\n\t"); t.held != "" {
		t.state = past
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

// rest gives back what is held when no more text comes.
func (t *think) rest() (text, thoughts string) {
	held := t.held
	t.held = ""
	if t.state == within {
		return "", held
	}
	return held, ""
}
