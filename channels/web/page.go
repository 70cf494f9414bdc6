package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"html/template"
	"io/fs"
	"math"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"parley/channels/markdown"
	"parley/chat"
)

//go:embed page
var embedded embed.FS

// pages returns the template of the page, and a digest of all the files that it
// is made with. Their addresses have that, so that a browser asks for them once
// and modules find each other.
func pages() (digest string, t *template.Template, err error) {
	sum := sha256.New()
	names, err := fs.Glob(embedded, "page/*")
	for _, name := range names {
		body, bad := embedded.ReadFile(name)
		err = errors.Join(err, bad)
		fmt.Fprintf(sum, "%s %d\n%s", name, len(body), body)
	}
	if err != nil {
		return "", nil, err
	}
	functions := template.FuncMap{"size": size, "stamp": stamp}
	t, err = template.New("page.html").Funcs(functions).ParseFS(embedded, "page/page.html")
	return hex.EncodeToString(sum.Sum(nil)[:8]), t, err
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

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// write sends body.
func (k call) write(kind string, body []byte) {
	k.w.Header().Set("Content-Type", kind)
	_, _ = k.w.Write(body) // an error is theirs: they left
}

// asset sends a file of the page.
func (c *Channel) asset(k call) error {
	name := k.r.PathValue("file")
	body, err := embedded.ReadFile("page/" + name)
	if err != nil || name == "page.html" {
		return problem{http.StatusNotFound, "There is no such file."}
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
	var b bytes.Buffer
	if err := c.page.Execute(&b, p); err != nil {
		return err
	}
	k.w.Header().Set("Cache-Control", "no-store")
	k.write("text/html; charset=utf-8", b.Bytes())
	return nil
}

// older sends what was said before.
func (c *Channel) older(k call) error {
	seq, err := strconv.ParseUint(k.r.FormValue("seq"), 10, 64)
	if err != nil || seq == 0 {
		return problem{http.StatusBadRequest, "That is no number of an event."}
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
	HTML template.HTML `json:"html"` // safe; of the person it is escaped text whose lines are to be kept
}

func (s said) entry() entry {
	if s.Who == parley {
		return entry{s, template.HTML(markdown.HTML(s.Text))}
	}
	return entry{s, template.HTML(html.EscapeString(s.Text))}
}

// A page is what page.html shows. Without scripts it is a transcript to read;
// scripts take it from there, from Last on.
type page struct {
	Who       chat.Sender
	Assets    string // the folder of the page's own files, such as "/assets/1a2b3c4d"
	ID        string // of the conversation
	Title     string
	Talks     []talk  // newest first
	Elsewhere talk    // another conversation that waits for an answer; without an ID there is none
	Entries   []entry // oldest first
	Last      uint64  // number of the latest entry of all; 0: there are none
	First     uint64  // number of the first entry that is shown; 0: there are none
	More      bool    // there are older ones
	MaxFile   int64   // bytes of one upload
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
