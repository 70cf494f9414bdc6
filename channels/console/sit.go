package console

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

const (
	stop      = "/stop"
	leaveTime = 2 * time.Second  // for what was said last to be taken
	twiceTime = 2 * time.Second  // between two Ctrl-C that mean leave
	quietTime = 15 * time.Second // without a typing sign: the agent has done its work
)

// sit is a person's chat, until they leave or ctx ends.
func sit(ctx context.Context, dial dialer, t Terminal) (err error) {
	k, err := openKeys(t.History)
	if err != nil {
		return err
	}
	defer func() {
		if e := k.close(t.History); err == nil {
			err = e
		}
		_, _ = io.WriteString(t.Out, eraseRow)
	}()
	l := &link{dial: dial, as: asTerminal, frames: make(chan frame)}
	gone, hangUp := l.start(ctx)
	defer hangUp()
	s := &seat{link: l, screen: screen{out: t.Out}, serves: t.Serves}
	for !s.left {
		select {
		case typed, more := <-k.typed:
			s.left = !more
			if more {
				s.hear(typed)
			}
		case f := <-l.frames:
			s.see(f)
		case err := <-gone:
			return err
		case <-ctx.Done():
			return nil
		}
	}
	return leave(l)
}

// leave waits until l is settled, but not for long.
func leave(l *link) error {
	late := time.After(leaveTime)
	for l.unsettled() > 0 {
		select {
		case <-l.frames:
		case <-late:
			return errors.New("leave: the gateway did not take what was said last")
		}
	}
	return nil
}

// A seat is a person's place at the terminal.
type seat struct {
	link    *link
	screen  screen
	worked  time.Time // when the agent was last known to be at work
	aborted time.Time // when Ctrl-C was pressed last
	left    bool
	serves  string // as Terminal has it
}

func (s *seat) hear(l line) {
	s.screen.entered()
	switch {
	case !l.abort && strings.TrimSpace(l.text) == "":
	case !l.abort:
		s.link.say(l.text)
		s.worked, s.aborted = time.Now(), time.Time{}
	case time.Since(s.aborted) < twiceTime:
		s.left = true
	case time.Since(s.worked) < quietTime:
		s.aborted = time.Now()
		s.link.say(stop)
	case l.empty && s.serves == "":
		s.left = true
	case l.empty:
		s.aborted = time.Now()
		s.screen.print("[Ctrl-C again stops Parley, which serves " + s.serves + " too]\n")
	default:
		s.aborted = time.Now()
	}
}

func (s *seat) see(f frame) {
	switch f.Kind {
	case reply:
		s.worked = time.Time{} // until it is seen typing again: one reply may answer several messages
		s.screen.reply(f)
		s.link.got(f.ID)
	case live:
		s.worked = time.Now()
		s.screen.live(f)
	case step:
		s.worked = time.Now()
		s.screen.step(f)
	case typing:
		s.worked = time.Now()
		s.screen.typing()
	case lost:
		s.screen.print("[connection to the gateway lost; trying again]\n")
	}
}

const (
	eraseRow      = "\r\x1b[K"
	eraseRowAbove = "\x1b[A\x1b[K"
)

// A screen shows what is said above the row in which the person types. Only
// whole rows are written, and the row of typing is drawn anew after each.
type screen struct {
	out   io.Writer
	id    string // reply in the making
	text  string // of it, so far
	shown string // how much of that is on the screen
	ended bool   // the last row of shown was ended, for a step
	sign  bool   // the row above the prompt is a typing sign
}

// print shows text, which ends in a newline.
func (s *screen) print(text string) {
	erase := eraseRow
	if s.sign {
		erase += eraseRowAbove
		s.sign = false
	}
	_, _ = io.WriteString(s.out, erase+text)
	_ = syscall.Kill(os.Getpid(), syscall.SIGWINCH) // liner draws its row anew, as when the window's size has changed
}

// typing shows that the agent is busy.
func (s *screen) typing() {
	if !s.sign {
		s.print("…\n")
		s.sign = true
	}
}

// entered tells that the person pressed Enter: the row above is theirs.
func (s *screen) entered() { s.sign = false }

// live shows what is new in the text of a reply in the making.
func (s *screen) live(f frame) {
	text := clean(f.Text)
	if f.ID != s.id || !strings.HasPrefix(text, s.shown) {
		s.id = f.ID
		s.shown = ""
		s.ended = false
	}
	s.text = text
	if n, out := rows(s.goOn(text), width()); n > 0 {
		s.shown = text[:len(s.shown)+n]
		s.print(out)
	}
}

// reply shows what is not on the screen yet of a reply.
func (s *screen) reply(f frame) {
	text := plain(f)
	if f.ID == s.id {
		if strings.HasPrefix(text, s.shown) {
			text = s.goOn(text)
		} else if strings.TrimRight(s.shown, " \n") == text {
			text = ""
		}
		s.id = ""
		s.text = ""
		s.shown = ""
		s.ended = false
	}
	if text != "" {
		text += "\n"
	}
	s.print(text + "\n")
}

// rows returns the rows that text fills, each with a newline, and how many
// bytes of text they are. The last row may still grow and is not among them.
func rows(text string, width int) (n int, out string) {
	var b strings.Builder
	for {
		rest := text[n:]
		end, skip := strings.IndexByte(rest, '\n'), 1
		if end < 0 {
			fits := fit(rest, width-1)
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

// fit returns how many bytes at the start of s fit in width columns, at least one rune.
func fit(s string, width int) int {
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
