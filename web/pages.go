package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
)

//go:embed pages
var files embed.FS

// pages are the templates of all pages.
type pages struct{ templates *template.Template }

// newPages returns what pages are made from, with times in zone. What is put
// into them is text wherever it comes from (R-S5).
func newPages(zone *time.Location) pages {
	return pages{template.Must(template.New("").Funcs(template.FuncMap{
		"path":  func(name any) string { return url.PathEscape(fmt.Sprint(name)) },
		"clock": func(t time.Time) string { return t.Format("2006-01-02 15:04 MST") }, // in the zone it has
		"when":  func(t time.Time) string { return t.In(zone).Format("2006-01-02 15:04") },
		"zone":  func() string { return strings.Replace(zone.String(), "Local", "the gateway's machine", 1) },
	}).ParseFS(files, "pages/*.html"))}
}

// A frame is a page: what is around it, and its Data.
type frame struct {
	Title   string
	Section string // of the owner's pages, as "talks"; of the overview ""
	Data    any
}

// show writes the page of that name, whole or not at all.
func (p pages) show(w http.ResponseWriter, status int, name string, f frame) error {
	var page bytes.Buffer
	if err := p.templates.ExecuteTemplate(&page, name, f); err != nil {
		return fmt.Errorf("make page %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = page.WriteTo(w) // an error is theirs: they left
	return nil
}

// asset serves a file of the pages.
func asset(w http.ResponseWriter, r *http.Request, _ visitor) error {
	http.ServeFileFS(w, r, files, "pages/"+path.Base(r.URL.Path))
	return nil
}

// A view is what the owner looks at: a page, and the same as JSON for programs
// such as `parley` at a terminal. None tells a secret that is kept (R-S6).
type view struct {
	page, api   string // paths
	name, title string // of the page
	load        loader
}

// A loader finds what there is to tell.
type loader func(*http.Request) (any, error)

func (a *admin) page(v view) handler {
	return func(w http.ResponseWriter, r *http.Request, _ visitor) error {
		d, err := v.load(r)
		if err != nil {
			return err
		}
		section, _, _ := strings.Cut(strings.TrimPrefix(v.page, "/owner/"), "/")
		return a.pages.show(w, http.StatusOK, v.name, frame{v.title, section, d})
	}
}

// serveJSON answers with what f finds, as JSON.
func serveJSON(f loader) handler {
	return func(w http.ResponseWriter, r *http.Request, _ visitor) error {
		d, err := f(r)
		if err == nil {
			writeJSON(w, http.StatusOK, d)
		}
		return err
	}
}
