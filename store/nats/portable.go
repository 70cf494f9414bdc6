package nats

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"parley/store"
)

// Portable returns s as one whose content can be moved.
func (s *Store) Portable() store.Portable { return portable{Store: s, nats: s} }

type portable struct {
	store.Store
	nats *Store
}

// Names implements [store.Portable].
func (p portable) Names(ctx context.Context) (names store.Names, err error) {
	err = p.nats.call(ctx, func() (err error) {
		if names.Buckets, err = p.names(ctx, p.nats.stream("buckets"), "bucket", "*.*"); err != nil {
			return err
		}
		if names.Logs, err = p.names(ctx, p.nats.stream("logs"), "log", "*"); err != nil {
			return err
		}
		if names.Queues, err = p.names(ctx, p.nats.stream("queues"), "work", "*.*."+headToken); err != nil {
			return err
		}
		remembered, err := p.names(ctx, p.nats.stream("queues"), "seen", "*.*")
		names.Queues = slices.Concat(names.Queues, remembered)
		slices.Sort(names.Queues)
		names.Queues = slices.Compact(names.Queues)
		return err
	})
	return names, err
}

// names returns the names of what is in the stream below PREFIX.kind, sorted. Rest matches what follows the prefix.
func (p portable) names(ctx context.Context, in stream, kind, rest string) ([]string, error) {
	prefix := p.nats.prefix + "." + kind + "."
	subjects, err := in.subjects(ctx, prefix+rest)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for subject := range subjects {
		escaped, _, _ := strings.Cut(strings.TrimPrefix(subject, prefix), ".")
		if isHashed(escaped) {
			m, err := in.last(ctx, subject)
			if errors.Is(err, store.ErrNotFound) { // it has just been removed
				continue
			}
			if err != nil {
				return nil, err
			}
			escaped = m.header.Get(headerLong)
		}
		name, ok := unescape(escaped)
		if !ok || escaped == "" {
			return nil, fmt.Errorf("the name of %s is not known", subject)
		}
		found[name] = true
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// Skip implements [store.Portable].
func (p portable) Skip(ctx context.Context, name string, seq uint64) error {
	l := p.nats.Log(name).(log)
	return l.wrap(p.nats.call(ctx, func() error {
		select {
		case l.ends.turn <- struct{}{}:
			defer func() { <-l.ends.turn }()
		case <-ctx.Done():
			return ctx.Err()
		}
		end, err := l.end(ctx)
		if err != nil || end.number >= seq {
			return err
		}
		if end, err = l.mark(ctx, position{seq: end.seq, number: seq}); err != nil {
			return err
		}
		l.ends.remember(l.subject, end)
		return nil
	}))
}

// Work implements [store.Portable].
func (p portable) Work(ctx context.Context, name string) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		q := p.nats.Queue(name).(*queue)
		all, err := q.scan(ctx, 0)
		if err != nil {
			yield(store.Item{}, store.Terminal(q.wrap(err)))
			return
		}
		for _, n := range all {
			item, err := q.item(ctx, n)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if !yield(store.Item{ID: item.ID, Body: item.Body}, q.wrap(err)) {
				return
			}
		}
	}
}

// AddWork implements [store.Portable].
func (p portable) AddWork(ctx context.Context, name, id string, body []byte) error {
	q := p.nats.Queue(name).(*queue)
	return q.wrap(p.nats.call(ctx, func() error {
		if _, err := q.stream.writeLast(ctx, 0, q.newWork(newWriteID(), id, body)...); err != nil {
			return err
		}
		q.signal()
		return nil
	}))
}

// Pushes implements [store.Portable].
func (p portable) Pushes(ctx context.Context, name string) iter.Seq2[store.Push, error] {
	return func(yield func(store.Push, error) bool) {
		q := p.nats.Queue(name).(*queue)
		var all []foundPush
		err := p.nats.call(ctx, func() (err error) {
			all, err = q.pushes(ctx)
			return err
		})
		for _, found := range all {
			if !yield(found.push, q.wrap(found.err)) {
				return
			}
		}
		if err != nil {
			yield(store.Push{}, store.Terminal(q.wrap(err)))
		}
	}
}

type foundPush struct {
	push store.Push
	err  error
}

// pushes returns what the queue remembers, in the order of the ids.
func (q *queue) pushes(ctx context.Context) (all []foundPush, err error) {
	subjects, err := q.stream.subjects(ctx, q.ids+"*")
	if err != nil {
		return nil, err
	}
	for subject := range subjects {
		m, err := q.stream.last(ctx, subject)
		switch {
		case errors.Is(err, store.ErrNotFound): // its time was over
		case errors.Is(err, store.ErrDamaged):
			all = append(all, foundPush{err: err})
		case err != nil:
			return nil, err
		default:
			all = append(all, q.decodePush(m))
		}
	}
	slices.SortFunc(all, func(a, b foundPush) int { return strings.Compare(a.push.ID, b.push.ID) })
	return all, nil
}

// decodePush returns what newPush has put into m.
func (q *queue) decodePush(m message) foundPush {
	escaped := strings.TrimPrefix(m.subject, q.ids)
	if isHashed(escaped) {
		escaped = m.header.Get(headerName)
	}
	id, ok := unescape(escaped)
	if !ok || escaped == "" {
		return foundPush{err: fmt.Errorf("the id of %s is not known: %w", m.subject, store.ErrDamaged)}
	}
	return foundPush{push: store.Push{ID: id, Time: pushedAt(m)}}
}

// AddPush implements [store.Portable].
func (p portable) AddPush(ctx context.Context, name string, push store.Push) error {
	q := p.nats.Queue(name).(*queue)
	return q.wrap(p.nats.call(ctx, func() error {
		m := q.newPush(newWriteID(), push)
		known, err := q.stream.last(ctx, m.Subject)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		_, err = q.stream.writeLast(ctx, known.seq, m)
		return err
	}))
}
