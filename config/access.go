package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/channels/admission"
)

// WebOwner is whom the admin token signs in. Others have the names they were invited by.
const WebOwner = "owner"

// Networks returns the names of the channels on which people have ids, sorted.
func (c *Config) Networks() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Channels)) {
		if c.Channels[name].Senders != nil {
			names = append(names, name)
		}
	}
	return names
}

// DriverOf returns the settings of a channel that only its driver understands, nil if it is not configured.
func (c *Config) DriverOf(channel string) any {
	if entry := c.Channels[channel]; entry != nil {
		return entry.Driver
	}
	return nil
}

// HasNetwork reports whether a network of that type is configured.
func (c *Config) HasNetwork(kind string) bool {
	return slices.ContainsFunc(c.Networks(), func(name string) bool { return c.Channels[name].Type == kind })
}

// allowLists returns the allow lists, by channel.
func (c *Config) allowLists() map[string][]string {
	lists := map[string][]string{}
	for _, name := range c.Networks() {
		lists[name] = c.Channels[name].Senders.Allow
	}
	return lists
}

// Rules returns who may talk. Whoever comes through the web page or the API has
// signed in or shown a key.
func (c *Config) Rules() (admission.Rules, error) {
	allow := c.allowLists()
	allow["web"] = []string{"*"}
	allow["api"] = []string{"*"}
	owners := slices.Clone(c.Owners)
	if i := slices.Index(owners, "web"); i >= 0 {
		owners = slices.Replace(owners, i, i+1, "web:"+WebOwner, "api:"+WebOwner)
	}
	return admission.NewRules(owners, allow)
}

// CheckOwners returns an error if there is no owner: then nobody could make one on a page again. A file may say so.
func (c *Config) CheckOwners() error {
	if len(c.Owners) > 0 {
		return nil
	}
	return errors.New("owners: one is needed at least, or nobody may change anything here any more")
}

// Warnings returns which allow lists are open to everybody (R-S7), and which owners
// can never write.
func (c *Config) Warnings() []string {
	allow := c.allowLists()
	rules, err := admission.NewRules(c.Owners, allow)
	if err != nil { // no such config passes the checks
		return []string{err.Error()}
	}
	warnings := append(rules.Warnings(), c.Removed...)
	for _, owner := range c.Owners {
		channel := owner[:max(strings.LastIndex(owner, ":"), 0)]
		if _, ok := allow[channel]; channel != "" && !ok {
			warnings = append(warnings, fmt.Sprintf("owners has %s, but there is no channel %s", owner, channel))
		}
	}
	if c.Tools.Exec.Sandbox == "none" {
		warnings = append(warnings, `tools.exec.sandbox is "none": programs that models run may do all that Parley `+
			"may, and read and change all of its files")
	}
	hostNetwork := func(key, who string) {
		warnings = append(warnings, fmt.Sprintf("%s is true: %s reach everything that this machine reaches, its own "+
			"services and local networks included", key, who))
	}
	if c.Tools.Exec.Enable && c.Tools.Exec.HostNetwork {
		hostNetwork("tools.exec.hostNetwork", "commands that an owner allows the network")
	}
	if c.Tools.Custom.Enable && c.Tools.Custom.HostNetwork {
		hostNetwork("tools.custom.hostNetwork", "custom tools that ask for the network")
	}
	return warnings
}

// Cost returns what a request with so many tokens costs, if there are prices for the model.
func (c *Config) Cost(model string, in, out int) (cost float64, known bool) {
	m := c.Models[model]
	if m == nil || m.Price == nil {
		return 0, false
	}
	return (float64(in)*m.Price.Input + float64(out)*m.Price.Output) / 1e6, true
}
