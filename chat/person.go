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

// Hides says whether the file of the workspace called name holds what is known
// of somebody else than p (R-S14). It may be of any case: some disks do not care.
func (p Person) Hides(name string) bool {
	name = strings.ToLower(name)
	own := strings.ToLower(p.Folder())
	within := func(dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }
	if p == TheOwner {
		return within(peopleDir)
	}
	return (within("memory") || name == "memory.md" || name == "user.md") && !within(own)
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
