package partitions_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/store"
	"parley/store/partitions"
	"parley/timetest"
)

// A cluster is processes that share work, and what each of them did.
type cluster struct {
	t      *testing.T
	engine *engine
	// answer is how long what was begun takes to end, once a partition is to be left.
	answer func() time.Duration

	running sync.WaitGroup

	mu      sync.Mutex
	workers [partitions.Count]string // who works on each partition
	spans   [partitions.Count][]span
	started int
}

// A span is the time in which a member takes what comes for a partition. It has no end yet if that is zero.
type span struct{ from, to time.Time }

// end ends s now, unless it has ended before.
func (s *span) end() {
	if s.to.IsZero() {
		s.to = time.Now()
	}
}

func newCluster(t *testing.T) *cluster {
	return &cluster{t: t, engine: newEngine(), answer: func() time.Duration { return 0 }}
}

// A gateway is a process of a cluster.
type gateway struct {
	*process
	id    string
	kill  context.CancelFunc
	leave func()
	ended chan error // gets what Join has returned
}

// start starts a process.
func (c *cluster) start() *gateway {
	c.mu.Lock()
	c.started++
	id := fmt.Sprintf("gateway %03d", c.started)
	c.mu.Unlock()
	ctx, kill := context.WithCancel(c.t.Context())
	leave := make(chan struct{})
	g := &gateway{
		process: c.engine.process(ctx), id: id, kill: kill, leave: sync.OnceFunc(func() { close(leave) }),
		ended: make(chan error, 1),
	}
	c.running.Go(func() {
		g.ended <- partitions.Join(ctx, partitions.Config{
			Store: g.process,
			ID:    partitions.MemberID(id),
			Name:  id,
			Log:   slog.New(slog.DiscardHandler),
			Work:  func(ctx context.Context, p int, release <-chan struct{}) { c.work(ctx, id, p, release) },
		}, leave)
	})
	return g
}

// hasEnded reports whether the process has.
func (g *gateway) hasEnded() bool { return len(g.ended) > 0 }

// random returns a number below n.
func (c *cluster) random(r *rand.Rand, n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return r.IntN(n)
}

func (c *cluster) startMany(n int) (gs []*gateway) {
	for range n {
		gs = append(gs, c.start())
	}
	return gs
}

// disconnect cuts g off for d: it takes nothing that comes from now on, although it does not know that yet.
func (c *cluster) disconnect(g *gateway, d time.Duration) {
	g.process.disconnect(d)
	c.mu.Lock()
	defer c.mu.Unlock()
	for p, id := range c.workers {
		if id == g.id {
			c.spans[p][len(c.spans[p])-1].end()
		}
	}
}

// work is what a member does for a partition. It fails the test if another one works on the same.
func (c *cluster) work(ctx context.Context, id string, p int, release <-chan struct{}) {
	c.mu.Lock()
	if other := c.workers[p]; other != "" {
		c.t.Errorf("%s works on partition %d, and so does %s", id, p, other)
	}
	c.workers[p] = id
	c.spans[p] = append(c.spans[p], span{from: time.Now()})
	c.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-release:
	}
	c.mu.Lock()
	c.spans[p][len(c.spans[p])-1].end()
	c.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-time.After(c.answer()):
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.workers[p] = ""
}

// wait passes time until the work is divided evenly among gs, and returns how long that took.
func (c *cluster) wait(gs []*gateway) time.Duration {
	c.t.Helper()
	start := time.Now()
	for !c.isEven(gs) {
		if time.Since(start) > time.Minute {
			c.t.Fatalf("the work is not divided evenly after a minute: %v", c.counts())
		}
		timetest.Sleep(50 * time.Millisecond)
	}
	return time.Since(start)
}

// isEven reports whether each of gs works on the same number of partitions, give or take one, and nobody else on any.
func (c *cluster) isEven(gs []*gateway) bool {
	counts := c.counts()
	total := 0
	for _, g := range gs {
		n := counts[g.id]
		if n < partitions.Count/len(gs) || n > (partitions.Count+len(gs)-1)/len(gs) {
			return false
		}
		total += n
	}
	return total == partitions.Count
}

// counts returns on how many partitions each works.
func (c *cluster) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := map[string]int{}
	for _, id := range c.workers {
		counts[id]++
	}
	return counts
}

