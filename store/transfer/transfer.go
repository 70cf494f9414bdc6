// Package transfer copies what one Store has into an empty one, which may be of another type, and reads it again to see
// that it is the same.
//
// Values, records and work are as they were, logs go on with the numbers that they had come to, and queues remember the
// ids that were pushed to them. Revisions of values and the fences of locks begin anew.
package transfer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/store"
)

// A Report counts what was copied.
type Report struct {
	Values, Records, Work, Pushes int
	Damaged                       []error // what could not be read
}

// Copy copies what from has into to, and checks that. Nobody else may use either of them meanwhile. It returns an
// error, and has changed nothing, if there is something in to. After another error some of it may be there, and
// [CheckState] says so. In the place of a damaged record there is an empty one, which nobody takes for sound.
func Copy(ctx context.Context, from, to store.Portable) (r Report, err error) {
	since := time.Now().Add(-store.IDRetention)
	if err := CheckState(ctx, from); err != nil && !errors.Is(err, ErrLeft) { // which a second try finds, too
		return r, err
	}
	if err := CheckState(ctx, to); err != nil {
		return r, err
	}
	for e, err := range entries(ctx, to, since) {
		if err != nil {
			return r, fmt.Errorf("check that the target is empty: %w", err)
		}
		return r, fmt.Errorf("the target is not empty: it has %s %q: "+
			"remove what is there, or choose another store.prefix", e.in.kind, e.in.name)
	}
	if err := setState(ctx, to, stateArriving); err != nil {
		return r, err
	}
	was := digests{}
	w := writer{to: to}
	for e, err := range entries(ctx, from, since) {
		switch {
		case errors.Is(err, store.ErrDamaged):
			r.Damaged = append(r.Damaged, err)
			if e.in.kind != kindRecord || e.number == 0 {
				continue
			}
		case err != nil:
			return r, fmt.Errorf("read: %w", err)
		}
		r.count(e)
		was.add(e)
		if err := w.add(ctx, e); err != nil {
			return r, fmt.Errorf("write: %w", err)
		}
	}
	if err := w.flush(ctx); err != nil {
		return r, fmt.Errorf("write: %w", err)
	}
	is := digests{}
	for e, err := range entries(ctx, to, since) {
		if err != nil {
			return r, fmt.Errorf("read what was written: %w", err)
		}
		is.add(e)
	}
	if err := was.compare(is); err != nil {
		return r, err
	}
	return r, to.Bucket(store.BucketTransfer).Delete(ctx, stateKey)
}

// What the bucket of transfers says of a Store.
const (
	stateKey      = "state"
	stateArriving = "arriving" // something is being copied into it, or that has failed
	stateLeft     = "left"     // what was in it has been copied to where it is used now
)

// Leave notes in s that what it has was copied to where it is used from now on.
func Leave(ctx context.Context, s store.Store) error { return setState(ctx, s, stateLeft) }

func setState(ctx context.Context, s store.Store, state string) error {
	_, err := s.Bucket(store.BucketTransfer).Put(ctx, stateKey, []byte(state), store.Any)
	return err
}

// CheckState returns an error if s must not be used, because a copy into it has failed or it was left.
func CheckState(ctx context.Context, s store.Store) error {
	state, _, err := s.Bucket(store.BucketTransfer).Get(ctx, stateKey)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return err
	case string(state) == stateLeft:
		return ErrLeft
	}
	return ErrIncomplete
}

// Errors of a Store that must not be used.
var (
	ErrLeft = errors.New("what was in the store has been copied to where it is used now: " +
		"use the config that names that place, or remove what is here")
	ErrIncomplete = errors.New("what was copied into the store is incomplete: " +
		"remove it, or choose another store.prefix, and copy again")
)

func (r *Report) count(e entry) {
	switch e.in.kind {
	case kindValue:
		r.Values++
	case kindRecord:
		r.Records++
	case kindWork:
		r.Work++
	case kindPush:
		r.Pushes++
	}
}

// What an entry can be.
const (
	kindValue  = "bucket"
	kindRecord = "log"
	kindEnd    = "end of log"
	kindWork   = "queue"
	kindPush   = "ids of queue"
)

// A collection is what has entries of one kind.
type collection struct{ kind, name string }

// An entry is a value, a record, the number of the last record of a log, a piece of work or an id that was pushed.
type entry struct {
	in     collection
	key    string // of a value; the id of work
	number uint64 // of a record; when an id was pushed, in nanoseconds
	body   []byte
}

// entries yields what s has, each collection at a stretch and in order, without ids that were pushed before a time.
// What is damaged is yielded as ErrDamaged, and others follow; other errors end it.
func entries(ctx context.Context, s store.Portable, since time.Time) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		names, err := s.Names(ctx)
		if err != nil {
			yield(entry{}, store.Terminal(err))
			return
		}
		names.Buckets = slices.DeleteFunc(names.Buckets, func(name string) bool { return name == store.BucketTransfer })
		var all []iter.Seq2[entry, error] // none is read before its turn
		for _, name := range names.Buckets {
			all = append(all, values(ctx, s, name))
		}
		for _, name := range names.Logs {
			all = append(all, records(ctx, s, name))
		}
		for _, name := range names.Queues {
			all = append(all, work(ctx, s, name), pushes(ctx, s, name, since))
		}
		for _, collection := range all {
			for e, err := range collection {
				if !yield(e, err) || err != nil && !errors.Is(err, store.ErrDamaged) {
					return
				}
			}
		}
	}
}

