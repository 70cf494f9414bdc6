// Package textmode lets models use tools although their provider does not support
// that: the prompt describes the tools, and the models write their calls as XML in
// the text.
package textmode

import (
	"context"

	"parley/llm"
)

// New returns m with tools. Only the model's own text is searched for calls
// (R-S11). Their arguments are all strings, which the tools' pipeline converts. If
// an answer is cut off within a call, it has no such call.
func New(m llm.Model) llm.Model {
	return llm.ModelFunc(func(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Message, error) {
		p := newParser(req, stream)
		msg, err := m.Generate(ctx, newTextRequest(req), func(d llm.Delta) {
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
		msg.Text = p.text.String()
		msg.Calls = p.calls
		if p.noTools {
			msg.Calls = nil
		}
		if p.tooLong {
			msg.Finish = llm.Length
		} else if !cut && len(msg.Calls) > 0 {
			msg.Finish = llm.CallsTools
		}
		return msg, nil
	})
}
