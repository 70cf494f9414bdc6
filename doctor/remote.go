package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/channels"
	"parley/channels/network"
	"parley/llm"
)

// Model asks a model for one word. It has the given name in the config and id at
// its provider.
func Model(ctx context.Context, name, id string, model llm.Model) Finding {
	start := time.Now()
	_, err := model.Generate(ctx, llm.Request{
		Messages: []llm.Message{{Role: llm.User, Text: "Answer with the word OK."}},
	}, nil)
	if err == nil {
		return Finding{OK, fmt.Sprintf("%s answered in %.1f s", id, time.Since(start).Seconds()), ""}
	}
	return modelFailure(id, err, func(kind llm.Kind) string { return modelAdvice(kind, name) })
}

// modelFailure is the finding about a model that failed with err. It has that id at its provider.
func modelFailure(id string, err error, advice func(llm.Kind) string) Finding {
	kind := llm.TimedOut
	if e, ok := errors.AsType[*llm.Error](err); ok {
		kind = e.Kind
	}
	return Finding{Fail, fmt.Sprintf("%s: %v", id, err), advice(kind)}
}

// modelAdvice says what to do about a model of that name that does not answer.
func modelAdvice(kind llm.Kind, name string) string {
	advice := map[llm.Kind]string{
		llm.Auth:        "put a valid key in models.NAME.apiKey, or in OPENAI_API_KEY",
		llm.Quota:       "add credit at the provider, or name another model in agent.fallback",
		llm.BadRequest:  "check models.NAME.model and models.NAME.baseUrl: the provider may not have that model",
		llm.TooLong:     "lower models.NAME.maxTokens and models.NAME.contextWindow",
		llm.RateLimited: "wait a little, or name another model in agent.fallback",
		llm.Overloaded:  "wait a little, or name another model in agent.fallback",
		llm.Unreachable: "check models.NAME.baseUrl, the network and HTTPS_PROXY",
		llm.Cut:         "try again; if it stays so, ask the provider or a proxy in between",
		llm.TimedOut:    "try again; a local model may need time to load",
	}[kind]
	return strings.ReplaceAll(advice, "NAME", name)
}

// DemoModel is the finding about a model that needs no network.
func DemoModel() Finding {
	const advice = "set OPENAI_API_KEY, or write models and agent.model in the config"
	return Finding{Warn, "the demo model is not a real one", advice}
}

// Channel asks the network of the channel of that name who the bot is. buildErr
// says why there is no channel. If nobody is allowed, people need a pairing code.
func Channel(ctx context.Context, name string, c channels.Channel, buildErr error, allowed int) Finding {
	const advice = "check channels.%[1]s.token, the other keys of channels.%[1]s, and the network"
	if buildErr != nil {
		return Finding{Fail, buildErr.Error(), fmt.Sprintf(advice, name)}
	}
	text := "configured"
	if bot, ok := c.(network.Identifier); ok {
		who, err := bot.Check(ctx)
		if err != nil {
			return Finding{Fail, err.Error(), fmt.Sprintf(advice, name)}
		}
		text = who
	}
	if allowed == 0 {
		text += "; nobody is on its allow list, so people need a code (parley pair CODE)"
	}
	return Finding{OK, text, ""}
}
