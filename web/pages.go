package web

import (
	"embed"
	"net/http"
	"path"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/response"
	"parley/web/layout"
)

//go:embed assets
var assets embed.FS

// asset serves a script or style sheet of the pages.
func asset(w http.ResponseWriter, r *http.Request, _ visitor) error {
	http.ServeFileFS(w, r, assets, "assets/"+path.Base(r.URL.Path))
	return nil
}

// favicon serves the picture that browsers ask for by themselves, also before somebody has signed in.
func favicon(w http.ResponseWriter, r *http.Request, _ visitor) error {
	http.ServeFileFS(w, r, assets, "assets/favicon.svg")
	return nil
}

// signInPage returns the page on which people sign in: by a link, or by the
// administrator's token if there is one.
func signInPage(hasToken bool) g.Node {
	open := "Open"
	if hasToken {
		open = "Or open"
	}
	return response.Document("Sign in",
		g.Group{h.Script(h.Type("module"), h.Src("/assets/signin.js"))},
		h.Main(h.ID("main"), h.Class("small"),
			h.H1(g.Text("Parley")),
			h.P(h.ID("said"), h.Role("status")),
			g.If(hasToken, response.ScriptForm(h.ID("signin"),
				h.Label(h.For("token"), g.Text("Administrator's token")),
				h.Input(h.ID("token"), h.Type("password"), h.AutoComplete("current-password"), h.Required()),
				h.Button(g.Text("Sign in")),
			)),
			h.P(
				g.Text(open+" the sign-in link you were given. It works once; "),
				h.Code(g.Text("parley link")),
				g.Text(" prints another."),
			),
			h.NoScript(h.P(g.Text("Signing in needs JavaScript, which is switched off here."))),
		),
	)
}

// A loader returns what a page shows, or the JSON of the same address of the API.
type loader[T any] func(*http.Request) (T, error)

// view returns the routes of an owner's page, and of the same as JSON for programs
// such as `parley` at a terminal. Neither shows a secret that is kept (R-S6).
func view[T any](page, api, title string, load loader[T], show func(T) g.Group) []route {
	servePage := func(w http.ResponseWriter, r *http.Request, _ visitor) error {
		found, err := load(r)
		if err != nil {
			return err
		}
		return response.Page(w, http.StatusOK, layout.Page(page, title, show(found)))
	}
	return []route{
		{"GET " + page, owner, servePage},
		{"GET " + api, owner, serveJSON(load)},
	}
}

// serveJSON answers with what load returns, as JSON.
func serveJSON[T any](load loader[T]) handler {
	return func(w http.ResponseWriter, r *http.Request, _ visitor) error {
		found, err := load(r)
		if err != nil {
			return err
		}
		response.JSON(w, http.StatusOK, found)
		return nil
	}
}

// pages makes the contents of the owner's pages, with times in zone.
type pages struct{ zone *time.Location }

// formatTime returns t for people, in the zone of the pages.
func (p pages) formatTime(t time.Time) string { return t.In(p.zone).Format("2006-01-02 15:04") }
