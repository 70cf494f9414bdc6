package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"

	"parley/channels/safetext"
	"parley/channels/web/filekind"
	"parley/chat"
	"parley/response"
	"parley/store"
)

// A fileLink is a file of the workspace that a person may download.
type fileLink struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Type string `json:"type"`
	Size int64  `json:"size"`
	URL  string `json:"url"`
}

func newFileLink(id string, f chat.File) fileLink {
	return fileLink{id, f.Name, f.Type, f.Size, "/files/" + id + "/" + url.PathEscape(f.Name)}
}

func newID() string { return strings.ToLower(rand.Text()[:16]) }

var errNoFile = response.Problem{Status: http.StatusNotFound, Text: "This file does not exist or was deleted."}

// getFile returns a file of person, or errNoFile.
func (c *Channel) getFile(ctx context.Context, person, id string) (f chat.File, err error) {
	f, _, err = c.files.Get(ctx, storeKey(person, id))
	if errors.Is(err, store.ErrNotFound) {
		return f, errNoFile
	}
	return f, err
}

// saveFile lets person download f as id. The name of f is untrusted.
func (c *Channel) saveFile(ctx context.Context, person, id string, f chat.File) (fileLink, error) {
	f.Name = cmp.Or(safetext.FileName(cmp.Or(f.Name, f.Path)), "file")
	f.Type = cmp.Or(f.Type, mime.TypeByExtension(path.Ext(f.Name)), "application/octet-stream")
	return newFileLink(id, f), c.files.Set(ctx, storeKey(person, id), f)
}

// attachFiles lets the person download the files of r. It returns a note on those
// that no longer exist.
func (c *Channel) attachFiles(ctx context.Context, r chat.Reply) (files []fileLink, missing string, err error) {
	for i, f := range r.Files {
		opened, err := c.cfg.Open(f.Path)
		if err != nil {
			name := safetext.FileName(cmp.Or(f.Name, f.Path))
			missing += fmt.Sprintf("\n\n(The file `%s` no longer exists.)", name)
			continue
		}
		f.Size = sizeOf(opened, f.Size)
		_ = opened.Close()
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s", r.ID, i, f.Path)) // stays the same if r is sent again
		saved, err := c.saveFile(ctx, r.To.Chat, hex.EncodeToString(sum[:8]), f)
		if err != nil {
			return nil, "", err
		}
		files = append(files, saved)
	}
	return files, missing, nil
}

// sizeOf returns the size of file or, if that cannot be found out, the size it is said
// to have.
func sizeOf(file fs.File, said int64) int64 {
	info, err := file.Stat()
	if err != nil {
		return said
	}
	return info.Size()
}

// uploadFile stores a file in the workspace.
func (c *Channel) uploadFile(req request) error {
	if err := c.checkBlocked(req, blockUpload); err != nil {
		return err
	}
	if t, _, _ := mime.ParseMediaType(req.r.Header.Get("Content-Type")); t != "application/octet-stream" {
		return response.Problem{
			Status: http.StatusUnsupportedMediaType,
			Text:   "The content type must be application/octet-stream.",
		}
	}
	tooBig := response.Problem{
		Status: http.StatusRequestEntityTooLarge,
		Text:   fmt.Sprintf("That file is too big. The limit is %s.", size(c.cfg.MaxFile)),
	}
	if req.r.ContentLength > c.cfg.MaxFile {
		req.w.Header().Set("Connection", "close") // the body is not read
		return tooBig
	}
	expected := req.r.ContentLength
	if expected < 0 { // unknown: assume the largest
		expected = c.cfg.MaxFile
	}
	if err := c.chargeBytes(req, expected); err != nil {
		req.w.Header().Set("Connection", "close")
		return err
	}
	at := chat.Address{Channel: c.cfg.Name, Chat: req.who.ID}
	content := http.MaxBytesReader(req.w, req.r.Body, c.cfg.MaxFile)
	f, err := c.cfg.Save(req.r.Context(), at, req.who, req.r.URL.Query().Get("name"), content)
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return tooBig
	case err != nil:
		return fmt.Errorf("save upload: %w", err)
	}
	f.Voice = c.cfg.Hears && req.r.URL.Query().Has("voice")
	saved, err := c.saveFile(req.r.Context(), req.who.ID, newID(), f)
	if err != nil {
		return err
	}
	return req.writeJSON(http.StatusCreated, saved)
}

// downloadFile sends a file of the person.
func (c *Channel) downloadFile(req request) error {
	s, err := c.getFile(req.r.Context(), req.who.ID, req.r.PathValue("file"))
	if err != nil {
		return err
	}
	return req.sendFile(c.cfg.Open, s)
}

// sendFile sends s in such a way that it cannot act as a page of ours.
func (req request) sendFile(open func(path string) (*os.File, error), s chat.File) error {
	f, err := open(s.Path)
	if err != nil {
		return errNoFile
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	start := make([]byte, 512)
	n, _ := io.ReadFull(f, start) // the file may be shorter
	contentType, isShown := filekind.Served(s.Name, start[:n])
	disposition := "attachment"
	policy := "sandbox; default-src 'none'"
	if isShown {
		disposition = "inline"
	}
	h := req.w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": s.Name}))
	if contentType == "application/pdf" { // the page shows it in a frame, where the browser's own viewer has it
		policy += "; frame-ancestors 'self'"
		h.Set("X-Frame-Options", "SAMEORIGIN")
	}
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "private, no-cache")
	http.ServeContent(req.w, req.r, "", info.ModTime(), f)
	return nil
}
