package web

import (
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
)

// How the page shows a file.
const (
	kindPicture = "picture"
	kindAudio   = "audio"
	kindVideo   = "video"
	kindPDF     = "pdf"
	kindText    = "text" // its first lines are shown
	kindOther   = "other"
)

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

// fileKind says how the page shows a file that is no picture. Both the name and the type are what
// somebody says.
func fileKind(name, contentType string) string {
	suffix := strings.ToLower(path.Ext(name))
	contentType, _, _ = mime.ParseMediaType(contentType)
	media := mediaSuffixes[suffix]
	switch {
	case strings.HasPrefix(contentType, "audio/"), strings.HasPrefix(media, "audio/"):
		return kindAudio
	case strings.HasPrefix(contentType, "video/"), strings.HasPrefix(media, "video/"):
		return kindVideo
	case contentType == "application/pdf", suffix == ".pdf":
		return kindPDF
	case strings.HasPrefix(contentType, "text/"), strings.HasSuffix(contentType, "json"),
		slices.Contains(textSuffixes, suffix):
		return kindText
	}
	return kindOther
}

// servedType returns the type as which a file of that name that begins with start is sent, and whether
// the browser may show it by itself. What could act as a page is bytes.
func servedType(name string, start []byte) (contentType string, isShown bool) {
	contentType = http.DetectContentType(start)
	family, _, _ := strings.Cut(contentType, "/")
	media := mediaSuffixes[strings.ToLower(path.Ext(name))]
	switch {
	case slices.Contains(inlineTypes, contentType), contentType == "application/pdf":
		return contentType, true
	case family == "audio", family == "video":
		return contentType, false
	case media != "" && (contentType == "application/octet-stream" || contentType == "application/ogg"):
		return media, false
	}
	return "application/octet-stream", false
}
