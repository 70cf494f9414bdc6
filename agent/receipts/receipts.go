// Package receipts answers /why: it tells what was done for an answer, from the journal of the conversation, so that
// whoever is told that something was done can check it.
package receipts

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode"

	"parley/agent/conversation"
	"parley/agent/pastturns"
	"parley/branches"
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
	Asked  string    // the beginning of what was answered, or of the first message of several, without backticks
	Time   time.Time // when that was said, or another answer was asked for
	Answer string    // with what tools said meanwhile; "" if the turn gave none
	Reply  string    // ID of the reply that the answer is; "" if there is none
	Calls  []Call    // in the order asked, without those by which the answer was given

	Remarks []Remark // in the order said

	end place
}

// A Remark is what the model said before it made calls.
type Remark struct {
	Text   string // Markdown
	Before int    // index of the call in Calls that came next, or their number if none did
}

// A place is a record in one of the conversations of a session.
type place struct {
	epoch int64
	seq   uint64
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

// InSight returns the latest turns that gave an answer or made a call, the latest first, 100 at most, of the branch of
// the session id in which somebody is: where at says, or else where the conversation under way is. A session that
// nobody knows has none.
func InSight(
	ctx context.Context, sessions *conversation.Sessions, id chat.SessionID, at *chat.Branch,
) (all []Turn, err error) {
	s, err := findSight(ctx, sessions, id, at)
	if err != nil {
		return nil, err
	}
	for t, err := range All(ctx, sessions, id) {
		if err != nil {
			return nil, err
		}
		if s.has(t.end) && (t.Answer != "" || len(t.Calls) > 0) {
			all = append(all, t)
			all = all[max(len(all)-maxTurns, 0):]
		}
	}
	slices.Reverse(all)
	return all, nil
}

// A sight is the records of a session that somebody looks at: one branch of each of its conversations, up to the latest
// that they have got to.
type sight struct {
	epoch int64
	paths map[int64]branches.Path
}

func (s sight) has(p place) bool { return p.epoch <= s.epoch && s.paths[p.epoch].Has(p.seq) }

// findSight finds out what somebody looks at who is after the answer to the first of at's messages that has one, or
// where the conversation under way is.
func findSight(
	ctx context.Context, sessions *conversation.Sessions, id chat.SessionID, at *chat.Branch,
) (s sight, err error) {
	trees := map[int64]*branches.Tree{}
	last := map[int64]uint64{}
	answered := map[string]place{}
	var rd pastturns.Reader
	for r, err := range journal(ctx, sessions, id) {
		if err != nil {
			return s, err
		}
		if trees[r.Epoch] == nil {
			trees[r.Epoch] = &branches.Tree{}
			rd = pastturns.Reader{}
			s.epoch = r.Epoch
		}
		last[r.Epoch] = r.Seq
		if r.Branched != nil {
			trees[r.Epoch].GoOn(r.Seq, r.Branched.From)
		}
		if t, over := rd.Add(r.NumberedRecord); over {
			for _, m := range t.Asked {
				answered[m.ID] = place{r.Epoch, r.Seq}
			}
		}
	}
	if at != nil {
		for _, id := range at.After {
			if p, is := answered[id]; is {
				last[p.epoch] = p.seq
				s.epoch = p.epoch
				break
			}
		}
	}
	s.paths = map[int64]branches.Path{}
	for epoch, tree := range trees {
		s.paths[epoch] = tree.Path(last[epoch])
	}
	return s, nil
}

// journal yields the records of the session id, none if nobody knows it.
func journal(
	ctx context.Context, sessions *conversation.Sessions, id chat.SessionID,
) iter.Seq2[conversation.JournalRecord, error] {
	return func(yield func(conversation.JournalRecord, error) bool) {
		for r, err := range sessions.Journal(ctx, id) {
			switch {
			case errors.Is(err, store.ErrNotFound):
				return
			case err != nil:
				yield(r, fmt.Errorf("read what was done: %w", err))
				return
			case !yield(r, nil):
				return
			}
		}
	}
}

// All yields all turns of the session id that have ended, of all branches, in the order in which they did. A session
// that nobody knows has none.
func All(ctx context.Context, sessions *conversation.Sessions, id chat.SessionID) iter.Seq2[Turn, error] {
	return func(yield func(Turn, error) bool) {
		var rd reader
		for r, err := range journal(ctx, sessions, id) {
			if err != nil {
				yield(Turn{}, err)
				return
			}
			if rd.asked == nil || r.Epoch != rd.epoch {
				rd = reader{epoch: r.Epoch, asked: map[uint64]string{}}
			}
			if t, over := rd.add(r.NumberedRecord); over && !yield(t, nil) {
				return
			}
		}
	}
}

// A reader makes Turns of the records of a conversation.
type reader struct {
	turns  pastturns.Reader
	epoch  int64
	asked  map[uint64]string // what was answered by each turn, by the record that ended it
	before string            // what was asked in the turn before, which the next one may answer again
}

// add reads the next record. If that ends a turn, over is true.
func (rd *reader) add(r conversation.NumberedRecord) (t Turn, over bool) {
	if r.Branched != nil {
		rd.before = rd.asked[r.Branched.From]
	}
	ended, over := rd.turns.Add(r)
	if !over {
		return t, false
	}
	t.end = place{rd.epoch, r.Seq}
	calls, remarks := callsOf(ended)
	for i, c := range calls {
		if text := remarks[i]; text != "" {
			t.Remarks = append(t.Remarks, Remark{Text: text, Before: len(t.Calls)})
		}
		if !c.spoke(calls) {
			t.Calls = append(t.Calls, c)
		}
		t.Answer = conversation.Join(t.Answer, c.Result.Told)
	}
	if r.Ended.Reply != nil {
		t.Answer = conversation.Join(t.Answer, r.Ended.Reply.Text)
		t.Reply = r.Ended.Reply.ID
	}
	if len(ended.Asked) > 0 {
		t.Time = ended.Asked[0].Time
		t.Asked = strings.ReplaceAll(chat.Inline(chat.HideLogins(ended.Asked[0].Text), maxAsked), "`", "'")
	}
	if ended.Again {
		t.Asked = rd.before
	}
	rd.before = t.Asked
	rd.asked[r.Seq] = t.Asked
	return t, true
}

// callsOf returns the calls that t made, and what the model said right before some of them.
func callsOf(t pastturns.Turn) (calls []Call, remarks map[int]string) {
	remarks = map[int]string{}
	round := 0 // calls before those of the last answer of the model
	for _, r := range t.Records {
		switch {
		case r.IsAnswer():
			round = len(calls)
			if len(r.Said.Calls) > 0 {
				remarks[round] = strings.TrimSpace(r.Said.Text)
			}
			for _, c := range r.Said.Calls {
				calls = append(calls, Call{ToolCall: c})
			}
		case r.Finished != nil:
			if c := find(calls, r.Finished.Call); c != nil {
				c.finish(r)
			}
		case r.RolledBack != "":
			for i := round; i < len(calls); i++ {
				calls[i].Retried = true
			}
		}
		for _, id := range r.Started {
			if c := find(calls, id); c != nil {
				c.Outcome = Interrupted
			}
		}
	}
	return calls, remarks
}

// find returns the last call of that ID, nil if there is none.
func find(calls []Call, id string) *Call {
	for i, c := range slices.Backward(calls) {
		if c.ID == id {
			return &calls[i]
		}
	}
	return nil
}

// spoke reports whether c, one of all calls of a turn, is the answer or a part of it: people see what was said.
func (c Call) spoke(all []Call) bool {
	if c.Outcome == Done && c.Result.Skipped { // it was made already
		twin := slices.IndexFunc(all, func(o Call) bool { return o.ID == c.Result.Twin && !o.Result.Skipped })
		return twin >= 0 && all[twin].spoke(nil)
	}
	return c.Outcome == Done && (c.Result.Told != "" || c.Name == tools.Completion && c.Result.End != "")
}

// finish takes in the record of c's result.
func (c *Call) finish(r conversation.Record) {
	if r.Result != nil {
		c.Result = *r.Result
	}
	c.Result.Text = r.Finished.Text
	c.Result.Told = r.Told
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
