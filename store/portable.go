package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// IDRetention is how long a [Queue] remembers an id that was pushed (P2).
const IDRetention = 48 * time.Hour

// A Portable is a Store whose content can be moved into one of another type: see package transfer. Nobody else may
// use it meanwhile.
type Portable interface {
	Store

	// Names returns the names of the buckets, logs and queues that there are.
	Names(ctx context.Context) (Names, error)
	// Skip has the next record of a log be numbered seq+1, unless the log has come as far.
	Skip(ctx context.Context, log string, seq uint64) error
	// Work yields the ids and bodies of the work in a queue, oldest first. Nobody holds it. Damaged work is yielded
	// as ErrDamaged, and the next follows; any other error is the last.
	Work(ctx context.Context, queue string) iter.Seq2[Item, error]
	// AddWork adds work to the end of a queue. It neither asks nor remembers whether its id was pushed.
	AddWork(ctx context.Context, queue, id string, body []byte) error
	// Pushes yields what a queue remembers, in the order of the ids; some of it may be older than IDRetention. What is
	// damaged is yielded as ErrDamaged, and the next follows; any other error is the last.
	Pushes(ctx context.Context, queue string) iter.Seq2[Push, error]
	// AddPush has a queue remember p.
	AddPush(ctx context.Context, queue string, p Push) error
}

// Names are those of what is in a Store, each list sorted. There may be nothing in what has a name.
type Names struct{ Buckets, Logs, Queues []string }

// Terminal returns err as one that is not ErrDamaged: it ends an iteration, and what follows was not read.
func Terminal(err error) error {
	if errors.Is(err, ErrDamaged) {
		return fmt.Errorf("the rest cannot be read: %s", err.Error())
	}
	return err
}

// A Push says that work with that id was pushed to a queue, and when.
type Push struct {
	ID   string
	Time time.Time
}