// owners returns who works on each partition.
func (c *cluster) owners() [partitions.Count]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.workers
}

// stop ends all processes, which were not ended before, at once.
func (c *cluster) stop(gs []*gateway) {
	for _, g := range gs {
		g.kill()
	}
	c.running.Wait()
}

// TestJoin: whoever comes gets an even part of the work, of which no more than that changes hands.
func TestJoin(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var gs []*gateway
		for n := range 5 {
			before := c.owners()
			gs = append(gs, c.start())
			took := c.wait(gs)
			moved := 0
			for p, id := range c.owners() {
				if id != before[p] {
					moved++
				}
			}
			if most := partitions.Count / (n + 1); moved > most {
				t.Errorf("%d partitions have changed hands for member %d, want %d at most", moved, n+1, most)
			}
			if took > 4*time.Second {
				t.Errorf("it took %v until member %d had its part", took, n+1)
			}
		}
		c.stop(gs)
	})
}

// TestLeave: whoever leaves ends what it has begun, and others go on with each partition as soon as that is done.
func TestLeave(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		gs := c.startMany(4)
		c.wait(gs)
		long := false
		c.answer = func() time.Duration {
			c.mu.Lock()
			defer c.mu.Unlock()
			if long = !long; long {
				return 10 * time.Second
			}
			return time.Second
		}
		gs[1].leave()
		timetest.Sleep(5 * time.Second)
		if counts := c.counts(); counts[gs[1].id] != 128 || counts[""] > 0 {
			t.Errorf("half of the work is not in other hands after 5 s: %v", counts)
		}
		took := c.wait(slices.Delete(slices.Clone(gs), 1, 2))
		if took < 5*time.Second || took > 8*time.Second {
			t.Errorf("it took %v more until the others had the rest, want 5 s and a little more", took)
		}
		if err := <-gs[1].ended; err != nil {
			t.Errorf("Join = %v after leaving", err)
		}
		c.stop(gs)
	})
}

// TestAllLeave: the last one can leave, too, and whoever comes next begins with everything.
func TestAllLeave(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		gs := c.startMany(3)
		c.wait(gs)
		for _, g := range gs {
			g.leave()
		}
		for _, g := range gs {
			if err := <-g.ended; err != nil {
				t.Errorf("Join = %v after leaving", err)
			}
		}
		next := c.startMany(2)
		c.wait(next)
		c.stop(append(gs, next...))
	})
}

// TestDeath: the work of a member that dies is taken over once its lock is free, also if it was the coordinator.
func TestDeath(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		gs := c.startMany(5)
		c.wait(gs)
		for len(gs) > 1 {
			gs[0].kill()
			gs = gs[1:]
			if took := c.wait(gs); took > leaseTime+5*time.Second {
				t.Errorf("it took %v until the %d others had the work", took, len(gs))
			}
		}
		c.stop(gs)
	})
}

// TestCutOff: a member that does not reach the store ends its work before others begin it, and says that it has.
func TestCutOff(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		gs := c.startMany(3)
		c.wait(gs)
		for _, g := range gs[:2] { // one of them may be the coordinator
			rest := slices.DeleteFunc(slices.Clone(gs), func(other *gateway) bool { return other == g })
			c.disconnect(g, 30*time.Second)
			c.wait(rest)
			if err := <-g.ended; !errors.Is(err, store.ErrLockLost) {
				t.Errorf("Join = %v, want %v", err, store.ErrLockLost)
			}
			timetest.Sleep(time.Minute) // it has come back, and changes nothing
			gs = append(rest, c.start())
			c.wait(gs)
		}
		c.stop(gs)
	})
}

// TestCoordinatorLockLost: a coordinator that loses only its lock as such ends as a member, too: whoever is the next one
// counts on it.
func TestCoordinatorLockLost(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		gs := []*gateway{c.start()}
		c.wait(gs)
		gs = append(gs, c.startMany(2)...)
		c.wait(gs)
		c.engine.steal("partitions coordinator")
		c.wait(gs[1:])
		if err := <-gs[0].ended; !errors.Is(err, store.ErrLockLost) {
			t.Errorf("Join = %v, want %v", err, store.ErrLockLost)
		}
		c.stop(gs)
	})
}

