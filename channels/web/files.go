package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"

	"parley/chat"
	"parley/store"
)

// A stored is a file of the workspace that a person may download.
type stored struct {
	ID   string    `json:"id"`
	File chat.File `json:"file"`
}

func newID() string { return strings.ToLower(rand.Text()[:16]) }

var errNoFile = problem{http.StatusNotFound, "There is no such file, or not any more."}

// stored returns a file of person, or errNoFile.
func (c *Channel) stored(ctx context.Context, person, id string) (f stored, err error) {
	val, _, err := c.files.Get(ctx, key(person, id))
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDamaged) || err == nil && json.Unmarshal(val, &f) != nil {
		return f, errNoFile
	}
	return f, err
}

func (c *Channel) keep(ctx context.Context, person string, f stored) error {
	val, err := json.Marshal(f)
	if err == nil {
		_, err = c.files.Put(ctx, key(person, f.ID), val, store.Any)
	}
	return err
}

// attach lets the person download the files of r, and tells of those that are gone.
func (c *Channel) attach(ctx context.Context, r chat.Reply) (files []stored, gone string, err error) {
	for i, f := range r.Files {
		label := label(cmp.Or(f.Name, f.Path))
		open, err := c.cfg.Open(f.Path)
		if err != nil {
			gone += fmt.Sprintf("\n\n(There was a file `%s`, but it is not there any more.)", strings.ReplaceAll(label, "`", "'"))
			continue
		}
		info, err := open.Stat()
		_ = open.Close()
		if err == nil {
			f.Size = info.Size()
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s", r.ID, i, f.Path)) // the same when r is sent again
		f.Name = label
		f.Type = kind(f)
		files = append(files, stored{hex.EncodeToString(sum[:8]), f})
		if err := c.keep(ctx, r.To.Chat, files[len(files)-1]); err != nil {
			return nil, "", fmt.Errorf("send to %s: %w", c.cfg.Name, err)
		}
	}
	return files, gone, nil
}

// upload takes a file into the workspace.
func (c *Channel) upload(k call) error {
	if t, _, _ := mime.ParseMediaType(k.r.Header.Get("Content-Type")); t != "application/octet-stream" {
		return problem{http.StatusUnsupportedMediaType, "This takes application/octet-stream."}
	}
	tooBig := problem{http.StatusRequestEntityTooLarge, fmt.Sprintf("That file is too big: %s is the most.", size(c.cfg.MaxFile))}
	if k.r.ContentLength > c.cfg.MaxFile {
		k.w.Header().Set("Connection", "close") // the rest is not read
		return tooBig
	}
	label := label(k.r.URL.Query().Get("name"))
	f, err := c.cfg.Save(label, http.MaxBytesReader(k.w, k.r.Body, c.cfg.MaxFile))
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return tooBig
	case err != nil:
		return fmt.Errorf("save upload: %w", err)
	}
	f.Name = label
	f.Type = kind(f)
	s := stored{newID(), f}
	if err := c.keep(k.r.Context(), k.who.ID, s); err != nil {
		return err
	}
	return k.answer(http.StatusCreated, s.view())
}

// inline are the types that a browser may show on its own. They are told by content.
var inline = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// download sends a file so that nothing in it can act as a page of ours.
func (c *Channel) download(k call) error {
	s, err := c.stored(k.r.Context(), k.who.ID, k.r.PathValue("file"))
	if err != nil {
		return err
	}
	f, err := c.cfg.Open(s.File.Path)
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
	h.Set("Content-Disposition", mime.FormatMediaType(way, map[string]string{"filename": s.File.Name}))
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "private, no-cache")
	http.ServeContent(k.w, k.r, "", info.ModTime(), f)
	return nil
}

func (s stored) view() file {
	return file{s.ID, s.File.Name, s.File.Type, s.File.Size, "/files/" + s.ID + "/" + url.PathEscape(s.File.Name)}
}

// kind is the type of a file, as far as its name tells.
func kind(f chat.File) string {
	for _, t := range []string{f.Type, mime.TypeByExtension(path.Ext(f.Name)), "application/octet-stream"} {
		if t, _, err := mime.ParseMediaType(t); err == nil {
			return t
		}
	}
	return ""
}

// label makes of the name of a file, which anybody may have chosen, one to show.
func label(name string) string {
	name = plain(name[strings.LastIndexAny(name, `/\`)+1:], len(name))
	if name = strings.Trim(name, ". "); name == "" {
		return "file"
	}
	const most = 100
	ext := path.Ext(name)
	if rs, tail := []rune(name), []rune(ext); len(rs) > most {
		if len(tail) > 16 {
			tail = nil
		}
		name = string(rs[:most-len(tail)]) + string(tail)
	}
	return name
}

// plain makes one line of at most that many characters of s, without what
// cannot be seen and what turns the direction of the text around.
func plain(s string, most int) string {
	s = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == '\u200d', unicode.IsGraphic(r) && r != unicode.ReplacementChar:
			return r
		}
		return -1
	}, s)), " ")
	if rs := []rune(s); len(rs) > most {
		s = string(rs[:most])
		if i := strings.LastIndexByte(s, ' '); i > len(s)/2 {
			s = s[:i]
		}
		s += "…"
	}
	return s
}
