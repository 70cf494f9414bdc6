package network

import (
	"errors"
	"io"
	"sync"
)

// ErrBusy and ErrBusyPerson are returned by the readers of a [Budget]: so much
// is being read already, in all or of that person. Trying again later helps.
var (
	ErrBusy       = errors.New("too many bytes are being read at once")
	ErrBusyPerson = errors.New("too many bytes of one person are being read at once")
)

// A Budget bounds how many bytes of request bodies are in memory at once. It
// refuses what is too much instead of letting it wait: a body that came in by
// half and waited would keep its bytes from all others.
type Budget struct {
	total     int64
	perPerson int64

	mu     sync.Mutex
	used   int64
	usedBy map[string]int64 // by person; those who use nothing are not in it
}

// NewBudget returns a Budget of so many bytes.
func NewBudget(total, perPerson int64) *Budget {
	return &Budget{total: total, perPerson: perPerson, usedBy: map[string]int64{}}
}

// Reader returns a reader of r, of which each byte counts for person until
// release is called. When the Budget is used up it returns one of the errors above.
func (b *Budget) Reader(person string, r io.Reader) (counted io.Reader, release func()) {
	c := &countedReader{budget: b, person: person, from: r}
	return c, c.release
}

func (b *Budget) take(person string, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.usedBy[person]+n > b.perPerson:
		return ErrBusyPerson
	case b.used+n > b.total:
		return ErrBusy
	}
	b.used += n
	b.usedBy[person] += n
	return nil
}

func (b *Budget) giveBack(person string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.usedBy[person] -= n; b.usedBy[person] == 0 {
		delete(b.usedBy, person)
	}
}

type countedReader struct {
	budget *Budget
	person string
	from   io.Reader
	taken  int64
}

// Read implements [io.Reader].
func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	if n > 0 {
		if full := c.budget.take(c.person, int64(n)); full != nil {
			return 0, full
		}
		c.taken += int64(n)
	}
	return n, err
}

func (c *countedReader) release() {
	if c.taken > 0 {
		c.budget.giveBack(c.person, c.taken)
		c.taken = 0
	}
}
