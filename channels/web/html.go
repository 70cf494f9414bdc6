package web

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/channels/web/app"
	"parley/channels/web/parts"
	"parley/chat"
	"parley/response"
)

// A page is the page that a browser loads first. Without scripts it is a transcript
// to read. Scripts follow the conversation from Last on.
type page struct {
	Who           chat.Sender
	Assets        string // the folder of the page's own files, such as "/assets/1a2b3c4d"
	ID            string // of the conversation
	Title         string
	Conversations []listItem      // newest first
	Elsewhere     listItem        // another conversation with an open question; no ID: none
	Entries       []renderedEntry // oldest first
	Last          uint64          // number of the latest entry of the log; 0: none
	First         uint64          // number of the first entry shown; 0: none
	More          bool            // there are older entries
	MaxFile       int64           // bytes of one upload
	Blocked       []string        // parts that the policy blocks
	Pinned        bool            // the conversation is pinned
	HasModels     bool            // the person may choose among several
	Hears         bool            // voice messages are understood
}

// icons are the symbols that parts.Icon shows.
//
//go:embed page/icons.svg
var icons string

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// html returns the page as HTML.
func (p page) html() g.Node {
	return h.Doctype(h.HTML(h.Lang("en"),
		p.head(),
		h.Body(
			h.Data("talk", p.ID),
			h.Data("person", p.Who.ID),
			h.Data("last", number(p.Last)),
			h.Data("max-file", strconv.FormatInt(p.MaxFile, 10)),
			h.Data("blocked", strings.Join(p.Blocked, " ")),
			g.Raw(icons),
			h.A(h.Class("skip"), h.Href("#text"), g.Text("To the message box")),
			p.side(),
			p.main(),
			parts.DeleteDialog(),
		),
	))
}

func (p page) head() g.Node {
	preload := func(module string) g.Node { return h.Link(h.Rel("modulepreload"), h.Href(p.Assets+"/"+module)) }
	return h.Head(
		h.Meta(h.Charset("utf-8")),
		h.Meta(h.Name("viewport"),
			h.Content("width=device-width, initial-scale=1, viewport-fit=cover, interactive-widget=resizes-content")),
		h.Meta(h.Name("color-scheme"), h.Content("light dark")),
		h.TitleEl(g.Text(p.Title+" – Parley")),
		h.Link(h.Rel("icon"), h.Href(p.Assets+"/icon.svg")),
		h.Script(h.Src(p.Assets+"/theme.js")), // before anything is drawn
		h.Link(h.Rel("apple-touch-icon"), h.Href(app.Path+"apple-180.png")),
		h.Link(h.Rel("manifest"), h.Href(app.Path+"manifest.webmanifest")),
		h.Meta(h.Name("theme-color"), h.Content("#fbfaf8"), g.Attr("media", "(prefers-color-scheme: light)")),
		h.Meta(h.Name("theme-color"), h.Content("#16181b"), g.Attr("media", "(prefers-color-scheme: dark)")),
		h.Link(h.Rel("stylesheet"), h.Href(p.Assets+"/page.css")),
		h.Link(h.Rel("stylesheet"), h.Href(p.Assets+"/app.css")),
		h.Link(h.Rel("stylesheet"), h.Href(p.Assets+"/blocks.css")),
		h.Link(h.Rel("stylesheet"), h.Href(p.Assets+"/branches.css")),
		g.If(p.hasQuestions(), h.Link(h.Rel("stylesheet"), h.Href(p.Assets+"/cards.css"), h.ID("cards"))),
		h.Link(h.Rel("stylesheet"), h.Href(p.Assets+"/looks.css")),
		h.Link(h.Rel("stylesheet"), h.Href(p.Assets+"/menus.css")),
		h.Link(h.Rel("stylesheet"), h.Href(p.Assets+"/steps.css")),
		preload("wire.js"),
		preload("view.js"),
		preload("steps.js"),
		preload("blocks.js"),
		preload("scroll.js"),
		preload("write.js"),
		preload("upload.js"),
		preload("unread.js"),
		preload("phone.js"),
		preload("conversations.js"),
		preload("branches.js"),
		preload("menus.js"),
		h.Script(h.Type("module"), h.Src(p.Assets+"/page.js")),
	)
}

