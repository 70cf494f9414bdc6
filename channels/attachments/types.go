package attachments

import (
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
)

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
