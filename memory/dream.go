package memory

import (
	"context"
	"iter"
	"log/slog"
	"time"

	"parley/chat"
	"parley/llm"
)

// Past is what a dream reads: a History.
type Past interface {
	// Since yields the entries of who behind a cursor, in order.
	Since(ctx context.Context, who chat.Person, cursor int64) iter.Seq2[Entry, error]
	// People returns those who have a history.
	People(ctx context.Context) ([]chat.Person, error)
}

// A Dreamer makes knowledge of what was said: it reads what is new in the
// histories and edits the memory files accordingly.
type Dreamer struct {
	Model    func(chat.Person) llm.Model // thinks about what that person said
	Past     Past
	Versions *Versions
	Zone     *time.Location
	Log      *slog.Logger
}

// Dream reads what is new in the history of who, in parts, and makes a change
// of each that is worth one. It says how many entries it read. What fails is
// read again by the next dream; changes made before that are returned.
func (d *Dreamer) Dream(ctx context.Context, who chat.Person) (changes []Change, read int, err error) {
	return nil, 0, nil
}

// DreamAll is Dream for everybody. It returns in a sentence what came of it.
func (d *Dreamer) DreamAll(ctx context.Context) (note string, err error) { return "", nil }
