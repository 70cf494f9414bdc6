package files

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"strings"

	"parley/chat"
	"parley/tools"
	"parley/workspace"
)

// A pen changes files: one change of a workspace at a time, each of which can
// be undone. Untrusted content that came into a turn is not written into what
// the agent goes by without being asked for (R-S12), nor at all into what runs
// by itself when the owner works in the workspace.
type pen struct {
	*seen
	rules Rules
}

// open returns the file that the model means by text, which c is to change.
func (p pen) open(c tools.Call, text string) (workspace.Path, error) {
	at, err := tools.Resolve(c, text)
	if err == nil || errors.Is(err, tools.ErrPrivate) {
		err = cmp.Or(p.refuse(c, at), err)
	}
	return at, err
}

// A denial tells the model why a file is not changed in this call.
type denial struct{ error }

// refuse returns a denial if the file must not be changed in c, whoever agrees.
func (p pen) refuse(c tools.Call, at workspace.Path) error {
	if tools.Own(at) {
		return denial{
			fail(
				"%s is kept by Parley itself and cannot be changed. /undo takes back changes of files; other results "+
					"need no change.",
				at,
			),
		}
	}
	if p.rules.Kept != nil {
		if instead := p.rules.Kept(at.String()); instead != "" {
			return denial{fail("%s is kept by Parley itself and cannot be changed by a tool of files: %s", at, instead)}
		}
	}
	switch runs := runsByItself(c.Workspace, at); {
	case !runs:
	case c.From.Role != chat.Owner:
		return denial{fail("%s is a file that programs obey by themselves: only an owner may have it changed", at)}
	case c.Tainted:
		return denial{
			fail(
				"%s is a file that programs obey by themselves: it is not changed in a turn that has read untrusted "+
					"content. "+
					"Tell the person what it should say; they can write it themselves, or ask again after /new.",
				at,
			),
		}
	}
	return nil
}

// protect has a tool that changes the file called path refuse what must not be
// changed, before anybody is asked, and ask about what is of consequence.
func (p pen) protect(t *tools.Tool) {
	t.Guard, t.Risky = p.guards, p.risks
	if t.Precheck == nil {
		t.Precheck = p.precheck
	}
}

// precheck is Precheck of a tool that changes the file called path.
func (p pen) precheck(c tools.Call) (tools.Result, error) {
	if c.Workspace == nil {
		return tools.Result{}, nil // the tool says so
	}
	_, err := p.open(c, pathOf(c))
	if errors.As(err, new(denial)) || errors.Is(err, tools.ErrPrivate) {
		return explain(tools.Result{}, err, pathOf(c))
	}
	return tools.Result{}, nil
}

// guards is Guard of a tool that changes the file called path.
func (p pen) guards(c tools.Call) bool {
	if c.Workspace == nil || p.rules.Standing == nil {
		return false
	}
	at, err := p.open(c, pathOf(c))
	return err == nil && p.rules.Standing(at.String())
}

// risks is Risky of a tool that changes the file called path.
func (p pen) risks(c tools.Call) bool {
	if c.Workspace == nil {
		return false
	}
	at, err := p.open(c, pathOf(c))
	return err == nil && runsByItself(c.Workspace, at)
}

// rewrite makes of a file what f makes of its content, which is nil if there is
// no file. f may refuse. whole says that nothing of the old content stays.
func (p pen) rewrite(c tools.Call, at workspace.Path, whole bool, f func(old []byte) ([]byte, error)) error {
	return alone(c.Workspace, func() error {
		old, err := content(c.Workspace, at)
		if err != nil {
			return err
		}
		data, err := f(old)
		if err != nil {
			return err
		}
		ch := change{Path: at.String(), After: digest(data), Made: missing(c.Workspace, at.Dir())}
		if err := p.reserve(c, at, old, data, ch.Made); err != nil {
			return err
		}
		err = record(c, ch, func() error {
			if err := claim(c, ch.Made); err != nil {
				return err
			}
			return write(c, at, data, whole || old == nil)
		})
		if err == nil {
			p.saw(c, at, data)
		}
		return err
	})
}

// claim notes whose words the names of folders are that are about to be made.
func claim(c tools.Call, folders []string) error {
	author := authorOf(c)
	if author == chat.TheOwner {
		return nil
	}
	for _, name := range folders {
		at, err := c.Workspace.Named(name)
		if err == nil {
			err = c.Workspace.SetOrigin(at, string(author))
		}
		if who := c.Whose(); err == nil && who != chat.TheOwner {
			err = c.Workspace.Charge(at, string(who))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reserve returns a denial if the person whom c is for has no room for a file
// that is to hold data instead of old, in folders that are about to be made. Whom
// nobody limits has room, and so has whoever makes a file smaller.
func (p pen) reserve(c tools.Call, at workspace.Path, old, data []byte, folders []string) error {
	bytes := workspace.DiskBytes(int64(len(data)))
	who := c.Whose()
	charged, err := c.Workspace.ChargedTo(at)
	if err != nil {
		return err
	}
	if old != nil && (charged == string(who) || strings.HasPrefix(at.String(), who.InboxFolder()+"/")) {
		bytes -= workspace.DiskBytes(int64(len(old)))
	}
	return p.reserveBytes(c, bytes+workspace.DiskBytes(0)*int64(len(folders)))
}

// reserveBytes is reserve for so many bytes more.
func (p pen) reserveBytes(c tools.Call, bytes int64) error {
	who := c.Whose()
	if who == chat.TheOwner || p.rules.MaxStored == nil {
		return nil
	}
	most := p.rules.MaxStored()
	if most <= 0 {
		return nil
	}
	used, ok, err := c.Workspace.Reserve(string(who), who.InboxFolder(), bytes, most)
	if err == nil && !ok {
		err = denial{
			fail(
				"Nothing was written: the files of this person take %.1f of the %.1f MB that they may, and this "+
					"would be %.1f MB more. "+
					"Delete files that they wrote or sent and need no more, or make them shorter, after asking "+
					"which; then try again.",
				float64(used)/1e6,
				float64(most)/1e6,
				float64(bytes)/1e6,
			),
		}
	}
	return err
}

// authorOf returns whose words c writes, "" if they are nobody's who is trusted.
func authorOf(c tools.Call) chat.Person {
	if c.Tainted {
		return ""
	}
	return c.Whose()
}

// write writes data to a file and notes whose words it holds then, and whom it
// counts for: who wrote to it last, but for owners, who take over what they
// replace. A crash in between leaves the file with the origin that is trusted less.
func write(c tools.Call, at workspace.Path, data []byte, whole bool) error {
	author := authorOf(c)
	before, found := c.Workspace.Origin(at)
	switch {
	case whole:
	case found && author == chat.TheOwner:
		author = chat.Person(before)
	case found && chat.Person(before) != author: // the words of several people are nobody's
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

// content returns all that a file holds, or nil if there is none.
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

// saw notes that c's session knows that a file holds data.
func (p pen) saw(c tools.Call, at workspace.Path, data []byte) {
	if info, err := c.Workspace.Stat(at); err == nil {
		p.note(c, at, look{mtime: info.ModTime().UnixNano(), hash: sha256.Sum256(data)})
	}
}
