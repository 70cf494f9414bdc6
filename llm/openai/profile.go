package openai

import (
	"net/http"
	"regexp"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"parley/llm"
)

// A profile says which parameters a model takes.
type profile struct {
	completion    bool   // max_completion_tokens instead of max_tokens
	noTemperature bool   // temperature is fixed
	effort        string // reasoning_effort that a request with tools needs
	noUsage       bool   // stream_options are refused
	thoughts      bool   // wants its reasoning back along with the calls that came of it
}

var (
	reasoner = regexp.MustCompile(`^(o[134]|gpt-[56])(\W|$)`)
	thinking = regexp.MustCompile(`^gpt-6-(sol|luna)(-|$)`) // and no tools meanwhile
)

// plain is the name of model without what a router puts before it, as in "openai/gpt-5-mini".
func plain(model string) string { return strings.ToLower(model[strings.LastIndex(model, "/")+1:]) }

// profileOf knows the model by its name.
func profileOf(model string) *profile {
	name := plain(model)
	p := &profile{thoughts: strings.Contains(name, "deepseek") || strings.Contains(name, "kimi")}
	if reasoner.MatchString(name) {
		p.completion, p.noTemperature = true, true
	}
	if thinking.MatchString(name) {
		p.effort = openai.ReasoningEffortNone
	}
	return p
}

var (
	eyes = regexp.MustCompile(
		`vision|-vl|\dv\b|^gpt-(4o|4\.[1-9]|4-turbo|[5-9])|^chatgpt-4o|^o[134](\W|$)|^claude-([3-9]|opus|sonnet|haiku|fable)|gemini|gemma-?[34]|llava|pixtral|llama-?4|mistral-(small-3|medium-3|large-3)|internvl|minicpm-v|moondream|qvq|-omni|grok-[4-9]|kimi-k2\.5`,
	)
	blind = regexp.MustCompile(
		`^o1-(mini|preview)|^o3-mini|embed|whisper|-audio|-realtime|-transcribe|-tts|gemma-?3[:-](1b|270m)`,
	)
)

// Sees guesses from a model's name whether the model can be shown pictures.
func Sees(model string) bool {
	name := plain(model)
	return eyes.MatchString(name) && !blind.MatchString(name)
}

// without is p less the parameter that e refuses by name, or nil if there is none we can do without.
func (p *profile) without(e *llm.Error) *profile {
	if e.Kind != llm.BadRequest || e.Status == http.StatusNotFound {
		return nil
	}
	said, next := strings.ToLower(e.Err.Error()), *p
	switch {
	case strings.Contains(said, "stream_options") || strings.Contains(said, "include_usage"):
		next.noUsage = true
	case !refusal.MatchString(said):
	case strings.Contains(said, "max_completion_tokens"):
		next.completion = strings.Contains(said, "max_tokens")
	case strings.Contains(said, "reasoning_effort") && p.effort == "":
		next.effort = openai.ReasoningEffortNone
	case strings.Contains(said, "temperature"):
		next.noTemperature = true
	}
	if next == *p {
		return nil
	}
	return &next
}

// refusal tells a parameter that is not taken from one whose value is wrong.
var refusal = regexp.MustCompile(
	`unsupported|not support|unknown|unrecognized|not permitted|not allowed|unexpected|deprecated`,
)
