package memory

import (
	"context"
	"iter"
	"log/slog"
	"time"

	"parley/chat"
	"parley/workspace"
)

// A History is what was said, part by part: a file of entries for each person.
type History struct {
	w   *workspace.Workspace
	log *slog.Logger
}

// NewHistory returns the History in w.
func NewHistory(w *workspace.Workspace, log *slog.Logger) *History {
	return &History{w: w, log: log}
}

// Append adds e to the history of who, and returns it with its cursor. An entry
// with the key of another is not added: that one is returned.
func (h *History) Append(ctx context.Context, who chat.Person, e Entry) (Entry, error) {
	return e, nil
}

// Since yields the entries of who after the one with that cursor, in order.
func (h *History) Since(ctx context.Context, who chat.Person, cursor int64) iter.Seq2[Entry, error] {
	return func(func(Entry, error) bool) {}
}

// People returns those who have a history.
func (h *History) People(ctx context.Context) ([]chat.Person, error) { return nil, nil }

// Forget removes the entries of who that are not to be kept, and says how many.
func (h *History) Forget(ctx context.Context, who chat.Person, keep func(Entry) bool) (n int, err error) {
	return 0, nil
}

// A Hit is a piece of memory that a search found.
type Hit struct {
	Source  string         // "history", or the file it is in
	Session chat.SessionID // in which it was said, if that is known
	Time    time.Time      // when it was said, or written down
	Text    string         // clipped around the words
	Tainted bool           // strangers had a word in it (R-S14)
	Score   float64
}

// Search returns what is known of who that has the words, at most so many, the
// best first.
func (h *History) Search(ctx context.Context, who chat.Person, words string, most int) ([]Hit, error) {
	return nil, nil
}
