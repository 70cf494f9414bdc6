package network

import (
	"context"
	"fmt"

	"parley/store"
)

const maxDeadEvents = 1000

// KeepDeadLetter appends raw, an event that a driver cannot understand, to the
// log of dead events as it came (P4). The log keeps the last maxDeadEvents.
func KeepDeadLetter(ctx context.Context, dead store.Log, raw []byte) error {
	seq, err := dead.Append(ctx, store.Any, raw)
	if err != nil {
		return fmt.Errorf("keep an event that cannot be understood: %w", err)
	}
	if seq <= maxDeadEvents {
		return nil
	}
	if err := dead.Trim(ctx, seq-maxDeadEvents); err != nil {
		return fmt.Errorf("keep an event that cannot be understood: %w", err)
	}
	return nil
}
