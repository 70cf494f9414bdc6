// Package nats is a Store on the servers of NATS, for more than one machine: what one of them acknowledged another one
// sees. It needs servers with JetStream, of version 2.12 or later.
//
// There are three streams. In each, a name is a part of subjects, and the last message of a subject is compared when
// the next one is written. The revision of a value is its number in the stream.
//
//	PREFIX-buckets  PREFIX.bucket.NAME.KEY    a value, which replaces the one before
//	                PREFIX.lock.NAME          who holds a lock
//	                PREFIX.holder.NAME        which process hands out the work of a queue
//	PREFIX-logs     PREFIX.log.NAME           the records of a log
//	PREFIX-queues   PREFIX.work.NAME.N.head   a piece of work
//	                PREFIX.work.NAME.N.0      and so on: pieces of it if it is large
//	                PREFIX.seen.NAME.ID       when an id was pushed
//
// Below PREFIX.tunnel are the connections between gateways, which no stream stores (see package tunnel).
//
// What belongs together is stored together, as a batch: the records of an append, work and its id, the pieces of a
// large value. Only the leader of a stream is asked for what it has, as the other servers may lag behind; records of
// logs, whose numbers tell if one is missing, come from any of them.
//
// A write whose answer was lost is not guessed at: see stream.write. Every value carries a checksum.
//
// Writes with [store.Deferred] are like others. When an acknowledged write is on disk is a setting of the servers,
// sync_interval; with several replicas it is on more than one machine before.
package nats

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/nats-io/nats.go"

	"parley/store"
	"parley/store/nats/tunnel"
)

// Store is a [store.Store]. Make one with [Open].
type Store struct {
	conn    *client.Conn
	tunnel  *tunnel.Tunnel // between gateways, over conn
	ended   chan struct{}  // conn has
	log     *slog.Logger
	prefix  string
	address string                           // for errors, without secrets
	self    string                           // who this is, for people who look at a lock
	opened  struct{ buckets, queues uint64 } // the last messages of streams when the Store was opened
	ends    []*ends
	// link ends when the connection does, and is replaced: what was asked there is not answered any more.
	link         atomic.Pointer[context.Context]
	endLink      context.CancelFunc    // of renewLink
	gatewayLease atomic.Pointer[lease] // of gatewayLock; nil: several processes may use the Store
	// permitted ends, with a cause, when the servers say that something is not permitted.
	permitted context.Context
	deny      context.CancelCauseFunc
	close     func() error // shutDown, once
	// leaseTime is how long others wait for the holder of a lock who writes nothing.
	leaseTime time.Duration

	closing context.Context // ends when the Store is being closed
	stop    context.CancelFunc
	calls   sync.WaitGroup // those under way
	loops   sync.WaitGroup // goroutines that end with closing

	mu     sync.RWMutex // guards what follows
	closed bool
	queues map[string]*queue
	locked map[string]chan struct{} // holds a token while this process has the lock, or waits for others to let it go
	leases map[*lease]bool
}

// endGroups is how many groups of logs there are of which two can be appended to at the same time.
const endGroups = 64

func newStore(cfg Config) *Store {
	s := &Store{
		log:       cfg.Log,
		leaseTime: cmp.Or(cfg.leaseTime, leaseTime),
		prefix:    cfg.Prefix,
		ended:     make(chan struct{}),
		queues:    map[string]*queue{},
		locked:    map[string]chan struct{}{},
		leases:    map[*lease]bool{},
	}
	for range endGroups {
		s.ends = append(s.ends, newEnds())
	}
	s.closing, s.stop = context.WithCancel(context.Background())
	s.permitted, s.deny = context.WithCancelCause(context.Background())
	s.renewLink()
	s.close = sync.OnceValue(s.shutDown)
	return s
}

// renewLink ends the link, and makes the next one.
func (s *Store) renewLink() {
	link, end := context.WithCancel(context.Background())
	s.link.Store(&link)
	if s.endLink != nil {
		s.endLink()
	}
	s.endLink = end
}

func (s *Store) stream(name string) stream { return stream{store: s, name: s.prefix + "-" + name} }

// call calls fn, unless ctx has ended, the Store is closed, or another gateway may have taken over. Close waits for it.
func (s *Store) call(ctx context.Context, fn func() error) error {
	if err := cmp.Or(ctx.Err(), s.Usable()); err != nil {
		return err
	}
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return store.ErrClosed
	}
	s.calls.Add(1)
	s.mu.RUnlock()
	defer s.calls.Done()
	return fn()
}

// start calls loop in a goroutine whose ctx ends when the Store is closed. It reports false if it is already. The
// caller may hold no lock that loop needs to end.
func (s *Store) start(loop func(context.Context)) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return false
	}
	s.loops.Go(func() { loop(s.closing) })
	return true
}

// Close implements [store.Store]. Every call returns when everything is closed.
func (s *Store) Close() error { return s.close() }

func (s *Store) shutDown() error {
	s.mu.Lock()
	s.closed = true
	gateway := s.gatewayLease.Load()
	leases := make([]*lease, 0, len(s.leases))
	for l := range s.leases {
		if l != gateway {
			leases = append(leases, l)
		}
	}
	if gateway != nil { // after the others, which are free once somebody else has it
		leases = append(leases, gateway)
	}
	for _, q := range s.queues {
		q.pending.Close()
	}
	s.mu.Unlock()
	s.stop()
	s.tunnel.Close()
	s.calls.Wait()
	s.loops.Wait()
	for _, l := range leases { // its holder knows before anybody else gets it
		l.lose()
		l.release()
	}
	s.conn.Close()
	<-s.ended
	return nil
}
