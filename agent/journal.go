package agent

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"parley/llm"
	"parley/store"
)

// digest names texts.
func digest(texts ...string) string {
	h := sha256.New()
	for _, s := range texts {
		fmt.Fprintf(h, "%d ", len(s))
		h.Write([]byte(s))
	}
	return fmt.Sprintf("%.12x", h.Sum(nil))
}

// note keeps a long text of requests, once, and returns its digest. That it
// could not is no reason to leave a person without an answer.
func (p *Pool) note(ctx context.Context, digest string, text func() []byte) string {
	if _, there := p.noted.LoadOrStore(digest, true); there {
		return digest
	}
	if _, err := p.prompts.Put(ctx, digest, text(), store.Any); err != nil {
		p.noted.Delete(digest)
		p.Log.Warn("what a model is told was not kept", "digest", digest, "err", err)
	}
	return digest
}

// noteTools keeps what the model is told of tools.
func (t *turn) noteTools(ctx context.Context, specs []llm.ToolSpec) string {
	text := toolText{Specs: specs}
	var all []string
	for _, s := range specs {
		all = append(all, s.Name, s.Description, string(s.Schema))
	}
	for _, known := range t.kit.Tools() {
		if t.light(known.Name) {
			text.Light = append(text.Light, known.Name)
		}
	}
	return t.note(ctx, digest(append(all, text.Light...)...), func() []byte {
		b, _ := json.Marshal(text) // a schema is JSON
		return b
	})
}
