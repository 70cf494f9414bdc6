package conversation

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/store"
	"parley/tools"
)

// useInterval is how often it is noted that a text was used.
const useInterval = 24 * time.Hour

// Prompts keep the long texts of requests, instructions and tools, once each
// under their digests. Records name them by those.
type Prompts struct {
	bucket store.Bucket
	uses   store.Table[time.Time] // when each was used last, to within two useIntervals
	log    *slog.Logger
	latest atomic.Pointer[ToolSet] // the tools that were noted last

	removal sync.RWMutex // locked while a text is removed, and read-locked while one is noted
}

// NewPrompts returns the prompts kept in s.
func NewPrompts(s store.Store, log *slog.Logger) *Prompts {
	uses := store.NewTable(s.Bucket(store.BucketPromptUses), store.Forget[time.Time](log, "use of a prompt"))
	return &Prompts{bucket: s.Bucket(store.BucketPrompts), uses: uses, log: log}
}

// digestOf returns the name under which a text is kept.
func digestOf(text string) string { return fmt.Sprintf("%.12x", sha256.Sum256([]byte(text))) }

// isNoted reports whether a text is kept under digest, and its use was noted lately.
func (p *Prompts) isNoted(ctx context.Context, digest string) bool {
	used, _, err := p.uses.Get(ctx, digest)
	if err != nil || time.Since(used) >= useInterval {
		return false
	}
	_, _, err = p.bucket.Get(ctx, digest)
	return err == nil
}

// note keeps body under digest, once, with the time of its use, and reports whether it
// could. A failure is no reason to leave a person without an answer.
func (p *Prompts) note(ctx context.Context, digest, body string) (kept bool) {
	if p.isNoted(ctx, digest) {
		return true
	}
	_, _, err := p.bucket.Get(ctx, digest)
	if err != nil {
		_, err = p.bucket.Put(ctx, digest, []byte(body), store.Any)
	}
	err = errors.Join(err, p.uses.Set(store.Deferred(ctx), digest, time.Now().UTC()))
	if err != nil {
		p.log.Warn("what a model is told was not kept", "digest", digest, "err", err)
	}
	return err == nil
}

// KeepSystem keeps instructions and returns their digest. Most sessions have a
// last paragraph of their own, so what comes before it is kept once for all.
func (p *Prompts) KeepSystem(ctx context.Context, text string) string {
	digest := digestOf(text)
	p.removal.RLock()
	defer p.removal.RUnlock()
	if !p.isNoted(ctx, digest) {
		last := max(strings.LastIndex(text, "\n\n"), 0)
		head := digestOf(text[:last])
		_ = p.note(ctx, head, text[:last]) && p.note(ctx, digest, parted+head+text[last:])
	}
	return digest
}

const parted = "\x00" // begins what KeepSystem keeps

// Text returns what is kept under digest.
func (p *Prompts) Text(ctx context.Context, digest string) (string, error) {
	body, _, err := p.bucket.Get(ctx, digest)
	rest, system := strings.CutPrefix(string(body), parted)
	if err != nil || !system || len(rest) < len(digest) {
		return string(body), err
	}
	head, _, err := p.bucket.Get(ctx, rest[:len(digest)])
	return string(head) + rest[len(digest):], err
}

// KeepTools keeps the tools of a turn, those of k, and returns what is kept of them, with its digest. The caller
// must not modify the result: most turns have the same tools, and share it.
func (p *Prompts) KeepTools(ctx context.Context, k *tools.Kit) *ToolSet {
	if last := p.latest.Load(); last != nil && last.isOf(k) && time.Since(last.noted) < useInterval {
		return last
	}
	text := &ToolSet{Specs: k.Specs()}
	for t := range k.All() {
		text.Known = append(text.Known, traitsOf(t))
	}
	p.removal.RLock()
	defer p.removal.RUnlock()
	b, _ := json.Marshal(text) // a schema is JSON
	text.Digest = digestOf(string(b))
	text.noted = time.Now().Round(0) // so that it ages while the machine sleeps, as what is noted of its use does
	if p.note(ctx, text.Digest, string(b)) {
		p.latest.Store(text)
	}
	return text
}

// Trim removes the texts that no request was made with since t.Before: those that were
// may be shown without them. Of a text from before uses were noted that is not known; its
// time begins with the first pass.
func (p *Prompts) Trim(ctx context.Context, t store.Trimming) error {
	for digest, err := range p.bucket.Keys(ctx, "") {
		if err != nil {
			return err
		}
		_, _, err := p.uses.Get(ctx, digest)
		if errors.Is(err, store.ErrNotFound) {
			err = errors.Join(p.uses.Set(store.Deferred(ctx), digest, time.Now().UTC()), t.Step(0))
		}
		if err != nil {
			return err
		}
	}
	for digest, err := range p.uses.Keys(ctx, "") {
		if err != nil {
			return err
		}
		removed, err := p.trim(ctx, digest, t.Before.Add(-2*useInterval))
		if err := errors.Join(err, t.Step(removed)); err != nil {
			return fmt.Errorf("remove prompt %s: %w", digest, err)
		}
	}
	return nil
}

// trim removes the text that is kept under digest if it was last used before that time.
func (p *Prompts) trim(ctx context.Context, digest string, before time.Time) (removed int, err error) {
	p.removal.Lock()
	defer p.removal.Unlock()
	used, _, err := p.uses.Get(ctx, digest)
	if errors.Is(err, store.ErrNotFound) { // it was damaged
		return 0, nil
	}
	if err != nil || !used.Before(before) {
		return 0, err
	}
	if err := p.bucket.Delete(ctx, digest); err != nil {
		return 0, err
	}
	return 1, p.uses.Delete(ctx, digest) // the last: by it the text is found
}

// isOf reports whether text is what is kept of the tools in k.
func (text *ToolSet) isOf(k *tools.Kit) bool {
	known := text.Known
	for t := range k.All() {
		if len(known) == 0 || known[0] != traitsOf(t) {
			return false
		}
		known = known[1:]
	}
	return len(known) == 0 && k.Lists(text.Specs)
}

func traitsOf(t *tools.Tool) ToolTraits {
	return ToolTraits{Name: t.Name, AliasOf: t.AliasOf, ReadOnly: t.ReadOnly, Last: t.Last, JSON: t.JSON}
}
