// Package response writes what the HTTP handlers answer: pages, JSON, and
// problems in one shape for browsers and programs.
//
// Pages are values of package gomponents. Texts and attributes are escaped when
// they are written, so that nothing in them becomes markup (R-S5); what may not
// come from elsewhere are the names of elements and attributes, the scheme of an
// address, and gomponents.Raw.
package response

import (
	"bytes"
	"encoding/json"
	"net/http"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// Addresses of the style sheet of all pages but the chat, and of the script that gives them the colours chosen there.
// Package web serves them to everybody.
const (
	Stylesheet = "/assets/owner.css"
	Theme      = "/assets/theme.js"
)

// Document returns a page of that title. Head is added to its head.
func Document(title string, head g.Group, body ...g.Node) g.Node {
	return h.Doctype(h.HTML(h.Lang("en"),
		h.Head(
			h.Meta(h.Charset("utf-8")),
			h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			h.Meta(h.Name("color-scheme"), h.Content("light dark")),
			h.TitleEl(g.Text(title+" · Parley")),
			h.Script(h.Src(Theme)), // before anything is drawn
			h.Link(h.Rel("stylesheet"), h.Href(Stylesheet)),
			head,
		),
		h.Body(body...),
	))
}

// ScriptForm returns a form that a script of the page sends. The browser itself
// does nothing when it is submitted, as before the script has loaded: submitting it
// would load the page again, without what was typed, and put the fields, which may
// be secrets, into the address. That is what the method "dialog" is for; inside a
// dialog it closes the dialog.
func ScriptForm(children ...g.Node) g.Node {
	return h.Form(h.Method("dialog"), g.Group(children))
}

// Page answers with a page, whole or not at all.
func Page(w http.ResponseWriter, status int, page g.Node) error {
	var b bytes.Buffer
	if err := page.Render(&b); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = b.WriteTo(w) // an error means that the client left
	return nil
}

// JSON answers with v as JSON.
func JSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // an error means that the client left
}