// TestAssignmentLost: nobody knows any more who works on what, so nobody begins anything that somebody may work on,
// before all have ended.
func TestAssignmentLost(t *testing.T) {
	for how, lose := range map[string]func(*testing.T, store.Bucket){
		"removed": func(t *testing.T, b store.Bucket) {
			if err := store.DeleteAll(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		},
		"damaged": func(t *testing.T, b store.Bucket) {
			if _, err := b.Put(t.Context(), "assignment", []byte("{"), store.Any); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(how, func(t *testing.T) { timetest.Test(t, func(t *testing.T) { testAssignmentLost(t, lose) }) })
	}
}

func testAssignmentLost(t *testing.T, lose func(*testing.T, store.Bucket)) {
	c := newCluster(t)
	gs := c.startMany(3)
	c.wait(gs)
	lose(t, c.engine.data.Bucket(store.BucketPartitions))
	newcomer := c.start()
	timetest.Sleep(time.Minute)
	if n := c.counts()[newcomer.id]; n > 0 {
		t.Errorf("somebody who has come since works on %d partitions", n)
	}
	c.stop(append(gs, newcomer))
	gs = c.startMany(2)
	c.wait(gs)
	c.stop(gs)
}

// TestWorkReturns: work that ends by itself is begun again, and not faster than there is to see to.
func TestWorkReturns(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		joined := make(chan error)
		go func() {
			joined <- partitions.Join(ctx, partitions.Config{
				Store: newEngine().process(ctx),
				ID:    "only",
				Log:   slog.New(slog.DiscardHandler),
				Work:  func(context.Context, int, <-chan struct{}) { calls.Add(1) },
			}, nil)
		}()
		timetest.Sleep(20 * time.Second)
		if n := calls.Load() / partitions.Count; n < 10 || n > 20 {
			t.Errorf("it was begun %d times in 20 s", n)
		}
		cancel()
		if err := <-joined; !errors.Is(err, context.Canceled) {
			t.Errorf("Join = %v", err)
		}
	})
}

// TestTorturePartitions: whatever happens to members, and however old what they read is, no two ever work on the same partition,
// and in the end those that are left do all.
func TestTorturePartitions(t *testing.T) {
	seeds := uint64(3)
	if os.Getenv("PARLEY_TORTURE") != "" {
		seeds = 200
	}
	for seed := range seeds {
		timetest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			c := newCluster(t)
			c.answer = func() time.Duration { return time.Duration(c.random(random, 12_000)) * time.Millisecond }
			c.engine.late = func() time.Duration { return time.Duration(c.random(random, 20_000)) * time.Millisecond }
			c.engine.fails = func() bool { return c.random(random, 5) == 0 }
			c.engine.lag = func() time.Duration { return time.Duration(c.random(random, 3000)) * time.Millisecond }
			gs := c.startMany(4)
			for range 40 {
				timetest.Sleep(time.Duration(c.random(random, 8000)) * time.Millisecond)
				i := c.random(random, len(gs))
				switch c.random(random, 4) {
				case 0:
					gs = append(gs, c.start())
				case 1:
					gs[i].kill()
				case 2:
					gs[i].leave()
				case 3:
					c.disconnect(gs[i], time.Duration(c.random(random, 30_000))*time.Millisecond)
				}
			}
			timetest.Sleep(time.Minute) // all are connected again, and who ends has ended
			c.engine.fails = nil
			if gs = slices.DeleteFunc(gs, (*gateway).hasEnded); len(gs) == 0 {
				gs = c.startMany(1)
			}
			c.wait(gs)
			c.stop(gs)
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
	}
}

// TestOf: the partition of a key is the same for ever, and keys that are much alike are in different ones.
func TestOf(t *testing.T) {
	for key, want := range map[string]int{"": 961, "telegram:42": 216, "discord:7/9": 446} {
		if got := partitions.Of(key); got != want {
			t.Errorf("Of(%q) = %d, want %d", key, got, want)
		}
	}
	const each = 100
	var counts [partitions.Count]int
	for i := range each * partitions.Count {
		counts[partitions.Of(fmt.Sprintf("telegram:%d", 100_000_000+i))]++
	}
	if least, most := slices.Min(counts[:]), slices.Max(counts[:]); least < each/2 || most > 2*each {
		t.Errorf("a partition has %d to %d keys, want about %d", least, most, each)
	}
}