func values(ctx context.Context, s store.Portable, name string) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		b := s.Bucket(name)
		for key, err := range b.Keys(ctx, "") {
			if err != nil {
				yield(entry{}, store.Terminal(err))
				return
			}
			val, _, err := b.Get(ctx, key)
			if !yield(entry{in: collection{kindValue, name}, key: key, body: val}, err) {
				return
			}
		}
	}
}

func records(ctx context.Context, s store.Portable, name string) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		l := s.Log(name)
		for r, err := range l.Since(ctx, 0) {
			if err != nil && r.Seq == 0 {
				err = store.Terminal(err)
			}
			if !yield(entry{in: collection{kindRecord, name}, number: r.Seq, body: r.Body}, err) {
				return
			}
		}
		end, err := store.LastNumber(ctx, l)
		if end > 0 || err != nil {
			yield(entry{in: collection{kindEnd, name}, number: end}, store.Terminal(err))
		}
	}
}

func work(ctx context.Context, s store.Portable, name string) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		for item, err := range s.Work(ctx, name) {
			if !yield(entry{in: collection{kindWork, name}, key: item.ID, body: item.Body}, err) {
				return
			}
		}
	}
}

func pushes(ctx context.Context, s store.Portable, name string, since time.Time) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		for p, err := range s.Pushes(ctx, name) {
			if err == nil && p.Time.Before(since) {
				continue
			}
			e := entry{in: collection{kindPush, name}, key: p.ID, number: uint64(p.Time.UnixNano())}
			if !yield(e, err) {
				return
			}
		}
	}
}

// digests are what collections have, by which they are compared.
type digests map[collection]*digest

type digest struct {
	count int
	sum   hash.Hash
}

func (d digests) add(e entry) {
	if d[e.in] == nil {
		d[e.in] = &digest{sum: sha256.New()}
	}
	one := d[e.in]
	one.count++
	head := binary.BigEndian.AppendUint64(nil, e.number)
	head = binary.BigEndian.AppendUint64(head, uint64(len(e.key)))
	head = binary.BigEndian.AppendUint64(head, uint64(len(e.body)))
	one.sum.Write(head) // it returns no error
	one.sum.Write([]byte(e.key))
	one.sum.Write(e.body)
}

// compare returns an error unless the collections have the same.
func (d digests) compare(is digests) error {
	both := maps.Clone(d)
	maps.Copy(both, is)
	byName := func(a, b collection) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.name, b.name))
	}
	for _, c := range slices.SortedFunc(maps.Keys(both), byName) {
		want, got := d[c], is[c]
		switch {
		case want == nil:
			return fmt.Errorf("there is more than was written: %s %q", c.kind, c.name)
		case got == nil:
			return fmt.Errorf("%s %q is missing, with %d entries that were written", c.kind, c.name, want.count)
		case got.count != want.count:
			return fmt.Errorf("%s %q has %d entries, and %d were written", c.kind, c.name, got.count, want.count)
		case string(got.sum.Sum(nil)) != string(want.sum.Sum(nil)):
			return fmt.Errorf("%s %q is not what was written", c.kind, c.name)
		}
	}
	return nil
}

const (
	batchLen  = 256
	batchSize = 4 << 20 // bytes, beyond which nothing is added
	parallel  = 16      // writes at the same time, of those that have no order
)

// A writer writes entries, some of a collection together.
type writer struct {
	to    store.Portable
	batch []entry
	size  int
}

func (w *writer) add(ctx context.Context, e entry) error {
	if len(w.batch) > 0 && (w.batch[0].in != e.in || len(w.batch) == batchLen || w.size+len(e.body) > batchSize) {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	w.batch = append(w.batch, e)
	w.size += len(e.body)
	return nil
}

// flush writes the batch.
func (w *writer) flush(ctx context.Context) error {
	if len(w.batch) == 0 {
		return nil
	}
	batch := w.batch
	w.batch = nil
	w.size = 0
	name := batch[0].in.name
	switch batch[0].in.kind {
	case kindValue:
		b := w.to.Bucket(name)
		return eachAtOnce(batch, func(e entry) error {
			_, err := b.Put(ctx, e.key, e.body, 0)
			return err
		})
	case kindRecord:
		return w.append(ctx, name, batch)
	case kindEnd:
		return w.to.Skip(ctx, name, batch[0].number)
	case kindWork:
		for _, e := range batch {
			if err := w.to.AddWork(ctx, name, e.key, e.body); err != nil {
				return err
			}
		}
		return nil
	default:
		return eachAtOnce(batch, func(e entry) error {
			return w.to.AddPush(ctx, name, store.Push{ID: e.key, Time: time.Unix(0, int64(e.number))})
		})
	}
}

// append adds records with their numbers, those without a gap together.
func (w *writer) append(ctx context.Context, name string, records []entry) error {
	for len(records) > 0 {
		before := records[0].number - 1
		if err := w.to.Skip(ctx, name, before); err != nil {
			return err
		}
		var bodies [][]byte
		for len(records) > 0 && records[0].number == before+1+uint64(len(bodies)) {
			bodies = append(bodies, records[0].body)
			records = records[1:]
		}
		if _, err := w.to.Log(name).Append(ctx, before, bodies...); err != nil {
			return err
		}
	}
	return nil
}

// eachAtOnce calls do with each entry, some at the same time.
func eachAtOnce(all []entry, do func(entry) error) error {
	var wg sync.WaitGroup
	errs := make([]error, parallel)
	for i := range parallel {
		wg.Go(func() {
			for n := i; n < len(all) && errs[i] == nil; n += parallel {
				errs[i] = do(all[n])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
