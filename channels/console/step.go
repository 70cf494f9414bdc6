package console

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"

	"parley/channels"
	"parley/chat"
)

const maxStep = 100 // runes of the line of a step

// Step implements [channels.Stepper]: one line when a tool begins to run, and
// one when it is over.
func (c *Channel) Step(r chat.Reply, s chat.Step) {
	line, id := told(s), r.ID+"/"+s.Call+"/"+string(s.State)
	c.mu.Lock()
	news := line != "" && !slices.Contains(c.steps, id)
	if news {
		c.steps = remember(c.steps, id)
	}
	c.mu.Unlock()
	if news {
		c.tell(r.To, frame{Kind: step, ID: r.ID, Text: line})
	}
}

// told says in a line that s runs, or how it went; "" while it waits.
func told(s chat.Step) string {
	line, took := cmp.Or(s.Name, s.Tool), ""
	if !s.Ended.IsZero() {
		took = ", " + chat.Span(time.Duration(s.Took)*time.Millisecond)
	}
	switch s.State {
	case chat.Running:
		line = "🔧 " + line + " " + s.Tip
	case chat.Done:
		line = "✅ " + line + took
	case chat.Failed:
		if line = "❌ " + line + took; s.Error != "" {
			line += ": " + s.Error
		}
	default:
		return ""
	}
	return "  " + channels.Line(line, maxStep-2)
}

// step shows the line of f, below what was said before it.
func (s *screen) step(f frame) {
	if rest := s.text[len(s.shown):]; rest != "" && f.ID == s.id {
		s.shown, s.ended = s.text, true
		s.print(rest + "\n")
	}
	s.print("\x1b[2m" + clean(f.Text) + "\x1b[0m\n")
}

// goOn returns what of text, which goes on after what is shown, is not on the
// screen. A row that was ended for a step does not end twice.
func (s *screen) goOn(text string) string {
	if rest := text[len(s.shown):]; rest != "" && s.ended {
		s.ended = false
		if rest[0] == '\n' || rest[0] == ' ' {
			s.shown = text[:len(s.shown)+1]
		}
	}
	return text[len(s.shown):]
}

// plain returns what a reply says, as text that is safe to print.
func plain(f frame) string {
	lines := []string{strings.TrimRight(clean(f.Text), " \n")}
	for _, path := range f.Files {
		lines = append(lines, "[file: "+strings.ReplaceAll(clean(path), "\n", " ")+"]")
	}
	return strings.TrimPrefix(strings.Join(lines, "\n"), "\n")
}

// clean takes out of s whatever could drive a terminal or reorder what it
// shows: a model, or a file it read, has no hand on either. The clean form of
// a text that grows only grows.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\u200c', r == '\u200d': // joiners, in Persian and in emoji
			return r
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
			return -1
		}
		return r
	}, s)
}
