package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/channels/admission"
	"parley/config"
)

// accessOf says who may talk, by the config. Whoever comes through the web face
// has signed in or shown a key.
func accessOf(c *config.Config) (admission.Rules, error) {
	allow := allowOf(c)
	allow["web"], allow["api"] = []string{"*"}, []string{"*"}
	owners := slices.Clone(c.Owners)
	if i := slices.Index(owners, "web"); i >= 0 {
		owners = slices.Replace(owners, i, i+1, "web:"+webOwner, "api:"+webOwner)
	}
	return admission.NewRules(owners, allow)
}

// webOwner is whom the admin token signs in; others have the names they were invited by.
const webOwner = "owner"

// allowOf returns the allow lists, by channel.
func allowOf(c *config.Config) map[string][]string {
	allow := map[string][]string{}
	for _, name := range networks(c) {
		allow[name] = c.Channels[name].Senders.Allow
	}
	return allow
}

// banner tells whoever starts Parley what it runs with and how to change it.
// In a chat without a gateway the terminal is alone.
func banner(c *config.Config, alone bool) []string {
	lines := []string{"Parley " + version()}
	say := func(what, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("%-9s ", what)+fmt.Sprintf(format, args...))
	}
	say("model", "%s", modelLine(c))
	allow := allowOf(c)
	for _, name := range slices.Sorted(maps.Keys(allow)) {
		if alone {
			say(name, "waits for a gateway: parley chat alone does not receive")
			continue
		}
		say(name, "%s", guests(allow[name]))
	}
	if !slices.ContainsFunc(networks(c), func(name string) bool { return c.Channels[name].Type == "telegram" }) {
		say("telegram", "not connected: get a token from @BotFather and write it in the config "+
			"(parley onboard shows where)")
	}
	if c.Found {
		say("config", "%s", c.File)
	} else {
		say("config", "defaults, because there is no %s (parley onboard writes one)", c.File)
	}
	say("data", "%s", c.DataDir)
	if c.Store.Type == "mem" {
		say("warning", "the store is in memory: everything is forgotten at the end")
	}
	for _, w := range warningsOf(c) {
		say("warning", "%s", w)
	}
	return lines
}

// warningsOf says where the door stands open (R-S7), and which owner can never come.
func warningsOf(c *config.Config) []string {
	allow := allowOf(c)
	a, err := admission.NewRules(c.Owners, allow)
	if err != nil { // check lets no such config pass
		return []string{err.Error()}
	}
	ws := a.Warnings()
	for _, o := range c.Owners {
		channel := o[:max(strings.LastIndex(o, ":"), 0)]
		if _, ok := allow[channel]; channel != "" && !ok {
			ws = append(ws, fmt.Sprintf("owners has %s, but there is no channel %s", o, channel))
		}
	}
	return ws
}

func modelLine(c *config.Config) string {
	m := c.Models[c.Agent.Model]
	if m.Type == "demo" {
		how := fmt.Sprintf("write \"models\" in %s", c.File)
		if c.Found && len(c.Models) > 1 {
			how = fmt.Sprintf("set agent.model in %s", c.File)
		}
		return "demo, which is no real model: set OPENAI_API_KEY (and OPENAI_BASE_URL, OPENAI_MODEL), or " + how
	}
	line := m.Model
	if host := driverOf(m).Host(); host != "" {
		line += " at " + host
	}
	if c.ByEnv != "" {
		return fmt.Sprintf("%s, because %s is set; OPENAI_MODEL or \"models\" in %s changes it", line, c.ByEnv, c.File)
	}
	return fmt.Sprintf("%s (models.%s; agent.model changes it)", line, c.Agent.Model)
}

// guests tells who may talk to a bot.
func guests(allow []string) string {
	if len(allow) == 0 {
		return "nobody is on its allow list: write to the bot, then approve the code with parley pair CODE"
	}
	if slices.Contains(allow, "*") {
		return "everybody may talk"
	}
	return fmt.Sprintf("%d may talk, and whom an owner let in", len(allow))
}
