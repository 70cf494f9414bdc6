package channels

import "context"

// An errand is something small to do at the network, tried once, that nobody
// waits for.
type errand struct {
	what string
	do   func(context.Context) error
}

const maxErrands = 100

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
			if err := once(ctx, e.do); err != nil {
				l.log.Warn("left undone", "what", e.what, "err", err, stack(err))
			}
		case <-ctx.Done():
			return
		}
	}
}

// once tries do, for as long as a sign may take.
func once(ctx context.Context, do func(context.Context) error) error {
	return attempt(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, typingTime)
		defer cancel()
		return do(ctx)
	})
}
