package files

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"unicode/utf8"

	"parley/tools"
	"parley/workspace"
)

type pathArgs struct {
	Path string `json:"path" jsonschema:"the file or directory, relative to the workspace" limit:"min=1"`
}

type fileReadArgs struct {
	Path     string `json:"path" jsonschema:"the file, relative to the workspace" limit:"min=1"`
	Encoding string `json:"encoding,omitempty" jsonschema:"utf-8, gbk, gb18030, latin-1 or utf-16" limit:"default=utf-8"`
}

type fileListArgs struct {
	Path    string `json:"path,omitempty" jsonschema:"the directory, relative to the workspace" limit:"default=."`
	Pattern string `json:"pattern,omitempty" jsonschema:"list only what it matches, such as **/*.go" limit:"default=*"`
}

// facts are what a tool of the other system answers.
type facts map[string]any

// others returns the tools that are as the other system has them: those that
// only that one has, and its names for ours (merge.md 2.6).
func (p pen) others() []tools.Tool {
	remove := other("file_delete", "Delete a file of the workspace.", "", p.fileDelete)
	remove.Dangerous, remove.Guard, remove.Preview = true, p.guards, about("Deleting")
	mkdir := other("file_mkdir", "Make a directory of the workspace, and those it is in.", "", fileMkdir)
	mkdir.Guard, mkdir.Preview = p.guards, about("Making directory")
	write := other("file_write", "Write a text file of the workspace.", "write_file", p.fileWrite)
	write.Guard, write.Preview = p.guards, about("Writing")
	exists := other("file_exists", "Say whether a file or directory of the workspace exists, and which of the two it is.", "", fileExists)
	read := other("file_read", "Read a text file of the workspace.", "read_file", p.fileRead)
	read.MaxText = maxChars
	list := other("file_list", "List a directory of the workspace.", "list_dir", fileList)
	exists.ReadOnly, read.ReadOnly, list.ReadOnly = true, true, true
	return []tools.Tool{remove, mkdir, write, exists, read, list}
}

// other makes a tool that works at a path, by its name in the workspace.
func other[In any](name, what, aliasOf string, do func(ctx context.Context, c tools.Call, name string, in In) (facts, *tools.Result)) tools.Tool {
	t := tools.New(name, what, func(ctx context.Context, c tools.Call, in In) (tools.Result, error) {
		path, _ := c.Input["path"].(string)
		name, refusal := project(c, cmp.Or(path, "."))
		if refusal != nil {
			return *refusal, nil
		}
		f, refusal := do(ctx, c, name, in)
		if refusal != nil {
			return *refusal, nil
		}
		f["path"] = name
		return tools.Result{Data: map[string]any(f)}, nil
	})
	t.Category, t.AliasOf, t.JSON = "files", aliasOf, true
	t.Aliases = pathNames("dir", "path", "directory", "path", "folder", "path")
	return t
}

// project is locate in the words of the other system.
func project(c tools.Call, path string) (name string, refusal *tools.Result) {
	if c.Workspace == nil {
		return "", fail("project_id is required for file operations")
	}
	name, err := c.Workspace.Path(path)
	switch {
	case errors.As(err, new(*workspace.OutsideError)):
		return "", deny("Path is outside project directory: '%s'", path)
	case err != nil:
		return "", explain(path, err)
	case tools.Private(c.Session, name):
		return "", deny("%s is not for this conversation", path)
	}
	return name, nil
}

// unfit says what is wrong with a file in the words of the other system.
func unfit(name string, err error) *tools.Result {
	if errors.Is(err, workspace.ErrNotFile) {
		return fail("Path is not a file: %s", name)
	}
	return explain(name, err)
}

// fileDelete deletes a file.
func (p pen) fileDelete(_ context.Context, c tools.Call, name string, _ pathArgs) (facts, *tools.Result) {
	err := alone(c.Workspace, func() error {
		return record(c, change{Path: name}, func() error { return c.Workspace.Root().Remove(name) })
	})
	if err != nil {
		return nil, unfit(name, err)
	}
	return facts{"success": true}, nil
}

// fileMkdir makes a folder unless it is there.
func fileMkdir(_ context.Context, c tools.Call, name string, _ pathArgs) (facts, *tools.Result) {
	var made []string
	err := alone(c.Workspace, func() error {
		made = missing(c.Workspace, name)
		return record(c, change{Made: made}, func() error { return c.Workspace.Root().MkdirAll(name, 0o755) })
	})
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrExist) {
		return nil, fail("Path is not a directory: %s", name)
	}
	if err != nil {
		return nil, explain(name, err)
	}
	return facts{"success": true, "created": len(made) > 0}, nil
}

// fileWrite is write_file.
func (p pen) fileWrite(_ context.Context, c tools.Call, name string, in writeArgs) (facts, *tools.Result) {
	if err := p.put(c, name, in); err != nil {
		return nil, unfit(name, err)
	}
	return facts{"success": true, "size": utf8.RuneCountInString(in.Content), "mode": cmp.Or(in.Mode, "write")}, nil
}

// fileExists looks at a file.
func fileExists(_ context.Context, c tools.Call, name string, _ pathArgs) (facts, *tools.Result) {
	info, err := c.Workspace.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return facts{"exists": false}, nil
	case err != nil:
		return nil, explain(name, err)
	case info.IsDir():
		return facts{"exists": true, "type": "directory"}, nil
	case info.Mode().IsRegular():
		return facts{"exists": true, "type": "file", "size": info.Size()}, nil
	}
	return facts{"exists": true, "type": "other"}, nil
}

// fileRead returns all that a file holds.
func (p pen) fileRead(_ context.Context, c tools.Call, name string, in fileReadArgs) (facts, *tools.Result) {
	data, err := c.Workspace.ReadFile(at(name))
	if errors.Is(err, workspace.ErrTooBig) {
		return nil, fail("File too big: %s (more than %d MiB)", name, workspace.MaxRead>>20)
	}
	var text string
	if err == nil {
		text, err = decodeText(name, data, in.Encoding)
	}
	if err != nil {
		return nil, unfit(name, err)
	}
	p.saw(c, name, data)
	return facts{"success": true, "content": text, "size": utf8.RuneCountInString(text)}, nil
}

// fileList lists what matches a pattern.
func fileList(ctx context.Context, c tools.Call, dir string, in fileListArgs) (facts, *tools.Result) {
	in.Pattern = cmp.Or(in.Pattern, "*")
	if path.IsAbs(in.Pattern) || strings.Contains("/"+in.Pattern+"/", "/../") {
		return nil, deny("Path is outside project directory: '%s'", in.Pattern)
	}
	if refusal := badGlob(in.Pattern); refusal != nil {
		return nil, refusal
	}
	files, dirs := []facts{}, []facts{}
	_, err := walk(ctx, c.Workspace.Root().FS(), dir, func(name string, d fs.DirEntry) error {
		info, err := d.Info()
		switch {
		case err != nil || !matches(in.Pattern, below(dir, name)):
		case d.IsDir():
			dirs = append(dirs, facts{"name": d.Name(), "path": name})
		default:
			files = append(files, facts{"name": d.Name(), "size": info.Size(), "path": name})
		}
		if !strings.Contains(in.Pattern, "/") {
			return skip(d)
		}
		return nil
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fail("Directory not found: %s", dir)
	case errors.Is(err, syscall.ENOTDIR):
		return nil, fail("Path is not a directory: %s", dir)
	case err != nil:
		return nil, explain(dir, err)
	}
	return facts{"success": true, "files": files, "directories": dirs, "total_files": len(files), "total_dirs": len(dirs)}, nil
}
