package chat

import (
	"crypto/sha256"
	"fmt"
	"path"
	"strings"
)

// A Person is whose memory and whose limits count: one who talks to the agent
// in private, all owners together, or all of a group.
type Person string

// TheOwner is all owners.
const TheOwner Person = "owner"

// Whose returns the Person that from is at a. What is known of them stays with
// them (R-S14); in a group that is the group, because everybody reads along.
func Whose(a Address, from Sender, group bool) Person {
	switch {
	case group:
		return Person(a.Channel + ":" + a.Chat)
	case from.Role == Owner:
		return TheOwner
	}
	return Person(a.Channel + ":" + from.ID)
}

// peopleDir is the folder of the workspace with what is known of others than the owner.
const peopleDir = "memory/people"

// Folder is the folder of the workspace with what is known of p; the owner's,
// ".", is the workspace itself.
func (p Person) Folder() string {
	if p == TheOwner {
		return "."
	}
	return path.Join(peopleDir, Slug(string(p)))
}

// Inbox is the folder of the workspace with the files that people sent.
const Inbox = "inbox"

// InboxFolder is the folder of the workspace with the files that p sent, which are
// for nobody else (R-S14); what an owner sent in private is in Inbox itself.
func (p Person) InboxFolder() string {
	if p == TheOwner {
		return Inbox
	}
	return path.Join(Inbox, "people", Slug(string(p)))
}

// Hides reports whether the file of the workspace called name holds what is
// known of somebody else than p, or what somebody else sent (R-S14). Owners, in
// private, may see what anybody sent. The name may be of any case: some disks
// do not care.
func (p Person) Hides(name string) bool {
	name = strings.ToLower(name)
	within := func(dir string) bool {
		return name == strings.ToLower(dir) || strings.HasPrefix(name, strings.ToLower(dir)+"/")
	}
	if p == TheOwner {
		return within(peopleDir)
	}
	known := within("memory") || name == "memory.md" || name == "user.md"
	return known && !within(p.Folder()) || within(Inbox) && !within(p.InboxFolder())
}

// LeadsTo reports whether the folder of the workspace called name is on the way
// to what p may see, though it is hidden itself.
func (p Person) LeadsTo(name string) bool {
	within := func(dir string) bool { return strings.HasPrefix(dir, name+"/") }
	return within(p.Folder()) || within(p.InboxFolder())
}

// Slug makes a file name of an id: what of it can be read, and what tells it
// from every other.
func Slug(id string) string {
	readable := strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-", r) {
			return r
		}
		return '_'
	}, id)
	readable = readable[max(0, len(readable)-40):]
	return fmt.Sprintf("%s-%.8x", readable, sha256.Sum256([]byte(id)))
}
