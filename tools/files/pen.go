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
	file, _ := c.Input["path"].(string)
	if c.Workspace == nil || p.standing == nil {
		return false
	}
	name, err := c.Workspace.Path(file)
	return err == nil && p.standing(name)
}

// rewrite makes of the file at path what f makes of its content, which is nil
// if there is no file. f may refuse.
func (p pen) rewrite(c tools.Call, path string, f func(name string, old []byte) (data []byte, refusal *tools.Result)) *tools.Result {
	name, refusal := locate(c, path)
	if refusal != nil {
		return refusal
	}
	err := alone(c.Workspace, func() error {
		old, err := content(c.Workspace, name)
		if err != nil {
			return err
		}
		data, no := f(name, old)
		if no != nil {
			refusal = no
			return nil
		}
		return p.save(c, name, data)
	})
	if err != nil {
		return explain(path, err)
	}
	return refusal
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

// save makes data the content of the file called name. Be alone.
func (p pen) save(c tools.Call, name string, data []byte) error {
	ch := change{Path: name, After: digest(data), Made: missing(c.Workspace, path.Dir(name))}
	if err := record(c, ch, func() error { return c.Workspace.WriteFile(at(name), data) }); err != nil {
		return err
	}
	p.saw(c, name, data)
	return nil
}

// saw notes that c's session knows that the file called name holds data.
func (p pen) saw(c tools.Call, name string, data []byte) {
	if info, err := c.Workspace.Stat(name); err == nil {
		p.note(c, name, look{stamp: stampOf(info, sha256.Sum256(data))})
	}
}

// pathNames are names of arguments that models get wrong (E-005): for path,
// and of more each before the right one.
func pathNames(more ...string) map[string]string {
	names := map[string]string{"file_path": "path", "filepath": "path", "filename": "path", "file": "path"}
	for i := 0; i+1 < len(more); i += 2 {
		names[more[i]] = more[i+1]
	}
	return names
}

// about is Preview of a tool: what it does to the file that its path names.
func about(verb string) func(map[string]any) string {
	return func(args map[string]any) string {
		if file, _ := args["path"].(string); file != "" {
			return verb + " " + legible(file)
		}
		return ""
	}
}
