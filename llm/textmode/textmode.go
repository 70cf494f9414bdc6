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
		p := newParser(req, stream)
		msg, err := m.Generate(ctx, inWords(req), func(d llm.Delta) {
			if d.Reset {
				p = newParser(req, stream)
			}
			if stream != nil && (d.Reset || d.Reasoning != "") {
				stream(llm.Delta{Reset: d.Reset, Reasoning: d.Reasoning})
			}
			p.feed(d.Text)
		})
		if err != nil {
			return llm.Message{}, err
		}
		cut := msg.Finish == llm.Length || msg.Finish == llm.Filtered
		p.end(cut)
		msg.Text, msg.Calls = p.text.String(), p.calls
		if p.idle {
			msg.Calls = nil
		}
		switch {
		case p.over:
			msg.Finish = llm.Length
		case !cut && len(msg.Calls) > 0:
			msg.Finish = llm.CallsFor
		}
		return msg, nil
	})
}
