package channels

import (
	"context"
	"log/slog"
	"time"

	"parley/panics"
)

const (
	maxTasks    = 100
	taskTimeout = 10 * time.Second // of a task, of a mark and of a typing sign
)

// A task is something small to do at a network: it is tried once, and nobody waits
// for it.
type task struct {
	what string
	do   func(context.Context) error
}

// A taskQueue does tasks one after the other.
type taskQueue struct {
	waiting chan task
	log     *slog.Logger
}

func newTaskQueue(log *slog.Logger) *taskQueue {
	return &taskQueue{waiting: make(chan task, maxTasks), log: log}
}

// add adds a task, unless too many wait already.
func (q *taskQueue) add(what string, do func(context.Context) error) {
	select {
	case q.waiting <- task{what, do}:
	default:
		q.log.Warn("task dropped: the network is too slow", "what", what)
	}
}

// run does tasks until ctx ends.
func (q *taskQueue) run(ctx context.Context) {
	for {
		select {
		case t := <-q.waiting:
			if err := within(ctx, taskTimeout, t.do); err != nil {
				q.log.Warn("task failed", "what", t.what, "err", err, panics.Stack(err))
			}
		case <-ctx.Done():
			return
		}
	}
}
