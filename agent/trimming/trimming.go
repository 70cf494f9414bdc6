// Package trimming removes what was said long ago from the logs of sessions. What the
// model is still shown of a conversation that goes on stays.
package trimming

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/agent/conversation"
	"parley/chat"
	"parley/store"
)

// A Trimmer removes what was said long ago.
type Trimmer struct {
	Sessions *conversation.Sessions
	Prompts  *conversation.Prompts // of the requests that were made
	// Enter keeps others out of the session id until leave is called, unless something
	// is under way there: then it returns an error.
	Enter func(ctx context.Context, id chat.SessionID) (leave func(), err error)
	// Skip reports whether the session id is left out.
	Skip func(id chat.SessionID) bool
	// Ended is told that the conversation of the session id is over, maybe more than once.
	Ended func(id chat.SessionID)
}

// TrimAll removes what was said before pass.Before. A conversation that goes on keeps
// what the model is shown of it. One in which nobody has spoken since is over, as
// after /new. The texts of requests go when none was made with them since.
func (t Trimmer) TrimAll(ctx context.Context, pass store.Trimming) error {
	var failed []error
	for id, err := range t.Sessions.IDs(ctx, "") {
		if err != nil {
			return errors.Join(append(failed, err)...)
		}
		if t.Skip(id) {
			continue
		}
		if err := t.trim(ctx, id, pass); err != nil {
			failed = append(failed, fmt.Errorf("trim session %s: %w", id, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(append(failed, t.Prompts.Trim(ctx, pass))...)
}

// trim removes what is old of the session id.
func (t Trimmer) trim(ctx context.Context, id chat.SessionID, pass store.Trimming) error {
	old, err := t.isOld(ctx, id, pass.Before)
	if err != nil {
		return err
	}
	if old {
		if err := t.whenIdle(ctx, id, func() error { return t.end(ctx, id, pass.Before) }); err != nil {
			return err
		}
	}
	nothing, err := t.trimSession(ctx, id, pass)
	if err != nil {
		return err
	}
	if !nothing {
		return t.retitle(ctx, id)
	}
	return t.whenIdle(ctx, id, func() error {
		nothing, err := t.trimSession(ctx, id, pass) // nobody has spoken meanwhile
		if err != nil || !nothing {
			return err
		}
		t.Ended(id) // a crash may have come before end told it
		return t.Sessions.Forget(ctx, id)
	})
}

// end ends the conversation of the session id if it is old still.
func (t Trimmer) end(ctx context.Context, id chat.SessionID, before time.Time) error {
	old, err := t.isOld(ctx, id, before)
	if err != nil || !old {
		return err
	}
	if err := t.Sessions.Update(ctx, id, (*conversation.State).BeginConversation); err != nil {
		return err
	}
	t.Ended(id)
	return nil
}

// whenIdle calls do while nothing else is under way in the session id, unless there is
// something now: then it is for the next night.
func (t Trimmer) whenIdle(ctx context.Context, id chat.SessionID, do func() error) error {
	leave, err := t.Enter(ctx, id)
	if err != nil {
		return nil //nolint:nilerr // it is no failure
	}
	defer leave()
	return do()
}

// retitle gives the session id the title of what is left of it, if what was said first was
// removed.
func (t Trimmer) retitle(ctx context.Context, id chat.SessionID) error {
	st, rev, err := t.Sessions.Lookup(ctx, id)
	if err != nil || rev == 0 || st.Removed.Seq == 0 {
		return err
	}
	title, err := t.firstTitle(ctx, id)
	if err != nil || title == st.Title {
		return err
	}
	return t.Sessions.Update(ctx, id, func(st *conversation.State) { st.Title = title })
}

// firstTitle returns the title of the first message of the session id that makes one.
func (t Trimmer) firstTitle(ctx context.Context, id chat.SessionID) (string, error) {
	for r, err := range t.Sessions.Journal(ctx, id) {
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return "", err
		}
		if r.Heard == nil {
			continue
		}
		if title := conversation.TitleOf(r.Heard.Text); title != "" {
			return title, nil
		}
	}
	return "", nil
}
