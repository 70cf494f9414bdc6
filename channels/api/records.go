package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"parley/channels"
	"parley/chat"
	"parley/store"
)

// A recordStore keeps requests, answers and conversations. A conversation is found
// by the digest of its text, up to its last answer. Conversations with the same
// text have the same digest. One that has continued is not found by an earlier
// state.
type recordStore struct {
	requests      store.Table[requestRecord] // by message ID
	conversations store.Table[conversation]  // by session
	heads         store.Table[head]          // by digest and thread, with a slash between
}

// A requestRecord is a message with its answer.
type requestRecord struct {
	Message chat.Message `json:"message"`
	Turn    int          `json:"turn"`            // of its conversation
	Digest  string       `json:"digest"`          // of the conversation up to and including the message
	Reply   string       `json:"reply,omitempty"` // ID of the reply that answered it; "": none yet
	Answer  string       `json:"answer,omitempty"`
	Failed  bool         `json:"failed,omitempty"` // Answer explains why there is no answer
	Tokens  *chat.Tokens `json:"tokens,omitempty"` // used for Answer
	Cut     bool         `json:"cut,omitempty"`    // Answer is as long as the request allows
	Stop    stops        `json:"stop,omitempty"`   // texts before which Answer ends

	Tools []chat.ClientTool `json:"tools,omitempty"` // of the client, until there is an answer
	Calls []chat.ClientCall `json:"calls,omitempty"` // of these, for the client to run

	Next string    `json:"next,omitempty"` // ID of the message after Answer, if that was a question
	Time time.Time `json:"time"`
}

// A conversation is what is known of one session.
type conversation struct {
	Turns int       `json:"turns"`
	Asked string    `json:"asked,omitempty"` // ID of the message that was answered with a question
	Notes []note    `json:"notes,omitempty"` // for the next answer
	Time  time.Time `json:"time"`
}

// A head records that a conversation had that digest after that many turns.
type head struct {
	Turn int       `json:"turn"`
	Time time.Time `json:"time"`
}

// A note is a reply that answers no request.
type note struct{ ID, Text string }

// newRecordStore returns the records in s. Damaged ones are deleted (P21).
func newRecordStore(from store.Store, log *slog.Logger) recordStore {
	return recordStore{
		requests: store.NewTable(from.Bucket(store.BucketAPIRequests), store.Forget[requestRecord](log, "request")),
		conversations: store.NewTable(
			from.Bucket(store.BucketAPIConversations), store.Forget[conversation](log, "API conversation")),
		heads: store.NewTable(from.Bucket(store.BucketAPIHeads), store.Forget[head](log, "end of an API conversation")),
	}
}

// nameSeparator separates the prefix of an API key from the name of a conversation.
// Neither contains it, so that no key reaches the sessions of another.
const nameSeparator = "~"

// findConversation returns the conversation that q continues, and its revision: the
// one that q names, else one that ends where q's history ends, else a new one.
func (s recordStore) findConversation(
	ctx context.Context, q *request, id string,
) (at chat.Address, conv conversation, rev uint64, err error) {
	at = q.at
	prefix := q.digest(q.history) + "/"
	for key, err := range s.heads.Keys(ctx, prefix) {
		if err != nil || q.name != "" {
			break // an unreadable index refuses no request
		}
		at.Thread = strings.TrimPrefix(key, prefix)
		h, _, err := getOrZero(ctx, s.heads, key)
		conv, rev, err2 := getOrZero(ctx, s.conversations, string(at.Session()))
		if err != nil || err2 != nil || rev != 0 && h.Turn == conv.Turns {
			return at, conv, rev, errors.Join(err, err2)
		}
	}
	at.Thread = strings.TrimPrefix(q.at.Thread+nameSeparator+cmp.Or(q.name, "c"+id[:12]), nameSeparator)
	conv, rev, err = getOrZero(ctx, s.conversations, string(at.Session()))
	return at, conv, rev, err
}

// addRequest stores rec as the next message of conv, whose revision is rev, and
// returns how to undo that. The error is store.ErrConflict if another request was
// faster.
func (s recordStore) addRequest(
	ctx context.Context, rec requestRecord, conv conversation, rev uint64,
) (undo func(context.Context) error, err error) {
	session := string(rec.Message.At.Session())
	id := rec.Message.ID
	next := conversation{Turns: rec.Turn, Notes: conv.Notes, Time: rec.Time}
	if err := putValue(ctx, s.conversations, session, next, rev); err != nil {
		return nil, err
	}
	restore := func(ctx context.Context) error {
		return updateIfPresent(ctx, s.conversations, session, func(now *conversation) {
			if now.Turns == rec.Turn {
				now.Turns = conv.Turns
				now.Asked = conv.Asked
			}
		})
	}
	if err := putValue(ctx, s.requests, id, rec, 0); err != nil {
		return nil, errors.Join(err, restore(ctx))
	}
	if conv.Asked != "" {
		err = updateIfPresent(ctx, s.requests, conv.Asked, func(r *requestRecord) { r.Next = id })
	}
	return func(ctx context.Context) error { return errors.Join(s.requests.Delete(ctx, id), restore(ctx)) }, err
}

