package files

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"strings"

	"parley/chat"
	"parley/texts"
	"parley/tools"
	"parley/workspace"
)

// An editor changes files. It makes one change per workspace at a time, and each can
// be undone. Untrusted content in a turn can only get into the agent's standing rules
// if a person approves it (R-S12), and never into files that programs execute when the
// owner works in the workspace.
type editor struct {
	known *readStates
	rules Rules
}

// open returns the file that the model refers to by text, for a call that changes it.
func (e editor) open(c tools.Call, text string) (workspace.Path, error) {
	at, err := tools.Resolve(c, text)
	if err == nil || errors.Is(err, tools.ErrPrivate) {
		err = cmp.Or(e.refuse(c, at), err)
	}
	return at, err
}

// A denial tells the model why a call may not change a file.
type denial struct{ error }

// deny returns a denial that is formatted like fail.
func deny(format string, args ...any) error { return denial{fail(format, args...)} }

// refuse returns a denial if c must not change the file, even with approval.
func (e editor) refuse(c tools.Call, at workspace.Path) error {
	name := c.Workspace.View().Shown(at)
	if tools.Own(at) {
		return deny("%s is kept by Parley itself and cannot be changed. /undo takes back changes of files; "+
			"other results need no change.", name)
	}
	if e.rules.Kept != nil {
		if instead := e.rules.Kept(at.String()); instead != "" {
			return deny("%s is kept by Parley itself and cannot be changed by a file tool: %s", name, instead)
		}
	}
	switch runs := runsByItself(c.Workspace, at); {
	case !c.Workspace.View().MayChange(at):
		return deny("%s can be read here, but not changed: copy it, and change the copy.", name)
	case !runs:
	case c.From.Role != chat.Owner:
		return deny("%s is a file that programs execute by themselves: only an owner may have it changed", name)
	case c.Tainted:
		return deny("%s is a file that programs execute by themselves: it cannot be changed in a turn that has read "+
			"untrusted content. Tell the person what it should say; they can write it themselves, or ask again "+
			"after /new.", name)
	}
	return nil
}

// protect makes a tool that changes the file named by its argument path refuse
// forbidden changes, before anybody is asked, and ask about risky ones, in the words that says selects.
func (e editor) protect(t *tools.Tool, says func(texts.Asks) texts.Format) {
	t.Ask = asksAbout(says)
	t.Guard = e.guards
	t.Risky = e.risks
	if t.Precheck == nil {
		t.Precheck = e.precheck
	}
}

// asksAbout returns the Ask of a tool that changes a file, whose sentence names it.
func asksAbout(says func(texts.Asks) texts.Format) func(texts.Asks, tools.Call) tools.Sentence {
	return func(say texts.Asks, c tools.Call) tools.Sentence {
		name := pathOf(c)
		if c.Workspace == nil {
			return tools.Asking(says(say), tools.Named(name))
		}
		at, err := tools.Resolve(c, name)
		if err != nil {
			return tools.Asking(says(say), tools.Named(name))
		}
		return tools.Asking(says(say), tools.Named(c.Workspace.View().Shown(at)))
	}
}

func askDelete(say texts.Asks) texts.Format     { return say.Delete }
func askWrite(say texts.Asks) texts.Format      { return say.Write }
func askEdit(say texts.Asks) texts.Format       { return say.Edit }
func askMakeFolder(say texts.Asks) texts.Format { return say.MakeFolder }

// precheck is the Precheck of tools that change files.
func (e editor) precheck(c tools.Call) (tools.Result, error) {
	if c.Workspace == nil {
		return tools.Result{}, nil // the call itself reports this
	}
	_, err := e.open(c, pathOf(c))
	if errors.As(err, new(denial)) || errors.Is(err, tools.ErrPrivate) {
		return explain(tools.Result{}, err, pathOf(c))
	}
	return tools.Result{}, nil
}

// guards is the Guard of tools that change files.
func (e editor) guards(c tools.Call) bool {
	if c.Workspace == nil || e.rules.Standing == nil {
		return false
	}
	at, err := e.open(c, pathOf(c))
	return err == nil && e.rules.Standing(at.String())
}

// risks is Risky of tools that change files.
func (e editor) risks(c tools.Call) bool {
	if c.Workspace == nil {
		return false
	}
	at, err := e.open(c, pathOf(c))
	return err == nil && runsByItself(c.Workspace, at)
}

