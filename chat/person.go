package chat

import (
	"crypto/sha256"
	"fmt"
	"path"
	"strings"
)

// A Person is the unit of memory and limits: somebody who talks to the agent in
// private, all owners together, or all members of a group.
type Person string

// TheOwner stands for all owners.
const TheOwner Person = "owner"

// Whose returns the Person that from is at a. What is known about a Person is
// never shown to another one (R-S14); in a group the Person is the group, because
// everybody reads along.
func Whose(a Address, from Sender, group bool) Person {
	switch {
	case group:
		return Person(a.Channel + ":" + a.Chat)
	case from.Role == Owner:
		return TheOwner
	}
	return Person(a.Channel + ":" + from.ID)
}

// peopleDir is the folder of the workspace with what is known about people who are
// not owners.
const peopleDir = "memory/people"

// Folder returns the folder of the workspace with what is known about p; the
// owner's, ".", is the workspace itself.
func (p Person) Folder() string {
	if p == TheOwner {
		return "."
	}
	return path.Join(peopleDir, Slug(string(p)))
}

// PeopleDir is the folder of the workspace with the files of people who are not
// owners.
const PeopleDir = "people"

// Home returns the folder of the workspace with p's own files, in which the agent
// works for p; the owner's, "", is the workspace itself.
func (p Person) Home() string {
	if p == TheOwner {
		return ""
	}
	return path.Join(PeopleDir, Slug(string(p)))
}

// Inbox is the folder of the workspace with the files that people sent.
const Inbox = "inbox"

// InboxFolder returns the folder of the workspace with the files that p sent,
// which nobody else may see (R-S14). Files that an owner sent in private are in
// Inbox itself.
func (p Person) InboxFolder() string {
	if p == TheOwner {
		return Inbox
	}
	return path.Join(Inbox, "people", Slug(string(p)))
}

// Hides reports whether the file of the workspace called name holds what is known
// about somebody other than p, or what somebody else sent (R-S14). In private,
// owners may see everybody's files. Case is ignored, as some file systems do.
func (p Person) Hides(name string) bool {
	name = strings.ToLower(name)
	within := func(dir string) bool {
		return name == strings.ToLower(dir) || strings.HasPrefix(name, strings.ToLower(dir)+"/")
	}
	if p == TheOwner {
		return within(peopleDir)
	}
	known := within("memory") || name == "memory.md" || name == "user.md"
	return known && !within(p.Folder()) ||
		within(Inbox) && !within(p.InboxFolder()) ||
		within(PeopleDir) && !within(p.Home())
}

// LeadsTo reports whether the folder of the workspace called name contains folders
// that p may see, although it is hidden itself.
func (p Person) LeadsTo(name string) bool {
	within := func(dir string) bool { return strings.HasPrefix(dir, name+"/") }
	return within(p.Folder()) || within(p.InboxFolder()) || within(p.Home())
}

// Slug returns a file name for an ID: its readable part, and a digest that makes
// it unique.
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
