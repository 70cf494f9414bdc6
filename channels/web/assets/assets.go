// Package assets serves the files that a page is made of, compressed, for browsers to keep for good.
package assets

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
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

// Files are the files of a page: its own, and the libraries that it loads when it first needs them.
type Files struct {
	// Digest is of all files. It is part of their URLs, so that browsers can cache them for good and
	// modules of one version find each other.
	Digest string

	files  fs.FS
	mu     sync.Mutex
	packed map[string][]byte // files that were asked for, compressed
}

// New returns the files in the folders "page" and "libraries" of files.
func New(files fs.FS) (*Files, error) {
	names, err := fs.Glob(files, "page/*")
	names = append(names, "libraries/SOURCES.txt") // which has the sums of the libraries
	sum := sha256.New()
	for _, name := range names {
		body, bad := fs.ReadFile(files, name)
		err = errors.Join(err, bad)
		fmt.Fprintf(sum, "%s %d\n%s", name, len(body), body)
	}
	return &Files{Digest: hex.EncodeToString(sum.Sum(nil)[:8]), files: files, packed: map[string][]byte{}}, err
}

// Serve sends the file that r names, of the version "v" that it names.
func (a *Files) Serve(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("file")
	body, err := fs.ReadFile(a.files, "page/"+name)
	if err != nil {
		body, err = fs.ReadFile(a.files, "libraries/"+name)
	}
	if err != nil {
		return response.Problem{Status: http.StatusNotFound, Text: "This file does not exist."}
	}
	h := w.Header()
	h.Set("Cache-Control", "private, no-cache")
	if r.PathValue("v") == a.Digest {
		h.Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	h.Set("Vary", "Accept-Encoding")
	if response.AcceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body = a.compress(name, body)
	}
	h.Set("Content-Type", cmp.Or(mime.TypeByExtension(path.Ext(name)), "application/octet-stream"))
	_, _ = w.Write(body) // an error means that the client is gone
	return nil
}

// compress returns body, which is the content of the file of that name, compressed.
func (a *Files) compress(name string, body []byte) []byte {
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
