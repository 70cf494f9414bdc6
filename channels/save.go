package channels

import (
	"crypto/rand"
	"errors"
	"io"
	"mime"
	"path"
	"strings"
	"time"

	"parley/chat"
)

// Save puts a file that somebody uploads into the inbox of the workspace, as
// Fetch does with those that stay at a network. Its type is what it is, not what
// its name says. The error is workspace.ErrTooBig for one of more than MaxFile bytes.
func (h *Hub) Save(name string, r io.Reader) (chat.File, error) {
	if h.files == nil {
		return chat.File{}, errNoFiles
	}
	f := chat.File{Name: name}
	if name = safeName(name); name == "" {
		name = "file"
	}
	f.Path = "inbox/" + time.Now().UTC().Format(time.DateOnly) + "/" + strings.ToLower(rand.Text()[:10]) + "-" + name
	var err error
	if f.Size, err = h.files.Save(f.Path, r, h.maxFile); err != nil {
		return chat.File{}, err
	}
	in, err := h.files.Open(f.Path)
	if err != nil {
		return chat.File{}, err
	}
	defer in.Close()
	head := make([]byte, 512) // as http.DetectContentType looks at
	n, err := io.ReadFull(in, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && err != io.EOF {
		return chat.File{}, err
	}
	f.Type = contents(mime.TypeByExtension(path.Ext(name)), head[:n])
	return f, nil
}
