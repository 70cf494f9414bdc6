package web

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"sync"

	"parley/response"
)

//go:embed page libraries
var embedded embed.FS

// assets are the files of the page: our own, and the libraries that it loads when it first needs them.
type assets struct {
	// digest is of all files. It is part of their URLs, so that browsers can cache them for good and
	// modules of one version find each other.
	digest string

	mu     sync.Mutex
	packed map[string][]byte // files that were asked for, compressed
}

func newAssets() (*assets, error) {
	names, err := fs.Glob(embedded, "page/*")
	names = append(names, "libraries/SOURCES.txt") // which has the sums of the libraries
	sum := sha256.New()
	for _, name := range names {
		body, bad := embedded.ReadFile(name)
		err = errors.Join(err, bad)
		fmt.Fprintf(sum, "%s %d\n%s", name, len(body), body)
	}
	return &assets{digest: hex.EncodeToString(sum.Sum(nil)[:8]), packed: map[string][]byte{}}, err
}

// serve sends a file of the page.
func (a *assets) serve(req request) error {
	name := req.r.PathValue("file")
	body, err := embedded.ReadFile("page/" + name)
	if err != nil {
		body, err = embedded.ReadFile("libraries/" + name)
	}
	if err != nil {
		return response.Problem{Status: http.StatusNotFound, Text: "This file does not exist."}
	}
	h := req.w.Header()
	h.Set("Cache-Control", "private, no-cache")
	if req.r.PathValue("v") == a.digest {
		h.Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	h.Set("Vary", "Accept-Encoding")
	if response.AcceptsGzip(req.r) {
		h.Set("Content-Encoding", "gzip")
		body = a.compress(name, body)
	}
	req.writeBody(cmp.Or(mime.TypeByExtension(path.Ext(name)), "application/octet-stream"), body)
	return nil
}

// compress returns body, which is the content of the file of that name, compressed.
func (a *assets) compress(name string, body []byte) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.packed[name] == nil {
		var b bytes.Buffer
		w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level exists
		_, _ = w.Write(body)                                  // nor does writing to memory fail
		_ = w.Close()
		a.packed[name] = bytes.Clone(b.Bytes())
	}
	return a.packed[name]
}
