package nats

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	client "github.com/nats-io/nats.go"

	"parley/store"
)

// Bucket implements [store.Store].
func (s *Store) Bucket(name string) store.Bucket {
	return bucket{stream: s.stream("buckets"), name: name, subject: s.prefix + ".bucket." + token(name) + "."}
}

// A bucket has a subject for each key. The revision of a value is the number of its head in the stream.
type bucket struct {
	stream  stream
	name    string
	subject string // of all keys, but for the key
}

// subjectOf returns the subject of key, on which values have replaced each other.
func (b bucket) subjectOf(key string) string { return b.subject + token(key) }

// Get implements [store.Bucket].
func (b bucket) Get(ctx context.Context, key string) (val []byte, rev uint64, err error) {
	err = b.stream.store.call(ctx, func() error {
		val, rev, err = b.get(ctx, b.subjectOf(key))
		return err
	})
	if err != nil {
		return nil, 0, b.wrap(key, err)
	}
	return val, rev, nil
}

func (b bucket) get(ctx context.Context, subject string) (val []byte, rev uint64, err error) {
	for {
		m, err := b.stream.last(ctx, subject)
		if err != nil {
			return nil, 0, err
		}
		if m.isGone() {
			return nil, 0, store.ErrNotFound
		}
		val, err := b.assemble(ctx, m)
		if !errors.Is(err, store.ErrNotFound) {
			return val, m.seq, err
		}
		// It has been replaced while it was read, or some of it is lost.
		if now, err := b.stream.last(ctx, subject); err == nil && now.seq == m.seq {
			return nil, 0, fmt.Errorf("a piece of message %d is missing: %w", m.seq, store.ErrDamaged)
		}
	}
}

// assemble returns the value with the head m. Its pieces are just before it in the stream.
func (b bucket) assemble(ctx context.Context, m message) (val []byte, err error) {
	if m.pieces() >= min(m.seq, maxMessages) {
		return nil, m.check(nil)
	}
	for seq := m.seq - m.pieces(); seq < m.seq; seq++ {
		piece, err := b.stream.at(ctx, seq)
		if err != nil {
			return nil, err
		}
		val = append(val, piece.body...)
	}
	val = append(val, m.body...)
	return val, m.check(val)
}

// Put implements [store.Bucket].
func (b bucket) Put(ctx context.Context, key string, val []byte, rev uint64) (given uint64, err error) {
	err = b.stream.store.call(ctx, func() error {
		given, err = b.put(ctx, key, val, rev)
		return err
	})
	if err != nil {
		return 0, b.wrap(key, err)
	}
	return given, nil
}

func (b bucket) put(ctx context.Context, key string, val []byte, rev uint64) (uint64, error) {
	subject := b.subjectOf(key)
	expected := rev
	if rev == store.Any {
		m, err := b.stream.last(ctx, subject)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return 0, err
		}
		expected = m.seq
	}
	for {
		given, err := b.replace(ctx, key, expected, val)
		if !errors.Is(err, store.ErrConflict) || rev != store.Any && rev != 0 {
			return given, err
		}
		m, lookErr := b.stream.last(ctx, subject)
		switch {
		case lookErr != nil && !errors.Is(lookErr, store.ErrNotFound):
			return 0, lookErr
		case rev == 0 && lookErr == nil && !m.isGone():
			return 0, err
		}
		expected = m.seq
	}
}

// replace writes val in the place of the message that has that number in the stream.
func (b bucket) replace(ctx context.Context, key string, expected uint64, val []byte) (uint64, error) {
	subject := b.subjectOf(key)
	msgs := newHead(subject, 0, val, newWriteID(), func(int) string { return subject })
	b.nameKey(msgs[len(msgs)-1], key)
	msgs[0].Header.Set(client.MsgRollup, client.MsgRollupSubject) // removes what was there
	return b.stream.writeLast(ctx, expected, msgs...)
}

// nameKey adds the names to a message whose subject does not have them.
func (b bucket) nameKey(m *client.Msg, key string) {
	nameLong(m, b.name)
	if isHashed(token(key)) {
		m.Header.Set(headerName, escape(key))
	}
}

// Delete implements [store.Bucket]. It writes that the key is gone, so that nobody puts at the revision that it had,
// and then removes all of it.
func (b bucket) Delete(ctx context.Context, key string) error {
	return b.wrap(key, b.stream.store.call(ctx, func() error {
		subject := b.subjectOf(key)
		for {
			m, err := b.stream.last(ctx, subject)
			if errors.Is(err, store.ErrNotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			gone := m.seq
			if !m.isGone() {
				marker := newMessage(subject, kindGone, newWriteID(), nil)
				b.nameKey(marker, key)
				gone, err = b.stream.writeLast(ctx, m.seq, marker)
				if errors.Is(err, store.ErrConflict) {
					continue
				}
				if err != nil {
					return err
				}
			}
			return b.stream.purge(ctx, subject, gone+1)
		}
	}))
}

// Keys implements [store.Bucket].
func (b bucket) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var keys []string
		err := b.stream.store.call(ctx, func() (err error) {
			keys, err = b.keys(ctx)
			return err
		})
		if err != nil {
			yield("", b.wrap(prefix, err))
			return
		}
		for _, k := range keys {
			if strings.HasPrefix(k, prefix) && !yield(k, nil) {
				return
			}
		}
	}
}

// keys returns all keys, sorted.
func (b bucket) keys(ctx context.Context) (keys []string, err error) {
	subjects, err := b.stream.subjects(ctx, b.subject+"*")
	if err != nil {
		return nil, err
	}
	for subject, messages := range subjects {
		escaped := strings.TrimPrefix(subject, b.subject)
		if messages > 1 || isHashed(escaped) { // it is large, or just being deleted, or its name is in it
			m, err := b.stream.last(ctx, subject)
			if errors.Is(err, store.ErrNotFound) || err == nil && m.isGone() {
				continue
			}
			if err != nil {
				return nil, err
			}
			if isHashed(escaped) {
				escaped = m.header.Get(headerName)
			}
		}
		if key, ok := unescape(escaped); ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

func (b bucket) wrap(key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("bucket %q: key %q: %w", b.name, key, err)
}
