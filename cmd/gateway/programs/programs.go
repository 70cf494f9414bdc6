// Package programs connects what other programs have to do with the agent: MCP clients with the channel through
// which they ask it, and the commands that it left in the background with the list of its tasks.
package programs

import (
	"context"

	"parley/agent/subagents"
	"parley/channels/api"
	"parley/chat"
	"parley/tools/mcp/serve"
	"parley/tools/shell"
)

// A Server serves MCP clients.
type Server = serve.Server

// Config is what a Server needs besides the channel.
type Config = serve.Config

// New returns the Server of cfg, whose clients ask the agent through c.
func New(c *api.Channel, cfg Config) *Server {
	cfg.Ask = func(ctx context.Context, who chat.Sender, prefix string, q serve.Question) (serve.Answer, error) {
		a, err := c.Ask(ctx, who, prefix, api.Question(q))
		return serve.Answer(a), err
	}
	return serve.New(cfg)
}

// Background are the commands in the background, as the agent knows them.
func Background(s *shell.Shell) subagents.Background {
	list := func(ctx context.Context, id chat.SessionID) (all []subagents.BackgroundTask, err error) {
		working, err := s.Working(ctx, id)
		for _, c := range working {
			all = append(all, subagents.BackgroundTask{
				ID: c.ID, What: c.Command, Session: c.Session, At: c.At, From: c.From, Began: c.Began,
			})
		}
		return all, err
	}
	return subagents.Background{List: list, Stop: s.Stop}
}
