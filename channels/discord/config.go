package discord

import (
	"strings"

	"parley/channels"
	"parley/channels/network"
)

// CheckID implements [network.Driver].
func (c *Config) CheckID(id string) error { return network.CheckNumericID(id) }

// Check reports the values that the tags let pass and that make no sense.
func (c *Config) Check(report func(key, problem string)) {
	if c.Token == "" || strings.ContainsAny(c.Token, " \t\n\f\r") {
		report("token", "is no bot token; https://discord.com/developers/applications gives one, under Bot")
	}
}

// Build implements [network.Driver].
func (c *Config) Build(h network.Host) (channels.Channel, error) {
	cfg := *c
	cfg.Name = h.Name
	cfg.Seen = h.Seen
	cfg.Dead = h.Dead
	cfg.Open = h.Open
	cfg.Texts = h.Texts
	cfg.Log = h.Log
	return New(cfg)
}
