package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Banner returns lines that tell whoever starts Parley what it runs with and how to
// change it. In a chat without a gateway, only the terminal receives messages.
func (c *Config) Banner(version string, onlyTerminal bool) []string {
	lines := []string{"Parley " + version}
	say := func(what, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("%-9s ", what)+fmt.Sprintf(format, args...))
	}
	say("model", "%s", c.modelLine())
	allow := c.allowLists()
	for _, name := range slices.Sorted(maps.Keys(allow)) {
		if onlyTerminal {
			say(name, "waits for a gateway: parley chat alone does not receive")
			continue
		}
		say(name, "%s", guests(allow[name]))
	}
	if !slices.ContainsFunc(c.Networks(), func(name string) bool { return c.Channels[name].Type == "telegram" }) {
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
	for _, w := range c.Warnings() {
		say("warning", "%s", w)
	}
	return lines
}

// modelLine says which model answers, and what changes that.
func (c *Config) modelLine() string {
	m := c.Models[c.Agent.Model]
	if m.Type == "demo" {
		how := fmt.Sprintf("write \"models\" in %s", c.File)
		if c.Found && len(c.Models) > 1 {
			how = fmt.Sprintf("set agent.model in %s", c.File)
		}
		return "demo, which is no real model: set OPENAI_API_KEY (and OPENAI_BASE_URL, OPENAI_MODEL), or " + how
	}
	line := m.Model
	if remote, ok := m.Driver.(interface{ Host() string }); ok && remote.Host() != "" {
		line += " at " + remote.Host()
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
	people := "1 person"
	if n := len(allow); n != 1 {
		people = fmt.Sprintf("%d people", n)
	}
	return people + " may talk, plus anyone an owner lets in"
}

// OthersServed names the channels besides the terminal for people: "Discord (work), Telegram and the web
// page". It is empty if there are none.
func (c *Config) OthersServed() string {
	var names []string
	for _, name := range c.Networks() {
		kind, label, labelled := strings.Cut(name, ":")
		kind = strings.ToUpper(kind[:1]) + kind[1:]
		if labelled {
			kind += " (" + label + ")"
		}
		names = append(names, kind)
	}
	if c.Channels["web"] != nil {
		names = append(names, "the web page")
	}
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " and " + names[last]
	}
	return strings.Join(names, "")
}
