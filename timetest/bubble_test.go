package timetest_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"parley/timetest"
)

// Timers that are due at the same moment do not crash the race detector, and the processors are back afterwards.
func TestBubbleOfManyTimers(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	for range 60 {
		timetest.Test(t, func(t *testing.T) {
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					for i := range 50 {
						done := make(chan bool)
						time.AfterFunc(time.Duration(i%3), func() {
							<-time.After(0)
							close(done)
						})
						<-time.After(time.Duration(i % 2))
						<-done
					}
				})
			}
			all.Wait()
		})
	}
	if after := runtime.GOMAXPROCS(0); after != before {
		t.Errorf("%d processors, where there were %d", after, before)
	}
}
