package response

import (
	"net/http"
	"slices"
	"strings"
)

// AcceptsGzip reports whether the browser can read what is compressed.
func AcceptsGzip(r *http.Request) bool {
	offered := strings.Split(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",")
	return slices.ContainsFunc(offered, func(coding string) bool {
		name, quality, _ := strings.Cut(coding, ";")
		isRefused := quality != "" && strings.Trim(quality, " q=.0") == ""
		return strings.TrimSpace(name) == "gzip" && !isRefused
	})
}
