package channels

import (
	"context"
	"time"
)

// An errand is something small to do at the network, tried once, that nobody
// waits for.
type errand struct {
	what string
	do   func(context.Context) error
}

const (
	maxErrands = 100
	signTime   = 10 * time.Second // the most one may take, or another sign
)

// errand has do done by Work, unless too much waits already.
func (l *line) errand(what string, do func(context.Context) error) {
	select {
	case l.errands <- errand{what, do}:
	default:
		l.log.Warn("left undone: the network is too slow", "what", what)
	}
}

// run does errands until ctx ends.
func (l *line) run(ctx context.Context) {
	for {
		select {
		case e := <-l.errands:
			if err := within(ctx, signTime, e.do); err != nil {
				l.log.Warn("left undone", "what", e.what, "err", err, stack(err))
			}
		case <-ctx.Done():
			return
		}
	}
}
