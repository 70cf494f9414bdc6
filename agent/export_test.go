package agent

import (
	"context"
	"encoding/json"
	"slices"

	"parley/chat"
	"parley/llm"
)

// Rebuild makes the requests of a conversation again, from its log alone.
func Rebuild(ctx context.Context, p *Pool, id chat.SessionID) (all []llm.Request, err error) {
	var done []numbered
	h := &history{zone: p.Zone}
	for r, err := range p.records(ctx, id, 0, 0) {
		if err != nil {
			return nil, err
		}
		if how := r.Asked; how != nil {
			if how.Since != nil {
				h = &history{zone: p.Zone}
				for _, old := range done {
					if old.seq > *how.Since {
						h.apply(old.seq, old.record)
					}
				}
			}
			system, _, err := p.prompts.Get(ctx, how.System)
			if err != nil {
				return nil, err
			}
			var text toolText
			if how.Tools != "" {
				b, _, err := p.prompts.Get(ctx, how.Tools)
				if err == nil {
					err = json.Unmarshal(b, &text)
				}
				if err != nil {
					return nil, err
				}
			}
			light := func(tool string) bool { return slices.Contains(text.Light, tool) }
			all = append(all, llm.Request{System: string(system), Tools: text.Specs, Messages: h.request(*how, light, nil)})
		}
		done = append(done, r)
		h.apply(r.seq, r.record)
	}
	return all, nil
}
