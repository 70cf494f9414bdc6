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

// TrimTo removes all but the last keep records, once there are a tenth more. It appends
// records that say so: otherwise Verify would report the removed ones as missing.
func (c *Chain) TrimTo(ctx context.Context, t store.Trimming, keep int) error {
	last, err := c.beyond(ctx, keep)
	if err != nil {
		return fmt.Errorf("trim chain: %w", err)
	}
	why := fmt.Sprintf("%d are kept", keep)
	return c.trim(ctx, t, why, func(seq uint64, _ link) bool { return seq <= last })
}

// beyond returns the number in the log of the last record that comes before the last keep
// ones, 0 if there are not a tenth more than these.
func (c *Chain) beyond(ctx context.Context, keep int) (last uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, err := c.end(ctx)
	if err != nil || at.Seq <= uint64(keep) {
		return 0, err
	}
	last = at.Seq - uint64(keep)
	for rec, err := range c.log.Since(ctx, 0) {
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return 0, err
		}
		if rec.Seq+uint64(keep/10) <= last {
			return last, nil
		}
		break
	}
	return 0, nil
}

// TrimBefore removes the records of before t.Before, up to the first that is younger.
// The records that say so, as those of [Chain.TrimTo], are what the first one left
// continues: so the chain verifies, and so does the archive, which has the records as
// they were, with their digests.
func (c *Chain) TrimBefore(ctx context.Context, t store.Trimming) error {
	why := "they were older than " + t.Before.UTC().Format(time.DateOnly)
	return c.trim(ctx, t, why, func(_ uint64, l link) bool { return l.Time.Before(t.Before) })
}

// trim removes the first records, up to the first one that may not go, and says why.
func (c *Chain) trim(ctx context.Context, t store.Trimming, why string, may func(seq uint64, l link) bool) error {
	for {
		removed, err := c.removeBatch(ctx, t, why, may)
		if err != nil {
			return fmt.Errorf("trim chain: %w", err)
		}
		if err := t.Step(removed); err != nil || removed < trimBatch {
			return err
		}
	}
}

// removeBatch removes the oldest records that may go, trimBatch at most.
func (c *Chain) removeBatch(
	ctx context.Context, t store.Trimming, why string, may func(seq uint64, l link) bool,
) (removed int, err error) {
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
		if removed >= trimBatch || !may(rec.Seq, l) {
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
	what := fmt.Sprintf("the entries up to number %d were removed: %s", last.N, why)
	return removed, c.remove(ctx, seq, last, what)
}
