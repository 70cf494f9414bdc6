package files

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"path"

	"parley/tools"
	"parley/workspace"
)

// A pen changes files: one change of a workspace at a time, each of which can
// be undone. What strangers brought into a turn is not written into what the
// agent goes by without being asked for (R-S12).
type pen struct {
	*seen
	standing func(name string) bool // whether a file is one of the agent's standing rules
}

// guards is Guard of a tool that changes the file called path.
func (p pen) guards(c tools.Call) bool {
	if c.Workspace == nil || p.standing == nil {
		return false
	}
	name, err := c.Workspace.Path(pathOf(c))
	return err == nil && p.standing(name)
}

// rewrite makes of the file called name what f makes of its content, which is
// nil if there is no file. f may refuse.
func (p pen) rewrite(c tools.Call, name string, f func(old []byte) ([]byte, error)) error {
	return alone(c.Workspace, func() error {
		old, err := content(c.Workspace, name)
		if err != nil {
			return err
		}
		data, err := f(old)
		if err != nil {
			return err
		}
		ch := change{Path: name, After: digest(data), Made: missing(c.Workspace, path.Dir(name))}
		err = record(c, ch, func() error { return c.Workspace.WriteFile(at(name), data) })
		if err == nil {
			p.saw(c, name, data)
		}
		return err
	})
}

// content returns all that the file called name holds, or nil if there is none.
func content(w *workspace.Workspace, name string) ([]byte, error) {
	f, err := w.Open(at(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// saw notes that c's session knows that the file called name holds data.
func (p pen) saw(c tools.Call, name string, data []byte) {
	if info, err := c.Workspace.Stat(name); err == nil {
		p.note(c, name, look{mtime: info.ModTime().UnixNano(), hash: sha256.Sum256(data)})
	}
}
