package demo

import "parley/llm"

// A Config is an entry of models in config.json (see package config). Its keys are
// those of a real model, so that an entry can be tried out by changing its type.
type Config struct {
	BaseURL     string   `json:"baseUrl"`
	APIKey      string   `json:"apiKey" secret:"yes"`
	Temperature *float64 `json:"temperature" from:"0" to:"2"`
	Vision      *bool    `json:"vision"`
}

// Build implements [llm.Driver].
func (*Config) Build(name string) llm.Model { return New(name) }

// Sees implements [llm.Driver].
func (c *Config) Sees() bool { return c.Vision != nil && *c.Vision }

// Host implements [llm.Driver].
func (*Config) Host() string { return "" }
