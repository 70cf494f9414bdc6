package host

import (
	"context"
	"runtime/debug"
	"testing"
	"testing/synctest"

	"parley/timetest"
)

// What a crowd has needed is given back once nothing goes on.
func TestReturnMemory(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		percent := CollectLater()
		go func() {
			defer close(ended)
			ReturnMemory(ctx, percent)
		}()
		timetest.Sleep(4 * quietTime) // what the start left is given back
		least := readMemory().held
		crowd := make([][]byte, 64)
		for i := range crowd {
			crowd[i] = make([]byte, 1<<20)
		}
		if held := readMemory().held; len(crowd[63]) == 0 || held < least+32<<20 {
			t.Errorf("%d bytes are held, and %d before the crowd: the test is of no use", held, least)
		}
		isSmall := func() bool { return readMemory().held < least+2*worthReturning }
		for range 1000 { // other collections may come between
			if isSmall() {
				break
			}
			timetest.Sleep(quietTime)
		}
		if !isSmall() {
			t.Errorf("%d bytes are held long after the crowd, and %d before it", readMemory().held, least)
		}
		stop()
		<-ended
	})
}

// Garbage is collected late while the program starts, and as before once it runs.
func TestCollectLater(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		const usual = 77
		defer debug.SetGCPercent(debug.SetGCPercent(usual))
		percent := CollectLater()
		ended := make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			defer close(ended)
			ReturnMemory(ctx, percent)
		}()
		synctest.Wait()
		if during := debug.SetGCPercent(startPercent); during != startPercent {
			t.Errorf("while the program starts garbage is collected at %d %%, want %d", during, startPercent)
		}
		timetest.Sleep(startTime)
		if after := debug.SetGCPercent(usual); after != usual {
			t.Errorf("once it runs garbage is collected at %d %%, want %d", after, usual)
		}
		stop()
		<-ended
	})
}
