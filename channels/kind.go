package channels

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
)

// kind returns the type of the file at path, which its sender claims to be of
// type claim.
func (h *Hub) kind(path, claim string) (string, error) {
	file, err := h.files.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	head, err := io.ReadAll(io.LimitReader(file, 512)) // as much as is looked at
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return contents(claim, head), nil
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
