package files

import (
	"slices"
	"strings"

	"parley/chat"
	"parley/workspace"
)

// Everyone stands for all people in a Shared folder.
const Everyone = "everyone"

// A Shared folder of the workspace is seen by people who are not owners, and by groups.
type Shared struct {
	Folder string
	Read   []chat.Person // who sees it; Everyone is all of them
	Write  []chat.Person // who may change it, too
}

// common lists the files and folders that are the same for everybody: what Parley
// itself keeps and reads.
func common() []string {
	return strings.Fields(
		"AGENTS.md SOUL.md TOOLS.md HEARTBEAT.md USER.md MEMORY.md agents inbox memory people skills .parley")
}

// WorkspaceOf returns the part of w in which the agent works for who: owners share all
// of it; everybody else has a folder of their own, and sees of the rest only what is
// common, unless it is about somebody else, and what is shared with them.
func WorkspaceOf(w *workspace.Workspace, who chat.Person, shared []Shared) *workspace.Workspace {
	if who == chat.TheOwner {
		return w
	}
	var shares []workspace.Share
	for _, name := range common() {
		shares = append(shares, workspace.Share{Name: name, Writable: true, Hidden: who.Hides(name)})
	}
	for _, name := range []string{who.Folder(), who.InboxFolder(), who.Home()} {
		shares = append(shares, workspace.Share{Name: name, Writable: true})
	}
	includes := func(list []chat.Person) bool { return slices.Contains(list, who) || slices.Contains(list, Everyone) }
	for _, s := range shared {
		if writable := includes(s.Write); writable || includes(s.Read) {
			shares = append(shares, workspace.Share{Name: s.Folder, Writable: writable})
		}
	}
	return w.For(who.Home(), shares)
}

// sharedFolders names the folders that config shares with those who see v.
func sharedFolders(v workspace.View) string {
	text := ""
	for _, s := range v.Shares() {
		switch first, _, _ := strings.Cut(s.Name, "/"); {
		case slices.Contains(common(), first):
		case s.Writable:
			text += "\n" + s.Name + "/ (shared)"
		default:
			text += "\n" + s.Name + "/ (shared, to read only)"
		}
	}
	if text == "" {
		return ""
	}
	return "\n" + text
}
