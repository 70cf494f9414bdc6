package files

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"parley/tools"
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
	return alone(c, path, func(name string) *tools.Result {
		old, err := content(c, name)
		if err != nil {
			return explain(path, err)
		}
		data, refusal := f(name, old)
		if refusal != nil {
			return refusal
		}
		return p.save(c, path, name, data)
	})
}

// alone calls f with the name of path while nobody else changes files.
func alone(c tools.Call, path string, f func(name string) *tools.Result) *tools.Result {
	name, refusal := locate(c, path)
	if refusal != nil {
		return refusal
	}
	release, err := hold(c.Workspace)
	if err != nil {
		return explain(path, err)
	}
	defer release()
	return f(name)
}

// content returns all that the file called name holds, or nil if there is none.
func content(c tools.Call, name string) ([]byte, error) {
	f, err := c.Workspace.Open(at(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// save makes data the content of the file called name, which path means.
func (p pen) save(c tools.Call, path, name string, data []byte) *tools.Result {
	hash := sha256.Sum256(data)
	ch := change{Path: name, After: hex.EncodeToString(hash[:]), Made: missing(c.Workspace, filepath.Dir(name))}
	err := record(c, ch, func() error { return c.Workspace.WriteFile(at(name), data) })
	if err != nil {
		return explain(path, err)
	}
	if info, err := c.Workspace.Stat(name); err == nil {
		p.note(c, name, look{stamp: stampOf(info, hash)})
	}
	return nil
}

// pathNames are names of arguments that models get wrong (E-005): for path, and
// of more each before the right one.
func pathNames(more ...string) map[string]string {
	m := map[string]string{"file_path": "path", "filepath": "path", "filename": "path", "file": "path"}
	for i := 0; i+1 < len(more); i += 2 {
		m[more[i]] = more[i+1]
	}
	return m
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
