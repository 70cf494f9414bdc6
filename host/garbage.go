package host

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync"
)

const (
	muchMemory   = 40 << 20 // bytes that are in use right after a collection
	soonerAtMost = 50       // percent
)

// SaveMemory does what [CollectSooner] and [ReturnMemory] do, until ctx ends.
func SaveMemory(ctx context.Context, percent int) {
	var sooner sync.WaitGroup
	defer sooner.Wait()
	sooner.Go(func() { CollectSooner(ctx, percent) })
	ReturnMemory(ctx, percent)
}

// CollectSooner has the runtime collect garbage when it is half of what is in use while that is much, until ctx ends.
// So the memory that a crowd takes is kept small, and while little goes on it costs nothing more. Otherwise garbage is
// collected at the percent that CollectLater returned. Who has set GOGC to less than half has it their way.
func CollectSooner(ctx context.Context, percent int) {
	if percent <= soonerAtMost { // negative: never
		return
	}
	collected := make(chan struct{}, 1)
	afterCollection(ctx, collected)
	defer debug.SetGCPercent(percent)
	for {
		select {
		case <-ctx.Done():
			return
		case <-collected:
		}
		wanted := percent
		use := readMemory()
		if use.used > muchMemory {
			wanted = soonerAtMost
		}
		if use.percent != wanted { // to set it stops everything for a moment
			debug.SetGCPercent(wanted)
		}
	}
}

// afterCollection sends on collected after each collection until ctx ends.
func afterCollection(ctx context.Context, collected chan<- struct{}) {
	garbage := new([64]byte)
	runtime.AddCleanup(garbage, func(collected chan<- struct{}) {
		if ctx.Err() != nil {
			return
		}
		select {
		case collected <- struct{}{}:
		default: // there was one that was not noticed yet
		}
		afterCollection(ctx, collected)
	}, collected)
}
