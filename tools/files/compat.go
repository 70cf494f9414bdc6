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
	Encoding string `json:"encoding" jsonschema:"utf-8, gbk, gb18030, latin-1 or utf-16" limit:"default=utf-8"`
}

type fileListArgs struct {
	Path    string `json:"path" jsonschema:"the directory, relative to the workspace" limit:"default=."`
	Pattern string `json:"pattern" jsonschema:"list only matching names, such as **/*.go" limit:"default=*"`
}

// fields are the members of a JSON answer.
type fields map[string]any

// compatTools returns the tools that answer with JSON objects: tools that only
// exist in this form, and other names for tools of this package, which models may
// know from another system.
func (e editor) compatTools() []tools.Tool {
	remove := newCompatTool("file_delete", "Delete a file of the workspace.", "",
		e.open, returning(e.fileDelete))
	mkdir := newCompatTool("file_mkdir", "Create a directory in the workspace, and its parents.", "",
		e.open, returning(e.fileMkdir))
	write := newCompatTool("file_write", "Write a text file of the workspace.", "write_file", e.open,
		returning(e.fileWrite))
	exists := newCompatTool("file_exists",
		"Say whether a file or directory of the workspace exists, and which of the two it is.", "", tools.Resolve,
		returning(fileExists))
	read := newCompatTool("file_read", "Read a text file of the workspace.", "read_file", tools.Resolve,
		tainting(returning(e.fileRead)))
	list := newCompatTool("file_list", "List a directory of the workspace.", "list_dir",
		tools.Resolve, fileList)
	remove.Dangerous = true
	there := newCompatTool("file_delete", "", "", e.open, returning(fileThere))
	remove.Precheck = func(c tools.Call) (tools.Result, error) { return there.Run(context.Background(), c) }
	for _, t := range []*tools.Tool{&remove, &mkdir, &exists} {
		t.Use = tools.Rare
	}
	e.protect(&remove, askDelete)
	e.protect(&mkdir, askMakeFolder)
	e.protect(&write, askWrite)
	exists.ReadOnly = true
	read.ReadOnly = true
	list.ReadOnly = true
	read.MaxText = maxChars
	return []tools.Tool{remove, mkdir, write, exists, read, list}
}

// newCompatTool makes a tool that answers with a JSON object.
func newCompatTool[In any](
	name string,
	what, aliasOf string,
	open pathResolver,
	do action[In, tools.Result],
) tools.Tool {
	t := newPathTool(
		name,
		what,
		func(ctx context.Context, c tools.Call, text string, in In) (r tools.Result, err error) {
			if c.Workspace == nil {
				return r, errors.New("project_id is required for file operations")
			}
			at, err := open(c, text)
			if err != nil {
				return explainCompat(r, err, text)
			}
			shown := c.Workspace.View().Shown(at)
			r, err = do(ctx, c, at, in)
			if err != nil {
				return explainCompat(r, err, shown)
			}
			f, _ := r.Data.(fields)
			f["path"] = c.Workspace.View().Shown(at)
			r.Data = map[string]any(f)
			return r, nil
		},
	)
	t.AliasOf = aliasOf
	t.JSON = true
	return t
}

// explainCompat is like explain, with texts that the other system has.
func explainCompat(r tools.Result, err error, path string) (tools.Result, error) {
	if out, isOutside := errors.AsType[*workspace.OutsideError](err); isOutside {
		return tools.Result{Code: tools.CodeDenied}, fail("Path is outside project directory: '%s'", out.Path)
	}
	return explain(r, err, path, errorText{workspace.ErrNotFile, "", "Path is not a file: %s"},
		errorText{errNotDir, "", "Path is not a directory: %s"})
}

// returning makes an action from a function that returns fields.
func returning[In any](do action[In, fields]) action[In, tools.Result] {
	return func(ctx context.Context, c tools.Call, at workspace.Path, in In) (tools.Result, error) {
		f, err := do(ctx, c, at, in)
		return tools.Result{Data: f}, err
	}
}