// hasQuestions reports whether questions are shown. Otherwise a script loads what they need.
func (p page) hasQuestions() bool {
	return slices.ContainsFunc(p.Entries, func(e renderedEntry) bool { return e.Ask != nil })
}

// side returns the list of conversations.
func (p page) side() g.Node {
	return h.Nav(h.ID("side"), h.Popover(), h.Aria("label", "Conversations"),
		h.Div(h.Class("bar"),
			h.A(h.Class("name"), h.Href("/"), g.Text("Parley")),
			h.Button(h.Type("button"), h.ID("new"), parts.Icon("plus"), g.Text("New")),
		),
		response.ScriptForm(h.ID("find"), h.Role("search"),
			h.Input(h.Type("search"), h.ID("words"), h.Aria("label", "Search conversations"),
				h.Placeholder("Search"), h.AutoComplete("off")),
			h.P(h.ID("found"), h.Class("unseen"), h.Role("status")),
		),
		h.Ul(h.ID("talks"), g.Map(p.Conversations, listItem.node)),
		parts.ThemeSwitch(),
		h.Div(h.Class("bar foot"),
			g.If(p.Who.Role == chat.Owner, h.A(h.Href("/owner"), g.Text("Owner's pages"))),
			h.Button(h.Type("button"), h.ID("bell"), g.Text("Notifications")),
			h.Button(h.Type("button"), h.ID("leave"), g.Text("Sign out")),
		),
	)
}

// node returns the item as HTML, of the same structure as in unread.js. Nothing is new in the conversation that is
// open.
func (i listItem) node() g.Node {
	mark := func(class, title, said string, n int) g.Node {
		return h.Span(h.Class(class), h.Title(title), g.Text(strconv.Itoa(n)), h.Span(h.Class("unseen"), g.Text(said)))
	}
	var badge g.Node
	switch {
	case i.Asks > 0:
		badge = mark("badge", "Waiting for your answer", " waiting for your answer: ", i.Asks)
	case i.Unread > 0 && !i.Current:
		badge = mark("badge new", "New messages", " new: ", i.Unread)
	}
	return h.Li(i.link(g.If(i.Current, h.Aria("current", "page")), badge))
}

func pinMark() g.Node {
	said := h.Span(h.Class("unseen"), g.Text("Pinned: "))
	return h.Span(h.Class("pinned"), h.Title("Pinned"), parts.Icon("pin"), said)
}

// link returns a link to the conversation, with before in front of its title.
func (i listItem) link(before ...g.Node) g.Node {
	return h.A(h.Href("/c/"+i.ID), g.Group(before), g.If(i.Pinned, pinMark()), g.Text(i.Title))
}

func (p page) main() g.Node {
	return h.Main(
		h.Header(
			parts.IconButton("menu", "menu", "Conversations", h.PopoverTarget("side")),
			h.H1(h.ID("title"), g.Text(p.Title)),
			response.ScriptForm(h.ID("rename"), hidden(true),
				h.Input(h.ID("name"), h.Aria("label", "Title of this conversation"), h.MaxLength("200"),
					h.AutoComplete("off"))),
			parts.IconButton("edit", "pen", "Rename conversation"),
			parts.IconButton("more", "more", "More", h.PopoverTarget("choices")),
			p.choices(),
			parts.IconButton("delete", "bin", "Delete conversation"),
		),
		h.P(h.ID("elsewhere"), h.Role("status"), hidden(p.Elsewhere.ID == ""),
			g.Text("Your answer is needed in "), p.Elsewhere.link()),
		h.P(h.ID("here"), h.Role("status"), hidden(true), h.Button(h.Type("button"))),
		h.Section(h.ID("scroll"), h.TabIndex("0"), h.Aria("label", "Messages"),
			h.Div(h.Class("column"),
				h.Button(h.Type("button"), h.ID("older"), hidden(!p.More), g.Text("Earlier messages")),
				h.Div(h.Class("hello"), h.P(g.Text("What is on your mind?")), parts.Suggestions()),
				h.Div(h.ID("entries"), h.Role("log"), h.Aria("live", "polite"), h.Aria("label", "Conversation"),
					h.Data("first", number(p.First)),
					g.Map(p.Entries, renderedEntry.article),
				),
				h.Div(h.ID("making")),
				h.Div(h.ID("unsent")),
				h.P(h.ID("told"), h.Class("unseen"), h.Role("status")),
			),
		),
		p.messageForm(),
	)
}

