package nats

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"

	client "github.com/nats-io/nats.go"

	"parley/store"
)

// Log implements [store.Store].
func (s *Store) Log(name string) store.Log {
	subject := s.prefix + ".log." + token(name)
	sum := fnv.New32a()
	sum.Write([]byte(subject))
	return log{stream: s.stream("logs"), name: name, subject: subject, ends: s.ends[sum.Sum32()%uint32(len(s.ends))]}
}

// A log is a subject. The number of a record is in its header, and those of a log have no gaps, unless a message says
// up to what number there is nothing: of a log whose last records were trimmed, or that goes on from one in another
// store.
type log struct {
	stream  stream
	name    string
	subject string
	ends    *ends
}

// A position is where a record is.
type position struct {
	seq    uint64 // in the stream
	number uint64 // in the log
}

// maxKnownEnds is how many ends of logs of one group are remembered.
const maxKnownEnds = 256

// The ends of a group of logs are where their last records were when this process wrote last. They may be outdated.
// Appends to logs of one group wait for each other: those to one log would be refused otherwise, and tried again.
type ends struct {
	turn  chan struct{} // holds a token while somebody appends
	known map[string]position
}

func newEnds() *ends { return &ends{turn: make(chan struct{}, 1), known: map[string]position{}} }

func (e *ends) remember(subject string, p position) {
	if len(e.known) >= maxKnownEnds {
		clear(e.known)
	}
	e.known[subject] = p
}

// Append implements [store.Log].
func (l log) Append(ctx context.Context, after uint64, recs ...[]byte) (seq uint64, err error) {
	err = l.stream.store.call(ctx, func() error {
		select {
		case l.ends.turn <- struct{}{}:
			defer func() { <-l.ends.turn }()
		case <-ctx.Done():
			return ctx.Err()
		}
		end, err := l.append(ctx, after, recs)
		seq = end.number
		return err
	})
	if err != nil {
		return 0, l.wrap(err)
	}
	return seq, nil
}

func (l log) append(ctx context.Context, after uint64, recs [][]byte) (end position, err error) {
	end, known := l.ends.known[l.subject]
	for {
		if !known || len(recs) == 0 || after != store.Any && after != end.number {
			if end, err = l.end(ctx); err != nil {
				return position{}, err
			}
		}
		switch {
		case after != store.Any && after != end.number:
			return position{}, store.ErrConflict
		case len(recs) == 0:
			return end, nil
		}
		msgs, last := l.messages(end, recs)
		seq, err := l.stream.write(ctx, end.seq, msgs, l.lookAfter(end, msgs))
		if err == nil {
			end = position{seq: seq, number: last}
			l.ends.remember(l.subject, end)
			return end, nil
		}
		delete(l.ends.known, l.subject)
		if !errors.Is(err, store.ErrConflict) {
			return position{}, err
		}
		known = false
	}
}

// end returns where the last record is, or was; the zero position if there was none.
func (l log) end(ctx context.Context) (position, error) {
	m, err := l.stream.last(ctx, l.subject)
	if errors.Is(err, store.ErrNotFound) {
		return position{}, nil
	}
	return position{seq: m.seq, number: m.number()}, err
}

// messages returns those of recs, and the number of the last.
func (l log) messages(end position, recs [][]byte) (msgs []*client.Msg, last uint64) {
	write := newWriteID()
	last = end.number
	for _, r := range recs {
		last++
		msgs = append(msgs, newHead(l.subject, last, r, write, func(int) string { return l.subject })...)
		nameLong(msgs[len(msgs)-1], l.name)
	}
	return msgs, last
}

// lookAfter returns the look of a write of msgs after end. They are there if the first of them is.
func (l log) lookAfter(end position, msgs []*client.Msg) func(context.Context) (finding, uint64, error) {
	return func(ctx context.Context) (finding, uint64, error) {
		m, err := l.stream.next(ctx, l.subject, end.seq+1)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return foundUnchanged, 0, nil
		case err != nil:
			return foundOther, 0, err
		case m.write() == msgs[0].Header.Get(headerWrite):
			return foundOurs, m.seq + uint64(len(msgs)) - 1, nil
		}
		return foundOther, 0, nil
	}
}

// Since implements [store.Log].
func (l log) Since(ctx context.Context, seq uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		r := reader{log: l, number: seq}
		err := l.stream.store.call(ctx, func() error { return r.begin(ctx) })
		for err == nil && !r.done {
			err = l.stream.store.call(ctx, func() error { return r.read(ctx) })
			for _, found := range r.found {
				if !yield(found.record, l.wrap(found.err)) {
					return
				}
			}
			r.found = nil
		}
		if err != nil {
			yield(store.Record{}, l.wrap(err))
		}
	}
}

// A reader reads the records after a number, up to the end.
type reader struct {
	log    log
	number uint64 // of the record that was found last
	at     uint64 // the number in the stream to go on at
	end    position
	done   bool

	pieces []byte // of the record that comes next
	found  []foundRecord
}

type foundRecord struct {
	record store.Record
	err    error
}

func (r *reader) begin(ctx context.Context) (err error) {
	if r.end, err = r.log.end(ctx); err != nil {
		return err
	}
	if r.end.number <= r.number {
		r.done = true
		return nil
	}
	r.at, err = r.log.find(ctx, r.number+1, r.end)
	return err
}

