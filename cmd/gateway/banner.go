package main

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"parley/channels"
)

// access says who may talk, by the config.
func (c *Config) access() (channels.Access, error) {
	allow := map[string][]string{}
	for name, t := range c.Channels.Telegram {
		allow[name] = t.Allow
	}
	return channels.NewAccess(c.Owners, allow)
}

// banner tells whoever starts Parley what it runs with and how to change it.
// In a chat without a gateway the terminal is alone.
func banner(c *Config, alone bool) []string {
	lines := []string{"Parley " + version()}
	say := func(what, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("%-9s ", what)+fmt.Sprintf(format, args...))
	}
	say("model", "%s", modelLine(c))
	for _, name := range slices.Sorted(maps.Keys(c.Channels.Telegram)) {
		if alone {
			say(name, "waits for a gateway: parley chat alone does not receive")
			continue
		}
		say(name, "%s", telegramLine(c.Channels.Telegram[name]))
	}
	if len(c.Channels.Telegram) == 0 {
		say("telegram", "not connected: get a token from @BotFather and write it in the config (parley onboard shows where)")
	}
	if c.found {
		say("config", "%s", c.file)
	} else {
		say("config", "defaults, because there is no %s (parley onboard writes one)", c.file)
	}
	say("data", "%s", c.DataDir)
	if c.Store.Type == "mem" {
		say("warning", "the store is in memory: everything is forgotten at the end")
	}
	for _, w := range c.warnings() {
		say("warning", "%s", w)
	}
	return lines
}

// warnings says where the door stands open (R-S7), and which owner can never come.
func (c *Config) warnings() []string {
	a, err := c.access()
	if err != nil { // check lets no such config pass
		return []string{err.Error()}
	}
	ws := a.Warnings()
	for _, o := range c.Owners {
		channel := o[:max(strings.LastIndex(o, ":"), 0)]
		if _, ok := c.Channels.Telegram[channel]; channel != "" && !ok {
			ws = append(ws, fmt.Sprintf("owners has %s, but there is no channel %s", o, channel))
		}
	}
	return ws
}

func modelLine(c *Config) string {
	m := c.Models[c.Agent.Model]
	if m.Type == "demo" {
		how := fmt.Sprintf("write \"models\" in %s", c.file)
		if c.found && len(c.Models) > 1 {
			how = fmt.Sprintf("set agent.model in %s", c.file)
		}
		return "demo, which is no real model: set OPENAI_API_KEY (and OPENAI_BASE_URL, OPENAI_MODEL), or " + how
	}
	line := m.Model
	if u, err := url.Parse(m.BaseURL); err == nil {
		line += " at " + u.Host
	}
	if c.byEnv != "" {
		return fmt.Sprintf("%s, because %s is set; OPENAI_MODEL or \"models\" in %s changes it", line, c.byEnv, c.file)
	}
	return fmt.Sprintf("%s (models.%s; agent.model changes it)", line, c.Agent.Model)
}

func telegramLine(t *Telegram) string {
	if len(t.Allow) == 0 {
		return "nobody is on its allow list: write to the bot, then approve the code with parley pair CODE"
	}
	if slices.Contains(t.Allow, "*") {
		return "everybody may talk"
	}
	return fmt.Sprintf("%d may talk, and whom an owner let in", len(t.Allow))
}
