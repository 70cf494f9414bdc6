package agent

import (
	"context"
	"fmt"

	"parley/store"
)

// Shelve puts aside all that waits in the inbox of s, as when s is a backup:
// what waited when it was made has been answered since (P20). No Pool may be
// at work on s.
func Shelve(ctx context.Context, s store.Store) (n int, err error) {
	inbox, aside := s.Queue("inbox"), s.Bucket("parked messages")
	for item, err := range store.Waiting(ctx, inbox) {
		if err != nil {
			return n, err
		}
		if _, err := aside.Put(ctx, item.ID, item.Body, store.Any); err != nil {
			return n, fmt.Errorf("put aside %s: %w", item.ID, err)
		}
		if err := item.Done(ctx); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
