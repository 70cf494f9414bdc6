package network

import (
	"errors"
	"io"
	"sync"
)

// ErrBusy and ErrBusyPerson are returned by the readers of a [Budget] if too much is being
// read already, in total or from that person. Trying again later helps.
var (
	ErrBusy       = errors.New("too many bytes are being read at once")
	ErrBusyPerson = errors.New("too many bytes of one person are being read at once")
)

// A Budget limits how many bytes of request bodies are in memory at once. A body that
// exceeds it is refused and does not wait: half a body that waits would occupy bytes that
// others need.
type Budget struct {
	total     int64
	perPerson int64

	mu     sync.Mutex
	used   int64
	usedBy map[string]int64 // by person; only those who use some
}

// NewBudget returns a Budget of that many bytes.
func NewBudget(total, perPerson int64) *Budget {
	return &Budget{total: total, perPerson: perPerson, usedBy: map[string]int64{}}
}

// Reader returns a reader of r whose bytes count for person until release is called. It
// fails with one of the errors above when the Budget is used up.
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
