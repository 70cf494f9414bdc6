package web

import (
	"embed"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/response"
)

//go:embed assets
var assets embed.FS

// asset serves a script or style sheet of the pages.
func asset(w http.ResponseWriter, r *http.Request, _ visitor) error {
	http.ServeFileFS(w, r, assets, "assets/"+path.Base(r.URL.Path))
	return nil
}

// sections are the entries of the owner's navigation.
var sections = []struct{ path, title string }{
	{"/owner", "Overview"},
	{"/owner/talks", "Conversations"},
	{"/owner/usage", "Usage"},
	{"/owner/tools", "Tools"},
	{"/owner/cron", "Scheduled jobs"},
	{"/owner/memory", "Memory"},
	{"/owner/people", "People"},
	{"/owner/errors", "Errors"},
	{"/owner/audit", "Audit"},
}

// ownerPage returns the owner's page of that title, which is served at path.
func ownerPage(path, title string, content g.Group) g.Node {
	var links g.Group
	for _, s := range sections {
		current := path == s.path || s.path != "/owner" && strings.HasPrefix(path, s.path)
		links = append(links, h.A(h.Href(s.path), g.If(current, h.Aria("current", "true")), g.Text(s.title)))
	}
	return response.Document(title,
		g.Group{h.Script(h.Type("module"), h.Src("/assets/owner.js"))},
		h.A(h.Class("skip"), h.Href("#main"), g.Text("Skip to content")),
		h.Header(
			h.A(h.Class("name"), h.Href("/"), g.Text("Parley")),
			h.Nav(h.Aria("label", "Owner's pages"), links),
		),
		h.Main(h.ID("main"),
			h.H1(g.Text(title)),
			h.P(h.ID("said"), h.Role("status")),
			content,
		),
	)
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
			g.If(hasToken, h.Form(h.ID("signin"),
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
		return response.Page(w, http.StatusOK, ownerPage(page, title, show(found)))
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

// urlPath returns the path with those segments. Whatever they are, it is one of
// this server.
func urlPath(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString("/" + url.PathEscape(s))
	}
	return b.String()
}

// pages makes the contents of the owner's pages, with times in zone.
type pages struct{ zone *time.Location }

// formatTime returns t for people, in the zone of the pages.
func (p pages) formatTime(t time.Time) string { return t.In(p.zone).Format("2006-01-02 15:04") }

// heading returns a heading by which a table of the same ID is named.
func heading(id, title string) g.Node { return h.H2(h.ID(id), g.Text(title)) }

// table returns a table that is named by the heading of that ID. Without rows it
// shows the text empty.
func table(id string, columns []string, empty string, rows g.Group) g.Node {
	return tableOf(h.Aria("labelledby", id), columns, empty, rows)
}

// labelledTable is table with a name for screen readers only.
func labelledTable(label string, columns []string, empty string, rows g.Group) g.Node {
	return tableOf(h.Aria("label", label), columns, empty, rows)
}

func tableOf(name g.Node, columns []string, empty string, rows g.Group) g.Node {
	if len(rows) == 0 {
		rows = g.Group{h.Tr(h.Td(h.ColSpan(strconv.Itoa(len(columns))), g.Text(empty)))}
	}
	head := g.Map(columns, func(title string) g.Node {
		if title == "" {
			return h.Td()
		}
		return h.Th(h.Scope("col"), g.Text(title))
	})
	return h.Div(h.Class("wide"), h.Table(name, h.THead(h.Tr(head)), h.TBody(rows)))
}

// rowHead returns the cell that names its row.
func rowHead(content ...g.Node) g.Node { return h.Th(h.Scope("row"), g.Group(content)) }

// cell returns a cell with v as text.
func cell(v any) g.Node { return h.Td(g.Text(fmt.Sprint(v))) }

// textCell returns a cell for long text.
func textCell(text string, more ...g.Node) g.Node {
	return h.Td(h.Class("text"), g.Text(text), g.Group(more))
}

// excerpt returns the first 300 characters of text.
func excerpt(text string) string { return fmt.Sprintf("%.300s", text) }

// coloured returns text in the colour of that class of the style sheet.
func coloured(class, text string) g.Node { return h.Span(h.Class(class), g.Text(text)) }

// postButton returns a button that posts to path once the owner confirms. Without a
// question it posts at once.
func postButton(path, label, question string) g.Node {
	return h.Button(h.Data("post", path), confirmation(question), g.Text(label))
}

// deleteButton returns a button that deletes path once the owner confirms.
func deleteButton(path, label, question string) g.Node {
	return h.Button(h.Data("delete", path), confirmation(question), g.Text(label))
}

func confirmation(question string) g.Node { return g.If(question != "", h.Data("sure", question)) }
