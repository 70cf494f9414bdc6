package partitions_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sort"
	"testing"
	"time"

	"parley/store/partitions"
	"parley/timetest"
)

const (
	sessions   = 1_000_000
	talkative  = 10 * time.Minute // how long it takes until somebody in a session writes again
	longAnswer = 10 * time.Second // how long a turn has to end when its partition is to be left (P16)
)

// TestSimulation has gateways come, leave and die, while people write in a million sessions, and says how long what they
// wrote waited. Only the code of this package is real. With PARLEY_SIMULATION there are 3, 30 and 300 gateways, as in the
// table of docs/internals/cluster.md.
func TestSimulation(t *testing.T) {
	sizes := []int{3}
	if os.Getenv("PARLEY_SIMULATION") != "" {
		sizes = []int{3, 30, 300}
	}
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) { timetest.Test(t, func(t *testing.T) { simulate(t, n) }) })
	}
}

// simulate has n gateways. Each event is that of a tenth of them, and of one at least.
func simulate(t *testing.T, n int) {
	random := rand.New(rand.NewPCG(uint64(n), 0))
	c := newCluster(t)
	c.answer = func() time.Duration { return time.Duration(c.random(random, int(longAnswer))) }
	gs := c.startMany(n)
	c.report("start", gs, random)
	c.report("nothing happens", gs, random)
	some := max(n/10, 1)

	c.passAny(random)
	for _, g := range gs[:some] {
		g.kill()
	}
	gs = gs[some:]
	c.report("a tenth is killed", gs, random)

	c.passAny(random)
	gs = append(gs, c.startMany(some)...)
	c.report("as many come", gs, random)

	c.passAny(random)
	for _, g := range gs[:some] {
		g.leave()
	}
	gs = gs[some:]
	c.report("a tenth leaves", gs, random)

	c.passAny(random)
	for _, g := range gs[:some] {
		c.disconnect(g, 30*time.Second)
	}
	gs = gs[some:]
	c.report("a tenth is cut off", gs, random)
	c.stop(gs)
}

// passAny passes some time, so that what happens next does not happen just after a member has looked.
func (c *cluster) passAny(random *rand.Rand) {
	timetest.Sleep(time.Duration(c.random(random, 2000)) * time.Millisecond)
}

// report passes time until the work is divided evenly among gs, and a minute at least, and logs what that was like.
func (c *cluster) report(what string, gs []*gateway, random *rand.Rand) {
	c.t.Helper()
	start := time.Now()
	reads, writes := c.engine.reads.Load(), c.engine.writes.Load()
	before := c.owners()
	took := c.wait(gs)
	timetest.Sleep(time.Minute - took)
	moved := 0
	for p, id := range c.owners() {
		if id != before[p] {
			moved++
		}
	}
	perSecond := func(calls int64) float64 { return float64(calls) / time.Since(start).Seconds() }
	waits, written := c.waits(start, random)
	c.t.Logf("%3d gateways, %s: %d partitions moved in %v; of %d messages %d waited, half of these %v, 99%% %v, the longest %v; "+
		"%.0f reads and %.0f writes per second", len(gs), what, moved, round(took), written, len(waits),
		round(quantile(waits, 0.5)), round(quantile(waits, 0.99)), round(quantile(waits, 1)),
		perSecond(c.engine.reads.Load()-reads), perSecond(c.engine.writes.Load()-writes))
}

// waits returns, in order, how long messages waited that people have written since start until somebody took them, if
// they waited, and how many messages there were.
func (c *cluster) waits(start time.Time, random *rand.Rand) (waits []time.Duration, written int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	end := time.Now()
	written = int(sessions * (end.Sub(start).Seconds() / talkative.Seconds()))
	for range written {
		at := start.Add(time.Duration(random.Int64N(int64(end.Sub(start)))))
		p := partitions.Of(fmt.Sprintf("telegram:%d", random.IntN(sessions)))
		spans := c.spans[p]
		i := sort.Search(len(spans), func(i int) bool { return spans[i].to.IsZero() || spans[i].to.After(at) })
		taken := end // or later
		if i < len(spans) {
			taken = spans[i].from
		}
		if wait := taken.Sub(at); wait > 0 {
			waits = append(waits, wait)
		}
	}
	slices.Sort(waits)
	return waits, written
}

// quantile returns the value that a part of sorted is not above, 0 if there is none.
func quantile(sorted []time.Duration, part float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)]
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
