package conversation

import (
	"context"
	"fmt"

	"parley/chat"
	"parley/store"
)

// A Session is one conversation under way. The goroutine that opened it is its
// only owner.
type Session struct {
	State     State
	ID        chat.SessionID
	log       store.Log
	History   *History
	Seq       uint64   // of the last record of the log, which the next one follows
	unsaved   [][]byte // records to append
	archived  uint64   // last record that a summary in another branch has archived
	ReadSince *uint64  // until a request was made: the history was read from the log, from the record after this one on
}

// Keep applies r to the history. It is on disk after the next Save.
func (s *Session) Keep(r Record) {
	s.unsaved = append(s.unsaved, r.Encode())
	s.History.Apply(s.Seq+uint64(len(s.unsaved)), r)
}

// Save appends what was kept to the log, all or nothing. With store.ErrConflict the log is
// not as s knows it: somebody else has appended to it, or s did before an error that did not
// tell. s is not to be used any more then, and whoever opens the session anew reads the log.
func (s *Session) Save(ctx context.Context) error {
	if len(s.unsaved) == 0 {
		return nil
	}
	seq, err := s.log.Append(ctx, s.Seq, s.unsaved...)
	if err != nil {
		return fmt.Errorf("save session %s: %w", s.ID, err)
	}
	s.Seq, s.unsaved = seq, nil
	return nil
}

// DigestedUpTo returns the number of the last record that is archived at night, or was
// in another branch, and not by a turn of this one.
func (s *Session) DigestedUpTo() uint64 {
	if s.State.Digested.Epoch != s.State.Epoch {
		return s.archived
	}
	return max(s.archived, s.State.Digested.Seq)
}

// What a session and an entry take in memory besides their texts, in estimated
// tokens, as measured.
const (
	sessionSize = 512
	entrySize   = 128
)

// MemorySize returns how much memory s takes, in estimated tokens of four bytes each.
func (s *Session) MemorySize() int {
	return s.History.Size() + sessionSize + s.History.view.EntryCount()*entrySize
}
