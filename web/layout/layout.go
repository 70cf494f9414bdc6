// Package layout has what the owner's pages are made of: the frame with the
// navigation, cards, tables, states, and buttons that change something.
//
// A page is a [Frame]. Its package says so in its Routes, which the gateway hands
// to package web (web.Gateway.Pages):
//
//	//go:embed assets
//	var assets embed.FS
//
//	func (p *Pages) Routes() []layout.Route {
//		return append(layout.Assets(assets), // assets/jobs.css and assets/jobs.js, at /assets/
//			layout.Route{Pattern: "GET /owner/jobs", Handle: p.page},
//			layout.Route{Pattern: "POST /api/jobs/{id}/stop", Handle: p.stop},
//		)
//	}
//
//	func (p *Pages) page(w http.ResponseWriter, r *http.Request, who chat.Sender) error {
//		return layout.Frame{
//			Path:    "/owner/jobs", // an entry of the navigation, or below one
//			Title:   "Jobs",
//			Lead:    "What Parley does by itself.",
//			Actions: g.Group{layout.PostButton("/api/jobs/all/stop", "Stop all", "Stop all jobs?")},
//			Assets:  []string{"jobs.css", "jobs.js"},
//			Content: g.Group{layout.Card("Next", …), layout.Table(…)},
//		}.Write(w)
//	}
//
// Only owners reach a Route, and the guard of package web has refused what another
// site sent. An error of a Handler is answered as one of package web: a
// response.Problem with its words, store.ErrNotFound as 404, any other as 500 with
// a line in the log. Whoever changes something adds it to the audit log.
//
// Pages load no script or style but those of /assets/: owner.css and owner.js are on
// each. owner.js sends what buttons with data-post, data-patch and data-delete and
// forms with data-post (response.ScriptForm) describe; see PostButton. Colours are the
// properties at the top of owner.css, each for light and dark. Everything that can be
// pressed is 44 px high, and at 390 px nothing is wider than the window: tables become
// blocks there by themselves.
package layout

import (
	"cmp"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/chat"
	"parley/response"
)

// A Handler answers a request of somebody who may make it. The error may be a
// response.Problem.
type Handler func(w http.ResponseWriter, r *http.Request, who chat.Sender) error

// A Route is a pattern of http.ServeMux with what answers it.
type Route struct {
	Pattern string
	Anybody bool // who is signed in may use it, and not only owners
	Handle  Handler
}

// Pages are the pages of one package.
type Pages interface{ Routes() []Route }

// Assets returns routes for the scripts and style sheets in the folder assets of
// files. Their names must differ from those of other packages.
func Assets(files fs.FS) (routes []Route) {
	all, _ := fs.Glob(files, "assets/*") // the pattern is right
	for _, name := range all {
		serve := func(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
			http.ServeFileFS(w, r, files, name)
			return nil
		}
		routes = append(routes, Route{Pattern: "GET /" + name, Handle: serve})
	}
	return routes
}

// A Frame is one of the owner's pages.
type Frame struct {
	Path    string   // where it is served: at an entry of the navigation, or below
	Title   string   // its heading
	Lead    string   // one sentence on what it is for; "" for none
	Actions g.Group  // links and buttons beside the title
	Assets  []string // names of its own scripts and style sheets, such as "logs.js"
	Content g.Group
}

// Write answers with the page.
func (f Frame) Write(w http.ResponseWriter) error { return response.Page(w, http.StatusOK, f.Node()) }

// Node returns the whole page.
func (f Frame) Node() g.Node {
	head := g.Group{
		h.Script(h.Type("module"), h.Src("/assets/owner.js")),
		h.Script(h.Type("module"), h.Src("/assets/waiting.js")),
	}
	for _, name := range f.Assets {
		if path.Ext(name) == ".css" {
			head = append(head, h.Link(h.Rel("stylesheet"), h.Href("/assets/"+name)))
		} else {
			head = append(head, h.Script(h.Type("module"), h.Src("/assets/"+name)))
		}
	}
	return response.Document(f.Title, head,
		h.A(h.Class("skip"), h.Href("#main"), g.Text("Skip to content")),
		h.Div(h.Class("frame"),
			h.Header(h.Class("top"),
				h.Button(h.Class("plain"), h.Type("button"), g.Attr("popovertarget", "nav"), h.Aria("label", "Menu"),
					icon("menu")),
				h.A(h.Class("name"), h.Href("/"), g.Text("Parley")),
				h.Span(h.Aria("hidden", "true"), g.Text(f.Title)),
				waiting(h.Span(h.Class("unseen"), g.Text("Waiting for you:"))),
			),
			navigation(f.Path),
			h.Main(h.ID("main"),
				h.Div(h.Class("title"),
					h.Div(h.H1(g.Text(f.Title)), g.If(f.Lead != "", h.P(h.Class("lead"), g.Text(f.Lead)))),
					g.If(len(f.Actions) > 0, h.Div(h.Class("actions"), f.Actions)),
				),
				h.P(h.ID("said"), h.Role("status")),
				f.Content,
			),
		),
	)
}