// read reads some messages.
func (r *reader) read(ctx context.Context) error {
	msgs, err := r.log.stream.batch(ctx, r.log.subject, r.at)
	if err != nil {
		return err
	}
	if len(msgs) == 0 { // the server that was asked may lag behind
		m, err := r.log.stream.next(ctx, r.log.subject, r.at)
		if errors.Is(err, store.ErrNotFound) {
			r.done = true // they were trimmed meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		msgs = []message{m}
	}
	for _, m := range msgs {
		if m.seq > r.end.seq {
			r.done = true
			return nil
		}
		if m.number() > r.number+1 {
			if m, err = r.crossGap(ctx, m); err != nil {
				return err
			}
		}
		r.add(m)
		r.at = m.seq + 1
		r.done = m.seq >= r.end.seq
		if r.done {
			return nil
		}
	}
	return nil
}

// crossGap is called with the next message when there are none of the records before it. They were trimmed, or are
// damaged, or the answer was incomplete. It returns the message to go on with.
func (r *reader) crossGap(ctx context.Context, m message) (message, error) {
	first, err := r.log.stream.next(ctx, r.log.subject, 1)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return m, err
	}
	if err != nil || first.seq >= m.seq {
		r.number = m.number() - 1
		return m, nil
	}
	next, err := r.log.stream.next(ctx, r.log.subject, max(first.seq, r.at))
	if err != nil {
		return m, err
	}
	r.pieces = nil
	if first.seq >= r.at {
		r.number = max(r.number, next.number()-1)
	}
	if next.isGone() { // of records before, some were never written here
		r.number = next.number() - 1
	}
	for n := r.number + 1; n < next.number(); n++ {
		err := fmt.Errorf("record %d is missing: %w", n, store.ErrDamaged)
		r.found = append(r.found, foundRecord{store.Record{Seq: n}, err})
		r.number = n
	}
	return next, nil
}

// add adds what m has.
func (r *reader) add(m message) {
	switch {
	case m.number() <= r.number: // before what is wanted, or the mark of a trim or a gap
	case m.isGone():
		r.number = m.number()
	case m.isPiece():
		r.pieces = append(r.pieces, m.body...)
	default:
		r.number = m.number()
		body := append(r.pieces, m.body...)
		r.pieces = nil
		found := foundRecord{record: store.Record{Seq: r.number, Body: body}, err: m.check(body)}
		if found.err != nil {
			found.record.Body = nil
		}
		r.found = append(r.found, found)
	}
}

// shortRead is how many records may be read in vain rather than be skipped by asking where to begin.
const shortRead = 64

// find returns the number in the stream at which the record with that number, or the first one after it, begins. It
// may return an earlier one.
func (l log) find(ctx context.Context, number uint64, end position) (uint64, error) {
	first, err := l.stream.next(ctx, l.subject, 1)
	if errors.Is(err, store.ErrNotFound) {
		return end.seq, nil
	}
	if err != nil {
		return 0, err
	}
	from := position{seq: first.seq, number: first.number()} // never after the one that is looked for, if possible
	to := end
	for number > from.number+shortRead && to.seq-from.seq > shortRead {
		m, err := l.stream.next(ctx, l.subject, from.seq+(to.seq-from.seq)/2)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return 0, err
		}
		switch {
		case err != nil || m.number() >= number:
			to.seq = from.seq + (to.seq-from.seq)/2
		default:
			from = position{seq: m.seq, number: m.number()}
		}
	}
	return from.seq, nil
}

// Trim implements [store.Log]. If it removes the last record, it first writes what number that had.
func (l log) Trim(ctx context.Context, seq uint64) error {
	return l.wrap(l.stream.store.call(ctx, func() error {
		for {
			m, err := l.stream.last(ctx, l.subject)
			if errors.Is(err, store.ErrNotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			end := position{seq: m.seq, number: m.number()}
			if seq < end.number {
				return l.trimBefore(ctx, seq+1, end)
			}
			if !m.isGone() {
				end, err = l.mark(ctx, end)
				if errors.Is(err, store.ErrConflict) {
					continue
				}
				if err != nil {
					return err
				}
			}
			return l.stream.purge(ctx, l.subject, end.seq)
		}
	}))
}

// mark writes what number the last record had.
func (l log) mark(ctx context.Context, end position) (position, error) {
	write := newWriteID()
	m := newMessage(l.subject, kindGone, write, nil)
	setNumber(m, headerNumber, end.number)
	nameLong(m, l.name)
	msgs := []*client.Msg{m}
	seq, err := l.stream.write(ctx, end.seq, msgs, l.lookAfter(end, msgs))
	return position{seq: seq, number: end.number}, err
}

// trimBefore removes the records before that number, which is not beyond end.
func (l log) trimBefore(ctx context.Context, number uint64, end position) error {
	at, err := l.find(ctx, number, end)
	if err != nil {
		return err
	}
	for {
		msgs, err := l.stream.batch(ctx, l.subject, at)
		if err != nil {
			return err
		}
		if len(msgs) == 0 {
			m, err := l.stream.next(ctx, l.subject, at)
			if errors.Is(err, store.ErrNotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			msgs = []message{m}
		}
		for _, m := range msgs {
			if m.number() >= number {
				return l.stream.purge(ctx, l.subject, m.seq)
			}
			at = m.seq + 1
		}
	}
}

func (l log) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("log %q: %w", l.name, err)
}
