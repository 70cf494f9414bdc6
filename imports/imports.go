// Package imports reads the installations of other chat gateways, and makes what is in them
// Parley's: config, people who may talk, memory, skills, scheduled jobs and conversations.
//
// Read makes an [Installation] of a folder, which it neither changes nor trusts. Compare says
// what of it would go where in a Parley, and why the rest stays behind. Apply does that, all of
// it or nothing.
package imports

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/scheduler"
)

// Options say what to read.
type Options struct {
	System    string   // a name of Systems
	Path      string   // the folder of the installation
	Workspace string   // of its agent, if that is not in Path
	Owners    []string // of those who may talk there, such as "telegram:42"
	Now       time.Time
}

// A reader reads one kind of installation.
type reader struct {
	title string
	read  func(*reading) error
}

// readers are the systems by their names on the command line.
func readers() map[string]reader {
	return map[string]reader{
		"nanobot":  {"nanobot", readNanobot},
		"openclaw": {"OpenClaw", readOpenClaw},
		"picoclaw": {"picoclaw", readPicoclaw},
	}
}

// Systems returns the names of the systems whose installations Read understands.
func Systems() []string { return []string{"nanobot", "openclaw", "picoclaw"} }

// An Installation is what Read found, in Parley's terms.
type Installation struct {
	System   string // as on the command line
	Title    string // as people call it
	Path     string
	Settings Settings
	Files    []File
	Jobs     []Job
	Notes    []Item // about what has no file or job of its own
	now      time.Time
}

// A File is one of the workspace.
type File struct {
	Name      string // in Parley's workspace, with slashes
	Data      []byte
	From      string // where it was
	Change    string // what is other than it was; "": nothing
	Untrusted bool   // others than the owner wrote of it
}

// A Job is a scheduled job.
type Job struct {
	scheduler.Job
	From   string
	Change string
}

// An Item is a line of the report.
type Item struct {
	Action Action `json:"action"`
	What   string `json:"what"`
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	Why    string `json:"why,omitempty"`
}

// An Action says what becomes of a thing.
type Action string

// The actions, in the order of the report.
const (
	Taken    Action = "taken"         // as it is
	Changed  Action = "changed"       // in another form
	Conflict Action = "conflict"      // something else is in its place, and stays
	There    Action = "already there" // it was taken before
	Left     Action = "left"          // it stays behind
)

// Read reads the installation in o.Path. Its errors say what is wrong with the whole of it; what
// cannot be used of a part is in the Notes.
func Read(o Options) (*Installation, error) {
	r, ok := readers()[o.System]
	if !ok {
		return nil, fmt.Errorf("%q is none of %s", o.System, strings.Join(Systems(), ", "))
	}
	found := &Installation{System: o.System, Title: r.title, now: o.Now}
	found.Settings = newSettings()
	found.Settings.Owners = slices.Clone(o.Owners)
	in := &reading{Installation: found, talks: map[string]bool{}}
	in.Settings.note = in.note
	if err := in.open(o); err != nil {
		return nil, fmt.Errorf("read %s: %w", r.title, err)
	}
	defer in.close()
	if err := r.read(in); err != nil {
		return nil, fmt.Errorf("read %s: %w", r.title, err)
	}
	if err := in.checkOwners(o.Owners); err != nil {
		return nil, err
	}
	slices.SortStableFunc(found.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// A reading is an installation that is being read.
type reading struct {
	*Installation
	home  *source // of Path
	files *source // of the agent's workspace
	talks map[string]bool
	names map[string]bool
}

// checkOwners returns an error if one of owners may not talk to the other program. If nobody was named
// and it is plain who it could be, that is noted.
func (r *reading) checkOwners(owners []string) error {
	for _, owner := range owners {
		channel, id, _ := cutLast(owner)
		if c := r.Settings.Channels[channel]; c == nil || !slices.Contains(c.Allow, id) {
			const refusal = "%s may not talk there, and does not become an owner here: %s"
			return fmt.Errorf(refusal, line(owner), r.whoMayTalk())
		}
		r.note(Item{Action: Taken, What: "owner " + line(owner), From: "--owner", To: "owners"})
	}
	if len(r.Settings.Owners) > 0 {
		return nil
	}
	if only := r.onlyPerson(); only != "" {
		const why = "%s alone may talk there. If that is you, add --owner %[1]s: what was remembered is the owner's"
		r.left("owner", "", fmt.Sprintf(why, only))
	}
	return nil
}

// whoMayTalk names those who may talk to the other program, at most ten of them.
func (r *reading) whoMayTalk() string {
	all := r.people()
	switch n := len(all); {
	case n == 0:
		return "it knows no one by number who may"
	case n > 10:
		return fmt.Sprintf("%s and %d more may talk there", strings.Join(all[:10], ", "), n-10)
	}
	return strings.Join(all, ", ") + " may talk there"
}

// open opens the folders that o names.
func (r *reading) open(o Options) (err error) {
	if r.home, err = openSource(o.Path, r.left); err != nil {
		return err
	}
	r.Path = r.home.dir
	if o.Workspace != "" {
		r.files, err = openSource(o.Workspace, r.left)
	}
	return err
}

func (r *reading) close() {
	r.home.close()
	if r.files != nil {
		r.files.close()
	}
}

func (r *reading) note(i Item) { r.Notes = append(r.Notes, i) }

// left notes that something stays behind.
func (r *reading) left(what, from, why string) {
	again := func(i Item) bool { return from != "" && i.From == from && i.Why == why }
	if why == errLink.Error() && slices.ContainsFunc(r.Notes, again) {
		return
	}
	r.note(Item{Action: Left, What: what, From: from, Why: why})
}

// openWorkspace opens the workspace that the config names. An installation that was copied from
// elsewhere names where it was: then its place below the folder dot, such as ".openclaw", counts.
func (r *reading) openWorkspace(configured, dot string) {
	if r.files != nil {
		return
	}
	name := "workspace"
	if inside, ok := strings.CutPrefix(configured, r.home.dir+"/"); ok {
		name = inside
	} else if _, inside, ok := strings.Cut(configured, "/"+dot+"/"); ok {
		name = inside
	} else if configured != "" {
		r.left("workspace "+configured, "", "it is in another folder: name that with --workspace")
		return
	}
	files, err := r.home.sub(name)
	if err != nil {
		r.left("workspace", name, reason(err))
		return
	}
	r.files = files
}

// inWorkspace returns the name that the report has for a file of the workspace.
func (r *reading) inWorkspace(name string) string { return r.files.prefix + name }

// line makes a text that anybody wrote safe to print, and short.
func line(text string) string { return chat.Shorten(chat.OneLine(text), 120) }
