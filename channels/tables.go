package channels

import (
	"log/slog"

	"parley/store"
)

// The tables of a Hub. A damaged value is deleted: a delivery whose record is lost
// is sent from its beginning (P21).
type tables struct {
	deliveries store.Table[record]   // how far replies have come, by their ID
	lastSent   store.Table[lastSent] // by channel and chat
	questions  store.Table[question] // by ID
}

func openTables(s store.Store, log *slog.Logger) tables {
	return tables{
		deliveries: store.NewTable(s.Bucket(store.BucketDeliveries), store.Forget[record](log, "delivery record")),
		lastSent:   store.NewTable(s.Bucket(store.BucketLastSent), store.Forget[lastSent](log, "last reply to a chat")),
		questions:  store.NewTable(s.Bucket(store.BucketQuestions), store.Forget[question](log, "question")),
	}
}
