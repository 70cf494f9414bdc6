package retention

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"parley/host"
)

// Folder is the folder of the archive in the data folder.
const Folder = "archive"

// An Archive keeps what is removed, as files of text in which each line is JSON.
type Archive struct {
	Dir    string      // it is made when it is needed
	Wanted func() bool // whether anything is to be kept
}

// Add adds lines to the file name of a part, but for those that it has already: so a
// pass that a crash ended can be made again. When it has returned nil they are on disk.
// The file is replaced as a whole: no reader sees half a line.
func (a Archive) Add(part, name string, lines ...[]byte) error {
	file := filepath.Join(a.Dir, part, fileName(name)+".jsonl")
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("archive %s: %w", part, err)
	}
	known := map[string]bool{}
	for line := range bytes.Lines(text) {
		known[string(bytes.TrimRight(line, "\n"))] = true
	}
	before := len(text)
	for _, line := range lines {
		if !known[string(line)] {
			known[string(line)] = true
			text = append(append(text, line...), '\n')
		}
	}
	if len(text) == before {
		return nil
	}
	if err := host.WriteFile(file, text); err != nil {
		return fmt.Errorf("archive %s: %w", part, err)
	}
	for dir := filepath.Dir(file); len(dir) >= len(filepath.Dir(a.Dir)); dir = filepath.Dir(dir) {
		if err := syncFolder(dir); err != nil {
			return fmt.Errorf("archive %s: %w", part, err)
		}
	}
	return nil
}

const maxFileName = 150 // bytes

// fileName returns name as the name of one file, another one for each name.
func fileName(name string) string {
	escaped := strings.ReplaceAll(url.PathEscape(name), ".", "%2E")
	if len(escaped) <= maxFileName {
		return escaped
	}
	return fmt.Sprintf("%s-%x", escaped[:maxFileName-17], sha256.Sum256([]byte(name)))[:maxFileName]
}

// syncFolder makes the names in a folder survive a power cut.
func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
