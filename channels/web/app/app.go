// Package app makes the chat page an app that can be installed: a manifest, icons of any size, a page that says so when
// Parley is out of reach, and the service worker that shows it and notifications. Nothing of it is private: it is
// served to everybody.
package app

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed files
var files embed.FS

// Path is where the Handler is mounted.
const Path = "/app/"

// worker is the file of the service worker. Its scope is the whole page, which its folder alone would not allow.
const worker = "worker.js"

// A Handler serves the files of the app. The zero Handler serves none.
type Handler struct {
	version string
	icons   map[string]icon
}

// New returns a Handler. Browsers replace the worker of one version by that of another: version says of which the page
// is, and the files here are part of it.
func New(version string) (*Handler, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, version)
	names, err := fs.Glob(files, "files/*")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		body, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(body), body)
	}
	return &Handler{
		version: hex.EncodeToString(sum.Sum(nil)[:8]),
		icons: map[string]icon{
			"icon-192.png":     {size: 192},
			"icon-512.png":     {size: 512},
			"maskable-192.png": {size: 192, full: true},
			"maskable-512.png": {size: 512, full: true},
			"apple-180.png":    {size: 180, full: true},
			"badge-96.png":     {size: 96, mono: true},
		},
	}, nil
}

// ServeHTTP serves a file of the app.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, Path)
	header := w.Header()
	header.Set("Cache-Control", "no-cache") // a browser asks for each, so that none is of another version
	if i, is := h.icons[name]; is {
		header.Set("Content-Type", "image/png")
		header.Set("Cache-Control", "max-age=86400")
		_, _ = w.Write(i.png()) // an error means that the client is gone
		return
	}
	body, err := files.ReadFile("files/" + name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	kind := mime.TypeByExtension(path.Ext(name))
	if strings.HasSuffix(name, ".webmanifest") {
		kind = "application/manifest+json"
	}
	header.Set("Content-Type", kind)
	if name == worker {
		header.Set("Service-Worker-Allowed", "/")
		fmt.Fprintf(w, "const version = %q;\n", h.version)
	}
	_, _ = w.Write(body)
}
