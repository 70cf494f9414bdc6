package channels

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/chat"
)

// Access says who may talk and who owns the house. Only a sender's ID counts,
// never a name (R-S7). The zero Access lets nobody in.
type Access struct {
	owners map[string]bool            // "channel:id", or a channel by itself
	allow  map[string]map[string]bool // channel, id
}

// NewAccess makes an Access. An owner is "channel:id", or the name of a channel
// whose everybody is an owner, such as "console". allow lists, for each channel
// by its whole name, the ids that may talk; the id "*" is everybody. Owners may
// talk without being listed. The error names all that is wrong.
func NewAccess(owners []string, allow map[string][]string) (Access, error) {
	a := Access{owners: map[string]bool{}, allow: map[string]map[string]bool{}}
	var wrong []error
	check := func(list, entry string, at int) {
		if entry == "" || strings.ContainsFunc(entry, func(r rune) bool { return r <= ' ' }) {
			wrong = append(wrong, fmt.Errorf("%s: entry %d is blank or has blanks in it", list, at+1))
		}
	}
	for i, o := range owners {
		check("owners", o, i)
		if id := o[strings.LastIndex(o, ":")+1:]; id == "*" || (o != "" && id == "") {
			wrong = append(wrong, fmt.Errorf("owners: %q names nobody: write channel:id", o))
		}
		a.owners[o] = true
	}
	for _, channel := range slices.Sorted(maps.Keys(allow)) {
		a.allow[channel] = map[string]bool{}
		for i, id := range allow[channel] {
			check("channels."+channel+".allow", id, i)
			a.allow[channel][id] = true
		}
	}
	if wrong != nil {
		return Access{}, errors.Join(wrong...)
	}
	return a, nil
}

// Role returns what the sender with that id may do on channel.
func (a Access) Role(channel, id string) chat.Role {
	switch {
	case !strings.Contains(channel, ":") && a.owners[channel]:
		return chat.Owner
	case id == "":
		return chat.Unknown
	case a.owners[channel+":"+id]:
		return chat.Owner
	case a.allow[channel][id], a.allow[channel]["*"]:
		return chat.User
	}
	return chat.Unknown
}

// Owners lists the owners: "channel:id", or a channel whose everybody is one.
func (a Access) Owners() []string { return slices.Sorted(maps.Keys(a.owners)) }

// Warnings says, for the log of every start, where the door stands open.
func (a Access) Warnings() []string {
	var ws []string
	for _, o := range a.Owners() {
		// Whoever is at these two has the machine or its admin token already.
		if !strings.Contains(o, ":") && o != "console" && o != "web" {
			ws = append(ws, fmt.Sprintf(`owners has %q: everybody on %s is an owner`, o, o))
		}
	}
	for _, c := range slices.Sorted(maps.Keys(a.allow)) {
		if a.allow[c]["*"] {
			ws = append(ws, fmt.Sprintf(`channels.%s.allow has "*": everybody on %s may talk`, c, c))
		}
	}
	return ws
}
