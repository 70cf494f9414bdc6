package store

import (
	"context"
	"sync"
)

// Work pulls the work of q and calls do for each key that has some: in one goroutine
// per key, which exists only while there is something to do, so that the work of a key
// is done in order and no key waits for another.
//
// key is called once for each item that is pulled, in that order, before do can take it.
//
// do gets a function take that returns the work of its key that has arrived since, or
// nil. It must call take at least once, and end what it took with Done or Later. Work
// returns when ctx has ended, or q has failed, and every do has returned. Work that was
// not taken by then is returned to q.
func Work(ctx context.Context, q Queue, key func(Item) string,
	do func(ctx context.Context, key string, take func() []Item),
) error {
	w := worker{waiting: map[string][]Item{}}
	defer w.end()
	for {
		item, err := q.Pull(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		k := key(item)
		if w.put(k, item) {
			w.live.Go(func() {
				for w.busy(k) && ctx.Err() == nil {
					do(ctx, k, func() []Item { return w.take(k) })
				}
			})
		}
	}
}

// A worker holds the work that was pulled and not taken yet. A key is present while
// its goroutine runs.
type worker struct {
	live    sync.WaitGroup
	mu      sync.Mutex
	waiting map[string][]Item
}

// end waits for all goroutines and returns the work that they left to the queue.
func (w *worker) end() {
	w.live.Wait()
	for _, items := range w.waiting {
		for _, item := range items {
			item.Later(0)
		}
	}
}

// put adds item and reports whether key needs a goroutine.
func (w *worker) put(key string, item Item) (idle bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	items, live := w.waiting[key]
	w.waiting[key] = append(items, item)
	return !live
}

func (w *worker) take(key string) []Item {
	w.mu.Lock()
	defer w.mu.Unlock()
	items := w.waiting[key]
	w.waiting[key] = nil
	return items
}

// busy reports whether key has work. If not, its goroutine must end.
func (w *worker) busy(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting[key]) > 0 {
		return true
	}
	delete(w.waiting, key)
	return false
}
