package host

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"time"
)

const forcedExitDelay = time.Second // from the second signal to the end

// UntilSignal returns a context that ends at the first of signals. Another one ends
// the process within two seconds, whatever it is doing: what was accepted is on disk
// (P16). Call stop when there is nothing left to end. In a chat at the terminal, Ctrl-C
// is a key and no signal.
func UntilSignal(ctx context.Context, signals ...os.Signal) (ending context.Context, stop func()) {
	ending, cancel := context.WithCancel(ctx)
	received := make(chan os.Signal, 2)
	signal.Notify(received, signals...)
	var listener sync.WaitGroup
	done := make(chan struct{})
	listener.Go(func() {
		for range 2 {
			select {
			case <-received:
				cancel()
			case <-done:
				return
			}
		}
		select {
		case <-time.After(forcedExitDelay):
			os.Exit(1)
		case <-done:
		}
	})
	return ending, sync.OnceFunc(func() {
		signal.Stop(received)
		close(done)
		listener.Wait()
		cancel()
	})
}
