package nats

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley/store"
)

const (
	// idTTL is when a server removes what it knows of an id. That is only to save room: whether an id is remembered
	// depends on when it was pushed.
	idTTL = store.IDRetention + time.Hour

	// scanInterval is how often a queue is looked through for work of which this process was not told, as the
	// connection was lost.
	scanInterval = 15 * time.Second
	retryDelay   = time.Second // after a queue could not be looked through
)

// Queue implements [store.Store].
func (s *Store) Queue(name string) store.Queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, ok := s.queues[name]
	if !ok {
		q = &queue{
			stream:  s.stream("queues"),
			name:    name,
			work:    s.prefix + ".work." + token(name) + ".",
			ids:     s.prefix + ".seen." + token(name) + ".",
			holder:  s.prefix + ".holder." + token(name),
			news:    s.prefix + ".news." + token(name),
			pending: store.NewPending(),
			wake:    make(chan struct{}, 1),
		}
		if s.closed {
			q.pending.Close()
		}
		s.queues[name] = q
	}
	return q
}

// A queue has a subject for each id that was pushed, and subjects for each piece of work: one ends with "head", those
// of pieces with their numbers. All of its work is in the hands of one process, which hands it out in the order of the
// heads in the stream. If that process ends, the next one that pulls begins with all that is there.
type queue struct {
	stream  stream
	name    string
	work    string // the subjects of work begin with it
	ids     string // and those of ids
	holder  string // the lock of the process that has the work
	news    string // where that process is told of work; no stream has it
	pending *store.Pending
	wake    chan struct{} // holds a token when there may be work

	mu     sync.Mutex // guards what follows
	serves bool       // a goroutine does
	old    uint64     // work up to this number in the stream may have been begun before
}

const headToken = "head"

// Push implements [store.Queue].
func (q *queue) Push(ctx context.Context, id string, body []byte) error {
	return q.wrap(q.stream.store.call(ctx, func() error {
		subject := q.ids + token(id)
		for expected := uint64(0); ; {
			err := q.push(ctx, expected, id, body)
			if !errors.Is(err, store.ErrConflict) {
				return err
			}
			m, err := q.stream.last(ctx, subject)
			switch {
			case errors.Is(err, store.ErrNotFound):
				expected = 0
			case err != nil:
				return err
			case !isExpired(m):
				return nil
			default:
				expected = m.seq
			}
		}
	}))
}

// push stores the id and the work together.
func (q *queue) push(ctx context.Context, expected uint64, id string, body []byte) error {
	write := newWriteID()
	pushed := q.newPush(write, store.Push{ID: id, Time: time.Now()})
	msgs := append([]*client.Msg{pushed}, q.newWork(write, id, body)...)
	if _, err := q.stream.writeLast(ctx, expected, msgs...); err != nil {
		return err
	}
	q.signal()
	_ = q.stream.store.conn.Publish(q.news, nil) // who is not told looks now and then
	return nil
}

// newPush returns a message that says that an id was pushed. Servers remove it when that need not be known any more.
func (q *queue) newPush(write string, p store.Push) *client.Msg {
	m := newMessage(q.ids+token(p.ID), "", write, nil)
	setNumber(m, headerPushed, uint64(p.Time.UnixNano()))
	if isHashed(token(p.ID)) {
		m.Header.Set(headerName, escape(p.ID))
	}
	nameLong(m, q.name)
	m.Header.Set(client.MsgRollup, client.MsgRollupSubject)
	m.Header.Set(jetstream.MsgTTLHeader, max(time.Until(p.Time.Add(idTTL)), time.Second).Round(time.Second).String())
	return m
}

// newWork returns the messages of work.
func (q *queue) newWork(write, id string, body []byte) []*client.Msg {
	work := q.work + write + "."
	msgs := newHead(work+headToken, 0, body, write, func(i int) string { return fmt.Sprintf("%s%d", work, i) })
	head := msgs[len(msgs)-1]
	head.Header.Set(headerName, escape(id))
	nameLong(head, q.name)
	return msgs
}

// isExpired reports whether an id is no longer remembered.
func isExpired(id message) bool {
	return time.Since(pushedAt(id)) >= store.IDRetention
}

func pushedAt(id message) time.Time { return time.Unix(0, int64(id.numberIn(headerPushed))) }

