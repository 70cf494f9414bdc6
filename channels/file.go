package channels

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"parley/chat"
)

// Save puts a file that somebody uploads into the inbox of the workspace, as
// Fetch does with those that stay at a network. Its type is what it is, not what
// its name says. The error is workspace.ErrTooBig for one that is too big.
func (h *Hub) Save(name string, r io.Reader) (chat.File, error) {
	if h.cfg.Files == nil {
		return chat.File{}, errNoFiles
	}
	f := chat.File{Name: name}
	f.Path = place(f, time.Now(), sha256.Sum256([]byte(rand.Text())))
	var err error
	if f.Size, err = h.cfg.Files.Save(f.Path, r, maxFile); err == nil {
		err = h.recognise(&f)
	}
	return f, err
}

// place is where in the workspace f belongs, which came then. The sum tells it
// from others of its name.
func place(f chat.File, then time.Time, sum [sha256.Size]byte) string {
	name := SafeName(f.Name)
	if name == "" {
		name, _, _ = strings.Cut(cmp.Or(f.Type, "file"), "/")
		name = SafeName(name)
	}
	if path.Ext(name) == "" {
		name += extension(f.Type)
	}
	return fmt.Sprintf("inbox/%s/%x-%s", then.UTC().Format(time.DateOnly), sum[:5], name)
}

// recognise sets the Type of f, which is in the workspace, by what it holds.
func (h *Hub) recognise(f *chat.File) error {
	file, err := h.cfg.Files.Open(f.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	head, err := io.ReadAll(io.LimitReader(file, 512)) // as much as is looked at
	if err != nil {
		return fmt.Errorf("read %s: %w", f.Path, err)
	}
	f.Type = contents(cmp.Or(f.Type, mime.TypeByExtension(path.Ext(f.Name))), head)
	return nil
}

// contents returns the type of a file that begins with head. What its sender
// claims counts only where that may be so and nobody can tell: a zip is no image.
func contents(claim string, head []byte) string {
	is, _, _ := mime.ParseMediaType(http.DetectContentType(head))
	claim, _, err := mime.ParseMediaType(claim)
	family, _, _ := strings.Cut(claim, "/")
	may := ""
	switch is {
	case "application/octet-stream":
		may = "audio video application text font"
	case "text/plain", "text/xml":
		may = "text application"
	case "application/zip": // as many formats are
		may = "application"
	case "application/ogg", "video/mp4", "video/webm":
		may = "audio video"
	}
	seen := []string{"application/pdf", "application/zip", "application/gzip"} // these would have been
	if err != nil || !slices.Contains(strings.Fields(may), family) || slices.Contains(seen, claim) || len(head) == 0 {
		return is
	}
	return claim
}

// extension is what names of that type end in, for those that have no name.
func extension(typ string) string {
	typ, _, _ = mime.ParseMediaType(typ)
	switch typ {
	case "image/jpeg":
		return ".jpg"
	case "audio/mpeg":
		return ".mp3"
	case "audio/mp4":
		return ".m4a"
	case "image/png", "image/gif", "image/webp", "audio/ogg", "audio/wav", "video/mp4", "application/pdf":
		return "." + path.Base(typ)
	}
	return ""
}