// choices returns the menu of the conversation.
func (p page) choices() g.Node {
	pin := "Pin to the top"
	if p.Pinned {
		pin = "Unpin"
	}
	export := "/c/" + p.ID + "/export/"
	return h.Div(h.ID("choices"), h.Popover(), h.Role("group"), h.Aria("label", "This conversation"),
		h.Button(h.Type("button"), h.ID("pin"), h.Data("pinned", strconv.FormatBool(p.Pinned)),
			parts.Icon("pin"), h.Span(g.Text(pin))),
		h.A(h.Href(export+"md"), h.Download(""), parts.Icon("save"), g.Text("Save as text")),
		h.A(h.Href(export+"json"), h.Download(""), parts.Icon("save"), g.Text("Save as JSON")),
	)
}

func hidden(is bool) g.Node { return g.If(is, g.Attr("hidden")) }

// article returns e as HTML, of the same structure as in view.js.
func (e renderedEntry) article() g.Node {
	speaker := map[string]string{whoPerson: "You", whoAgent: "Parley"}[e.Who]
	if speaker == "" {
		speaker = "Note"
	}
	class, textID := e.Who, g.Node(nil)
	if e.IsCard {
		class += " asks"
		textID = h.ID(e.card().TextID())
	}
	return h.Article(
		h.Class(class),
		h.Data("seq", number(e.Seq)),
		h.Data("id", e.ID),
		g.If(e.Answered, h.Data("answered", "")),
		g.If(e.Replies != "", h.Data("replies", e.Replies)),
		e.versionData(),
		h.Aria("label", speaker),
		e.stepsFold(),
		g.If(e.AskHead != "", g.Raw(string(e.AskHead))),
		h.Div(h.Class("text"), textID, g.Raw(string(e.HTML))),
		g.If(e.FilesHTML != "", g.Raw(string(e.FilesHTML))),
		g.If(e.AskHTML != "", g.Raw(string(e.AskHTML))),
		h.Footer(h.Time(h.DateTime(e.Time.UTC().Format(time.RFC3339))),
			g.If(e.Taken != nil && e.Taken.All == 0, h.Small(h.Class("none"), g.Text("no tools used")))),
	)
}

// messageForm returns the message box and what is shown above it.
func (p page) messageForm() g.Node {
	return response.ScriptForm(h.ID("write"), h.Aria("label", "Write a message"),
		h.Button(h.Type("button"), h.ID("down"), hidden(true), parts.Icon("down"), g.Text("New messages")),
		h.P(h.ID("state"), h.Role("status")),
		h.Ul(h.ID("tray"), h.Aria("label", "Attached files")),
		h.P(h.ID("why"), h.Class("bad"), h.Role("alert")),
		h.Div(h.Class("box"),
			h.Input(h.Type("file"), h.ID("pick"), h.Multiple(), hidden(true)),
			parts.IconButton("attach", "clip", "Attach files"),
			g.If(p.HasModels, parts.IconButton("model", "model", "Choose a model", h.Aria("haspopup", "listbox"))),
			h.Textarea(h.ID("text"), h.Rows("1"), h.Aria("label", "Message"), h.Placeholder("Message"), h.AutoFocus()),
			g.If(p.Hears, parts.IconButton("record", "voice", "Record a voice message")),
			h.Button(h.ID("send"), h.Aria("label", "Send"), parts.Icon("send")),
		),
		h.NoScript(h.P(
			g.Text("To write here, please allow this page to run JavaScript. Reading works without."))),
	)
}
