package python

import (
	"crypto/sha256"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/chat"
	"parley/llm"
	"parley/tools"
	"parley/tools/sandbox"
	"parley/workspace"
)

const (
	filesFolder = sandbox.WorkDir + "/python" // in the workspace
	maxFiles    = 10                          // of one run, as in one message
	maxName     = 100                         // characters
)

// kept are the files of a run that are now in the workspace.
type kept struct {
	paths    []string
	shown    []string // what the model calls paths
	pictures []string // those of paths that models can be shown
	note     string   // for the model
}

// keep copies the files that code wrote to the workspace of c. They are never held back because of
// each other: what cannot be kept is mentioned.
func (p *Interpreter) keep(c tools.Call, folder scratch) (k kept) {
	var lost []string
	for i, name := range folder.files() {
		if i == maxFiles {
			lost = append(lost, fmt.Sprintf("there were more than %d files", maxFiles))
			break
		}
		at, picture, err := p.keepFile(c, folder, name)
		if err != nil {
			lost = append(lost, err.Error())
			continue
		}
		k.paths = append(k.paths, at.String())
		k.shown = append(k.shown, c.Workspace.View().Shown(at))
		if picture {
			k.pictures = append(k.pictures, at.String())
		}
	}
	if len(lost) > 0 {
		k.note = "Not kept: " + strings.Join(lost, "; ") + ". "
	}
	switch {
	case len(k.paths) == 0:
	case c.Depth > 0:
		k.note += "The files are in the workspace. Nobody is sent them unless you name their paths in your answer."
	default:
		k.note += "The files are sent with your answer: do not send them otherwise."
	}
	k.note = strings.TrimSpace(k.note)
	return k
}

// keepFile copies one file, and returns its path in the workspace. A call that is repeated after a
// crash writes to the same path. The error is for the model.
func (p *Interpreter) keepFile(c tools.Call, folder scratch, name string) (at workspace.Path, picture bool, err error) {
	if !legible(name) {
		return at, false, fmt.Errorf("%q is not a name for a file", chat.Clip(name, maxName, "…"))
	}
	if c.Workspace == nil {
		return at, false, fmt.Errorf("%s, because there is no workspace", name)
	}
	data, err := folder.read(name, maxFile)
	if err != nil {
		return at, false, fmt.Errorf("%s cannot be read or is too big", name)
	}
	call := fmt.Sprintf("%.6x", sha256.Sum256([]byte(c.Key())))
	wanted := path.Join(filesFolder, call, name)
	at, err = tools.Resolve(c, wanted)
	if err != nil {
		return at, false, err
	}
	if c.Workspace.View().Shown(at) != wanted { // a command made a link, maybe to the agent's standing rules (R-S12)
		return at, false, fmt.Errorf("%s, because there is a link in %s", name, filesFolder)
	}
	if !c.Workspace.View().MayChange(at) {
		return at, false, fmt.Errorf("%s, because %s may only be read here", name, filesFolder)
	}
	if err := tools.Reserve(c, workspace.DiskBytes(int64(len(data))), p.cfg.MaxStored); err != nil {
		return at, false, err
	}
	if err := write(c, at, data); err != nil {
		return at, false, err
	}
	_, err = llm.NewImage(data)
	return at, err == nil, nil
}

// legible reports whether name can be shown to people, as the name of a file.
func legible(name string) bool {
	isStrange := func(r rune) bool { return !unicode.IsPrint(r) || r == '\\' }
	return utf8.ValidString(name) && utf8.RuneCountInString(name) <= maxName && !strings.ContainsFunc(name, isStrange)
}

// write writes a file that code of c made. It may hold what the model has read, so that in an
// untrusted turn it is untrusted (R-S12).
func write(c tools.Call, at workspace.Path, data []byte) error {
	who := c.Whose()
	author := who
	if c.Tainted {
		author = ""
	}
	if author != chat.TheOwner {
		if err := c.Workspace.SetOrigin(at, string(author)); err != nil {
			return err
		}
	}
	if who != chat.TheOwner {
		if err := c.Workspace.Charge(at, string(who)); err != nil {
			return err
		}
	}
	return c.Workspace.WriteFile(at, data)
}
