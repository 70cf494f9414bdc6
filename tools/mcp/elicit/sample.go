package elicit

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/tools"
	"parley/tools/mcp"
)

// A Sampler has models answer what servers ask them.
type Sampler interface {
	// Check returns an error if nobody could be allowed to have p answered for the server.
	Check(server string, p *mcp.SamplingRequest) error

	// Question returns the ID of the question whether a request of the server in the middle of c is to be
	// answered; "" if nobody is asked. id tells the request from others of c.
	Question(server string, c tools.Call, id string) string

	// Sample has a model answer p. The error is for the server.
	Sample(
		ctx context.Context, server string, c tools.Call, id string, p *mcp.SamplingRequest,
	) (*mcp.SamplingResult, error)
}

// sample returns what a model answers to a request of r by that name, and notes it: after a restart it is
// not asked again. A request that was at work when Parley was killed is made anew, as are those of turns.
func (i *Inputs) sample(
	ctx context.Context, r *record, c tools.Call, name string, asked *mcp.SamplingRequest,
) (sdk.InputResponse, error) {
	if given, ok := r.Given[name]; ok {
		return given, nil
	}
	answer, err := i.config.Sampler.Sample(ctx, r.Server, c, fmt.Sprintf("%d.%s", r.Asked.Round, name), asked)
	if errors.Is(context.Cause(ctx), tools.ErrClosing) {
		return nil, tools.ErrClosing
	}
	if err != nil {
		return nil, errors.Join(notSampled(r.Server, err), i.table.Delete(context.WithoutCancel(ctx), c.Key()))
	}
	if r.Given == nil {
		r.Given = sdk.InputResponseMap{}
	}
	r.Given[name] = answer
	if err := i.table.Set(ctx, c.Key(), *r); err != nil {
		return nil, fmt.Errorf("note what the model answered: %w", err)
	}
	return answer, nil
}

func notSampled(server string, err error) error {
	return fmt.Errorf("the server %s wanted to ask a model, and got no answer: %w", server, err)
}

// SampleNow implements [mcp.Inputs].
func (i *Inputs) SampleNow(
	ctx context.Context, server string, c tools.Call, asked *mcp.SamplingRequest,
) (*mcp.SamplingResult, error) {
	id := fmt.Sprint("now.", time.Now().UnixNano())
	key := nowPrefix + c.Key()
	if question := i.config.Sampler.Question(server, c, id); question != "" {
		// After a restart it is withdrawn: the call was lost.
		if err := i.table.Set(ctx, key, record{Server: server, Time: time.Now(), Question: question}); err != nil {
			return nil, err
		}
	}
	answer, err := i.config.Sampler.Sample(ctx, server, c, id, asked)
	if errors.Is(context.Cause(ctx), tools.ErrClosing) {
		return nil, tools.ErrClosing
	}
	return answer, errors.Join(err, i.table.Delete(context.WithoutCancel(ctx), key))
}
