package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ChangeableFolders returns the folders in which programs can make symbolic links.
func ChangeableFolders(folders []Folder) []string {
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

// ResolvePath returns path without symbolic links. One in a folder of changeable is an error: a program
// could have it lead to what it must not see.
func ResolvePath(path string, changeable []string) (string, error) {
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
		if slices.ContainsFunc(changeable, func(folder string) bool { return Within(done, folder) }) {
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

// Within reports whether path is below folder, or folder itself.
func Within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}
