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
	maxLine              = 256 << 10   // bytes of one line in a pipe
	pipeReconnectTimeout = time.Minute // for the gateway to come back while a pipe waits
)

// A Terminal is a person's terminal, or a pipe in its place.
type Terminal struct {
	In      *os.File  // each line is a message
	Text    string    // the only message; In is not read then
	Out     io.Writer // for replies; in a pipe, for answers only
	Notes   io.Writer // in a pipe: for all other replies; nil: discard
	History string    // file with the lines a person typed; empty: none
	Plain   bool      // a person is shown no colours or other attributes
	Serves  string    // what else ends when the person leaves, such as "telegram, web"; empty: nothing
}

// Chat connects t to the gateway at socket. A person chats until they leave with
// Ctrl-D or Ctrl-C or ctx ends; Chat then returns nil. From a pipe, Chat sends
// each line once the one before is answered, and returns nil when all are, or
// ErrUnanswered if one could not be answered. Any other error means that there is
// no gateway, that it did not come back, or that ctx ended before the last answer.
func Chat(ctx context.Context, socket string, t Terminal) error {
	return ChatOver(ctx, dialTo(socket), t)
}

// ErrUnanswered is returned by Chat for a pipe if the agent could not answer. The
// reply that was shown explains why.
var ErrUnanswered = errors.New("the message could not be answered")

// A Dialer connects to the gateway.
type Dialer func(context.Context) (net.Conn, error)

func dialTo(socket string) Dialer {
	return func(ctx context.Context) (net.Conn, error) { return Dial(ctx, socket) }
}

// ChatOver is [Chat] with the gateway that dial connects to.
func ChatOver(ctx context.Context, dial Dialer, t Terminal) error {
	lines := make(chan string, 1)
	switch {
	case t.Text != "":
		lines <- t.Text
		close(lines)
		return answerLines(ctx, dial, lines, t)
	case t.Interactive():
		return chatInteractively(ctx, dial, t)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	read := make(chan error, 1)
	go func() { // it may run until the process ends: a blocked read cannot be interrupted
		defer close(lines)
		read <- readLines(ctx, t.In, lines)
	}()
	err := answerLines(ctx, dial, lines, t)
	select {
	case e := <-read:
		return errors.Join(err, e)
	default:
		return err
	}
}

// readLines sends the non-empty lines of in to lines until ctx ends.
func readLines(ctx context.Context, in io.Reader, lines chan<- string) error {
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

// answerLines sends the lines one by one, each once the one before is answered.
func answerLines(ctx context.Context, dial Dialer, lines <-chan string, t Terminal) error {
	l := &link{dial: dial, kind: asPipe, reconnectTimeout: pipeReconnectTimeout, frames: make(chan frame)}
	gone, hangUp := l.start(ctx)
	defer hangUp()
	asked := "" // ID of the latest message
	failed := false
	for lines != nil || l.countUnsettled() > 0 {
		next := lines
		if l.countUnsettled() > 0 {
			next = nil
		}
		select {
		case line, more := <-next:
			if more {
				asked = l.sendMessage(line)
			} else {
				lines = nil
			}
		case f := <-l.frames:
			if err := showReply(l, f, asked, t); err != nil {
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

// showReply writes a reply to Out if it answers the message asked, else to Notes,
// and acknowledges it. One without words only ends the answer: a tool has said it.
func showReply(l *link, f frame, asked string, t Terminal) error {
	if f.Kind != frameReply {
		return nil
	}
	out := t.Notes
	if slices.Contains(f.To, asked) {
		out = t.Out
	}
	if text := replyText(f, out, t.Plain); out != nil && text != "" {
		if _, err := io.WriteString(out, text+"\n"); err != nil {
			return fmt.Errorf("write an answer: %w", err)
		}
	}
	l.acknowledge(f.ID)
	if f.More {
		return nil
	}
	for _, id := range f.To {
		l.settle(id)
	}
	return nil
}
