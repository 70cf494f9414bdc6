package console

import (
	"io"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"parley/channels/markdown"
)

const (
	eraseRow      = "\r\x1b[K"
	eraseRowAbove = "\x1b[A\x1b[K"
)

// A screen prints replies above the row in which the person types. It writes
// whole rows only, and has the prompt redrawn after each write.
type screen struct {
	out         io.Writer
	colour      bool   // replies have attributes and colours
	replyID     string // reply whose draft is being shown
	draft       string // its text so far
	shown       string // the beginning of draft that is on the screen
	rowEnded    bool   // a line break was added after shown, to make room for a step
	typingShown bool   // the row above the prompt is the typing sign
}

// print prints text, which ends in a newline.
func (s *screen) print(text string) {
	erase := eraseRow
	if s.typingShown {
		erase += eraseRowAbove
		s.typingShown = false
	}
	_, _ = io.WriteString(s.out, erase+text)
	_ = syscall.Kill(os.Getpid(), syscall.SIGWINCH) // liner redraws its row, as after a change of the window's size
}

// showTyping shows that the agent is busy.
func (s *screen) showTyping() {
	if !s.typingShown {
		s.print("…\n")
		s.typingShown = true
	}
}

// noteEnter records that the person pressed Enter: the row above the prompt is
// now what they typed.
func (s *screen) noteEnter() { s.typingShown = false }

// showDraft prints what f adds to the draft of a reply: blocks that are finished, and of
// the one that is not the complete rows, as long as it has no marks whose meaning may
// depend on what follows.
func (s *screen) showDraft(f frame) {
	text := clean(f.Text)
	if f.ID != s.replyID || !strings.HasPrefix(text, s.shown) {
		s.replyID = f.ID
		s.shown = ""
		s.rowEnded = false
	}
	s.draft = text
	rest := s.takeUnshown(text)
	n := markdown.Finished(rest)
	blocks := strings.TrimRight(rest[:n], "\n")
	out := s.render(blocks) + rest[len(blocks):min(n, len(blocks)+2)]
	if !markdown.HasMarks(rest[n:]) {
		more, rows := completeRows(rest[n:], width(unix.Stdout))
		n += more
		out += rows
	}
	if n > 0 {
		s.shown = text[:len(s.shown)+n]
		s.print(out)
	}
}

// render returns text, which goes on where s.shown ends, as the terminal shows it.
func (s *screen) render(text string) string {
	inLine := s.shown != "" && !strings.HasSuffix(s.shown, "\n")
	if inLine && text != "" && strings.ContainsRune("-+#>", rune(text[0])) { // it does not begin a line
		text = `\` + text
	}
	words := strings.TrimLeft(text, "\n")
	return text[:len(text)-len(words)] + markdown.Terminal(words, width(unix.Stdout), s.colour)
}

// showReply prints what the draft of a reply has not yet shown.
func (s *screen) showReply(f frame) {
	text := strings.TrimRight(clean(f.Text), " \n")
	rest := text
	endsRow := f.ID == s.replyID && s.shown != "" && !strings.HasSuffix(s.shown, "\n\n") // a blank one is missing
	if f.ID == s.replyID {
		if strings.HasPrefix(text, s.shown) {
			rest = s.takeUnshown(text)
		} else if strings.TrimRight(s.shown, " \n") == text {
			rest = ""
		} else {
			s.shown = ""
		}
	} else {
		s.shown = ""
	}
	lines := fileLines(f)
	if rest != "" {
		lines = append([]string{s.render(rest)}, lines...)
	}
	if f.ID == s.replyID {
		s.replyID = ""
		s.draft = ""
		s.rowEnded = false
	}
	s.shown = ""
	if f.Hint != "" {
		lines = append(lines, "\n"+s.dim(clean(f.Hint)))
	}
	if len(lines) > 0 || endsRow {
		s.print(strings.Join(append(lines, ""), "\n") + "\n")
	} else if s.typingShown { // nothing is said: only the sign goes
		s.print("")
	}
}

// showStep prints the line of a step below the draft that precedes it.
func (s *screen) showStep(f frame) {
	if rest := s.draft[len(s.shown):]; rest != "" && f.ID == s.replyID {
		out := s.render(rest)
		s.shown = s.draft
		s.rowEnded = true
		s.print(out + "\n")
	}
	s.print(s.dim(clean(f.Text)) + "\n")
}

// takeUnshown returns the part of text, which begins with s.shown, that is not
// on the screen yet. If a row was already ended for a step, it skips the blank
// or newline that would end it again.
func (s *screen) takeUnshown(text string) string {
	if rest := text[len(s.shown):]; rest != "" && s.rowEnded {
		s.rowEnded = false
		if rest[0] == '\n' || rest[0] == ' ' {
			s.shown = text[:len(s.shown)+1]
		}
	}
	return text[len(s.shown):]
}

// completeRows returns the rows that text fills, each with a newline, and the
// number of bytes of text in them. It leaves out the last row, which may grow.
func completeRows(text string, width int) (n int, out string) {
	var b strings.Builder
	for {
		rest := text[n:]
		end, skip := strings.IndexByte(rest, '\n'), 1
		if end < 0 {
			fits := fitColumns(rest, width-1)
			if fits == len(rest) {
				return n, b.String()
			}
			if end = strings.LastIndexByte(rest[:fits], ' '); end <= 0 {
				end, skip = fits, 0
			}
		}
		b.WriteString(rest[:end] + "\n")
		n += end + skip
	}
}

// fitColumns returns how many bytes at the start of s fit in width columns. It
// is at least one rune.
func fitColumns(s string, width int) int {
	for i, r := range s {
		if width--; r >= 0x1100 { // may be wide
			width--
		}
		if width < 0 && i > 0 {
			return i
		}
	}
	return len(s)
}
