// Package textmode lets models use tools that know nothing of them: they are
// told of the tools in words, and write their calls as XML in the text.
package textmode

import (
	"context"

	"parley/llm"
)

// New returns m with tools. Of its answers, only what the model itself says is
// looked through for calls (R-S11); their arguments are all strings, for the
// pipeline to cast. An answer that is cut off within a call comes without it.
func New(m llm.Model) llm.Model {
	return llm.ModelFunc(func(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Message, error) {
		live := newParser(req, stream)
		var hear func(llm.Delta)
		if stream != nil {
			hear = func(d llm.Delta) {
				if d.Reset {
					live = newParser(req, stream)
					stream(llm.Delta{Reset: true})
				}
				if d.Reasoning != "" {
					stream(llm.Delta{Reasoning: d.Reasoning})
				}
				live.feed(d.Text)
			}
		}
		msg, err := m.Generate(ctx, inWords(req), hear)
		if err != nil {
			return llm.Message{}, err
		}
		cut := msg.Finish == llm.Length || msg.Finish == llm.Filtered
		live.end(cut)
		whole := newParser(req, nil)
		whole.feed(msg.Text)
		whole.end(cut)
		msg.Text, msg.Calls = whole.text.String(), whole.calls
		if whole.idle {
			msg.Calls = nil
		}
		switch {
		case whole.over:
			msg.Finish = llm.Length
		case !cut && len(msg.Calls) > 0:
			msg.Finish = llm.CallsFor
		}
		return msg, nil
	})
}
