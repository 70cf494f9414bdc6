package moving

import (
	"context"
	"log/slog"

	"parley/agent/deadletter"
	"parley/backup"
	"parley/channels"
	"parley/scheduler"
	"parley/store"
	"parley/store/bolt"
)

// Settle gives up what waited in a copied store: messages, replies and runs
// become dead letters, to be looked at (P20). networks are the names of channels.
func Settle(ctx context.Context, networks []string, s *bolt.Store) (w backup.Waiting, err error) {
	queues, err := s.Parts(ctx, "queue")
	if err != nil {
		return w, err
	}
	for _, name := range networks { // what was said since was answered, too, and must not be asked for again
		if err := store.DeleteAll(ctx, s.Bucket(store.BucketSeen(name))); err != nil {
			return w, err
		}
	}
	if err := scheduler.New(scheduler.Config{Store: s}).AbandonRuns(ctx); err != nil {
		return w, err
	}
	if w.Messages, err = deadletter.FromInbox(ctx, s); err != nil {
		return w, err
	}
	hub := channels.NewHub(channels.Config{Store: s, Log: slog.New(slog.DiscardHandler)})
	w.Replies, err = hub.DeadLetters().FromOutboxes(ctx, queues, "it waited when the backup was made")
	return w, err
}
