package channels

import (
	"log/slog"

	"parley/store"
)

// The tables of a Hub. A damaged value is forgotten: a delivery is
// sent from its beginning (P21).
type tables struct {
	deliveries  store.Table[record]   // how far replies have come, by their ID
	lastSent    store.Table[lastSent] // by channel and chat
	deadLetters store.Table[Parked]
	questions   store.Table[question] // by ID
	commands    store.Table[done]     // commands that were carried out, by the ID of their answer
}

func openTables(s store.Store, log *slog.Logger) tables {
	return tables{
		deliveries:  store.NewTable(s.Bucket(store.BucketDeliveries), store.Forget[record](log, "delivery record")),
		lastSent:    store.NewTable(s.Bucket(store.BucketLastSent), store.Forget[lastSent](log, "last reply to a chat")),
		deadLetters: store.NewTable(s.Bucket(store.BucketDeadReplies), store.Forget[Parked](log, "dead letter")),
		questions:   store.NewTable(s.Bucket(store.BucketQuestions), store.Forget[question](log, "question")),
		commands:    store.NewTable(s.Bucket(store.BucketCommands), store.Forget[done](log, "command carried out")),
	}
}
