package docker

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/tools/sandbox"
	"parley/workspace"
)

// mountArgs returns the arguments that show the program its folders. Docker itself mounts what is above before
// what is below. What is hidden in a folder that can be seen is covered by something empty.
func (c *container) mountArgs() ([]string, error) {
	emptyFolder := filepath.Join(c.folder, "empty-folder")
	emptyFile := filepath.Join(c.folder, "empty-file")
	if err := errors.Join(os.Mkdir(emptyFolder, 0), os.WriteFile(emptyFile, nil, 0)); err != nil {
		return nil, fmt.Errorf("make what covers hidden folders: %w", err)
	}
	access := map[string]sandbox.Access{}
	for _, f := range c.spec.Folders {
		access[filepath.Clean(f.Path)] = f.Access
	}
	var args []string
	var shown []string // the folders so far that the program sees
	for _, path := range slices.SortedFunc(maps.Keys(access), byDepth) {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("show a program its folders: %w", err)
		}
		source := path
		if access[path] == sandbox.Hidden {
			if !slices.ContainsFunc(shown, func(s string) bool { return workspace.Within(path, s) }) {
				continue
			}
			source = emptyFile
			if info.IsDir() {
				source = emptyFolder
			}
		}
		shown = append(shown, path)
		args = append(args, "--mount", mount(source, path, access[path] != sandbox.ReadWrite))
	}
	return args, nil
}

// byDepth orders paths so that each comes after those that it is below.
func byDepth(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// mount returns a value of --mount, which Docker reads as a line of CSV.
func mount(source, target string, readOnly bool) string {
	fields := []string{"type=bind", "source=" + source, "target=" + target}
	if readOnly {
		fields = append(fields, "readonly")
	}
	for i, field := range fields {
		if strings.ContainsAny(field, ",\"\r\n") {
			fields[i] = `"` + strings.ReplaceAll(field, `"`, `""`) + `"`
		}
	}
	return strings.Join(fields, ",")
}