// Pull implements [store.Queue].
func (q *queue) Pull(ctx context.Context) (store.Item, error) {
	q.mu.Lock()
	if !q.serves {
		q.serves = q.stream.store.start(q.serve)
	}
	q.mu.Unlock()
	for {
		n, err := q.pending.Pull(ctx)
		if err != nil {
			return store.Item{}, q.wrap(err)
		}
		item, err := q.item(ctx, n)
		switch {
		case err == nil:
			return item, nil
		case errors.Is(err, store.ErrNotFound): // it was done
			q.pending.Drop(n)
		case errors.Is(err, store.ErrDamaged): // it stays in the stream, and the rest goes on (P21)
			q.stream.store.log.Error("damaged work removed from its queue", "queue", q.name, "number", n, "err", err)
			q.pending.Drop(n)
		default:
			q.pending.Return(n, 0)
			return store.Item{}, q.wrap(err)
		}
	}
}

// item returns the work with that number for a worker.
func (q *queue) item(ctx context.Context, n uint64) (item store.Item, err error) {
	err = q.stream.store.call(ctx, func() error {
		m, err := q.stream.at(ctx, n)
		if err != nil {
			return err
		}
		body, err := q.assemble(ctx, m)
		if err != nil {
			return err
		}
		id, _ := unescape(m.header.Get(headerName))
		q.mu.Lock()
		defer q.mu.Unlock()
		item = store.Item{ID: id, Body: body, Again: n <= q.old}
		item.Done = func(ctx context.Context) error { return q.done(ctx, n, m.subject) }
		item.Later = q.pending.Later(n)
		return nil
	})
	return item, err
}

// assemble returns the work with the head m.
func (q *queue) assemble(ctx context.Context, m message) (body []byte, err error) {
	subject := m.subject[:len(m.subject)-len(headToken)]
	for i := range m.pieces() {
		piece, err := q.stream.last(ctx, subject+strconv.FormatUint(i, 10))
		if errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("a piece is missing: %w", store.ErrDamaged)
		}
		if err != nil {
			return nil, err
		}
		body = append(body, piece.body...)
	}
	body = append(body, m.body...)
	return body, m.check(body)
}

// done removes work, with all its pieces.
func (q *queue) done(ctx context.Context, n uint64, subject string) error {
	return q.wrap(q.stream.store.call(ctx, func() error {
		if err := q.stream.purge(ctx, subject[:len(subject)-len(headToken)]+">", 0); err != nil {
			return err
		}
		q.pending.Drop(n)
		return nil
	}))
}

// Len implements [store.Queue].
func (q *queue) Len(ctx context.Context) (n int, err error) {
	err = q.stream.store.call(ctx, func() error {
		heads, err := q.stream.subjects(ctx, q.work+"*."+headToken)
		n = len(heads)
		return err
	})
	return n, q.wrap(err)
}

// serve has the work of the queue handed out by this process, as long as that is the one, until ctx ends.
func (q *queue) serve(ctx context.Context) {
	log := q.stream.store.log.With("queue", q.name)
	for ctx.Err() == nil {
		err := q.serveOnce(ctx)
		if err != nil && ctx.Err() == nil {
			log.Warn("no work comes from NATS; trying again", "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(retryDelay):
			}
		}
	}
}

func (q *queue) serveOnce(ctx context.Context) error {
	s := q.stream.store
	lease, err := s.newLease(ctx, q.holder, "queue "+q.name)
	if err != nil {
		return err
	}
	defer lease.Unlock()
	told, err := s.conn.Subscribe(q.news, func(*client.Msg) { q.signal() })
	if err != nil {
		return err
	}
	defer func() { _ = told.Unsubscribe() }() // an error is one of the connection
	old := s.opened.queues
	if lease.previous > s.opened.buckets { // another process had the work since
		if old, err = q.stream.lastSeq(ctx); err != nil {
			return err
		}
	}
	q.mu.Lock()
	q.old = old
	q.mu.Unlock()
	var all []uint64
	defer func() { // they are free for another process
		for _, n := range all {
			q.pending.Drop(n)
		}
	}()
	for last := uint64(0); ; {
		found, err := q.scan(ctx, last)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			last = found[len(found)-1]
			q.pending.Add(found...)
			all = append(all, found...)
		}
		select {
		case <-q.wake:
		case <-time.After(scanInterval):
		case <-lease.Lost:
			return errors.New("another process has it")
		case <-ctx.Done():
			return nil
		}
	}
}

// scan returns the numbers of work after that number in the stream. Any server may be asked first, as one that has some
// of it has all before; its leader says whether that was all. What is done by now is found out by item.
func (q *queue) scan(ctx context.Context, after uint64) (found []uint64, err error) {
	err = q.stream.store.call(ctx, func() error {
		for {
			m, err := q.stream.next(ctx, q.work+"*."+headToken, after+1)
			if errors.Is(err, store.ErrNotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			after = m.seq
			found = append(found, after)
		}
	})
	return found, err
}

// signal has the queue looked through.
func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("queue %q: %w", q.name, err)
}
