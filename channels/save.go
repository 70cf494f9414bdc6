package channels

import (
	"crypto/rand"
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
	if name = SafeName(name); name == "" {
		name = "file"
	}
	f.Path = "inbox/" + time.Now().UTC().Format(time.DateOnly) + "/" + strings.ToLower(rand.Text()[:10]) + "-" + name
	var err error
	if f.Size, err = h.files.Save(f.Path, r, h.maxFile); err != nil {
		return chat.File{}, err
	}
	if f.Type, err = h.kind(f.Path, mime.TypeByExtension(path.Ext(name))); err != nil {
		return chat.File{}, err
	}
	return f, nil
}
