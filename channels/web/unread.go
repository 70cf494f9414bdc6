package web

import (
	"net/http"

	"parley/store"
)

// markSeen notes how far the person has seen a conversation: a page that is in sight shows it.
func markSeen(req request) error {
	var in struct{ Seq uint64 }
	if err := req.readJSON(&in); err != nil {
		return err
	}
	rm := req.room
	rm.writeMu.Lock()
	defer rm.writeMu.Unlock()
	ctx := req.r.Context()
	conv, err := rm.c.conversations.get(ctx, rm.address)
	if err != nil {
		return err
	}
	if conv.Unread > 0 { // looking at what is known writes nothing
		conv.Seen = max(conv.Seen, in.Seq)
		conv.Unread = 0
		for e, err := range rm.entriesAfter(ctx, conv.Seen) {
			if err != nil {
				return err
			}
			if e.Who == whoAgent && e.Edits == 0 {
				conv.Unread++
			}
		}
		if err := rm.c.conversations.set(store.Deferred(ctx), rm.address, conv); err != nil {
			return err
		}
	}
	req.w.WriteHeader(http.StatusNoContent)
	return nil
}
