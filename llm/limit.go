package llm

import (
	"context"
	"fmt"
	"time"
)

// Limit gives a model total to answer in, all tries included, and fails with
// TimedOut after that (P11).
func Limit(total time.Duration) func(Model) Model {
	return func(m Model) Model {
		return ModelFunc(func(ctx context.Context, req Request, stream func(Delta)) (Message, error) {
			limited, cancel := context.WithTimeout(ctx, total)
			defer cancel()
			msg, err := m.Generate(limited, req, stream)
			if err != nil && limited.Err() != nil && ctx.Err() == nil {
				return Message{}, &Error{Kind: TimedOut, Err: fmt.Errorf("no whole answer within %v", total)}
			}
			return msg, err
		})
	}
}
