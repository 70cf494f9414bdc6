package conversation

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"parley/llm"
	"parley/store"
	"parley/tools"
)

// Prompts keep the long texts of requests, instructions and tools, once each
// under their digests. Records name them by those.
type Prompts struct {
	bucket store.Bucket
	log    *slog.Logger
	latest atomic.Pointer[ToolSet] // the tools that were noted last
}

// NewPrompts returns the prompts kept in s.
func NewPrompts(s store.Store, log *slog.Logger) *Prompts {
	return &Prompts{bucket: s.Bucket(store.BucketPrompts), log: log}
}

// digestOf returns the name under which a text is kept.
func digestOf(text string) string { return fmt.Sprintf("%.12x", sha256.Sum256([]byte(text))) }

// note keeps body under digest, once, and reports whether it could. A failure is
// no reason to leave a person without an answer.
func (p *Prompts) note(ctx context.Context, digest, body string) (kept bool) {
	_, _, err := p.bucket.Get(ctx, digest)
	if err != nil {
		_, err = p.bucket.Put(ctx, digest, []byte(body), store.Any)
	}
	if err != nil {
		p.log.Warn("what a model is told was not kept", "digest", digest, "err", err)
	}
	return err == nil
}

// KeepSystem keeps instructions and returns their digest. Most sessions have a
// last paragraph of their own, so what comes before it is kept once for all.
func (p *Prompts) KeepSystem(ctx context.Context, text string) string {
	digest := digestOf(text)
	if _, _, err := p.bucket.Get(ctx, digest); err != nil {
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

// KeepTools keeps the tools of a turn and returns them with their digest. The caller must not
// modify the result: most turns have the same tools, and share it.
func (p *Prompts) KeepTools(ctx context.Context, text *ToolSet) *ToolSet {
	if last := p.latest.Load(); last != nil && last.same(text) {
		return last
	}
	b, _ := json.Marshal(text) // a schema is JSON
	text.Digest = digestOf(string(b))
	if p.note(ctx, text.Digest, string(b)) {
		p.latest.Store(text)
	}
	return text
}

// same reports whether text and other have the same encoding.
func (text *ToolSet) same(other *ToolSet) bool {
	return slices.Equal(text.Known, other.Known) && slices.EqualFunc(text.Specs, other.Specs, llm.ToolSpec.Equal)
}

// ToolSetOf returns what is kept of the tools in k.
func ToolSetOf(k *tools.Kit) *ToolSet {
	text := &ToolSet{Specs: k.Specs()}
	for _, t := range k.Tools() {
		text.Known = append(text.Known, ToolTraits{
			Name: t.Name, AliasOf: t.AliasOf, ReadOnly: t.ReadOnly, Last: t.Last, JSON: t.JSON,
		})
	}
	return text
}
