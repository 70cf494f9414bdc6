package network

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path"
	"slices"

	"parley/channels"
	"parley/channels/safetext"
	"parley/chat"
	"parley/texts"
)

// An Upload is a file of a reply, opened to be sent.
type Upload struct {
	File *os.File
	Of   chat.File
	Name string // the name people see, unique among the uploads of the reply
	Size int64
}

// OpenAll opens files with open. It is called for each attempt, because a stream
// that was sent cannot be sent again. A file that cannot be sent is named in lost
// with the reason, one line each; most is the limit of the network in bytes.
func OpenAll(
	say texts.Files, files []chat.File, most int64, open func(path string) (*os.File, error), log *slog.Logger,
) (ups []Upload, lost string) {
	named := func(f chat.File) string { return cmp.Or(safetext.FileName(path.Base(f.Path)), "file") }
	for i, f := range files {
		name := named(f)
		if slices.ContainsFunc(files[:i], func(g chat.File) bool { return named(g) == name }) {
			name = fmt.Sprintf("%d-%s", i+1, name)
		}
		file, size, err := openSized(f.Path, open)
		why := ""
		switch {
		case err != nil:
			log.Warn("file not sent", "path", f.Path, "err", err)
			why = say.Gone.With(name)
		case size == 0:
			why = say.Empty.With(name)
		case size > most:
			why = say.TooLarge.With(name, most>>20)
		default:
			ups = append(ups, Upload{File: file, Of: f, Name: name, Size: size})
			continue
		}
		file.Close() // a nil file is no problem
		if lost != "" {
			lost += "\n"
		}
		lost += Lost(say, f, why)
	}
	return ups, lost
}

// openSized opens the file at path and returns its size in bytes.
func openSized(path string, open func(path string) (*os.File, error)) (*os.File, int64, error) {
	file, err := open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return file, 0, err
	}
	return file, info.Size(), nil
}

// Lost returns the line that says why f was not sent. If f holds the whole of a
// long answer, the line also says where that is kept.
func Lost(say texts.Files, f chat.File, why string) string {
	if channels.IsWholeAnswer(f.Path) {
		why += ". " + say.Kept.With(f.Path)
	}
	return "📎 " + why
}