// requestsAnsweredBy returns the unanswered requests, by ID, that r answers: the one
// it replies to, or those that followed if that was answered with a question, and
// others that it answers besides. Again reports whether r was sent before.
func (s recordStore) requestsAnsweredBy(
	ctx context.Context, r chat.Reply, others []string,
) (open map[string]requestRecord, again bool, err error) {
	open = map[string]requestRecord{}
	first, rev, err := getOrZero(ctx, s.requests, r.Quote)
	if err != nil {
		return nil, false, err
	}
	ids := []string{}
	if rev != 0 && first.Message.Reply().ID == r.ID {
		ids = append(append(ids, r.Quote), r.Also...)
	}
	for _, id := range append(ids, others...) {
		for id != "" {
			rec, rev, err := getOrZero(ctx, s.requests, id)
			if err != nil {
				return nil, false, err
			}
			if again = again || rec.Reply == r.ID; rev != 0 && rec.Reply == "" {
				open[id] = rec
			}
			id = rec.Next
		}
	}
	return open, again, nil
}

// latest returns the request of that ID or, if that was answered with a question, the one that answers the question.
func (s recordStore) latest(ctx context.Context, id string) (rec requestRecord, err error) {
	for id != "" && err == nil {
		rec, _, err = getOrZero(ctx, s.requests, id)
		id = rec.Next
	}
	return rec, err
}

// isPostponement reports whether r only explains why an answer comes later.
func (s recordStore) isPostponement(ctx context.Context, r chat.Reply) (bool, error) {
	if !r.Failed {
		return false, nil
	}
	rec, rev, err := getOrZero(ctx, s.requests, r.Quote)
	return rev != 0 && rec.Message.Reply().ID != r.ID, err
}

// storeAnswer stores text, which includes notes, as the answer to rec. Versions are
// the texts that clients have read as the answer, and will send back.
func (s recordStore) storeAnswer(
	ctx context.Context, rec requestRecord, r chat.Reply, text string, versions []string, notes []note,
) error {
	for _, version := range versions {
		answer := textMessage{assistant, version, rec.outcome().callIDs()}
		key := extendDigest(rec.Digest, answer) + "/" + rec.Message.At.Thread
		if err := putValue(ctx, s.heads, key, head{rec.Turn, time.Now()}, store.Any); err != nil {
			return err
		}
	}
	if isQuestion(r) || len(notes) > 0 {
		err := updateIfPresent(ctx, s.conversations, string(r.To.Session()), func(conv *conversation) {
			if isQuestion(r) {
				conv.Asked = rec.Message.ID
			}
			conv.Notes = slices.DeleteFunc(conv.Notes, func(n note) bool { return slices.Contains(notes, n) })
		})
		if err != nil {
			return err
		}
	}
	return updateIfPresent(ctx, s.requests, rec.Message.ID, func(o *requestRecord) {
		o.Reply = r.ID
		o.Answer = text
		o.Failed = r.Failed
		o.Tokens = r.Tokens
		o.Cut = r.Cut
		o.Tools = nil
	})
}

const maxNotes = 50 // of one conversation

// addNote stores a reply for the next answer of its conversation. It returns a
// permanent error if too many are waiting.
func (s recordStore) addNote(ctx context.Context, r chat.Reply, text string) error {
	n := note{r.ID, text}
	_, _, err := s.conversations.Upsert(ctx, string(r.To.Session()), func(conv *conversation) error {
		if slices.Contains(conv.Notes, n) {
			return store.ErrUnchanged
		}
		if len(conv.Notes) >= maxNotes {
			return channels.ForGood("too many notes wait for the next request")
		}
		conv.Notes = append(conv.Notes, n)
		conv.Time = time.Now()
		return nil
	})
	return err
}

// prune deletes requests after 48 hours, as the inbox does with their IDs (P2, P3),
// and conversations after 90 days.
func (s recordStore) prune(ctx context.Context) error {
	const day = 24 * time.Hour
	return errors.Join(
		s.requests.Retain(ctx, func(_ string, r requestRecord) bool { return time.Since(r.Time) < 2*day }),
		s.conversations.Retain(ctx, func(_ string, conv conversation) bool { return time.Since(conv.Time) < 90*day }),
		s.heads.Retain(ctx, func(_ string, h head) bool { return time.Since(h.Time) < 90*day }),
	)
}

// getOrZero returns the value of key and its revision, 0 if there is none.
func getOrZero[T any](ctx context.Context, t store.Table[T], key string) (T, uint64, error) {
	v, rev, err := t.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return v, 0, nil
	}
	if err != nil {
		return v, 0, fmt.Errorf("look up request: %w", err)
	}
	return v, rev, nil
}

// putValue sets key to v if its revision is rev.
func putValue[T any](ctx context.Context, t store.Table[T], key string, v T, rev uint64) error {
	if _, err := t.Put(ctx, key, v, rev); err != nil {
		return fmt.Errorf("note request: %w", err)
	}
	return nil
}

// updateIfPresent changes the value of key, if there is one.
func updateIfPresent[T any](ctx context.Context, t store.Table[T], key string, change func(*T)) error {
	_, _, err := t.Update(ctx, key, func(v *T) error { change(v); return nil })
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("note request: %w", err)
	}
	return nil
}