// rewrite replaces the content of a file with what f returns for it. f gets nil if
// there is no file, and may return an error. whole means that nothing of the old
// content stays.
func (e editor) rewrite(c tools.Call, at workspace.Path, whole bool, f func(old []byte) ([]byte, error)) error {
	return withUndoLock(c.Workspace, func() error {
		old, err := content(c.Workspace, at)
		if err != nil {
			return err
		}
		data, err := f(old)
		if err != nil {
			return err
		}
		ch := change{Path: at.String(), After: digest(data), Made: missingFolders(c.Workspace, at.Dir())}
		if err := e.reserve(c, at, old, data, ch.Made); err != nil {
			return err
		}
		err = recordChange(c, ch, func() error {
			if err := setOrigins(c, ch.Made); err != nil {
				return err
			}
			return write(c, at, data, whole || old == nil)
		})
		if err != nil {
			return err
		}
		e.noteContent(c, at, data)
		return nil
	})
}

// setOrigins records who chose the names of folders that are about to be created.
func setOrigins(c tools.Call, folders []string) error {
	author := authorOf(c)
	if author == chat.TheOwner {
		return nil
	}
	for _, name := range folders {
		at, err := c.Workspace.Named(name)
		if err != nil {
			return err
		}
		if err := c.Workspace.SetOrigin(at, string(author)); err != nil {
			return err
		}
		who := c.Whose()
		if who == chat.TheOwner {
			continue
		}
		if err := c.Workspace.Charge(at, string(who)); err != nil {
			return err
		}
	}
	return nil
}

// reserve returns a denial if the person whom c works for may not store a file with
// data instead of old, and the folders that are created for it. People without a limit
// always may, and so may those who make a file smaller.
func (e editor) reserve(c tools.Call, at workspace.Path, old, data []byte, folders []string) error {
	bytes := workspace.DiskBytes(int64(len(data)))
	who := c.Whose()
	charged, err := c.Workspace.ChargedTo(at)
	if err != nil {
		return err
	}
	if old != nil && (charged == string(who) || strings.HasPrefix(at.String(), who.InboxFolder()+"/")) {
		bytes -= workspace.DiskBytes(int64(len(old)))
	}
	return e.reserveBytes(c, bytes+workspace.DiskBytes(0)*int64(len(folders)))
}

// reserveBytes is like reserve, for a number of additional bytes.
func (e editor) reserveBytes(c tools.Call, bytes int64) error {
	err := tools.Reserve(c, bytes, e.rules.MaxStored)
	if full, ok := errors.AsType[*tools.QuotaError](err); ok {
		return deny("Nothing was written: %v. Ask which of the files that they wrote or sent can be deleted or "+
			"shortened, do that, and try again.", full)
	}
	return err
}

// authorOf returns the person whose text c writes, or "" if it may be untrusted content.
func authorOf(c tools.Call) chat.Person {
	if c.Tainted {
		return ""
	}
	return c.Whose()
}

// write writes data to a file, and records the author of its content and the person
// whose storage limit it counts towards: the last who wrote to it, unless that is an
// owner, who only takes over files that they replace. A crash in between leaves the
// file with the less trusted of both origins.
func write(c tools.Call, at workspace.Path, data []byte, whole bool) error {
	author := authorOf(c)
	before, found := c.Workspace.Origin(at)
	switch {
	case whole:
	case found && author == chat.TheOwner:
		author = chat.Person(before)
	case found && chat.Person(before) != author: // text of several people is trusted as nobody's
		author = ""
	}
	if author == chat.TheOwner {
		if err := c.Workspace.WriteFile(at, data); err != nil {
			return err
		}
		if whole {
			if err := c.Workspace.Charge(at, ""); err != nil {
				return err
			}
		}
		return c.Workspace.ClearOrigin(at)
	}
	if err := c.Workspace.SetOrigin(at, string(author)); err != nil {
		return err
	}
	if who := c.Whose(); who != chat.TheOwner {
		if err := c.Workspace.Charge(at, string(who)); err != nil {
			return err
		}
	}
	return c.Workspace.WriteFile(at, data)
}

// content returns the content of a file, or nil if there is no file.
func content(w *workspace.Workspace, at workspace.Path) ([]byte, error) {
	f, err := w.Open(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// noteContent records that c's session knows the file's content, data.
func (e editor) noteContent(c tools.Call, at workspace.Path, data []byte) {
	info, err := c.Workspace.Stat(at)
	if err != nil {
		return // then the session has to read the file again
	}
	e.known.note(c, at, readState{mtime: info.ModTime().UnixNano(), hash: sha256.Sum256(data)})
}
