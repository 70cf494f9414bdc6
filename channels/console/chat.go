package console

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	maxLine  = 256 << 10   // bytes of one line in a pipe
	patience = time.Minute // of a pipe, with a gateway that went away
)

// A Terminal is where a person sits, or the pipe that stands in for one.
type Terminal struct {
	In      *os.File  // each line is a message
	Text    string    // the one message to say; In is not read then
	Out     io.Writer // for what is said; but in a pipe, for answers
	Notes   io.Writer // in a pipe: for what is said besides; nil: discard
	History string    // file that keeps what a person typed; empty: none
	Serves  string    // what else ends when the person leaves, such as "telegram, web"; empty: nothing
}

// Chat connects t to the gateway at socket. A person chats until they leave
// with Ctrl-D or Ctrl-C or ctx ends, and Chat returns nil. In a pipe, each line
// is said once the one before is answered, and Chat returns nil when all are.
// It returns ErrUnanswered once all are said if one could not be answered. Other
// errors: there is no gateway, it went away for long, ctx ended with a line
// unanswered.
func Chat(ctx context.Context, socket string, t Terminal) error {
	return converse(ctx, dialTo(socket), t)
}

// ErrUnanswered is returned by Chat in a pipe if the agent could not answer. The
// reply, which was shown, says why.
var ErrUnanswered = errors.New("the message could not be answered")

// A dialer connects to the gateway.
type dialer func(context.Context) (net.Conn, error)

func dialTo(socket string) dialer {
	return func(ctx context.Context) (net.Conn, error) { return Dial(ctx, socket) }
}

func converse(ctx context.Context, dial dialer, t Terminal) error {
	lines := make(chan string, 1)
	switch {
	case t.Text != "":
		lines <- t.Text
		close(lines)
		return answer(ctx, dial, lines, t)
	case t.Interactive():
		return sit(ctx, dial, t)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	bad := make(chan error, 1)
	go func() { // a read that blocks may last until the process ends
		defer close(lines)
		bad <- read(ctx, t.In, lines)
	}()
	err := answer(ctx, dial, lines, t)
	select {
	case e := <-bad:
		return errors.Join(err, e)
	default:
		return err
	}
}

// read passes the lines of in on, except empty ones, until ctx ends.
func read(ctx context.Context, in io.Reader, lines chan<- string) error {
	s := bufio.NewScanner(in)
	s.Buffer(nil, maxLine)
	for s.Scan() {
		if strings.TrimSpace(s.Text()) == "" {
			continue
		}
		select {
		case lines <- s.Text():
		case <-ctx.Done():
			return nil
		}
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("read a line: it is longer than %d KiB", maxLine>>10)
	}
	if err := s.Err(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("read a line: %w", err)
	}
	return nil
}

// answer says the lines one by one, each when the one before is answered.
func answer(ctx context.Context, dial dialer, lines <-chan string, t Terminal) error {
	l := &link{dial: dial, as: asPipe, patience: patience, frames: make(chan frame)}
	gone, hangUp := l.start(ctx)
	defer hangUp()
	asked, failed := "", false
	for lines != nil || l.unsettled() > 0 {
		next := lines
		if l.unsettled() > 0 {
			next = nil
		}
		select {
		case line, more := <-next:
			if more {
				asked = l.say(line)
			} else {
				lines = nil
			}
		case f := <-l.frames:
			if err := show(l, f, asked, t); err != nil {
				return err
			}
			failed = failed || f.Failed && slices.Contains(f.To, asked)
		case err := <-gone:
			return cmp.Or(err, ctx.Err())
		}
	}
	if failed {
		return ErrUnanswered
	}
	return nil
}

// show writes a reply where it belongs and acknowledges it.
func show(l *link, f frame, asked string, t Terminal) error {
	if f.Kind != reply {
		return nil
	}
	out := t.Notes
	if slices.Contains(f.To, asked) {
		out = t.Out
	}
	if out != nil {
		if _, err := io.WriteString(out, plain(f)+"\n"); err != nil {
			return fmt.Errorf("write an answer: %w", err)
		}
	}
	l.got(f.ID)
	for _, id := range f.To {
		l.settle(id)
	}
	return nil
}
