package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/workspace"
)

// RealFolders returns folders without symbolic links on the way to them, each once and outer ones
// first. Of a folder that is there by two names, the stricter access counts. What is missing is left
// out. links says of those whose names are links, and which a program may see, where they lead.
//
// A link that a program may have made is an error: it could have a later program be given what
// neither must see.
func RealFolders(folders []Folder) (real []Folder, links map[string]string, err error) {
	access := map[string]Access{}
	links = map[string]string{}
	changeable := changeableFolders(folders)
	for _, f := range folders {
		path := filepath.Clean(f.Path)
		target, err := resolvePath(path, changeable)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("look at a folder of the sandbox: %w", err)
		}
		if target == "/" {
			return nil, nil, errors.New("the whole machine cannot be a folder of a sandbox")
		}
		if target != path && f.Access != Hidden {
			links[path] = target
		}
		if before, twice := access[target]; twice {
			f.Access = min(f.Access, before)
		}
		access[target] = f.Access
	}
	for _, path := range slices.Sorted(maps.Keys(access)) {
		real = append(real, Folder{path, access[path]})
	}
	return real, links, nil
}

// changeableFolders returns the folders in which programs can make symbolic links.
func changeableFolders(folders []Folder) []string {
	var all []string
	for _, f := range folders {
		if f.Access != ReadWrite {
			continue
		}
		target, err := filepath.EvalSymlinks(f.Path)
		if err != nil {
			continue // it is missing
		}
		all = append(all, target)
	}
	return all
}

// resolvePath returns path without symbolic links. One in a folder of changeable is an error: a program
// could have it lead to what it must not see.
func resolvePath(path string, changeable []string) (string, error) {
	done, rest := "/", path
	for links := 0; rest != ""; {
		var next string
		next, rest, _ = strings.Cut(strings.TrimLeft(rest, "/"), "/")
		here := filepath.Join(done, next)
		info, err := os.Lstat(here)
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = here
			continue
		}
		if slices.ContainsFunc(changeable, func(folder string) bool { return workspace.Within(done, folder) }) {
			return "", fmt.Errorf("%s is a symbolic link that a program may have made", here)
		}
		target, err := os.Readlink(here)
		if err != nil {
			return "", err
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%s: too many symbolic links", path)
		}
		if filepath.IsAbs(target) {
			done = "/"
		}
		rest = target + "/" + rest
	}
	return done, nil
}

// maxLinks is how many symbolic links a path may lead through.
const maxLinks = 40
