package files

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"

	"parley/tools"
	"parley/workspace"
)

type pathArgs struct {
	Path string `json:"path" jsonschema:"the file or directory, relative to the workspace" limit:"min=1"`
}

// manages returns the tools that are for whole files and folders.
func (p pen) manages() []tools.Tool {
	remove := tools.New("file_delete", "Delete a file of the workspace.", p.fileDelete)
	remove.Dangerous, remove.Guard, remove.Preview = true, p.guards, about("Deleting")
	exists := tools.New("file_exists", "Say whether a file or directory of the workspace exists, and which of the two it is.", fileExists)
	exists.ReadOnly = true
	mkdir := tools.New("file_mkdir", "Make a directory of the workspace, and those it is in.", fileMkdir)
	mkdir.Guard, mkdir.Preview = p.guards, about("Making directory")
	all := []tools.Tool{remove, exists, mkdir}
	for i := range all {
		all[i].Category, all[i].JSON, all[i].Aliases = "files", true, pathNames("dir", "path", "directory", "path", "folder", "path")
	}
	return all
}

// project is locate in the words of the other system.
func project(c tools.Call, path string) (name string, refusal *tools.Result) {
	if c.Workspace == nil {
		return "", fail("project_id is required for file operations")
	}
	var outside *workspace.OutsideError
	if _, err := c.Workspace.Path(path); errors.As(err, &outside) {
		return "", deny("Path is outside project directory: '%s'", path)
	}
	return locate(c, path)
}

// unfit says what is wrong with a path in the words of the other system.
func unfit(path string, err error) *tools.Result {
	if errors.Is(err, workspace.ErrNotFile) {
		return fail("Path is not a file: %s", path)
	}
	return explain(path, err)
}

// fileDelete deletes a file, of which a link is none.
func (p pen) fileDelete(_ context.Context, c tools.Call, in pathArgs) (tools.Result, error) {
	name, refusal := project(c, in.Path)
	if refusal != nil {
		return *refusal, nil
	}
	refusal = alone(c, in.Path, func(name string) *tools.Result {
		clean := filepath.Clean(in.Path)
		dir, err := c.Workspace.Path(filepath.Dir(clean))
		if err == nil && filepath.Join(dir, filepath.Base(clean)) != name {
			err = workspace.ErrNotFile
		}
		if err == nil {
			err = plainFile(c.Workspace, name)
		}
		if err == nil {
			err = record(c, change{Path: name}, func() error { return c.Workspace.Root().Remove(name) })
		}
		if err != nil {
			return unfit(in.Path, err)
		}
		return nil
	})
	if refusal != nil {
		return *refusal, nil
	}
	return tools.Result{Data: map[string]any{"success": true, "path": name}}, nil
}

// plainFile returns the error of opening the file, however big it is.
func plainFile(w *workspace.Workspace, name string) error {
	f, err := w.Open(at(name))
	if err == nil {
		return f.Close()
	}
	if errors.Is(err, workspace.ErrTooBig) {
		return nil
	}
	return err
}

// fileExists looks at a file.
func fileExists(_ context.Context, c tools.Call, in pathArgs) (tools.Result, error) {
	if _, refusal := project(c, in.Path); refusal != nil && (c.Workspace == nil || refusal.Code == tools.CodeDenied) {
		return *refusal, nil
	}
	name, err := c.Workspace.Path(in.Path)
	var info fs.FileInfo
	if err == nil {
		info, err = c.Workspace.Stat(name)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return tools.Result{Data: map[string]any{"exists": false, "path": cmp.Or(name, in.Path)}}, nil
	case err != nil:
		return *explain(in.Path, err), nil
	}
	found := map[string]any{"exists": true, "path": name, "type": "other"}
	switch {
	case info.IsDir():
		found["type"] = "directory"
	case info.Mode().IsRegular():
		found["type"], found["size"] = "file", info.Size()
	}
	return tools.Result{Data: found}, nil
}

// fileMkdir makes a folder unless it is there.
func fileMkdir(_ context.Context, c tools.Call, in pathArgs) (tools.Result, error) {
	name, refusal := project(c, in.Path)
	if refusal != nil {
		return *refusal, nil
	}
	var made []string
	refusal = alone(c, in.Path, func(name string) *tools.Result {
		made = missing(c.Workspace, name)
		err := record(c, change{Made: made}, func() error { return c.Workspace.Root().MkdirAll(name, 0o755) })
		if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrExist) {
			return fail("Path is not a directory: %s", in.Path)
		}
		if err != nil {
			return explain(in.Path, err)
		}
		return nil
	})
	if refusal != nil {
		return *refusal, nil
	}
	return tools.Result{Data: map[string]any{"success": true, "path": name, "created": len(made) > 0}}, nil
}
