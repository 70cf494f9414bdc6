package main

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/llm"
	"parley/tools"
	"parley/tools/files"
	"parley/tools/message"
)

const (
	modelTime = 10 * time.Minute // the most one answer may take (P11)
	maxTokens = 4096             // left free for an answer where the config names no limit
)

// settings returns what the agent works with, as c says.
func (h *house) settings(ctx context.Context, c *Config) (agent.Settings, error) {
	pipeline := append([]tools.Middleware{h.observer.Tool(), h.auditTools}, tools.Standard(tools.StandardConfig{Log: h.Log, Strays: &h.strays})...)
	kit, err := tools.NewKit(ctx, tools.Scope{}, []tools.Source{h.tools(c)}, pipeline...)
	if err != nil {
		return agent.Settings{}, fmt.Errorf("tools: %w", err)
	}
	return agent.Settings{
		Models: h.models(c), Model: c.Agent.Model, Rounds: c.Agent.MaxRounds, MaxAge: c.Agent.MessageTTL,
		Kit: func(context.Context, tools.Scope) (*tools.Kit, error) { return kit, nil },
	}, nil
}

// tools are the built-in ones.
func (h *house) tools(c *Config) tools.Fixed {
	all := append(files.New(), message.New(h.hub.Send), message.NewAsk(h.askPerson, h.hub.Withdraw))
	for i := range all {
		if all[i].Timeout == 0 {
			all[i].Timeout = c.Tools.Timeout
		}
	}
	return all
}

// askPerson is Hub.Ask as the tool calls it.
func (h *house) askPerson(ctx context.Context, r chat.Reply) (index int, text string, by chat.Sender, err error) {
	c, err := h.hub.Ask(ctx, r)
	return c.Index, c.Text, c.By, err
}

// models returns the models a conversation may choose from. Each is tried
// several times, and then those of agent.fallback (P11).
func (h *house) models(c *Config) map[string]agent.Model {
	patient := map[string]llm.Model{}
	for name, m := range c.Models {
		patient[name] = h.observer.Model(name, llm.Retry(h.observer.Try(name, newModel(name, m))))
	}
	all := map[string]agent.Model{}
	for name, m := range c.Models {
		chain := []llm.Model{patient[name]}
		for _, next := range c.Agent.Fallback {
			if next != name {
				chain = append(chain, patient[next])
			}
		}
		answer := m.MaxTokens
		if answer == 0 {
			answer = min(maxTokens, m.ContextWindow/4)
		}
		all[name] = agent.Model{Model: llm.Limit(modelTime)(llm.Fallback(chain...)), Window: m.ContextWindow, MaxTokens: answer, Vision: m.sees()}
	}
	return all
}

// pathOf returns the path of an address, "/" if it has none.
func pathOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Path != "" {
		return u.Path
	}
	return "/"
}

// zone returns the time zone in which the agent is told the time.
func (c *Config) zone() *time.Location {
	zone, err := time.LoadLocation(c.Timezone)
	if c.Timezone == "" || err != nil { // check lets no wrong one pass
		return time.Local
	}
	return zone
}