// Page returns the owner's page of that title, which is served at path.
func Page(path, title string, content g.Group) g.Node {
	return Frame{Path: path, Title: title, Content: content}.Node()
}

// Path returns the path with those segments. Whatever they are, it is one of
// this server.
func Path(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString("/" + url.PathEscape(s))
	}
	return b.String()
}

// Heading returns a heading by which a table of the same ID is named.
func Heading(id, title string) g.Node { return h.H2(h.ID(id), g.Text(title)) }

// Table returns a table that is named by the heading of that ID. Without rows it
// shows the text empty.
func Table(id string, columns []string, empty string, rows g.Group) g.Node {
	return tableOf(h.Aria("labelledby", id), columns, empty, rows)
}

// LabelledTable is Table with a name for screen readers only.
func LabelledTable(label string, columns []string, empty string, rows g.Group) g.Node {
	return tableOf(h.Aria("label", label), columns, empty, rows)
}

func tableOf(name g.Node, columns []string, empty string, rows g.Group) g.Node {
	if len(rows) == 0 {
		rows = g.Group{h.Tr(h.Td(h.Class("none"), h.ColSpan(strconv.Itoa(len(columns))), g.Text(empty)))}
	}
	head := g.Map(columns, func(title string) g.Node {
		if title == "" {
			return h.Td()
		}
		return h.Th(h.Scope("col"), g.Text(title))
	})
	return h.Div(h.Class("wide"), h.Table(name, h.THead(h.Tr(head)), h.TBody(rows)))
}

// RowHead returns the cell that names its row.
func RowHead(content ...g.Node) g.Node { return h.Th(h.Scope("row"), g.Group(content)) }

// Cell returns a cell with v as text.
func Cell(v any) g.Node { return h.Td(g.Text(fmt.Sprint(v))) }

// TextCell returns a cell for long text.
func TextCell(text string, more ...g.Node) g.Node {
	return h.Td(h.Class("text"), g.Text(text), g.Group(more))
}

// Excerpt returns the first 300 characters of text.
func Excerpt(text string) string { return fmt.Sprintf("%.300s", text) }

// Coloured returns text in the colour of that class of the style sheet.
func Coloured(class, text string) g.Node { return h.Span(h.Class(class), g.Text(text)) }

// Diff returns a unified diff, each line in the colour of its kind.
func Diff(label, diff string) g.Node {
	kinds := map[string]string{"+": "add", "-": "cut", "@": "at"}
	var all g.Group
	for line := range strings.Lines(diff) {
		kind := cmp.Or(kinds[line[:1]], "same")
		if strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ ") {
			kind = "at"
		}
		all = append(all, Coloured(kind, line))
	}
	return h.Pre(h.Class("diff"), h.TabIndex("0"), h.Aria("label", label), all)
}

// Card returns a box with a heading. Cards in a Grid stand side by side where there is room.
func Card(title string, content ...g.Node) g.Node {
	return h.Section(h.Class("card"), h.H2(g.Text(title)), g.Group(content))
}

// Grid returns cards, or figures of Stat, side by side.
func Grid(cards ...g.Node) g.Node { return h.Div(h.Class("grid"), g.Group(cards)) }

// Stats returns the list that holds figures of Stat.
func Stats(all ...g.Node) g.Node { return h.Dl(h.Class("stats"), g.Group(all)) }

// Stat returns a figure with what it counts, and a note below it: "" for none.
func Stat(name, value, note string) g.Node {
	return h.Div(h.Dt(g.Text(name)), h.Dd(h.B(g.Text(value)), g.If(note != "", h.Small(g.Text(note)))))
}

// A State says how something is, in a colour and a shape.
type State string

// The States.
const (
	Good State = "good" // it works
	Busy State = "busy" // it is at work, or waits
	Warn State = "warn" // somebody should look after it
	Bad  State = "bad"  // it does not work
	Idle State = "idle" // it is off, or there is nothing to say
)

// Status returns words for a state: they say what the colour does.
func Status(s State, words string) g.Node {
	return h.Span(h.Class("state "+string(s)), g.Text(words))
}

// Empty returns what stands where nothing is yet: what will be there, and what to do
// first, with links or buttons for that.
func Empty(title, text string, actions ...g.Node) g.Node {
	return h.Div(h.Class("empty"),
		h.P(h.B(g.Text(title))),
		h.P(g.Text(text)),
		g.If(len(actions) > 0, h.P(h.Class("actions"), g.Group(actions))),
	)
}

// LinkButton returns a link that looks like a button.
func LinkButton(href, label string) g.Node {
	return h.A(h.Class("button"), h.Href(href), g.Text(label))
}

// PostButton returns a button that posts to path once the owner confirms. Without a
// question it posts at once.
func PostButton(path, label, question string) g.Node {
	return h.Button(h.Data("post", path), Confirmation(question), g.Text(label))
}

// DeleteButton returns a button that deletes path once the owner confirms.
func DeleteButton(path, label, question string) g.Node {
	return h.Button(h.Data("delete", path), Confirmation(question), g.Text(label))
}

// Confirmation has a button ask question before it does anything. "" is none.
func Confirmation(question string) g.Node { return g.If(question != "", h.Data("sure", question)) }
