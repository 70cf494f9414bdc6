package files

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"unicode/utf8"

	"parley/tools"
	"parley/workspace"
)

type fileReadArgs struct {
	Path     string `json:"path" jsonschema:"the file, relative to the workspace" limit:"min=1"`
	Encoding string `json:"encoding,omitempty" jsonschema:"utf-8, gbk, gb18030, latin-1 or utf-16" limit:"default=utf-8"`
}

type fileListArgs struct {
	Path    string `json:"path,omitempty" jsonschema:"the directory, relative to the workspace" limit:"default=."`
	Pattern string `json:"pattern,omitempty" jsonschema:"list only what it matches, such as **/*.go" limit:"default=*"`
}

// others returns read_file and list_dir as the other system has them.
func (p pen) others() []tools.Tool {
	read := tools.New("file_read", "Read a text file of the workspace.", p.fileRead)
	read.AliasOf, read.Preview, read.MaxText = "read_file", about("Reading"), maxChars
	list := tools.New("file_list", "List a directory of the workspace.", fileList)
	list.AliasOf = "list_dir"
	all := []tools.Tool{read, list}
	for i := range all {
		all[i].Category, all[i].JSON, all[i].ReadOnly, all[i].Aliases = "files", true, true, pathNames()
	}
	return all
}

// fileRead returns all that a file holds.
func (p pen) fileRead(_ context.Context, c tools.Call, in fileReadArgs) (tools.Result, error) {
	name, refusal := project(c, in.Path)
	if refusal != nil {
		return *refusal, nil
	}
	e, ok := encodings[plain(in.Encoding)]
	if !ok {
		return *noEncoding(in.Encoding), nil
	}
	data, err := c.Workspace.ReadFile(at(name))
	if errors.Is(err, workspace.ErrTooBig) {
		return *fail("File too big: %s (more than %d MiB)", in.Path, workspace.MaxRead>>20), nil
	}
	if err != nil {
		return *unfit(in.Path, err), nil
	}
	text, err := e.decode(data)
	if err != nil {
		return *fail("Cannot read %s as %s. Try another encoding.", in.Path, cmp.Or(in.Encoding, "utf-8")), nil
	}
	p.note(c, name, look{stamp: stamp{hash: sha256.Sum256(data)}})
	return tools.Result{Data: map[string]any{
		"success": true, "content": text, "size": utf8.RuneCountInString(text), "path": name,
	}}, nil
}

// fileList lists what matches a pattern.
func fileList(ctx context.Context, c tools.Call, in fileListArgs) (tools.Result, error) {
	in.Path, in.Pattern = cmp.Or(in.Path, "."), cmp.Or(in.Pattern, "*")
	dir, refusal := project(c, in.Path)
	switch {
	case refusal != nil:
		return *refusal, nil
	case path.IsAbs(in.Pattern) || strings.Contains("/"+in.Pattern+"/", "/../"):
		return *deny("Path is outside project directory: '%s'", in.Pattern), nil
	}
	if refusal := badGlob(in.Pattern); refusal != nil {
		return *refusal, nil
	}
	files, dirs := []map[string]any{}, []map[string]any{}
	deep := strings.Contains(in.Pattern, "/")
	_, err := walk(ctx, c.Workspace.Root().FS(), dir, func(name string, d fs.DirEntry) error {
		info, err := d.Info()
		switch {
		case err != nil || !matches(in.Pattern, below(dir, name)):
		case d.IsDir():
			dirs = append(dirs, map[string]any{"name": d.Name(), "path": name})
		default:
			files = append(files, map[string]any{"name": d.Name(), "size": info.Size(), "path": name})
		}
		if !deep {
			return skip(d)
		}
		return nil
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return *fail("Directory not found: %s", in.Path), nil
	case errors.Is(err, syscall.ENOTDIR):
		return *fail("Path is not a directory: %s", in.Path), nil
	case err != nil:
		return *explain(in.Path, err), nil
	}
	return tools.Result{Data: map[string]any{
		"success": true, "path": dir, "files": files, "directories": dirs, "total_files": len(files), "total_dirs": len(dirs),
	}}, nil
}
