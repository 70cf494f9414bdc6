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

// A book is what the channel remembers. A conversation is found by the digest
// of what was said in it. Those that said the same so far have the same
// digest; one that has gone on since is not found by what it said before.
type book struct {
	asked store.Table[record] // by message ID
	talks store.Table[talk]   // by session
	heads store.Table[head]   // by digest / thread
}

// A record is a message, from its request to its answer.
type record struct {
	Message chat.Message `json:"message"`
	Turn    int          `json:"turn"`            // of its conversation
	Digest  string       `json:"digest"`          // of what was said up to it
	Reply   string       `json:"reply,omitempty"` // ID of the reply that answered it; "" before
	Answer  string       `json:"answer,omitempty"`
	Failed  bool         `json:"failed,omitempty"` // Answer is why there is none
	Tokens  *chat.Tokens `json:"tokens,omitempty"` // what Answer took
	Next    string       `json:"next,omitempty"`   // ID of the message that came after Answer, which was a question
	Time    time.Time    `json:"time"`
}

// A talk is one conversation.
type talk struct {
	Turns int       `json:"turns"`
	Asked string    `json:"asked,omitempty"` // ID of the message that was answered by a question
	Notes []note    `json:"notes,omitempty"` // what was said without being asked, and not told yet
	Time  time.Time `json:"time"`
}

// A head says that a conversation stood there after so many turns.
type head struct {
	Turn int       `json:"turn"`
	Time time.Time `json:"time"`
}

// A note is something said without being asked.
type note struct{ ID, Text string }

// newBook returns the book in s. What is damaged is forgotten (P21).
func newBook(s store.Store, log *slog.Logger) book {
	return book{
		asked: store.NewTable(s.Bucket(store.BucketAPIRequests), store.Forget[record](log, "request")),
		talks: store.NewTable(s.Bucket(store.BucketAPIConversations), store.Forget[talk](log, "API conversation")),
		heads: store.NewTable(s.Bucket(store.BucketAPIHeads), store.Forget[head](log, "end of an API conversation")),
	}
}

// between stands between the prefix of a key and the name of a conversation. It
// is in neither, so that no key opens the sessions of another.
const between = "~"

// find returns the conversation that q goes on with, and its revision: that
// which is where its history ends, or the one it names, or a new one.
func (b book) find(ctx context.Context, q *request, id string) (at chat.Address, t talk, rev uint64, err error) {
	at = q.at
	prefix := q.digest(q.history) + "/"
	for key, err := range b.heads.Keys(ctx, prefix) {
		if err != nil || q.name != "" {
			break // a broken list is no reason to refuse anybody
		}
		at.Thread = strings.TrimPrefix(key, prefix)
		h, _, err := get(ctx, b.heads, key)
		t, rev, err2 := get(ctx, b.talks, string(at.Session()))
		if err != nil || err2 != nil || rev != 0 && h.Turn == t.Turns {
			return at, t, rev, errors.Join(err, err2)
		}
	}
	at.Thread = strings.TrimPrefix(q.at.Thread+between+cmp.Or(q.name, "c"+id[:12]), between)
	t, rev, err = get(ctx, b.talks, string(at.Session()))
	return at, t, rev, err
}

// begin notes rec as the next message of t, whose revision is rev. It returns
// store.ErrConflict when another came before, and otherwise the way back.
func (b book) begin(ctx context.Context, rec record, t talk, rev uint64) (back func(context.Context) error, err error) {
	session, id := string(rec.Message.At.Session()), rec.Message.ID
	if err := put(ctx, b.talks, session, talk{Turns: rec.Turn, Notes: t.Notes, Time: rec.Time}, rev); err != nil {
		return nil, err
	}
	restore := func(ctx context.Context) error {
		return change(ctx, b.talks, session, func(now *talk) {
			if now.Turns == rec.Turn {
				now.Turns, now.Asked = t.Turns, t.Asked
			}
		})
	}
	if err := put(ctx, b.asked, id, rec, 0); err != nil {
		return nil, errors.Join(err, restore(ctx))
	}
	if t.Asked != "" {
		err = change(ctx, b.asked, t.Asked, func(r *record) { r.Next = id })
	}
	return func(ctx context.Context) error { return errors.Join(b.asked.Delete(ctx, id), restore(ctx)) }, err
}

