package openai

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
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
	noTools       bool   // served with tools by the Responses API only
	noChat        bool   // served by the Responses API only
}

var (
	reasoner  = regexp.MustCompile(`^(o[134]|gpt-[56])(\W|$)`)
	elsewhere = regexp.MustCompile(`^(o[134]|gpt-[56][\w.]*)-(.*-)?(pro|codex|deep-research)(-|$)`)
	chatOnly  = regexp.MustCompile(`^gpt-6(\.\d+)?-(sol|luna)(-|$)`)
)

// profileOf knows the model by its name, whatever a router puts before it, as
// in "openai/gpt-5-mini". What only the Responses API serves is refused for
// plain names: a router may well serve it here.
func profileOf(model string) *profile {
	slash := strings.LastIndex(model, "/")
	name, routed := strings.ToLower(model[slash+1:]), slash >= 0
	p := &profile{thoughts: strings.Contains(name, "deepseek") || strings.Contains(name, "kimi")}
	if reasoner.MatchString(name) {
		p.completion, p.noTemperature = true, true
	}
	switch {
	case elsewhere.MatchString(name):
		p.noChat = !routed
	case name == openai.GPT6Dot1Sol, strings.HasPrefix(name, openai.GPT6Astra):
		p.noTools = !routed
	case chatOnly.MatchString(name):
		p.effort = openai.ReasoningEffortNone
	}
	return p
}

var (
	eyes  = regexp.MustCompile(`vision|-vl|\dv\b|^gpt-(4o|4\.[1-9]|4-turbo|[5-9])|^chatgpt-4o|^o[134](\W|$)|^claude-([3-9]|opus|sonnet|haiku|fable)|gemini|gemma-?[34]|llava|pixtral|llama-?4|mistral-(small-3|medium-3|large-3)|internvl|minicpm-v|moondream|qvq|-omni|grok-[4-9]|kimi-k2\.5`)
	blind = regexp.MustCompile(`^o1-(mini|preview)|^o3-mini|embed|whisper|-audio|-realtime|-transcribe|-tts|gemma-?3[:-](1b|270m)`)
)

// Sees guesses from a model's name, whatever a router puts before it, whether
// the model can be shown pictures.
func Sees(model string) bool {
	name := strings.ToLower(model[strings.LastIndex(model, "/")+1:])
	return eyes.MatchString(name) && !blind.MatchString(name)
}

// check refuses what the chat completions endpoint would not answer.
func (p *profile) check(model string, tools bool) error {
	what := "is"
	switch {
	case p.noTools && tools:
		what = "with tools is"
	case !p.noChat:
		return nil
	}
	return &llm.Error{Kind: llm.BadRequest, Err: fmt.Errorf("%s %s served by the Responses API only: choose another model", model, what)}
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
var refusal = regexp.MustCompile(`unsupported|not support|unknown|unrecognized|not permitted|not allowed|unexpected|deprecated`)

// fields are what go-openai cannot say: a temperature of 0. They go before
// the rest of the request's body.
func (p *profile) fields(c Config) string {
	if c.Temperature == nil || p.noTemperature {
		return ""
	}
	return `"temperature":` + strconv.FormatFloat(*c.Temperature, 'g', -1, 64) + ","
}
