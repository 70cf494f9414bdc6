// Package filekind says how the web page shows a file, and as what it is sent.
package filekind

import (
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
)

// How the page shows a file.
const (
	Picture = "picture"
	Audio   = "audio"
	Video   = "video"
	PDF     = "pdf"
	Text    = "text" // its first lines are shown
	Other   = "other"
)

// Pictures are the types that a browser may show by itself, detected by content.
var Pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// textSuffixes are those of files that are text and whose type does not say so everywhere.
var textSuffixes = strings.Fields(`
	.txt .md .markdown .csv .tsv .json .jsonl .jsonc .xml .yaml .yml .toml .ini .cfg .conf .env .log .tex .srt .vtt .ics
	.go .py .rb .rs .c .h .cc .cpp .hpp .java .kt .swift .js .mjs .ts .tsx .jsx .css .scss .html .htm .php .pl .lua .r
	.sql .sh .bash .ps1 .bat .diff .patch .svg`)

// mediaSuffixes are those of what browsers play, with types that the machine need not know.
var mediaSuffixes = map[string]string{
	".mp3": "audio/mpeg", ".m4a": "audio/mp4", ".ogg": "audio/ogg", ".oga": "audio/ogg", ".opus": "audio/ogg",
	".wav": "audio/wav", ".flac": "audio/flac", ".aac": "audio/aac", ".weba": "audio/webm",
	".mp4": "video/mp4", ".m4v": "video/mp4", ".webm": "video/webm", ".mov": "video/quicktime", ".ogv": "video/ogg",
}

// Of says how the page shows a file that is no picture. Both the name and the type are what
// somebody says.
func Of(name, contentType string) string {
	suffix := strings.ToLower(path.Ext(name))
	contentType, _, _ = mime.ParseMediaType(contentType)
	media := mediaSuffixes[suffix]
	switch {
	case strings.HasPrefix(contentType, "audio/"), strings.HasPrefix(media, "audio/"):
		return Audio
	case strings.HasPrefix(contentType, "video/"), strings.HasPrefix(media, "video/"):
		return Video
	case contentType == "application/pdf", suffix == ".pdf":
		return PDF
	case strings.HasPrefix(contentType, "text/"), strings.HasSuffix(contentType, "json"),
		slices.Contains(textSuffixes, suffix):
		return Text
	}
	return Other
}

// Served returns the type as which a file of that name that begins with start is sent, and whether
// the browser may show it by itself. What could act as a page is bytes.
func Served(name string, start []byte) (contentType string, isShown bool) {
	contentType = http.DetectContentType(start)
	family, _, _ := strings.Cut(contentType, "/")
	media := mediaSuffixes[strings.ToLower(path.Ext(name))]
	switch {
	case slices.Contains(Pictures, contentType), contentType == "application/pdf":
		return contentType, true
	case family == "audio", family == "video":
		return contentType, false
	case media != "" && (contentType == "application/octet-stream" || contentType == "application/ogg"):
		return media, false
	}
	return "application/octet-stream", false
}
