package attachments

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"parley/channels/safetext"
	"parley/chat"
)

// inboxPath returns where in the workspace to keep f, which who sent at that time.
// The sum tells it from other files of the same name.
func inboxPath(f chat.File, who chat.Person, sent time.Time, sum [sha256.Size]byte) string {
	name := safetext.FileName(f.Name)
	if name == "" {
		name, _, _ = strings.Cut(cmp.Or(f.Type, "file"), "/")
		name = safetext.FileName(name)
	}
	if path.Ext(name) == "" {
		name += extension(f.Type)
	}
	return fmt.Sprintf("%s/%s/%x-%s", who.InboxFolder(), sent.UTC().Format(time.DateOnly), sum[:5], name)
}

// detectType sets the Type of f, which is in the workspace, from its contents.
func (in *Inbox) detectType(f *chat.File) error {
	file, err := in.cfg.Files.OpenNamed(f.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	head, err := io.ReadAll(io.LimitReader(file, sniffedBytes))
	if err != nil {
		return fmt.Errorf("read %s: %w", f.Path, err)
	}
	f.Type = typeOf(cmp.Or(f.Type, mime.TypeByExtension(path.Ext(f.Name))), head)
	return nil
}

// typeOf returns the media type of a file that begins with head. The type that its
// sender claims counts only if the bytes neither prove nor contradict it.
func typeOf(claim string, head []byte) string {
	detected, _, _ := mime.ParseMediaType(http.DetectContentType(head))
	claim, _, err := mime.ParseMediaType(claim)
	family, _, _ := strings.Cut(claim, "/")
	possible := ""
	switch detected {
	case "application/octet-stream":
		possible = "audio video application text font"
	case "text/plain", "text/xml":
		possible = "text application"
	case "application/zip": // the container of many formats
		possible = "application"
	case "application/ogg", "video/mp4", "video/webm":
		possible = "audio video"
	}
	isPossible := slices.Contains(strings.Fields(possible), family)
	alwaysDetected := []string{"application/pdf", "application/zip", "application/gzip"}
	if err != nil || !isPossible || slices.Contains(alwaysDetected, claim) || len(head) == 0 {
		return detected
	}
	return claim
}

// extension returns the extension for a file of that type that has no name.
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
