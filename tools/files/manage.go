package files

import (
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
	remove := other("file_delete", stepDelete, "Delete a file of the workspace.", "", p.open, telling(p.fileDelete))
	mkdir := other("file_mkdir", stepMakeDirectory, "Make a directory of the workspace, and those it is in.", "",
		p.open, telling(p.fileMkdir))
	write := other("file_write", stepWrite, "Write a text file of the workspace.", "write_file", p.open,
		telling(p.fileWrite))
	exists := other("file_exists", stepLookFor,
		"Say whether a file or directory of the workspace exists, and which of the two it is.", "", tools.Resolve,
		telling(fileExists))
	read := other("file_read", stepRead, "Read a text file of the workspace.", "read_file", tools.Resolve,
		reading(telling(p.fileRead)))
	list := other("file_list", stepList, "List a directory of the workspace.", "list_dir", tools.Resolve, fileList)
	remove.Dangerous = true
	there := other("file_delete", nil, "", "", p.open, telling(fileThere))
	remove.Precheck = func(c tools.Call) (tools.Result, error) { return there.Run(context.Background(), c) }
	for _, t := range []*tools.Tool{&remove, &mkdir, &write} {
		p.protect(t)
	}
	exists.ReadOnly = true
	read.ReadOnly = true
	list.ReadOnly = true
	read.MaxText = maxChars
	return []tools.Tool{remove, mkdir, write, exists, read, list}
}

// other makes a tool that speaks as the other system does.
func other[In any](name string, says saying, what, aliasOf string, open opener, do doer[In, tools.Result]) tools.Tool {
	t := bare(
		name,
		says,
		what,
		func(ctx context.Context, c tools.Call, text string, in In) (r tools.Result, err error) {
			if c.Workspace == nil {
				return r, errors.New("project_id is required for file operations")
			}
			at, err := open(c, text)
			if err == nil {
				text = at.String()
				r, err = do(ctx, c, at, in)
			}
			if out := (*workspace.OutsideError)(nil); errors.As(err, &out) {
				return tools.Result{Code: tools.CodeDenied}, fail("Path is outside project directory: '%s'", out.Path)
			}
			if err != nil {
				return explain(r, err, text, word{workspace.ErrNotFile, "", "Path is not a file: %s"},
					word{errNotDir, "", "Path is not a directory: %s"})
			}
			f, _ := r.Data.(facts)
			f["path"] = at.String()
			r.Data = map[string]any(f)
			return r, nil
		},
	)
	t.AliasOf, t.JSON = aliasOf, true
	return t
}

// telling makes a tool's result of the facts that do tells.
func telling[In any](do doer[In, facts]) doer[In, tools.Result] {
	return func(ctx context.Context, c tools.Call, at workspace.Path, in In) (tools.Result, error) {
		f, err := do(ctx, c, at, in)
		return tools.Result{Data: f}, err
	}
}

// fileThere fails as fileDelete would if there is no such file.
func fileThere(_ context.Context, c tools.Call, at workspace.Path, _ pathArgs) (facts, error) {
	_, err := c.Workspace.Stat(at)
	return facts{}, err
}

// fileDelete deletes a file.
func (p pen) fileDelete(_ context.Context, c tools.Call, at workspace.Path, _ pathArgs) (facts, error) {
	return facts{"success": true}, alone(c.Workspace, func() error {
		return record(c, change{Path: at.String()}, func() error { return c.Workspace.Remove(at) })
	})
}

// fileMkdir makes a folder unless it is there.
func (p pen) fileMkdir(_ context.Context, c tools.Call, at workspace.Path, _ pathArgs) (facts, error) {
	var made []string
	err := alone(c.Workspace, func() error {
		do := func() error { return c.Workspace.MkdirAll(at) }
		if made = missing(c.Workspace, at); len(made) == 0 {
			return do()
		}
		if err := p.reserveBytes(c, workspace.DiskBytes(0)*int64(len(made))); err != nil {
			return err
		}
		return record(c, change{Path: at.String(), After: folder, Made: made}, func() error {
			if err := claim(c, made); err != nil {
				return err
			}
			return do()
		})
	})
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrExist) {
		err = errNotDir
	}
	return facts{"success": true, "created": len(made) > 0}, err
}

// fileWrite is write_file.
func (p pen) fileWrite(_ context.Context, c tools.Call, at workspace.Path, in writeArgs) (facts, error) {
	f := facts{"success": true, "size": utf8.RuneCountInString(in.Content), "mode": in.Mode}
	return f, p.put(c, at, in)
}

// fileExists looks at a file.
func fileExists(_ context.Context, c tools.Call, at workspace.Path, _ pathArgs) (facts, error) {
	info, err := c.Workspace.Stat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return facts{"exists": false}, nil
	case err != nil:
		return nil, err
	case info.IsDir():
		return facts{"exists": true, "type": "directory"}, nil
	case info.Mode().IsRegular():
		return facts{"exists": true, "type": "file", "size": info.Size()}, nil
	}
	return facts{"exists": true, "type": "other"}, nil
}

// fileRead returns all that a file holds.
func (p pen) fileRead(_ context.Context, c tools.Call, at workspace.Path, in fileReadArgs) (facts, error) {
	data, err := c.Workspace.ReadFile(at)
	if errors.Is(err, workspace.ErrTooBig) {
		return nil, fail("File too big: %s (more than %d MiB)", at, workspace.MaxRead>>20)
	}
	if err != nil {
		return nil, err
	}
	text, err := decodeText(at.String(), data, in.Encoding)
	if err == nil {
		p.saw(c, at, data)
	}
	return facts{"success": true, "content": text, "size": utf8.RuneCountInString(text)}, err
}

// fileList lists what matches a pattern.
func fileList(ctx context.Context, c tools.Call, dir workspace.Path, in fileListArgs) (r tools.Result, err error) {
	if path.IsAbs(in.Pattern) || strings.Contains("/"+in.Pattern+"/", "/../") {
		return r, &workspace.OutsideError{Path: in.Pattern}
	}
	files, dirs := []facts{}, []facts{}
	_, err = hunt{
		dir,
		"Directory",
		in.Pattern,
		!strings.Contains(in.Pattern, "/"),
	}.walk(
		ctx,
		c,
		func(at workspace.Path, d fs.DirEntry) {
			r.TaintBy(c.Scope, at)
			switch info, err := d.Info(); {
			case err != nil: // it is gone
			case d.IsDir():
				dirs = append(dirs, facts{"name": d.Name(), "path": at.String()})
			default:
				files = append(files, facts{"name": d.Name(), "size": info.Size(), "path": at.String()})
			}
		},
	)
	r.Data = facts{
		"success":     true,
		"files":       files,
		"directories": dirs,
		"total_files": len(files),
		"total_dirs":  len(dirs),
	}
	return r, err
}
