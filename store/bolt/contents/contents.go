// Package contents moves what is in a Store of package bolt into one of another type, and back. It knows how the
// entries of the file are laid out: see package bolt.
package contents

import (
	"context"
	"encoding/binary"
	"iter"
	"slices"
	"strings"
	"time"

	"parley/store"
	"parley/store/bolt"
)

// Of returns s as one whose content can be moved. What is added to a queue is handed out when s was opened again.
func Of(s *bolt.Store) store.Portable { return portable{Store: s, bolt: s} }

type portable struct {
	store.Store
	bolt *bolt.Store
}

// Names implements [store.Portable].
func (p portable) Names(ctx context.Context) (names store.Names, err error) {
	if names.Buckets, err = p.bolt.Parts(ctx, "bucket"); err != nil {
		return names, err
	}
	if names.Logs, err = p.bolt.Parts(ctx, "log"); err != nil {
		return names, err
	}
	work, err := p.bolt.Parts(ctx, "queue")
	if err != nil {
		return names, err
	}
	pushes, err := p.bolt.Parts(ctx, "seen")
	names.Queues = slices.Concat(work, pushes)
	for _, list := range []*[]string{&names.Buckets, &names.Logs, &names.Queues} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return names, err
}

// Skip implements [store.Portable].
func (p portable) Skip(ctx context.Context, log string, seq uint64) error {
	return p.bolt.Skip(ctx, log, seq)
}

// Work implements [store.Portable].
func (p portable) Work(ctx context.Context, queue string) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		for e, err := range p.bolt.Entries(ctx, "queue", queue) {
			if !yield(decodeWork(e.Value), err) {
				return
			}
		}
	}
}

// decodeWork returns the work in a value, which is empty if it is damaged.
func decodeWork(v []byte) store.Item {
	if len(v) == 0 {
		return store.Item{}
	}
	size := binary.BigEndian.Uint64(v)
	return store.Item{ID: string(v[8:][:size]), Body: v[8+size:]}
}

// AddWork implements [store.Portable].
func (p portable) AddWork(ctx context.Context, queue, id string, body []byte) error {
	v := binary.BigEndian.AppendUint64(nil, uint64(len(id)))
	return p.bolt.AddEntry(ctx, "queue", queue, bolt.Entry{Value: slices.Concat(v, []byte(id), body)})
}

// Pushes implements [store.Portable].
func (p portable) Pushes(ctx context.Context, queue string) iter.Seq2[store.Push, error] {
	return func(yield func(store.Push, error) bool) {
		for e, err := range p.bolt.Entries(ctx, "seen", queue) {
			push := store.Push{ID: strings.TrimPrefix(string(e.Key), "="), Time: decodeTime(e.Value)}
			if !yield(push, err) {
				return
			}
		}
	}
}

// decodeTime returns the time in a value, which is empty if it is damaged.
func decodeTime(v []byte) time.Time {
	if len(v) == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(v)))
}

// AddPush implements [store.Portable].
func (p portable) AddPush(ctx context.Context, queue string, push store.Push) error {
	v := binary.BigEndian.AppendUint64(nil, uint64(push.Time.UnixNano()))
	return p.bolt.AddEntry(ctx, "seen", queue, bolt.Entry{Key: []byte("=" + push.ID), Value: v})
}
