package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"parley/agent"
	"parley/agent/budget"
	"parley/chat"
	"parley/config"
	"parley/llm"
	"parley/llm/openai"
	"parley/tools"
)

// transcriber returns what turns voices into text, nil if nothing does.
func transcriber(c *config.Config) func(context.Context, string, io.Reader) (string, error) {
	t := c.Transcription
	if t == nil {
		return nil
	}
	to := openai.Config{Name: "transcription", BaseURL: t.BaseURL, APIKey: string(t.APIKey), Model: t.Model}
	return openai.NewTranscriber(to, t.Language).Transcribe
}

const (
	modelTime = 10 * time.Minute // the most one answer may take (P11)
	maxTokens = 4096             // left free for an answer where the config names no limit
)

// settings returns what the agent works with, as c says.
func (g *gateway) settings(ctx context.Context, c *config.Config) (agent.Settings, error) {
	kit, err := toolboxOf(g).kits(c)
	if err != nil {
		return agent.Settings{}, err
	}
	main := c.Models[c.Agent.Model]
	room := llm.Room{Window: main.ContextWindow, Lean: c.Agent.IsLean(main)}
	all, err := kit(ctx, tools.Scope{From: chat.Sender{Role: chat.Owner}, Window: room.Window, Lean: room.Lean})
	if err != nil {
		return agent.Settings{}, fmt.Errorf("tools: %w", err)
	}
	g.offered.Store(all)
	g.warnIfCrowded(ctx, room, all)
	g.kit.Store(&kit)
	return agent.Settings{
		Models: g.models(c), Model: c.Agent.Model, ModelsOff: g.policy.ModelsOff,
		Rounds: c.Agent.MaxRounds, MaxAge: c.Agent.MessageTTL, Kit: kit,
		Rollback: c.Tools.Rollback, RolledBack: g.stats.RolledBack, Price: g.price,
		Limits: limitsOf(c), Sum: c.DreamModel(),
	}, nil
}

// warnIfCrowded warns if instructions and tools leave the model little room for talk.
func (g *gateway) warnIfCrowded(ctx context.Context, room llm.Room, all *tools.Kit) {
	system, _ := g.knowledge.prompt().System(ctx, "", chat.TheOwner, room) // of files that cannot be read it says so
	taken := llm.Request{System: system, Tools: all.Specs()}.EstimateFixedTokens()
	if taken > room.Window/2 {
		const text = "instructions and tools leave little room for talk: raise contextWindow or use a lean agent.prompt"
		g.Log.Warn(text, "contextWindow", room.Window, "taken", taken)
	}
}

// models returns the models a conversation may choose from. Each is tried
// several times, and then those of agent.fallback (P11).
func (g *gateway) models(c *config.Config) map[string]agent.Model {
	retrying := map[string]llm.Model{}
	for name, m := range c.Models {
		retrying[name] = g.observer.Model(name, llm.Retry(g.observer.Try(name, newModel(name, m))))
	}
	all := map[string]agent.Model{}
	for name, m := range c.Models {
		chain := []llm.Model{retrying[name]}
		for _, next := range c.Agent.Fallback {
			if next != name {
				chain = append(chain, retrying[next])
			}
		}
		answer := m.MaxTokens
		if answer == 0 {
			answer = min(maxTokens, m.ContextWindow/4)
		}
		all[name] = agent.Model{Model: llm.Limit(modelTime)(llm.Fallback(chain...)), Window: m.ContextWindow,
			MaxTokens: answer, Vision: driverOf(m).Sees(), Lean: c.Agent.IsLean(m)}
	}
	return all
}

// limitsOf are those of a day, as the agent knows them.
func limitsOf(c *config.Config) budget.Limits {
	of := func(whose string) budget.Limit {
		l := c.Limits[whose]
		return budget.Limit{
			Turns: l.Turns, Requests: l.Rounds, Tokens: l.Tokens, Money: l.Money, Subagents: l.Children, Bytes: l.Bytes,
		}
	}
	return budget.Limits{Person: of("person"), Session: of("session"), Job: of("job"), Everybody: of("everybody")}
}

// price returns what u cost, if the config has prices for model.
func (g *gateway) price(model string, u llm.Usage) (cost float64, known bool) {
	return g.now.Load().Cost(model, u.In, u.Out)
}
