// Package layout has what the owner's pages are made of: the frame with the
// navigation, tables, and buttons that change something.
package layout

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/response"
)

// sections are the entries of the owner's navigation.
var sections = []struct{ path, title string }{
	{"/owner", "Overview"},
	{"/owner/talks", "Conversations"},
	{"/owner/usage", "Usage"},
	{"/owner/tools", "Tools"},
	{"/admin/custom-tools", "Custom tools"},
	{"/admin/mcp", "MCP servers"},
	{"/admin/policy", "Policy"},
	{"/admin/approvals", "Approvals"},
	{"/owner/cron", "Scheduled jobs"},
	{"/owner/memory", "Memory"},
	{"/owner/people", "People"},
	{"/owner/errors", "Errors"},
	{"/owner/audit", "Audit"},
}

// Page returns the owner's page of that title, which is served at path.
func Page(path, title string, content g.Group) g.Node {
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

// PostButton returns a button that posts to path once the owner confirms. Without a
// question it posts at once.
func PostButton(path, label, question string) g.Node {
	return h.Button(h.Data("post", path), Confirmation(question), g.Text(label))
}

// DeleteButton returns a button that deletes path once the owner confirms.
func DeleteButton(path, label, question string) g.Node {
	return h.Button(h.Data("delete", path), Confirmation(question), g.Text(label))
}

func Confirmation(question string) g.Node { return g.If(question != "", h.Data("sure", question)) }
