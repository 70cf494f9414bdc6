package llm

import (
	"context"
	"errors"
)

// bytesPerToken is about how many bytes of text a token is.
const bytesPerToken = 4

// A Room is what a model has room for.
type Room struct {
	Window int  // tokens of a request and its answer; 0: not known
	Lean   bool // what every request begins with is to be as short as can be
}

// Bytes returns about how many bytes of text the n-th part of r's window takes.
func (r Room) Bytes(n int) int { return r.Window * bytesPerToken / n }

// EstimateTokens returns about how many tokens m takes: a quarter of its bytes, which callers correct for each
// model. Pictures do not count.
func (m Message) EstimateTokens() int {
	n := len(m.Text) + len(m.Reasoning)
	for _, c := range m.Calls {
		n += len(c.Through) + len(c.Name) + len(c.Args) + 16
	}
	return n/bytesPerToken + 4
}

// EstimateTokens returns about how many tokens r takes, with all of its messages.
func (r Request) EstimateTokens() int {
	n := r.EstimateFixedTokens()
	for _, m := range r.Messages {
		n += m.EstimateTokens()
	}
	return n
}

// EstimateFixedTokens returns about how many tokens the instructions and tools of r take, which do not become
// fewer when messages are left out.
func (r Request) EstimateFixedTokens() int {
	n := len(r.System)
	for _, t := range r.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return n / bytesPerToken
}

// WasInterrupted reports whether err, of [Model.Generate] with ctx, ended an answer that the model had begun: it
// was at work, and does not say how much.
func WasInterrupted(ctx context.Context, err error) bool {
	e, ok := errors.AsType[*Error](err)
	return err != nil && (ctx.Err() != nil || ok && (e.Kind == Cut || e.Kind == TimedOut))
}
