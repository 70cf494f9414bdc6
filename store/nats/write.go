package nats

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	client "github.com/nats-io/nats.go"

	"parley/store"
)

// maxMessages is how many messages servers store together if they were not told otherwise.
const maxMessages = 1000

// A finding is what became of the subject of a write that was refused.
type finding int

const (
	foundOther     finding = iota // others have written to it
	foundUnchanged                // nobody has
	foundOurs                     // it has what was to be written
)

// write stores msgs, all or none, if the last message of the subject of the first one has the number expected in the
// stream, and returns the number of the last. Otherwise it returns ErrConflict.
//
// It tries again if no answer comes. Then its own message may be what it is refused for: look tells. One message alone
// has an id by which servers know it again (see MsgIdHdr) for two minutes, which are longer than patience, so that it
// is found even if others have written over it since.
func (s stream) write(
	ctx context.Context, expected uint64, msgs []*client.Msg, look func(context.Context) (finding, uint64, error),
) (seq uint64, err error) {
	if len(msgs) > maxMessages {
		return 0, fmt.Errorf("%d messages are more than the %d that NATS stores at once", len(msgs), maxMessages)
	}
	msgs[0].Header.Set(client.ExpectedLastSubjSeqHdr, strconv.FormatUint(expected, 10))
	unanswered := false
	err = s.store.retry(ctx, func(ctx context.Context) error {
		var err error
		seq, err = s.publish(ctx, msgs)
		unanswered = unanswered || isUnanswered(err)
		if refused, ok := errors.AsType[*apiError](err); !ok || !refused.isConflict() {
			return err
		}
		found, at, err := look(ctx)
		switch {
		case err != nil:
			return err
		case found == foundOurs:
			seq = at
			return nil
		case found == foundUnchanged:
			return errBusy
		case unanswered && len(msgs) > 1:
			return errUnknown
		}
		return store.ErrConflict
	})
	return seq, err
}

// writeLast is write for messages of which the last one of the subject of the first tells what became of them.
func (s stream) writeLast(ctx context.Context, expected uint64, msgs ...*client.Msg) (seq uint64, err error) {
	return s.write(ctx, expected, msgs, s.lookAtLast(msgs[0], expected))
}

func (s stream) lookAtLast(first *client.Msg, expected uint64) func(context.Context) (finding, uint64, error) {
	return func(ctx context.Context) (finding, uint64, error) {
		m, err := s.last(ctx, first.Subject)
		switch {
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return foundOther, 0, err
		case m.seq == expected:
			return foundUnchanged, 0, nil
		case m.write() == first.Header.Get(headerWrite):
			return foundOurs, m.seq, nil
		}
		return foundOther, 0, nil
	}
}

// publish stores msgs, all or none, and returns the number of the last.
func (s stream) publish(ctx context.Context, msgs []*client.Msg) (seq uint64, err error) {
	last := msgs[len(msgs)-1]
	if len(msgs) == 1 {
		last.Header.Set(client.MsgIdHdr, last.Header.Get(headerWrite))
	} else if last, err = s.publishAllButLast(msgs); err != nil {
		return 0, err
	}
	m, err := s.store.conn.RequestMsgWithContext(ctx, last)
	if err != nil {
		return 0, err
	}
	var stored struct {
		Seq uint64 `json:"seq"`
	}
	if len(m.Data) == 0 {
		return 0, errors.New("NATS did not store a batch: is atomic publishing switched off?")
	}
	if !json.Valid(m.Data) {
		return 0, fmt.Errorf("read the answer of NATS: %.100q", m.Data)
	}
	err = decode(m.Data, &stored)
	return stored.Seq, err
}

// publishAllButLast begins a batch with msgs, and returns the last one, which ends it. It changes copies, as a batch
// that is tried again is another one.
func (s stream) publishAllButLast(msgs []*client.Msg) (last *client.Msg, err error) {
	id := rand.Text()
	for i, m := range msgs {
		last = client.NewMsg(m.Subject)
		last.Data = m.Data
		for name, values := range m.Header {
			last.Header[name] = slices.Clone(values)
		}
		last.Header.Set("Nats-Batch-Id", id)
		last.Header.Set("Nats-Batch-Sequence", strconv.Itoa(i+1))
		if i == len(msgs)-1 {
			last.Header.Set("Nats-Batch-Commit", "1")
			break
		}
		if err := s.store.conn.PublishMsg(last); err != nil {
			return nil, err
		}
	}
	return last, nil
}
