// Package pastusage reads from the logs of sessions what their answers took, for a budget that did not count yet.
package pastusage

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"

	"parley/agent/conversation"
	"parley/chat"
	"parley/llm"
	"parley/store"
)

// A Usage is what one answer or summary took, as the log tells.
type Usage struct {
	Day     string // 2006-01-02
	Person  chat.Person
	Session chat.SessionID // "" if its conversation is over
	Model   string
	Turns   int // 1 for the first answer of a turn
	Usage   llm.Usage
}

// All is of all sessions, with the days of zone. What cannot be read is logged and left out. An error is that of a
// process that ends.
func All(
	ctx context.Context, sessions *conversation.Sessions, zone *time.Location, log *slog.Logger,
) iter.Seq2[Usage, error] {
	leaveOut := func(session chat.SessionID, err error) (closing bool) {
		if ctx.Err() != nil || errors.Is(err, store.ErrClosed) {
			return true
		}
		log.Error("earlier usage cannot be read and is left out", "session", session, "err", err)
		return false
	}
	return func(yield func(Usage, error) bool) {
		for id, err := range sessions.IDs(ctx, "") {
			if err != nil {
				if leaveOut("", err) {
					yield(Usage{}, err)
				}
				return
			}
			for past, err := range ofSession(ctx, sessions, zone, id) {
				if err != nil && !leaveOut(id, err) {
					break
				}
				if !yield(past, err) {
					return
				}
			}
		}
	}
}

// ofSession reads from the logs of the session id what answers took. A turn is
// that of the person it answers.
func ofSession(
	ctx context.Context, sessions *conversation.Sessions, zone *time.Location, id chat.SessionID,
) iter.Seq2[Usage, error] {
	return func(yield func(Usage, error) bool) {
		st, _, err := sessions.Lookup(ctx, id)
		if err != nil {
			yield(Usage{}, err)
			return
		}
		for _, epoch := range st.Epochs() {
			var turn Usage
			for r, err := range sessions.Records(ctx, id, epoch, 0) {
				if err != nil {
					yield(turn, err)
					return
				}
				if !turn.apply(r.Record, zone) {
					continue
				}
				if epoch == st.Epoch {
					turn.Session = id
				}
				if !yield(turn, nil) {
					return
				}
				turn.Model = ""
				turn.Turns = 0
			}
		}
	}
}

// apply notes what r tells of the turn under way, and reports whether that is usage.
func (u *Usage) apply(r conversation.Record, zone *time.Location) bool {
	switch m := cmp.Or(r.Heard, r.Retried); {
	case m != nil && u.Person == "":
		u.Day = m.Time.In(zone).Format(time.DateOnly)
		u.Person = chat.Whose(m.At, m.From, m.Group)
		u.Turns = 1
	case r.IsAnswer():
		u.Model = r.Said.Model
		u.Usage = r.Said.Usage
	case r.Summed != nil:
		u.Model = r.Summed.Model
		u.Usage = r.Summed.Usage
	case r.Ended != nil:
		*u = Usage{}
	}
	return u.Model != ""
}