// fileThere fails as fileDelete would if the file does not exist.
func fileThere(_ context.Context, c tools.Call, at workspace.Path, _ pathArgs) (fields, error) {
	_, err := c.Workspace.Stat(at)
	return fields{}, err
}

// fileDelete deletes a file.
func (e editor) fileDelete(_ context.Context, c tools.Call, at workspace.Path, _ pathArgs) (fields, error) {
	return fields{"success": true}, withUndoLock(c.Workspace, func() error {
		return recordChange(c, change{Path: at.String()}, func() error { return c.Workspace.Remove(at) })
	})
}

// fileMkdir makes a folder unless it is there.
func (e editor) fileMkdir(_ context.Context, c tools.Call, at workspace.Path, _ pathArgs) (fields, error) {
	var made []string
	err := withUndoLock(c.Workspace, func() error {
		do := func() error { return c.Workspace.MkdirAll(at) }
		if made = missingFolders(c.Workspace, at); len(made) == 0 {
			return do()
		}
		if err := e.reserveBytes(c, workspace.DiskBytes(0)*int64(len(made))); err != nil {
			return err
		}
		return recordChange(c, change{Path: at.String(), After: folder, Made: made}, func() error {
			if err := setOrigins(c, made); err != nil {
				return err
			}
			return do()
		})
	})
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrExist) {
		err = errNotDir
	}
	return fields{"success": true, "created": len(made) > 0}, err
}

// fileWrite writes a file.
func (e editor) fileWrite(_ context.Context, c tools.Call, at workspace.Path, in writeArgs) (fields, error) {
	f := fields{"success": true, "size": utf8.RuneCountInString(in.Content), "mode": in.Mode}
	return f, e.put(c, at, in)
}

// fileExists reports whether a file exists, and what it is.
func fileExists(_ context.Context, c tools.Call, at workspace.Path, _ pathArgs) (fields, error) {
	info, err := c.Workspace.Stat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fields{"exists": false}, nil
	case err != nil:
		return nil, err
	case info.IsDir():
		return fields{"exists": true, "type": "directory"}, nil
	case info.Mode().IsRegular():
		return fields{"exists": true, "type": "file", "size": info.Size()}, nil
	}
	return fields{"exists": true, "type": "other"}, nil
}

// fileRead returns the whole content of a file.
func (e editor) fileRead(_ context.Context, c tools.Call, at workspace.Path, in fileReadArgs) (fields, error) {
	data, err := c.Workspace.ReadFile(at)
	if errors.Is(err, workspace.ErrTooBig) {
		return nil, fail("File too big: %s (more than %d MiB)", at, workspace.MaxRead>>20)
	}
	if err != nil {
		return nil, err
	}
	text, err := decodeText(at.String(), data, in.Encoding)
	if err != nil {
		return nil, err
	}
	e.noteContent(c, at, data)
	return fields{"success": true, "content": text, "size": utf8.RuneCountInString(text)}, nil
}

// fileList lists the files and folders that match a pattern.
func fileList(ctx context.Context, c tools.Call, dir workspace.Path, in fileListArgs) (r tools.Result, err error) {
	if path.IsAbs(in.Pattern) || strings.Contains("/"+in.Pattern+"/", "/../") {
		return r, &workspace.OutsideError{Path: in.Pattern}
	}
	files := []fields{}
	dirs := []fields{}
	w := walker{dir, "Directory", in.Pattern, !strings.Contains(in.Pattern, "/")}
	_, err = w.walk(ctx, c, func(at workspace.Path, d fs.DirEntry) {
		r.TaintBy(c.Scope, at)
		switch info, err := d.Info(); {
		case err != nil: // it was removed in the meantime
		case d.IsDir():
			dirs = append(dirs, fields{"name": d.Name(), "path": c.Workspace.View().Shown(at)})
		default:
			files = append(files, fields{"name": d.Name(), "size": info.Size(), "path": c.Workspace.View().Shown(at)})
		}
	})
	r.Data = fields{
		"success":     true,
		"files":       files,
		"directories": dirs,
		"total_files": len(files),
		"total_dirs":  len(dirs),
	}
	return r, err
}
