package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	client "github.com/nats-io/nats.go"

	"parley/store"
)

const (
	attemptTimeout = 3 * time.Second // of a request; a new leader is there after two to five
	patience       = time.Minute     // with servers that cannot be asked, from the first attempt
	firstDelay     = 20 * time.Millisecond
	maxDelay       = time.Second
)

// Codes of errors of JetStream, as errors.json of the server lists them.
const (
	codeNoMessage       = 10037
	codeConflict        = 10071
	codeConflictUnsaid  = 10164 // another write to the subject may be under way
	codeIncompleteBatch = 10176
	codeTooManyBatches  = 10210
	codeSameInProcess   = 10158
	codeLargeBatch      = 10199
)

// full are the codes of JetStream for want of room.
var full = map[int]bool{10002: true, 10023: true, 10028: true, 10047: true, 10077: true, 10122: true}

// An apiError is an error that a server has answered with.
type apiError struct {
	Status int    `json:"code"`
	Code   int    `json:"err_code"`
	Text   string `json:"description"`
}

// Error implements error.
func (e *apiError) Error() string { return fmt.Sprintf("NATS: %s (%d)", e.Text, e.Code) }

// Is makes it the error of package store that it stands for.
func (e *apiError) Is(target error) bool {
	switch target {
	case store.ErrFull:
		return full[e.Code]
	case store.ErrNotFound:
		return e.Code == codeNoMessage
	}
	return false
}

func (e *apiError) isConflict() bool { return e.Code == codeConflict || e.Code == codeConflictUnsaid }

// errBusy says that the same request may work soon.
var errBusy = errors.New("another write is under way")

// errUnknown says that a write may have been made or not.
var errUnknown = errors.New("the answer to a write was lost, and others have written since: it may have been made")

// isTemporary reports whether a request that failed with err may work soon.
func isTemporary(err error) bool {
	if e, ok := errors.AsType[*apiError](err); ok {
		switch e.Code {
		case codeIncompleteBatch, codeTooManyBatches, codeSameInProcess:
			return true
		case codeOff, codeOffAccount, codeNoPeers, codeNoCluster:
			return false
		}
		return e.Status >= 500 && !full[e.Code]
	}
	return errors.Is(err, errBusy) || errors.Is(err, client.ErrNoResponders) || isUnanswered(err)
}

// isUnanswered reports whether err leaves open if the request has arrived.
func isUnanswered(err error) bool {
	for _, lost := range []error{
		context.DeadlineExceeded, client.ErrTimeout, client.ErrDisconnected, client.ErrConnectionReconnecting,
		client.ErrReconnectBufExceeded, client.ErrStaleConnection, client.ErrConnectionClosed,
		client.ErrBadSubscription,
	} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}

// retry calls try until it returns something else than a temporary error, or ctx ends, or patience does, or the Store
// is closed.
func (s *Store) retry(ctx context.Context, try func(context.Context) error) error {
	delay := firstDelay
	for began := time.Now(); ; {
		err := s.attempt(ctx, try)
		switch {
		case err == nil || !isTemporary(err):
			return err
		case errors.Is(err, ctx.Err()):
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case time.Since(began) > patience:
			return fmt.Errorf("ask NATS at %s: %w", s.address, err)
		}
		select {
		case <-time.After(delay):
			delay = min(2*delay, maxDelay)
		case <-ctx.Done():
		case <-s.closing.Done():
			return fmt.Errorf("%w: %w", store.ErrClosed, err)
		}
	}
}

// attempt calls try, whose ctx ends when the answer cannot come any more, or does not come in time.
func (s *Store) attempt(ctx context.Context, try func(context.Context) error) error {
	if err := s.Usable(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	stop := context.AfterFunc(*s.link.Load(), func() { fail(client.ErrDisconnected) })
	defer stop()
	err := try(ctx)
	if errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), client.ErrDisconnected) {
		return client.ErrDisconnected
	}
	return err
}

// request asks the API of JetStream, and again if it cannot be asked.
func (s *Store) request(ctx context.Context, operation string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	return s.retry(ctx, func(ctx context.Context) error {
		m, err := s.conn.RequestWithContext(ctx, "$JS.API."+operation, body)
		if err != nil {
			return err
		}
		return decode(m.Data, answer)
	})
}

