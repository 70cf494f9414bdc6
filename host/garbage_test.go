package host

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// While much memory is in use garbage is collected sooner, and afterwards as before.
func TestCollectSooner(t *testing.T) {
	usual := debug.SetGCPercent(100)
	defer debug.SetGCPercent(usual)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		CollectSooner(ctx, 100)
	}()
	await := func(percent uint64) {
		t.Helper()
		for begin := time.Now(); gcPercent() != percent; runtime.Gosched() {
			if time.Since(begin) > 2*time.Minute {
				t.Fatalf("garbage is collected at %d percent, want %d", gcPercent(), percent)
			}
			runtime.GC()
		}
	}
	await(100)
	crowd := make([]byte, 2*muchMemory)
	await(soonerAtMost)
	runtime.KeepAlive(crowd)
	await(100)
	crowd = make([]byte, 2*muchMemory)
	await(soonerAtMost)
	runtime.KeepAlive(crowd)
	stop()
	<-ended
	if gcPercent() != 100 {
		t.Errorf("at the end garbage is collected at %d percent", gcPercent())
	}
}

// Who wants garbage to be collected even sooner, or never, has it their way.
func TestCollectAsWished(t *testing.T) {
	for _, wish := range []int{-1, 20} {
		usual := debug.SetGCPercent(wish)
		CollectSooner(t.Context(), wish)
		if got := debug.SetGCPercent(usual); got != wish {
			t.Errorf("garbage is collected at %d percent, want %d", got, wish)
		}
	}
}

func gcPercent() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
