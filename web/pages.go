package web

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"hash/fnv"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"slices"
	"time"

	"parley/channels"
	"parley/chat"
)

//go:embed pages
var files embed.FS

// views are the pages. What is put into them is text wherever it comes from (R-S5).
var views = template.Must(template.New("").Funcs(template.FuncMap{
	"path": url.PathEscape,
	"ago":  ago,
	"long": long,
	"when": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") },
	"clip": func(s string) string { return clip(s, 300) },
}).ParseFS(files, "pages/*.html"))

// A frame is a page: what is around it, and its Data.
type frame struct {
	Title, Here string
	Version     string
	Data        any
}

// show writes the page of that name, whole or not at all.
func show(w http.ResponseWriter, status int, name string, f frame) error {
	var page bytes.Buffer
	if err := views.ExecuteTemplate(&page, name, f); err != nil {
		return fmt.Errorf("make page %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = page.WriteTo(w) // an error is theirs: they left
	return nil
}

// asset serves a file of the pages.
func asset(w http.ResponseWriter, r *http.Request, _ visitor) error {
	name := path.Base(r.URL.Path)
	body, err := files.ReadFile("pages/" + name)
	if err != nil {
		return err
	}
	sum := fnv.New64a()
	_, _ = sum.Write(body)
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sum.Sum64()))
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
	return nil
}

// pages lists the owner's pages.
func (s *Server) pages() []route {
	page := func(at, name, title string, data func(*http.Request) (any, error)) route {
		return route{"GET " + at, owner, false, func(w http.ResponseWriter, r *http.Request, _ visitor) error {
			d, err := data(r)
			if err != nil {
				return err
			}
			return show(w, http.StatusOK, name, frame{title, at, s.Version, d})
		}}
	}
	return []route{
		page("/owner", "overview", "Overview", func(r *http.Request) (any, error) { return s.overview(r.Context()) }),
		page("/owner/waiting", "waiting", "Waiting", func(r *http.Request) (any, error) { return s.waiting(r.Context()) }),
		page("/owner/talks", "talks", "Conversations", s.talksPage),
		page("/owner/talk", "talk", "Conversation", s.talkPage),
		page("/owner/usage", "usage", "Usage", func(r *http.Request) (any, error) { return s.usage(r.Context()) }),
		page("/owner/errors", "errors", "Errors", func(*http.Request) (any, error) { return s.lines(), nil }),
		page("/owner/audit", "audit", "Audit", s.auditPage),
		page("/owner/people", "people", "People and keys", s.peoplePage),
	}
}

// An overview is how the house does.
type overview struct {
	Version  string             `json:"version"`
	Began    time.Time          `json:"began"`
	Model    string             `json:"model"`
	Reasons  []string           `json:"reasons"` // why it is not ready
	Warnings []string           `json:"warnings"`
	Channels []Channel          `json:"channels"`
	Pairings []channels.Pairing `json:"pairings"`
	Parked   int                `json:"parked"` // replies
	Aside    int                `json:"aside"`  // messages
}

func (s *Server) overview(ctx context.Context) (o overview, err error) {
	o = overview{Version: s.Version, Began: s.began, Reasons: s.reasons(ctx)}
	if s.House.Model != nil {
		o.Model = s.House.Model()
	}
	if s.House.Warnings != nil {
		o.Warnings = s.House.Warnings()
	}
	if o.Channels, err = ask(ctx, s.House.Channels); err != nil {
		return o, err
	}
	if o.Pairings, err = ask(ctx, s.House.Pairings); err != nil {
		return o, err
	}
	held, err := s.waiting(ctx)
	o.Parked, o.Aside = len(held.Parked), len(held.Aside)
	return o, err
}

type waiting struct{ Parked, Aside []Held }

func (s *Server) waiting(ctx context.Context) (w waiting, err error) {
	if w.Parked, err = ask(ctx, s.House.Parked); err != nil {
		return w, err
	}
	w.Aside, err = ask(ctx, s.House.Aside)
	return w, err
}

const mostTalks = 200 // of a list; the rest is found by searching

func (s *Server) talksPage(r *http.Request) (any, error) {
	d := struct {
		Words string
		Found []chat.Find
		Talks []chat.Talk
		More  int
	}{Words: r.FormValue("q")}
	var err error
	if d.Words != "" {
		d.Found, err = s.search(r.Context(), d.Words)
		return d, err
	}
	d.Talks, err = s.talks(r.Context(), "")
	if more := len(d.Talks) - mostTalks; more > 0 {
		d.Talks, d.More = d.Talks[:mostTalks], more
	}
	return d, err
}

const mostLines = 1000 // of a conversation on a page

func (s *Server) talkPage(r *http.Request) (any, error) {
	d := struct {
		Session chat.SessionID
		Lines   []line
		More    bool
	}{Session: chat.SessionID(r.FormValue("id"))}
	for l, err := range s.transcribe(r.Context(), d.Session) {
		if err != nil {
			return nil, err
		}
		d.Lines = append(d.Lines, line{Entry: l})
		if len(d.Lines) >= 2*mostLines {
			d.Lines = slices.Delete(d.Lines, 0, mostLines)
			d.More = true
		}
	}
	if n := len(d.Lines) - mostLines; n > 0 {
		d.Lines, d.More = d.Lines[n:], true
	}
	d.Lines = together(d.Lines)
	return d, nil
}

func (s *Server) auditPage(r *http.Request) (any, error) {
	entries, err := s.auditTail(r.Context())
	d := struct {
		Entries []Entry
		Verdict *verdict
	}{Entries: entries}
	if r.FormValue("verify") != "" { // all of it is read, and tools wait meanwhile
		v := s.verified(r.Context())
		d.Verdict = &v
	}
	return d, err
}

func (s *Server) peoplePage(r *http.Request) (any, error) {
	people, err := s.people.everybody(r.Context())
	if err != nil {
		return nil, err
	}
	keys, err := s.people.everyKey(r.Context())
	return struct {
		People []Person
		Keys   []Key
		Backup bool
	}{people, keys, s.House.Backup != nil}, err
}