// decode reads an answer, which may be an error.
func decode(data []byte, answer any) error {
	var failed struct {
		Error *apiError `json:"error"`
	}
	if err := json.Unmarshal(data, &failed); err != nil {
		return fmt.Errorf("read the answer of NATS: %w", err)
	}
	if failed.Error != nil {
		return failed.Error
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(data, answer)
}

// A stream is a stream of JetStream. Its leader answers, so that what was acknowledged is seen; batch is the exception.
type stream struct {
	store *Store
	name  string
}

// last returns the last message of subject, or ErrNotFound.
func (s stream) last(ctx context.Context, subject string) (message, error) {
	return s.get(ctx, map[string]any{"last_by_subj": subject})
}

// next returns the first message of subject with at least that number in the stream, or ErrNotFound.
func (s stream) next(ctx context.Context, subject string, seq uint64) (message, error) {
	return s.get(ctx, map[string]any{"next_by_subj": subject, "seq": max(seq, 1)})
}

// at returns the message with that number in the stream, or ErrNotFound.
func (s stream) at(ctx context.Context, seq uint64) (message, error) {
	return s.get(ctx, map[string]any{"seq": seq})
}

func (s stream) get(ctx context.Context, question any) (message, error) {
	var answer struct {
		Message struct {
			Subject string `json:"subject"`
			Seq     uint64 `json:"seq"`
			Header  []byte `json:"hdrs"`
			Data    []byte `json:"data"`
		} `json:"message"`
	}
	if err := s.store.request(ctx, "STREAM.MSG.GET."+s.name, question, &answer); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			return message{}, store.ErrNotFound
		}
		return message{}, err
	}
	m := message{subject: answer.Message.Subject, seq: answer.Message.Seq, body: answer.Message.Data}
	if len(answer.Message.Header) > 0 {
		header, err := client.DecodeHeadersMsg(answer.Message.Header)
		if err != nil {
			return message{}, fmt.Errorf("message %d of %s: %w: %w", m.seq, m.subject, store.ErrDamaged, err)
		}
		m.header = header
	}
	return m, nil
}

const (
	batchMessages = 256
	batchBytes    = 4 << 20
)

// batch returns some messages of subject with at least that number in the stream, in order. Any server that has the
// stream may answer, also one that does not have the last messages yet: what is missing may be there nevertheless.
func (s stream) batch(ctx context.Context, subject string, seq uint64) (found []message, err error) {
	question, err := json.Marshal(map[string]any{
		"next_by_subj": subject, "seq": max(seq, 1), "batch": batchMessages, "max_bytes": batchBytes,
	})
	if err != nil {
		return nil, err
	}
	err = s.store.retry(ctx, func(ctx context.Context) error {
		found = nil
		inbox := s.store.conn.NewInbox()
		answers, err := s.store.conn.SubscribeSync(inbox)
		if err != nil {
			return err
		}
		defer func() { _ = answers.Unsubscribe() }() // an error is one of the connection
		if err := s.store.conn.PublishRequest("$JS.API.DIRECT.GET."+s.name, inbox, question); err != nil {
			return err
		}
		for {
			m, err := answers.NextMsgWithContext(ctx)
			if err != nil {
				return err
			}
			switch m.Header.Get("Status") {
			case "":
			case "204", "404":
				return nil
			default:
				return fmt.Errorf("%w: %s", errBusy, m.Header.Get("Description"))
			}
			n, err := strconv.ParseUint(m.Header.Get(client.JSSequence), 10, 64)
			if err != nil {
				return fmt.Errorf("read the answer of NATS: %w", err)
			}
			subject := m.Header.Get(client.JSSubject)
			found = append(found, message{subject: subject, seq: n, header: m.Header, body: m.Data})
		}
	})
	return found, err
}

// purge removes the messages of subject, which may have wildcards, with lower numbers in the stream; 0 stands for all.
func (s stream) purge(ctx context.Context, subject string, below uint64) error {
	question := map[string]any{"filter": subject}
	if below > 0 {
		question["seq"] = below
	}
	return s.store.request(ctx, "STREAM.PURGE."+s.name, question, nil)
}

// A streamState is what a stream says of itself.
type streamState struct {
	Total int `json:"total"` // of Subjects, of which one answer has only some
	State struct {
		LastSeq  uint64            `json:"last_seq"`
		Subjects map[string]uint64 `json:"subjects"`
	} `json:"state"`
}

// subjects returns the subjects that match filter, and how many messages each has.
func (s stream) subjects(ctx context.Context, filter string) (map[string]uint64, error) {
	all := map[string]uint64{}
	for {
		var answer streamState
		question := map[string]any{"subjects_filter": filter, "offset": len(all)}
		if err := s.store.request(ctx, "STREAM.INFO."+s.name, question, &answer); err != nil {
			return nil, err
		}
		for subject, n := range answer.State.Subjects {
			all[subject] = n
		}
		if len(answer.State.Subjects) == 0 || len(all) >= answer.Total {
			return all, nil
		}
	}
}

// lastSeq returns the number of the last message of the stream.
func (s stream) lastSeq(ctx context.Context) (uint64, error) {
	var answer streamState
	err := s.store.request(ctx, "STREAM.INFO."+s.name, struct{}{}, &answer)
	return answer.State.LastSeq, err
}
