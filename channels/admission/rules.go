// Package admission says who may talk to the gateway and who owns it: the rules of
// the config, and the people that an owner let in by a pairing code.
package admission

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/chat"
)

// Rules are the lists of owners and of people who may talk, as the config has
// them. Only a sender's ID counts, never a name (R-S7). The zero Rules admit
// nobody.
type Rules struct {
	owners map[string]bool            // "channel:id", or a channel by itself
	allow  map[string]map[string]bool // channel, id
}

// NewRules returns the Rules of a config. An owner is "channel:id", or the name of
// a channel that only owners can reach, such as "console". allow lists the IDs that
// may talk, by the full name of the channel; "*" admits everybody. Owners need not
// be listed there. The error names every invalid entry.
func NewRules(owners []string, allow map[string][]string) (Rules, error) {
	rules := Rules{owners: map[string]bool{}, allow: map[string]map[string]bool{}}
	var faults []error
	for i, owner := range owners {
		if hasBlank(owner) {
			faults = append(faults, blankError("owners", i))
		}
		if id := owner[strings.LastIndex(owner, ":")+1:]; id == "*" || owner != "" && id == "" {
			faults = append(faults, fmt.Errorf("owners: %q names nobody: write channel:id", owner))
		}
		rules.owners[owner] = true
	}
	for _, channel := range slices.Sorted(maps.Keys(allow)) {
		rules.allow[channel] = map[string]bool{}
		for i, id := range allow[channel] {
			if hasBlank(id) {
				faults = append(faults, blankError("channels."+channel+".allow", i))
			}
			rules.allow[channel][id] = true
		}
	}
	if faults != nil {
		return Rules{}, errors.Join(faults...)
	}
	return rules, nil
}

// hasBlank reports whether entry is empty or contains blanks or control characters.
func hasBlank(entry string) bool {
	return entry == "" || strings.ContainsFunc(entry, func(r rune) bool { return r <= ' ' })
}

func blankError(list string, index int) error {
	return fmt.Errorf("%s: entry %d is blank or has blanks in it", list, index+1)
}

// Role returns the role on channel of the sender with that ID.
func (r Rules) Role(channel, id string) chat.Role {
	switch {
	case !strings.Contains(channel, ":") && r.owners[channel]:
		return chat.Owner
	case id == "":
		return chat.Unknown
	case r.owners[channel+":"+id]:
		return chat.Owner
	case r.allow[channel][id], r.allow[channel]["*"]:
		return chat.User
	}
	return chat.Unknown
}

// Owners lists the owners: "channel:id", or a channel that only owners can reach.
func (r Rules) Owners() []string { return slices.Sorted(maps.Keys(r.owners)) }

// Allowed lists the IDs that may talk, by channel: "*" is everybody.
func (r Rules) Allowed() map[string][]string {
	all := map[string][]string{}
	for channel, ids := range r.allow {
		all[channel] = slices.Sorted(maps.Keys(ids))
	}
	return all
}

// Warnings names the rules that admit everybody, for the log of each start.
func (r Rules) Warnings() []string {
	var warnings []string
	for _, owner := range r.Owners() {
		// Whoever reaches these two has the machine or its admin token already.
		if !strings.Contains(owner, ":") && owner != "console" && owner != "web" {
			warnings = append(warnings, fmt.Sprintf(`owners has %q: everybody on %s is an owner`, owner, owner))
		}
	}
	for _, channel := range slices.Sorted(maps.Keys(r.allow)) {
		if r.allow[channel]["*"] {
			warning := fmt.Sprintf(`channels.%s.allow has "*": everybody on %s may talk`, channel, channel)
			warnings = append(warnings, warning)
		}
	}
	return warnings
}
