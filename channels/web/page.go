package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"math"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"parley/channels/markdown"
	"parley/response"
)

//go:embed page
var embedded embed.FS

// digestAssets returns a digest of all files of the page. Their addresses contain
// it, so that a browser asks for them once and modules find each other.
func digestAssets() (digest string, err error) {
	sum := sha256.New()
	names, err := fs.Glob(embedded, "page/*")
	for _, name := range names {
		body, bad := embedded.ReadFile(name)
		err = errors.Join(err, bad)
		fmt.Fprintf(sum, "%s %d\n%s", name, len(body), body)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), err
}

// size writes n bytes for people.
func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprint(n, " bytes")
	case n < 1<<20:
		return fmt.Sprint((n+1<<10-1)>>10, " KB")
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/(1<<20)), ".0") + " MB"
}

// write sends body.
func (k call) write(kind string, body []byte) {
	k.w.Header().Set("Content-Type", kind)
	_, _ = k.w.Write(body) // an error is theirs: they left
}

// asset sends a file of the page.
func (c *Channel) asset(k call) error {
	name := k.r.PathValue("file")
	body, err := embedded.ReadFile("page/" + name)
	if err != nil {
		return response.Problem{Status: http.StatusNotFound, Text: "There is no such file."}
	}
	k.w.Header().Set("Cache-Control", "private, no-cache")
	if k.r.PathValue("v") == c.assets {
		k.w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	k.write(mime.TypeByExtension(path.Ext(name)), body)
	return nil
}

// home leads to the newest conversation.
func (c *Channel) home(k call) error {
	all, err := c.list(k.r.Context(), k.who.ID)
	if err != nil {
		return err
	}
	http.Redirect(k.w, k.r, "/c/"+all[0].ID, http.StatusSeeOther)
	return nil
}

// show sends the page.
func (c *Channel) show(k call) error {
	ctx, id := k.r.Context(), k.room.at.Thread
	p := page{Who: k.who, ID: id, Title: called(id, k.held), Assets: "/assets/" + c.assets, MaxFile: c.cfg.MaxFile}
	var err error
	p.Entries, p.More, p.Last, err = k.room.before(ctx, math.MaxUint64)
	if err == nil {
		p.Talks, err = c.list(ctx, k.who.ID)
	}
	if err != nil {
		return err
	}
	for i := range p.Talks {
		t := &p.Talks[i]
		t.Current = t.ID == id
		if t.Asks > 0 && !t.Current && p.Elsewhere.ID == "" {
			p.Elsewhere = *t
		}
	}
	for _, e := range p.Entries {
		if p.First == 0 || e.Seq < p.First {
			p.First = e.Seq
		}
	}
	k.w.Header().Set("Cache-Control", "no-store")
	return response.Page(k.w, http.StatusOK, p.html())
}

// older sends what was said before.
func (c *Channel) older(k call) error {
	seq, err := strconv.ParseUint(k.r.FormValue("seq"), 10, 64)
	if err != nil || seq == 0 {
		return response.BadRequest("That is no number of an event.")
	}
	es, more, _, err := k.room.before(k.r.Context(), seq)
	if err != nil {
		return err
	}
	return k.answer(http.StatusOK, map[string]any{"entries": append([]entry{}, es...), "more": more})
}

// An entry is one thing said, as the page shows it. An entry that Edits another
// takes its place, and is itself shown nowhere else.
type entry struct {
	said
	HTML safeHTML `json:"html"` // of the person it is escaped text whose lines are to be kept
}

// safeHTML is HTML in which nothing can act: entry alone makes it.
type safeHTML string

func (s said) entry() entry {
	if s.Who == parley {
		return entry{s, safeHTML(markdown.HTML(s.Text))}
	}
	return entry{s, safeHTML(html.EscapeString(s.Text))}
}

// A talk is a line in the list of conversations.
type talk struct {
	ID      string    `json:"id"`
	Title   string    `json:"title"`
	Last    time.Time `json:"last,omitzero"`     // when somebody spoke last, to within a minute; zero: nobody did
	Current bool      `json:"-"`                 // it is the one on the page
	Asks    int       `json:"asks,omitempty"`    // questions that wait for an answer
	Snippet string    `json:"snippet,omitempty"` // of what was searched
	Time    time.Time `json:"time,omitzero"`     // of what was found
	used    bool      // something was said in it, or it has a name
}
