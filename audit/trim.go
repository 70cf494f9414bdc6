package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"parley/store"
)

// trimBatch is how many records are removed at a time. Appends wait meanwhile.
const trimBatch = 500

// TrimBefore removes the records of before t.Before, up to the first that is younger.
// The record that says so, as that of [Chain.Trim], is what the first one left
// continues: so the chain verifies, and so does the archive, which has the records as
// they were, with their digests.
func (c *Chain) TrimBefore(ctx context.Context, t store.Trimming) error {
	for {
		removed, err := c.removeBatch(ctx, t)
		if err != nil {
			return fmt.Errorf("trim chain: %w", err)
		}
		if err := t.Step(removed); err != nil || removed < trimBatch {
			return err
		}
	}
}

// removeBatch removes the oldest records, trimBatch at most.
func (c *Chain) removeBatch(ctx context.Context, t store.Trimming) (removed int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var seq uint64
	var last tip
	files := map[string][][]byte{}
	for rec, err := range c.log.Since(ctx, 0) {
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return 0, err
		}
		var l link
		if err != nil || json.Unmarshal(rec.Body, &l) != nil {
			continue // it goes with the next one
		}
		if removed >= trimBatch || !l.Time.Before(t.Before) {
			break
		}
		removed++
		seq, last = rec.Seq, tip{l.N, digest(rec.Body)}
		file := l.Time.UTC().Format(time.DateOnly)
		files[file] = append(files[file], rec.Body)
	}
	if seq == 0 {
		return 0, nil
	}
	for file, lines := range files {
		if err := t.Save(file, lines...); err != nil {
			return 0, err
		}
	}
	what := fmt.Sprintf("the entries up to number %d were removed: they were older than %s",
		last.N, t.Before.UTC().Format(time.DateOnly))
	return removed, c.remove(ctx, seq, last, what)
}
