package memory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/aymanbagabas/go-udiff"

	"parley/chat"
	"parley/store"
)

// maxChanges is how many changes of a person are kept.
const maxChanges = 200

// ErrGone is returned when a change cannot be undone because later changes have
// replaced it.
var ErrGone = errors.New("what it wrote is not there any more")

// People returns the people about whom something may be known, including the
// owner.
func (n *Notes) People(ctx context.Context) ([]chat.Person, error) {
	all, err := n.Past.People(ctx)
	for who, more := range n.Versions.heads.Keys(ctx, "") {
		all = append(all, chat.Person(who))
		err = errors.Join(err, more)
	}
	all = append(all, chat.TheOwner)
	slices.Sort(all)
	return slices.Compact(all), err
}

// Log returns the last changes of the memory of who, at most so many, the newest
// first. A damaged change only has its ID (P21).
func (v *Versions) Log(ctx context.Context, who chat.Person, most int) (all []Change, err error) {
	err = v.with(ctx, who, func(ctx context.Context, h *head, _ map[string]string) error {
		for c, err := range v.back(ctx, h) {
			if err != nil || len(all) == most {
				return err
			}
			all = append(all, c)
		}
		return nil
	})
	return all, err
}

// Show returns a change, with a unified diff. The error is store.ErrNotFound if
// there is no change with this ID, and store.ErrDamaged if it or one of its texts
// is damaged.
func (v *Versions) Show(ctx context.Context, who chat.Person, id string) (diff string, c Change, err error) {
	err = v.with(ctx, who, func(ctx context.Context, _ *head, _ map[string]string) error {
		c, err = v.change(ctx, who, id)
		if err != nil {
			return err
		}
		for _, name := range names(who) {
			before, after, err := v.pair(ctx, who, c.Files[name])
			if err != nil {
				return err
			}
			diff += udiff.Unified(name, name, before, after)
			proposed, asks := c.Asks[name]
			if !asks {
				continue
			}
			before, after, err = v.pair(ctx, who, proposed)
			if err != nil {
				return err
			}
			diff += udiff.Unified(name, name+" (proposed)", before, after)
		}
		return nil
	})
	return diff, c, err
}

// Restore undoes the change id, but nothing that came after it. This is a change
// itself, and entries are not dreamt of again. The error is ErrGone if later
// changes are in the way, and otherwise like that of Show. A key that is not empty
// identifies the request: repeating it changes nothing.
func (v *Versions) Restore(ctx context.Context, who chat.Person, id, key string) (Change, error) {
	return v.reapply(ctx, Change{Who: who, By: "restore " + id, Key: key}, id, func(c Change) map[string]Edit {
		undone := map[string]Edit{}
		for name, e := range c.Files {
			undone[name] = Edit{Before: e.After, After: e.Before}
		}
		return undone
	})
}

// Accept makes the edits that the change id proposes. The error is ErrGone if it
// proposes none, if they were made already, or if later changes are in the way.
// key is as in Restore.
func (v *Versions) Accept(ctx context.Context, who chat.Person, id, key string) (Change, error) {
	return v.reapply(ctx, Change{Who: who, By: "accept " + id, Key: key}, id,
		func(c Change) map[string]Edit { return c.Asks })
}

// reapply makes, as the change to, the edits of the change id that edits returns.
// The error is ErrGone if none is left to make, or one no longer fits.
func (v *Versions) reapply(
	ctx context.Context,
	to Change,
	id string,
	edits func(Change) map[string]Edit,
) (Change, error) {
	return v.edit(ctx, to, func(ctx context.Context, _ *head, texts map[string]string) error {
		c, err := v.change(ctx, to.Who, id)
		if err != nil {
			return err
		}
		made := false
		for name, e := range edits(c) {
			before, after, err := v.pair(ctx, to.Who, e)
			if err != nil {
				return err
			}
			text, ok := merge(before, texts[name], after)
			if _, there := texts[name]; !ok || !there {
				return ErrGone
			}
			made = made || text != texts[name]
			texts[name] = text
		}
		if !made {
			return ErrGone
		}
		return nil
	})
}

// merge merges the changes from base to a and from base to b, line by line. It
// fails if both change the same lines.
func merge(base, a, b string) (text string, ok bool) {
	switch base {
	case a:
		return b, true
	case b:
		return a, true
	}
	edits, ok := udiff.Merge(udiff.Lines(base, a), udiff.Lines(base, b))
	text, err := udiff.Apply(base, edits)
	return text, ok && err == nil
}

// change returns the change id of who.
func (v *Versions) change(ctx context.Context, who chat.Person, id string) (Change, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n <= 0 {
		return Change{}, fmt.Errorf("change %q: %w", id, store.ErrNotFound)
	}
	c, _, err := v.changes.Get(ctx, key(who, n))
	if err != nil {
		return Change{}, fmt.Errorf("change %d: %w", n, err)
	}
	if c.Who != who {
		return Change{}, fmt.Errorf("change %d: %w", n, store.ErrDamaged)
	}
	return c, nil
}

// back yields the kept changes of a person, the newest first. A damaged change
// only has its ID.
func (v *Versions) back(ctx context.Context, h *head) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for n := h.Last; n > max(0, h.Last-maxChanges); n-- {
			c, err := v.change(ctx, h.Who, strconv.FormatInt(n, 10))
			if errors.Is(err, store.ErrDamaged) || errors.Is(err, store.ErrNotFound) {
				c, err = Change{ID: strconv.FormatInt(n, 10), Who: h.Who}, nil
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// trim deletes, every 20 changes, those beyond maxChanges and the texts that no
// other change needs.
func (v *Versions) trim(ctx context.Context, h *head) error {
	if h.Last < maxChanges || h.Last%20 != 0 {
		return nil
	}
	needed := map[string]bool{}
	byFile := map[string]map[string]bool{}
	need := func(name string, sums ...string) {
		if byFile[name] == nil {
			byFile[name] = map[string]bool{}
		}
		for _, sum := range sums {
			needed[prefix(h.Who)+sum] = true
			byFile[name][sum] = true
		}
	}
	for name, sum := range h.Files {
		need(name, sum)
	}
	for c, err := range v.back(ctx, h) {
		if err != nil {
			return err
		}
		for name, e := range c.Files {
			need(name, e.Before, e.After)
		}
		for name, e := range c.Asks {
			need(name, e.Before, e.After)
		}
	}
	oldest := key(h.Who, h.Last-maxChanges+1)
	return errors.Join(
		v.trimOrigins(ctx, h.Who, byFile),
		forget(ctx, v.changes, h.Who, func(k string) bool { return k >= oldest }),
		forget(ctx, v.texts, h.Who, func(k string) bool { return needed[k] }))
}

// keyed is a bucket or a table.
type keyed interface {
	Keys(ctx context.Context, prefix string) iter.Seq2[string, error]
	Delete(ctx context.Context, key string) error
}

// forget deletes the keys of who in b for which keep is false.
func forget(ctx context.Context, b keyed, who chat.Person, keep func(key string) bool) error {
	for k, err := range b.Keys(ctx, prefix(who)) {
		if err != nil {
			return err
		}
		if keep(k) {
			continue
		}
		if err := b.Delete(ctx, k); err != nil {
			return err
		}
	}
	return nil
}
