package memory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"parley/chat"
	"parley/store"
)

// keptChanges is how many changes of a person are kept.
const keptChanges = 200

// ErrGone refuses to undo what is not there any more.
var ErrGone = errors.New("what it wrote is not there any more")

// Log returns the last changes of the memory of who, at most so many, the
// newest first. Of one that is damaged there is the ID, and nothing else (P21).
func (v *Versions) Log(ctx context.Context, who chat.Person, most int) (all []Change, err error) {
	err = v.with(ctx, who, func(h *head, _ map[string]string) error {
		for c, err := range v.back(ctx, h) {
			if err != nil {
				return err
			}
			if all = append(all, c); len(all) >= most {
				return nil
			}
		}
		return nil
	})
	return all, err
}

// Show returns a change, and as a unified diff what it did. The error is
// store.ErrNotFound if there is none of that ID, store.ErrDamaged if it or a
// text of it is damaged.
func (v *Versions) Show(ctx context.Context, who chat.Person, id string) (diff string, c Change, err error) {
	err = v.with(ctx, who, func(*head, map[string]string) error {
		c, err = v.change(ctx, who, id)
		if err == nil {
			diff, err = v.diff(ctx, c)
		}
		return err
	})
	return diff, c, err
}

func (v *Versions) diff(ctx context.Context, c Change) (string, error) {
	var b strings.Builder
	for _, name := range names(c.Who) {
		before, after, err := v.pair(ctx, c.Who, c.Files[name])
		if err != nil {
			return "", err
		}
		b.WriteString(udiff.Unified(name, name, before, after))
	}
	return b.String(), nil
}

func (v *Versions) pair(ctx context.Context, who chat.Person, e Edit) (before, after string, err error) {
	before, err = v.text(ctx, who, e.Before)
	if err == nil {
		after, err = v.text(ctx, who, e.After)
	}
	return before, after, err
}

// Restore undoes the change id, and nothing that came after it. That is a
// change itself; what was dreamt is not dreamt again. The error is ErrGone if
// later changes are in the way, else as that of Show. Unless it is empty, key
// names the asking: asked again, nothing more is done.
func (v *Versions) Restore(ctx context.Context, who chat.Person, id, key string) (Change, error) {
	return v.edit(ctx, Change{Who: who, By: byRestore + id, Key: key}, func(_ *head, texts map[string]string) error {
		c, err := v.change(ctx, who, id)
		if err != nil {
			return err
		}
		gone := true
		for name, e := range c.Files {
			before, after, err := v.pair(ctx, who, e)
			if err != nil {
				return err
			}
			text, ok := merge(after, texts[name], before)
			if !ok {
				return ErrGone
			}
			gone = gone && text == texts[name]
			texts[name] = text
		}
		if gone {
			return ErrGone
		}
		return nil
	})
}

// merge makes of base what both a and b make of it, line by line, if they do
// not both change the same. What was heard from others stays apart.
func merge(base, a, b string) (string, bool) {
	switch base {
	case a:
		return b, true
	case b:
		return a, true
	}
	own, heard := apart(base)
	aOwn, aHeard := apart(a)
	bOwn, bHeard := apart(b)
	own, ok := mergeLines(own, aOwn, bOwn)
	heard, too := mergeLines(heard, aHeard, bHeard)
	return together(own, heard), ok && too
}

func mergeLines(base, a, b string) (string, bool) {
	edits, ok := udiff.Merge(udiff.Lines(base, a), udiff.Lines(base, b))
	if !ok {
		return "", false
	}
	text, err := udiff.Apply(base, edits)
	return text, err == nil
}

// change returns the change id of who.
func (v *Versions) change(ctx context.Context, who chat.Person, id string) (Change, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n <= 0 {
		return Change{}, fmt.Errorf("change %q: %w", id, store.ErrNotFound)
	}
	c, _, err := store.Load[Change](ctx, v.changes(), key(who, n))
	if err == nil && c.Who != who {
		err = store.ErrDamaged
	}
	if err != nil {
		return Change{}, fmt.Errorf("change %d: %w", n, err)
	}
	return c, nil
}

// back yields the changes of a person that are kept, the newest first.
func (v *Versions) back(ctx context.Context, h *head) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for n := h.Last; n > max(0, h.Last-keptChanges); n-- {
			id := strconv.FormatInt(n, 10)
			c, err := v.change(ctx, h.Who, id)
			if errors.Is(err, store.ErrDamaged) || errors.Is(err, store.ErrNotFound) {
				c, err = Change{ID: id, Who: h.Who}, nil
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// retrace finds in the changes where their head stood.
func (v *Versions) retrace(ctx context.Context, h *head) error {
	for k, err := range v.changes().Keys(ctx, prefix(h.Who)) {
		if err != nil {
			return err
		}
		h.Last = number(k)
		c, err := v.change(ctx, h.Who, strconv.FormatInt(h.Last, 10))
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return err
		}
		h.Cursor = max(h.Cursor, c.To)
		for name, e := range c.Files {
			h.Files[name] = e.After
		}
	}
	return nil
}

// number is that of the change under a key.
func number(key string) int64 {
	n, _ := strconv.ParseInt(key[strings.LastIndexByte(key, 0)+1:], 10, 64) // 0 is no change
	return n
}

// trim forgets the changes before the last ones, and the texts that no other needs.
func (v *Versions) trim(ctx context.Context, h *head) error {
	old, err := gather(v.changes().Keys(ctx, prefix(h.Who)), func(k string) bool { return number(k) <= h.Last-keptChanges })
	if err != nil || len(old) == 0 {
		return err
	}
	if err := remove(ctx, v.changes(), old); err != nil {
		return err
	}
	needed := map[string]bool{}
	for _, sum := range h.Files {
		needed[prefix(h.Who)+sum] = true
	}
	for c, err := range v.back(ctx, h) {
		if err != nil {
			return err
		}
		for _, e := range c.Files {
			needed[prefix(h.Who)+e.Before], needed[prefix(h.Who)+e.After] = true, true
		}
	}
	old, err = gather(v.texts().Keys(ctx, prefix(h.Who)), func(k string) bool { return !needed[k] })
	if err != nil {
		return err
	}
	return remove(ctx, v.texts(), old)
}

func gather(keys iter.Seq2[string, error], which func(string) bool) (all []string, err error) {
	for k, err := range keys {
		if err != nil {
			return nil, err
		}
		if which(k) {
			all = append(all, k)
		}
	}
	return all, nil
}

func remove(ctx context.Context, b store.Bucket, keys []string) error {
	for _, k := range keys {
		if err := b.Delete(ctx, k); err != nil {
			return err
		}
	}
	return nil
}
