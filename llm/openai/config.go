package openai

import (
	"cmp"
	"net/url"
	"strings"

	"parley/llm"
)

// Check reports the values that the tags let pass and that make no sense.
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
