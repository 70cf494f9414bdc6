package openai

import (
	"net/http"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"parley/lazyregexp"
	"parley/llm"
)

// A profile says which parameters a model accepts.
type profile struct {
	completionTokens bool   // it wants max_completion_tokens instead of max_tokens
	noTemperature    bool   // its temperature is fixed
	effort           string // reasoning_effort that a request with tools needs
	noUsage          bool   // it refuses stream_options
	wantsReasoning   bool   // it wants its reasoning back along with the calls that resulted
}

var (
	reasoningModels = lazyregexp.New(`^(o[134]|gpt-[56])(\W|$)`)
	// noEffortModels accept tools only without reasoning.
	noEffortModels = lazyregexp.New(`^gpt-6-(sol|luna)(-|$)`)
)

// baseName returns the name of a model without what a router puts before it, as in
// "openai/gpt-5-mini".
func baseName(model string) string { return strings.ToLower(model[strings.LastIndex(model, "/")+1:]) }

// newProfile returns the profile that the name of a model suggests.
func newProfile(model string) *profile {
	name := baseName(model)
	p := &profile{wantsReasoning: strings.Contains(name, "deepseek") || strings.Contains(name, "kimi")}
	if reasoningModels.MatchString(name) {
		p.completionTokens = true
		p.noTemperature = true
	}
	if noEffortModels.MatchString(name) {
		p.effort = openai.ReasoningEffortNone
	}
	return p
}

var (
	visionModels = lazyregexp.New(`vision|-vl|\dv\b|^gpt-(4o|4\.[1-9]|4-turbo|[5-9])|^chatgpt-4o|^o[134](\W|$)` +
		`|^claude-([3-9]|opus|sonnet|haiku|fable)|gemini|gemma-?[34]|llava|pixtral|llama-?4` +
		`|mistral-(small-3|medium-3|large-3)|internvl|minicpm-v|moondream|qvq|-omni|grok-[4-9]|kimi-k2\.5`)
	textOnlyModels = lazyregexp.New(`^o1-(mini|preview)|^o3-mini|embed|whisper|-audio|-realtime|-transcribe|-tts` +
		`|gemma-?3[:-](1b|270m)`)
)

// Sees guesses from a model's name whether the model accepts pictures.
func Sees(model string) bool {
	name := baseName(model)
	return visionModels.MatchString(name) && !textOnlyModels.MatchString(name)
}

// without returns p without the parameter that e refuses by name, or nil if there
// is none that can be left out.
func (p *profile) without(e *llm.Error) *profile {
	if e.Kind != llm.BadRequest || e.Status == http.StatusNotFound {
		return nil
	}
	text := strings.ToLower(e.Err.Error())
	adapted := *p
	switch {
	case strings.Contains(text, "stream_options") || strings.Contains(text, "include_usage"):
		adapted.noUsage = true
	case !refusalForm.MatchString(text):
	case strings.Contains(text, "max_completion_tokens"):
		adapted.completionTokens = strings.Contains(text, "max_tokens")
	case strings.Contains(text, "reasoning_effort") && p.effort == "":
		adapted.effort = openai.ReasoningEffortNone
	case strings.Contains(text, "temperature"):
		adapted.noTemperature = true
	}
	if adapted == *p {
		return nil
	}
	return &adapted
}

// refusalForm matches errors about a parameter that is not accepted, in contrast to one
// whose value is wrong.
var refusalForm = lazyregexp.New(
	`unsupported|not support|unknown|unrecognized|not permitted|not allowed|unexpected|deprecated`,
)
