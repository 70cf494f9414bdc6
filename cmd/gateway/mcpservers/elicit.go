package mcpservers

import (
	"context"

	"parley/chat"
	"parley/tools/mcp/elicit"
	"parley/tools/mcp/sampling"
)

// newInputs returns what asks people what servers want to know. sampler asks models.
func newInputs(c Config, sampler *sampling.Sampler) *elicit.Inputs {
	return elicit.New(elicit.Config{
		Log:      c.Log,
		Store:    c.Store,
		Words:    elicit.Words{Elicit: &c.Texts.Tools.Elicit, Form: &c.Texts.Channels.Form},
		Patience: c.Patience,
		Sampler:  sampler,
		Ask: func(ctx context.Context, r chat.Reply) (elicit.Answer, error) {
			choice, err := c.Hub().Questions().Ask(ctx, r)
			return elicit.Answer{Index: choice.Index, Text: choice.Text, Values: choice.Values}, err
		},
		ShowsForm: func(at chat.Address, fields int) bool { return c.Hub().Questions().ShowsForm(at, fields) },
		Withdraw:  func(ctx context.Context, id string) error { return c.Hub().Questions().Withdraw(ctx, id) },
		Send:      func(ctx context.Context, r chat.Reply) error { return c.Hub().Send(ctx, r) },
	})
}
