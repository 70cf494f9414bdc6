// Package receipts answers /why: it tells what was done for an answer, from the journal of the conversation, so that
// whoever is told that something was done can check it.
package receipts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"parley/agent/conversation"
	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/tools"
)

const (
	maxTurns  = 100 // answers that /why looks back over
	minQuoted = 8   // letters and digits of a quotation by which an answer is recognised
)

// A Turn is an answer and what was done for it.
type Turn struct {
	Asked  chat.Message // what was answered, or the first message of several
	Answer string       // "" if the turn gave none
	Calls  []Call       // in the order asked
}

// A Call is what became of one call.
type Call struct {
	llm.ToolCall
	Outcome Outcome
	Result  tools.Result // with its Text; the zero Result if the call has none
	Retried bool         // it found nothing of use, and the model did not see its result
}

// An Outcome is how a call ended.
type Outcome int

// The outcomes.
const (
	NotMade     Outcome = iota // it was asked for, and the turn ended before it began
	Interrupted                // it was begun, and how it ended is not known
	Done
	Failed
	Altered // its result is not the one that its receipt is for
)

// Turns returns the latest turns of the session id that gave an answer or made a call, the latest first, 100 at most. A
// session that nobody knows has none.
func Turns(ctx context.Context, sessions *conversation.Sessions, id chat.SessionID) (all []Turn, err error) {
	var now, suspended reader
	for r, err := range sessions.Journal(ctx, id) {
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("read what was done: %w", err)
		case r.Suspended != nil:
			suspended, now = now, reader{}
		case r.Resumed != "":
			now, suspended = suspended, reader{}
		case r.Ended != nil:
			if r.Ended.Reply != nil {
				now.turn.Answer = r.Ended.Reply.Text
			}
			if now.turn.Answer != "" || len(now.turn.Calls) > 0 {
				all = append(all, now.turn)
			}
			now = reader{before: now.turn.Asked}
			all = all[max(len(all)-maxTurns, 0):]
		case r.Branched != nil:
			now = reader{before: now.before}
		case r.Damaged == nil:
			now.read(r.Record)
		}
	}
	slices.Reverse(all)
	return all, nil
}

// A reader makes a Turn of its records.
type reader struct {
	turn  Turn
	round int // calls before those of the last answer of the model

	before chat.Message // what the turn before was asked, which this one may answer again
}

func (p *reader) read(r conversation.Record) {
	switch {
	case r.Heard != nil && p.turn.Asked.ID == "":
		p.turn.Asked = *r.Heard
	case r.Retried != nil && p.turn.Asked.ID == "":
		p.turn.Asked = p.before
		p.turn.Asked.Time = r.Retried.Time
	case r.IsAnswer():
		p.round = len(p.turn.Calls)
		for _, c := range r.Said.Calls {
			p.turn.Calls = append(p.turn.Calls, Call{ToolCall: c})
		}
	case len(r.Started) > 0:
		for _, id := range r.Started {
			if c := p.call(id); c != nil {
				c.Outcome = Interrupted
			}
		}
	case r.Finished != nil:
		if c := p.call(r.Finished.Call); c != nil {
			c.finish(r)
		}
	case r.RolledBack != "":
		for i := p.round; i < len(p.turn.Calls); i++ {
			p.turn.Calls[i].Retried = true
		}
	}
}

// call returns the last call of that ID, nil if there is none.
func (p *reader) call(id string) *Call {
	for i, c := range slices.Backward(p.turn.Calls) {
		if c.ID == id {
			return &p.turn.Calls[i]
		}
	}
	return nil
}

// finish takes in the record of c's result.
func (c *Call) finish(r conversation.Record) {
	if r.Result != nil {
		c.Result = *r.Result
	}
	c.Result.Text = r.Finished.Text
	switch {
	case r.Finished.Text == conversation.MsgInterrupted:
		c.Outcome = Interrupted
	case c.Result.Receipt != "" && !c.Result.Attests(c.ToolCall):
		c.Outcome = Altered
	case c.Result.Failed:
		c.Outcome = Failed
	default:
		c.Outcome = Done
	}
}

// Find returns the answer that is quoted, or else the latest. There may be none.
func Find(all []Turn, quoted *chat.Quote) (t Turn, found bool) {
	if quoted == nil || quoted.Text == "" {
		if len(all) == 0 {
			return t, false
		}
		return all[0], true
	}
	words := letters(strings.TrimSuffix(quoted.Text, "…"))
	i := slices.IndexFunc(all, func(t Turn) bool {
		answer := letters(t.Answer)
		return answer == words || len(words) >= minQuoted && strings.Contains(answer, words)
	})
	if i < 0 {
		return t, false
	}
	return all[i], true
}

// letters returns the letters and digits of text: a network shows an answer without its markup.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, text)
}

// Began returns when the first call of t began, or t was asked for if it made none.
func (t Turn) Began() time.Time {
	for _, c := range t.Calls {
		if !c.Result.Time.IsZero() {
			return c.Result.Time
		}
	}
	return t.Asked.Time
}
