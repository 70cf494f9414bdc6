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
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"parley/channels"
	"parley/chat"
	"parley/response"
	"parley/store"
)

// A file is one of the workspace that a person may download.
type file struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Type string `json:"type"`
	Size int64  `json:"size"`
	URL  string `json:"url"`
}

func view(id string, f chat.File) file {
	return file{id, f.Name, f.Type, f.Size, "/files/" + id + "/" + url.PathEscape(f.Name)}
}

func newID() string { return strings.ToLower(rand.Text()[:16]) }

var errNoFile = response.Problem{Status: http.StatusNotFound, Text: "This file does not exist, or was deleted."}

// stored returns a file of person, or errNoFile.
func (c *Channel) stored(ctx context.Context, person, id string) (f chat.File, err error) {
	f, _, err = c.files.Get(ctx, key(person, id))
	if errors.Is(err, store.ErrNotFound) {
		return f, errNoFile
	}
	return f, err
}

// keep lets person download f, whose name anybody may have chosen, as id.
func (c *Channel) keep(ctx context.Context, person, id string, f chat.File) (file, error) {
	f.Name = cmp.Or(channels.SafeName(cmp.Or(f.Name, f.Path)), "file")
	f.Type = cmp.Or(f.Type, mime.TypeByExtension(path.Ext(f.Name)), "application/octet-stream")
	return view(id, f), c.files.Set(ctx, key(person, id), f)
}

// attach lets the person download the files of r, and tells of those that are gone.
func (c *Channel) attach(ctx context.Context, r chat.Reply) (files []file, gone string, err error) {
	for i, f := range r.Files {
		open, err := c.cfg.Open(f.Path)
		if err != nil {
			name := channels.SafeName(cmp.Or(f.Name, f.Path))
			gone += fmt.Sprintf("\n\n(There was a file `%s`, but it no longer exists.)", name)
			continue
		}
		if info, err := open.Stat(); err == nil {
			f.Size = info.Size()
		}
		_ = open.Close()
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s", r.ID, i, f.Path)) // the same when r is sent again
		kept, err := c.keep(ctx, r.To.Chat, hex.EncodeToString(sum[:8]), f)
		if err != nil {
			return nil, "", err
		}
		files = append(files, kept)
	}
	return files, gone, nil
}

// upload takes a file into the workspace.
func (c *Channel) upload(k call) error {
	if t, _, _ := mime.ParseMediaType(k.r.Header.Get("Content-Type")); t != "application/octet-stream" {
		return response.Problem{Status: http.StatusUnsupportedMediaType, Text: "This takes application/octet-stream."}
	}
	tooBig := response.Problem{
		Status: http.StatusRequestEntityTooLarge,
		Text:   fmt.Sprintf("That file is too big: %s is the most.", size(c.cfg.MaxFile)),
	}
	if k.r.ContentLength > c.cfg.MaxFile {
		k.w.Header().Set("Connection", "close") // the rest is not read
		return tooBig
	}
	expected := k.r.ContentLength
	if expected < 0 { // it is not said: as much as it may be
		expected = c.cfg.MaxFile
	}
	if err := c.takeBytes(k, expected); err != nil {
		k.w.Header().Set("Connection", "close")
		return err
	}
	at := chat.Address{Channel: c.cfg.Name, Chat: k.who.ID}
	content := http.MaxBytesReader(k.w, k.r.Body, c.cfg.MaxFile)
	f, err := c.cfg.Save(k.r.Context(), at, k.who, k.r.URL.Query().Get("name"), content)
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return tooBig
	case err != nil:
		return fmt.Errorf("save upload: %w", err)
	}
	kept, err := c.keep(k.r.Context(), k.who.ID, newID(), f)
	if err != nil {
		return err
	}
	return k.answer(http.StatusCreated, kept)
}

// inline are the types that a browser may show on its own. They are told by content.
var inline = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// download sends a file so that nothing in it can act as a page of ours.
func (c *Channel) download(k call) error {
	s, err := c.stored(k.r.Context(), k.who.ID, k.r.PathValue("file"))
	if err != nil {
		return err
	}
	f, err := c.cfg.Open(s.Path)
	if err != nil {
		return errNoFile
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	start := make([]byte, 512)
	n, _ := io.ReadFull(f, start) // a short file is one, too
	t, way := http.DetectContentType(start[:n]), "attachment"
	switch family, _, _ := strings.Cut(t, "/"); {
	case slices.Contains(inline, t):
		way = "inline"
	case family != "audio" && family != "video":
		t = "application/octet-stream"
	}
	h := k.w.Header()
	h.Set("Content-Type", t)
	h.Set("Content-Disposition", mime.FormatMediaType(way, map[string]string{"filename": s.Name}))
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "private, no-cache")
	http.ServeContent(k.w, k.r, "", info.ModTime(), f)
	return nil
}