// answers returns the records, by ID, that r answers and that are not answered
// yet: that of the message it replies to, or of those after it when that was
// answered by a question, and those beside it. Again says that r was said before.
func (b book) answers(
	ctx context.Context, r chat.Reply, beside []string,
) (open map[string]record, again bool, err error) {
	open = map[string]record{}
	first, rev, err := get(ctx, b.asked, r.Quote)
	if err != nil {
		return nil, false, err
	}
	ids := []string{}
	if rev != 0 && first.Message.Reply().ID == r.ID {
		ids = append(append(ids, r.Quote), r.Also...)
	}
	if len(ids) > 0 || asks(r) {
		ids = append(ids, beside...)
	}
	for _, id := range ids {
		for id != "" {
			rec, rev, err := get(ctx, b.asked, id)
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

// postpones reports whether r only says why the answer to a request comes later.
func (b book) postpones(ctx context.Context, r chat.Reply) (bool, error) {
	if !r.Failed {
		return false, nil
	}
	rec, rev, err := get(ctx, b.asked, r.Quote)
	return rev != 0 && rec.Message.Reply().ID != r.ID, err
}

// answered keeps text, which tells notes, too, as the answer to rec. Said is
// what the clients read of it, by which they will be known.
func (b book) answered(ctx context.Context, rec record, r chat.Reply, text string, said []string, notes []note) error {
	for _, s := range said {
		key := extend(rec.Digest, turn{assistant, s}) + "/" + rec.Message.At.Thread
		if err := put(ctx, b.heads, key, head{rec.Turn, time.Now()}, store.Any); err != nil {
			return err
		}
	}
	if asks(r) || len(notes) > 0 {
		err := change(ctx, b.talks, string(r.To.Session()), func(t *talk) {
			if asks(r) {
				t.Asked = rec.Message.ID
			}
			t.Notes = slices.DeleteFunc(t.Notes, func(n note) bool { return slices.Contains(notes, n) })
		})
		if err != nil {
			return err
		}
	}
	return change(ctx, b.asked, rec.Message.ID, func(o *record) {
		o.Reply = r.ID
		o.Answer = text
		o.Failed = r.Failed
		o.Tokens = r.Tokens
	})
}

const maxNotes = 50

// note keeps what is to be said with the next answer. It is a permanent error
// where too much waits for that.
func (b book) note(ctx context.Context, r chat.Reply, text string) error {
	n := note{r.ID, text}
	_, _, err := b.talks.Upsert(ctx, string(r.To.Session()), func(t *talk) error {
		if slices.Contains(t.Notes, n) {
			return store.ErrUnchanged
		}
		if len(t.Notes) >= maxNotes {
			return channels.ForGood("nobody has asked there for long")
		}
		t.Notes = append(t.Notes, n)
		t.Time = time.Now()
		return nil
	})
	return err
}

// prune forgets answers after 48 hours, when the inbox forgets their messages
// (P2, P3), and conversations after 90 days.
func (b book) prune(ctx context.Context) error {
	const day = 24 * time.Hour
	return errors.Join(
		b.asked.Retain(ctx, func(_ string, r record) bool { return time.Since(r.Time) < 2*day }),
		b.talks.Retain(ctx, func(_ string, t talk) bool { return time.Since(t.Time) < 90*day }),
		b.heads.Retain(ctx, func(_ string, h head) bool { return time.Since(h.Time) < 90*day }),
	)
}

// get returns the value of key and its revision, 0 if there is none.
func get[T any](ctx context.Context, t store.Table[T], key string) (T, uint64, error) {
	v, rev, err := t.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return v, 0, nil
	}
	if err != nil {
		return v, 0, fmt.Errorf("look up request: %w", err)
	}
	return v, rev, nil
}

func put[T any](ctx context.Context, t store.Table[T], key string, v T, rev uint64) error {
	if _, err := t.Put(ctx, key, v, rev); err != nil {
		return fmt.Errorf("note request: %w", err)
	}
	return nil
}

// change changes the value of key, if there is one.
func change[T any](ctx context.Context, t store.Table[T], key string, how func(*T)) error {
	_, _, err := t.Update(ctx, key, func(v *T) error { how(v); return nil })
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("note request: %w", err)
	}
	return nil
}
