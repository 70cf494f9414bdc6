package openai

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"parley/llm"
)

// Config says which model to ask, and how. The fields with tags are keys of its
// entry in config.json (see package config).
type Config struct {
	Name        string   // the model's name in config.json
	BaseURL     string   `json:"baseUrl" url:"http https" optional:"yes"` // "" means OpenAI's own
	APIKey      string   `json:"apiKey" secret:"yes"`
	Model       string   `json:"model" plain:"yes"`           // as the provider names it
	MaxTokens   int      `json:"maxTokens"`                   // of one answer; 0 leaves it to the provider
	Temperature *float64 `json:"temperature" from:"0" to:"2"` // nil leaves it to the provider
	Vision      *bool    `json:"vision"`                      // accepts pictures; nil: as Model's name suggests

	Transport http.RoundTripper // nil for one of its own
}

// Check reports values that have the right type but cannot work.
func (c *Config) Check(report func(key, problem string)) {
	if strings.TrimSpace(c.Model) == "" {
		report("model", `is missing; allowed: the provider's name of a model, such as "gpt-5-mini"`)
	}
}

// Build implements [llm.Driver].
func (c *Config) Build(name string) llm.Model {
	cfg := *c
	cfg.Name = name
	return New(cfg)
}

// Sees implements [llm.Driver].
func (c Config) Sees() bool {
	if c.Vision != nil {
		return *c.Vision
	}
	return Sees(c.Model)
}

// Host implements [llm.Driver].
func (c *Config) Host() string {
	u, err := url.Parse(cmp.Or(c.BaseURL, defaultURL))
	if err != nil {
		return ""
	}
	return u.Host
}
