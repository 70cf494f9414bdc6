package deadletter

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"parley/store"
	"parley/store/mem"
	"parley/timetest"
)

// A slowBucket takes a second for each write.
type slowBucket struct{ store.Bucket }

func (b slowBucket) Put(ctx context.Context, key string, v []byte, rev uint64) (uint64, error) {
	time.Sleep(time.Second)
	return b.Bucket.Put(ctx, key, v, rev)
}

// P8, P14: an answer begins once the disk knows it, and whoever only asks waits
// for no disk meanwhile.
func TestGuardOnSlowDisk(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		g := NewGuard(slowBucket{mem.New().Bucket("tries")}, slog.New(slog.DiscardHandler))
		began := time.Now()
		begun := make(chan struct{})
		go func() {
			defer close(begun)
			end, err := g.Begin(t.Context(), Answer{Key: "test/1", LeftBehind: true})
			if err != nil {
				t.Error(err)
				return
			}
			if took := time.Since(began); took != time.Second {
				t.Errorf("it began after %v, want what the disk takes", took)
			}
			end()
		}()
		synctest.Wait()
		if g.IsCareful() {
			t.Error("it is careful after no death")
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("a question took %v", took)
		}
		<-begun
	})
}
