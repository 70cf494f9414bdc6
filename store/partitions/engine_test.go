package partitions_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley/store"
	"parley/store/mem"
)

// How the engine is: the delays are those of three servers of NATS in one network, and the times of locks are those of
// store/nats.
const (
	readDelay    = 500 * time.Microsecond
	writeDelay   = 2 * time.Millisecond
	leaseTime    = 6 * time.Second // others wait for so long for a holder who writes nothing
	leaseLimit   = 4 * time.Second // a holder who could not write for so long has lost its lock
	renewal      = 2 * time.Second
	lockInterval = time.Second
)

// An engine is a Store for several processes, with what a distributed one has: delays, and locks that are lost.
type engine struct {
	data   *mem.Store
	reads  atomic.Int64
	writes atomic.Int64

	// lag is how old what a read returns may be, as of a server that lags behind; nil: it is what was written last.
	lag func() time.Duration

	// late is how long after its call has ended with an error a write may be made; nil: it never is.
	late func() time.Duration
	// fails reports whether a write that could be made fails; nil: none does.
	fails func() bool

	mu       sync.Mutex
	locks    map[string]holding
	fence    uint64
	versions map[string][]version // by bucket and key, the oldest first
}

// A version is a value that a key has had.
type version struct {
	at  time.Time
	val []byte // nil: it was deleted
	rev uint64
}

// A holding is a lock that a process has.
type holding struct {
	fence    uint64 // 0: nobody has it
	renewals int
}

func newEngine() *engine {
	return &engine{data: mem.New(), locks: map[string]holding{}, versions: map[string][]version{}}
}

// note keeps a version of key, which is that of a bucket, too.
func (e *engine) note(key string, val []byte, rev uint64) {
	if e.lag == nil { // nobody reads it
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.versions[key] = append(e.versions[key], version{time.Now(), val, rev})
}

// old returns the version of key that was the last one some time ago.
func (e *engine) old(key string, ago time.Duration) version {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, v := range slices.Backward(e.versions[key]) {
		if time.Since(v.at) >= ago {
			return v
		}
	}
	return version{}
}

// A process is the Store as one process sees it. Its buckets are all that it has, besides locks.
type process struct {
	store.Store
	engine *engine
	life   context.Context // when it ends, the process has been killed

	mu  sync.Mutex
	cut chan struct{} // closed when it reaches the engine again; nil: it does
}

func (e *engine) process(life context.Context) *process {
	return &process{engine: e, Store: e.data, life: life}
}

// disconnect has calls wait for d.
func (p *process) disconnect(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	again := make(chan struct{})
	p.cut = again
	time.AfterFunc(d, func() { close(again) })
}

// call counts a call and waits as long as it takes.
func (p *process) call(ctx context.Context, count *atomic.Int64, delay time.Duration) error {
	p.mu.Lock()
	cut := p.cut
	p.mu.Unlock()
	if cut != nil {
		select {
		case <-cut:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	count.Add(1)
	select {
	case <-time.After(delay):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *process) read(ctx context.Context) error  { return p.call(ctx, &p.engine.reads, readDelay) }
func (p *process) write(ctx context.Context) error { return p.call(ctx, &p.engine.writes, writeDelay) }

func (p *process) Bucket(name string) store.Bucket {
	return bucket{Bucket: p.engine.data.Bucket(name), name: name, process: p}
}

type bucket struct {
	store.Bucket
	name    string
	process *process
}

func (b bucket) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if err := b.process.read(ctx); err != nil {
		return nil, 0, err
	}
	if b.process.engine.lag == nil {
		return b.Bucket.Get(ctx, key)
	}
	v := b.process.engine.old(b.name+"/"+key, b.process.engine.lag())
	if v.val == nil {
		return nil, 0, store.ErrNotFound
	}
	return v.val, v.rev, nil
}

func (b bucket) Put(ctx context.Context, key string, val []byte, rev uint64) (uint64, error) {
	err := b.process.write(ctx)
	if err == nil && b.process.engine.fails != nil && b.process.engine.fails() {
		err = errors.New("the answer was lost")
	}
	if err != nil {
		if late := b.process.engine.late; late != nil {
			time.AfterFunc(late(), func() { _, _ = b.put(context.WithoutCancel(ctx), key, val, rev) })
		}
		return 0, err
	}
	return b.put(ctx, key, val, rev)
}

func (b bucket) put(ctx context.Context, key string, val []byte, rev uint64) (uint64, error) {
	given, err := b.Bucket.Put(ctx, key, val, rev)
	if err == nil {
		b.process.engine.note(b.name+"/"+key, val, given)
	}
	return given, err
}

func (b bucket) Delete(ctx context.Context, key string) error {
	if err := b.process.write(ctx); err != nil {
		return err
	}
	b.process.engine.note(b.name+"/"+key, nil, 0)
	return b.Bucket.Delete(ctx, key)
}

func (b bucket) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := b.process.read(ctx); err != nil {
			yield("", err)
			return
		}
		b.Bucket.Keys(ctx, prefix)(yield)
	}
}

// Lock implements [store.Store]. Whoever waits gets the lock once it has seen for leaseTime that nobody renews it, by its
// own clock. A process that has been killed gives nothing back.
func (p *process) Lock(ctx context.Context, name string) (store.Lease, error) {
	var seen holding
	since := time.Now()
	for {
		if err := p.read(ctx); err != nil {
			return store.Lease{}, err
		}
		h := p.engine.look(name)
		if h != seen {
			since = time.Now()
		}
		seen = h
		if h.fence == 0 || time.Since(since) >= leaseTime {
			began := time.Now()
			if err := p.write(ctx); err != nil {
				return store.Lease{}, err
			}
			if fence := p.engine.take(name, h); fence > 0 {
				return p.hold(name, fence, began), nil
			}
			continue // somebody else was faster
		}
		select {
		case <-time.After(lockInterval):
		case <-ctx.Done():
			return store.Lease{}, ctx.Err()
		}
	}
}

func (e *engine) look(name string) holding {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.locks[name]
}

// take returns 0 if the lock is not as it was seen any more.
func (e *engine) take(name string, seen holding) (fence uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.locks[name] != seen {
		return 0
	}
	e.fence++
	e.locks[name] = holding{fence: e.fence}
	return e.fence
}

// steal has whoever holds the lock lose it.
func (e *engine) steal(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fence++
	e.locks[name] = holding{fence: e.fence}
}

// change sets what the engine has of a lock, and reports false if somebody else has it by now.
func (e *engine) change(name string, fence uint64, h holding) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.locks[name].fence != fence {
		return false
	}
	e.locks[name] = h
	return true
}

// hold renews a lock until it is unlocked or lost, or the process ends.
func (p *process) hold(name string, fence uint64, confirmed time.Time) store.Lease {
	held, end := context.WithCancel(p.life)
	lost := make(chan struct{})
	var renewing sync.WaitGroup
	renewing.Go(func() {
		for n := 1; ; n++ {
			select {
			case <-held.Done():
				return
			case <-time.After(renewal):
			}
			began := time.Now()
			limited, stop := context.WithDeadline(held, confirmed.Add(leaseLimit))
			err := p.write(limited)
			stop()
			switch {
			case held.Err() != nil:
				return
			case err != nil, !p.engine.change(name, fence, holding{fence, n}):
				close(lost)
				return
			}
			confirmed = began
		}
	})
	return store.Lease{Fence: fence, Lost: lost, Unlock: sync.OnceFunc(func() {
		end()
		renewing.Wait()
		if p.life.Err() == nil {
			p.engine.change(name, fence, holding{})
		}
	})}
}
