package host

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	startTime      = time.Second     // that the program needs until all of it runs
	startPercent   = 300             // of GOGC: a start allocates less than the 12 MiB that this lets it
	quietTime      = 5 * time.Second // without a collection of garbage: little goes on
	worthReturning = 4 << 20         // bytes
)

// CollectLater has the runtime collect garbage later than usual, so that it does not while the program starts: the
// first collections would find little garbage, and take a seventh of the work. It returns what ReturnMemory
// needs to end that.
func CollectLater() (percent int) { return debug.SetGCPercent(startPercent) }

// ReturnMemory gives memory back to the system that was needed for a while, such as for the start or for a
// crowd, each time that little goes on. It returns when ctx ends. Without it the runtime would collect garbage
// every two minutes then, and keep what the last collection has left. When the program has started, garbage is
// collected at the percent that CollectLater returned.
func ReturnMemory(ctx context.Context, percent int) {
	tick := time.NewTicker(quietTime)
	defer tick.Stop()
	select {
	case <-ctx.Done():
		return
	case <-time.After(startTime):
	}
	debug.SetGCPercent(percent)
	runtime.GC()
	least := uint64(0) // that was held right after memory was returned; 0: it never was
	last := readMemory()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := readMemory()
		if now.collections == last.collections && (least == 0 || now.held >= least+worthReturning) {
			debug.FreeOSMemory()
			releaseProgram()
			now = readMemory()
			least = now.held
		}
		last = now
	}
}

// A memoryUse is what the runtime says of its memory.
type memoryUse struct {
	collections uint64 // of garbage, so far
	held        uint64 // bytes that the system has not got back
	used        uint64 // bytes of stacks, and of what was no garbage at the last collection
	percent     int    // of what is in use: so much garbage may there be
}

func readMemory() memoryUse {
	samples := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/gogc:percent"},
	}
	metrics.Read(samples)
	value := func(i int) uint64 { return samples[i].Value.Uint64() }
	return memoryUse{
		collections: value(0),
		held:        value(1) + value(2) + value(3),
		used:        value(3) + value(4),
		percent:     int(value(5)),
	}
}
