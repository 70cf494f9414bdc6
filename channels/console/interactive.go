package console

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"
)

const (
	stopCommand     = "/stop"
	leaveTimeout    = 2 * time.Second  // for the gateway to take the last message
	doublePressTime = 2 * time.Second  // between two Ctrl-C that leave while the agent works or a line is typed
	doubleLeaveTime = time.Minute      // between two exits, or Ctrl-C on an empty line, that stop a gateway
	busyTimeout     = 15 * time.Second // after the last sign of work; then the agent counts as idle
)

// chatInteractively runs a person's chat until they leave or ctx ends.
func chatInteractively(ctx context.Context, dial Dialer, t Terminal) (err error) {
	suggestions := greet(t)
	k, err := openKeyboard(t.History)
	if err != nil {
		return err
	}
	defer func() {
		err = cmp.Or(err, k.close(t.History))
		_, _ = io.WriteString(t.Out, eraseRow)
	}()
	l := &link{dial: dial, kind: asTerminal, frames: make(chan frame)}
	gone, hangUp := l.start(ctx)
	defer hangUp()
	c := &interactiveChat{link: l, alsoServes: t.Serves, suggestions: suggestions}
	c.screen = screen{out: t.Out, colour: !t.Plain}
	c.setCommands = func(names []string) { k.commands.Store(&names) }
	for !c.left {
		select {
		case typed, more := <-k.typed:
			c.left = !more
			if more {
				c.handleInput(typed)
			}
		case f := <-l.frames:
			c.handleFrame(f)
		case err := <-gone:
			return err
		case <-ctx.Done():
			return nil
		}
	}
	return awaitSettled(l)
}

// awaitSettled waits up to leaveTimeout until everything sent on l is settled.
func awaitSettled(l *link) error {
	late := time.After(leaveTimeout)
	for l.countUnsettled() > 0 {
		select {
		case <-l.frames:
		case <-late:
			return errors.New("leave: the gateway did not take the last message")
		}
	}
	return nil
}

// An interactiveChat is the state of a person's chat at the terminal.
type interactiveChat struct {
	link       *link
	screen     screen
	lastActive time.Time // when the agent was last seen at work
	lastAbort  time.Time // when Ctrl-C was pressed last
	left       bool
	alsoServes string // Terminal.Serves

	askedToLeave time.Time // when somebody was told that leaving ends more than this chat
	leavesBy     string    // what they would do again then
	setCommands  func(names []string)

	hinted bool // how to answer suggestions was shown
	asked  bool // the agent waits for the person

	suggestions []string // that can be chosen by their numbers, until something is said or shown
}

// handleInput sends a line, or acts on Ctrl-C: it stops the agent if it is at
// work, and leaves on an empty line or when pressed twice.
func (c *interactiveChat) handleInput(l inputLine) {
	c.screen.noteEnter()
	switch {
	case !l.aborted && strings.TrimSpace(l.text) == "":
	case !l.aborted && slices.Contains(leaveWords, strings.ToLower(strings.TrimSpace(l.text))):
		c.leave("exit")
	case !l.aborted:
		c.link.sendMessage(suggested(c.suggestions, l.text))
		c.suggestions = nil
		c.asked = false
		c.askedToLeave = time.Time{}
		c.lastActive = time.Now()
		c.lastAbort = time.Time{}
	case time.Since(c.lastAbort) < doublePressTime:
		c.left = true
	case time.Since(c.lastActive) < busyTimeout:
		c.lastAbort = time.Now()
		c.link.sendMessage(stopCommand)
	case l.empty:
		c.lastAbort = time.Now()
		c.leave("Ctrl-C")
	default:
		c.lastAbort = time.Now()
	}
}

// leaveWords end the chat. No message to the agent is one of them.
var leaveWords = []string{"exit", "quit", "/exit", "/quit"}

// leave leaves, at the terminal of a gateway that others use at the second time. again is how.
func (c *interactiveChat) leave(again string) {
	isSecond := c.leavesBy == again && time.Since(c.askedToLeave) < doubleLeaveTime
	if c.alsoServes == "" || isSecond {
		c.left = true
		return
	}
	c.askedToLeave = time.Now()
	c.leavesBy = again
	c.screen.print("[" + again + " again within a minute stops Parley, which also serves " + c.alsoServes + "]\n")
}

// handleFrame shows what the gateway sent.
func (c *interactiveChat) handleFrame(f frame) {
	switch f.Kind {
	case frameReply:
		c.lastActive = time.Time{} // idle until the next sign of work: one reply may answer several messages
		c.suggestions = nil        // f may be a question, whose choices have the same numbers
		c.asked = f.Asks
		if c.hinted {
			f.Hint = ""
		}
		c.hinted = c.hinted || f.Hint != ""
		c.screen.showReply(f)
		c.link.acknowledge(f.ID)
	case frameDraft:
		c.lastActive = time.Now()
		c.screen.showDraft(f)
	case frameStep:
		c.lastActive = time.Now()
		c.screen.showStep(f)
	case frameTyping:
		c.lastActive = time.Now()
		if !c.asked { // it is the person who is waited for
			c.screen.showTyping()
		}
	case frameNote:
		c.screen.showNote(f.Text)
	case frameCommands:
		c.setCommands(strings.Fields(f.Text))
	case frameLost:
		c.screen.print("[connection to the gateway lost; trying again]\n")
	}
}
