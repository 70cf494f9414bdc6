package mcpservers

import (
	"context"
	"path/filepath"

	"parley/chat"
	"parley/redact"
	"parley/tools/mcp/signin"
)

// newSignIn returns what signs people in to servers. It adds its secrets to tokens, too.
func newSignIn(c Config, tokens *redact.Redactor) *signin.SignIn {
	return signin.New(signin.Config{
		Log:     c.Log,
		Store:   c.Store,
		Texts:   &c.Texts.Tools.SignIn,
		KeyFile: filepath.Join(c.DataDir, "mcp-sign-in.key"),
		Secret:  c.SignInKey,
		Home:    c.Home,
		Ask: func(ctx context.Context, r chat.Reply) (index int, text string, err error) {
			answer, err := c.Hub().Questions().Ask(ctx, r)
			return answer.Index, answer.Text, err
		},
		Withdraw: func(ctx context.Context, id string) error { return c.Hub().Questions().Withdraw(ctx, id) },
		Send:     func(ctx context.Context, r chat.Reply) error { return c.Hub().Send(ctx, r) },
		Secrets:  redactors{c.Secrets, tokens},
		Audit:    c.Audit,
	})
}

// redactors all know the same secrets.
type redactors []*redact.Redactor

// Add adds secrets.
func (all redactors) Add(secrets ...string) {
	for _, r := range all {
		r.Add(secrets...)
	}
}

// Remove has secrets be texts like any others.
func (all redactors) Remove(secrets ...string) {
	for _, r := range all {
		r.Remove(secrets...)
	}
}
