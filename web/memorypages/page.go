package memorypages

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/chat"
	"parley/memory"
	"parley/response"
	"parley/web/layout"
)

// titles says what each file is for: of an owner, and of somebody else.
func titles(name string, who chat.Person) (title, what string) {
	switch name {
	case "MEMORY.md":
		return "What it knows", "Facts, decisions and plans. They are part of every request to a model."
	case "USER.md":
		if who != chat.TheOwner {
			return "Whom it works for", "Who they are, and how they like to be answered."
		}
		return "Whom it works for", "Who you are, and how you like to be answered."
	case "SOUL.md":
		return "Who it is", "Its character, as you want it."
	case "HEARD.md":
		return "Heard from others", "From web pages, files and unknown senders. Nobody vouches for it, and it is in " +
			"no request: the agent finds it only by a search, marked as hearsay."
	}
	return name, ""
}

// page shows a person's memory, or what a search finds in it.
func (p *Pages) page(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	who, people, err := p.personOf(r)
	if err != nil {
		return err
	}
	lines, err := p.Notes.Lines(r.Context(), who)
	if err != nil {
		return err
	}
	words := strings.TrimSpace(r.URL.Query().Get("q"))
	content := g.Group{picker(people, who), search(who, words)}
	if words != "" {
		content = append(content, p.found(lines, words))
	} else {
		recent, err := p.recent(r, who)
		if err != nil {
			return err
		}
		content = append(content, g.Map(lines.Files, func(name string) g.Node { return p.file(lines, name) }), recent)
	}
	return layout.Frame{
		Path:  pagePath,
		Title: "Memory",
		Lead:  "What Parley knows from one conversation to the next, and where it knows each line from.",
		Actions: g.Group{
			layout.LinkButton(changesPath(who), "History"),
			h.Button(h.Data("post", "/api/cron/dream/run"), h.Data("then", "/owner/cron"),
				h.Title("Goes over what was said since the last night. What came of it is shown under Schedule."),
				g.Text("Dream now")),
		},
		Assets:  []string{"memory.css", "memory.js"},
		Content: content,
	}.Write(w)
}

func changesPath(who chat.Person) string { return pagePath + "/changes" + about(who) }

// changePath returns the address of the page of one change.
func changePath(who chat.Person, id string) string {
	return layout.Path("owner", "memory", "changes", id) + about(who)
}

// picker returns links to everybody's memory.
func picker(people []chat.Person, who chat.Person) g.Node {
	if len(people) < 2 {
		return nil
	}
	links := g.Map(people, func(one chat.Person) g.Node {
		current := g.If(one == who, h.Aria("current", "true"))
		return h.Li(h.A(h.Href(pagePath+about(one)), current, g.Text(nameOf(one))))
	})
	return h.Nav(h.Class("chips"), h.Aria("label", "Whose memory"), h.Ul(links))
}

func nameOf(who chat.Person) string {
	if who == chat.TheOwner {
		return "You"
	}
	return string(who)
}

func search(who chat.Person, words string) g.Node {
	return h.Form(h.Class("search"), h.Role("search"), h.Action(pagePath),
		h.Input(h.Type("hidden"), h.Name("who"), h.Value(string(who))),
		h.Input(h.Type("search"), h.Name("q"), h.Value(words), h.Aria("label", "Search memory"),
			h.Placeholder("Why do you think that …?")),
		h.Button(g.Text("Search")),
	)
}

// found shows the lines that have the words.
func (p *Pages) found(all memory.Lines, words string) g.Node {
	lines := all.Matching(words, maxFound)
	clear := layout.LinkButton(pagePath+about(all.Who), "Show everything")
	if len(lines) == 0 {
		return layout.Empty("Nothing in this memory is about that",
			"Parley may still find it in past conversations.", clear,
			layout.LinkButton("/owner/talks?q="+url.QueryEscape(words), "Search conversations"))
	}
	return h.Section(h.Class("card lines"),
		h.H2(g.Text(fmt.Sprintf("%d found", len(lines)))),
		h.Ul(g.Map(lines, func(l memory.Line) g.Node { return p.line(all, l, true) })),
		h.P(clear),
	)
}

// file shows the lines of a file.
func (p *Pages) file(all memory.Lines, name string) g.Node {
	title, what := titles(name, all.Who)
	var rows g.Group
	for _, l := range all.Lines {
		if l.File == name && strings.TrimSpace(l.Text) != "" {
			rows = append(rows, p.line(all, l, false))
		}
	}
	edit := editPath + about(all.Who) + "&file=" + name
	class := "card lines"
	if name == "HEARD.md" {
		class += " heard"
	}
	return h.Section(h.Class(class),
		h.Div(h.Class("head"),
			h.Div(h.H2(g.Text(title), g.Text(" "), h.Small(g.Text(name))), h.P(h.Class("lead"), g.Text(what))),
			h.A(h.Class("button"), h.Href(edit), h.Aria("label", "Edit "+name), g.Text("Edit")),
		),
		g.If(len(rows) == 0, h.P(h.Class("none"), g.Text("Nothing yet."))),
		g.If(len(rows) > 0, h.Ul(h.Aria("label", title), rows)),
	)
}

// line shows a line. What belongs to it opens below.
func (p *Pages) line(all memory.Lines, l memory.Line, named bool) g.Node {
	text := strings.TrimSpace(l.Text)
	level := ""
	if shorter := strings.TrimLeft(text, "#"); shorter != text && strings.HasPrefix(shorter, " ") {
		level = "heading"
		text = shorter
	} else if bare, ok := strings.CutPrefix(text, "- "); ok {
		level = "item"
		text = bare
	}
	about, state := p.brief(all, l)
	id := "l" + l.File[:1] + strconv.Itoa(l.Number)
	return h.Li(h.Class(level), h.Details(h.ID(id),
		h.Summary(
			h.Span(h.Class("says"), g.If(named, h.Small(g.Text(l.File+" "))), g.Text(strings.TrimSpace(text))),
			h.Span(h.Class("from"), g.If(l.Untrusted, layout.Status(layout.Warn, "untrusted")),
				g.If(state != "" && level != "heading", layout.Status(layout.Idle, state)),
				g.If(about != "", h.Small(g.Text(about)))),
		),
		h.Div(h.Class("more"), p.sources(all, l), p.corrections(all.Who, l, id)),
	))
}

// brief says in a few words where a line comes from, or that nobody knows.
func (p *Pages) brief(all memory.Lines, l memory.Line) (about, unknown string) {
	o := l.Origin
	switch {
	case o == nil:
		return "", "unknown"
	case len(o.Sources) > 0:
		channel, _, _ := strings.Cut(string(o.Sources[0].Session), ":")
		return p.formatTime(o.Sources[0].Time)[:10] + " · " + channel, ""
	}
	return p.formatTime(o.Time)[:10] + " · " + maker(o.By), ""
}

// maker names who makes a change.
func maker(by string) string {
	number := func(prefix string) string { return strings.TrimPrefix(by, prefix) }
	switch {
	case by == "dream":
		return "a dream"
	case by == "edited":
		return "an edit of the file"
	case by == "page":
		return "you, on this page"
	case strings.HasPrefix(by, "restore "):
		return "undoing change " + number("restore ")
	case strings.HasPrefix(by, "accept "):
		return "the proposal of change " + number("accept ")
	}
	return by
}

// sources says where a line comes from, with links.
func (p *Pages) sources(all memory.Lines, l memory.Line) g.Node {
	o := l.Origin
	if o == nil {
		before := "."
		if !all.Since.IsZero() {
			before = ": the line is older than " + p.formatTime(all.Since) + "."
		}
		return h.P(g.Text("Where this comes from is unknown" + before))
	}
	made := g.Group{
		g.Text("Written by " + maker(o.By) + " on " + p.formatTime(o.Time)),
		g.If(o.Session != "", g.Group{g.Text(" in "), conversation(o.Session)}),
		g.Text(" ("), h.A(h.Href(changePath(all.Who, o.Change)), g.Text("change "+o.Change)), g.Text(")."),
	}
	intro := "From what was said in:"
	if !o.Named && o.Read > 1 {
		intro = fmt.Sprintf("From one or more of %d parts of conversations, the likeliest first:", o.Read)
	}
	return g.Group{
		h.P(made),
		g.If(len(o.Sources) > 0, g.Group{h.P(g.Text(intro)), h.Ul(g.Map(o.Sources, p.source))}),
		g.If(l.Untrusted, h.P(layout.Status(layout.Warn, "Based on content that nobody vouches for"))),
	}
}

func conversation(id chat.SessionID) g.Node {
	return h.A(h.Href(layout.Path("owner", "talks", string(id))), g.Text(string(id)))
}

func (p *Pages) source(s memory.Source) g.Node {
	from := ""
	if len(s.From) > 0 {
		from = ", with content of " + strings.Join(s.From, ", ")
	}
	return h.Li(conversation(s.Session), g.Text(", "+p.formatTime(s.Time)+from))
}

// corrections returns the form and the button that change a line.
func (p *Pages) corrections(who chat.Person, l memory.Line, id string) g.Node {
	post := apiPath + "/corrections" + about(who)
	at := strconv.Itoa(l.Number)
	hidden := func(name, value string) g.Node {
		return h.Input(h.Type("hidden"), h.Name(name), h.Value(value))
	}
	// A map of texts can be encoded.
	remove, _ := json.Marshal(map[string]string{"file": l.File, "line": at, "was": l.Text, "text": ""})
	return response.ScriptForm(h.Data("post", post),
		hidden("file", l.File), hidden("line", at), hidden("was", l.Text),
		h.Label(h.Class("unseen"), h.For(id+"t"), g.Text("Correct this line")),
		h.Textarea(h.ID(id+"t"), h.Name("text"), h.Rows("2"), g.Text(strings.TrimSpace(l.Text))),
		h.Div(h.Class("actions"),
			h.Button(h.Class("main"), g.Text("Save")),
			h.Button(h.Type("button"), h.Class("remove"), h.Data("post", post), h.Data("body", string(remove)),
				layout.Confirmation("Remove this line? The history can bring it back."), g.Text("Remove")),
		),
	)
}

// recent shows the latest changes.
func (p *Pages) recent(r *http.Request, who chat.Person) (g.Node, error) {
	changes, err := p.Notes.Versions.Log(r.Context(), who, 5)
	if err != nil || len(changes) == 0 {
		return nil, err
	}
	rows := g.Map(changes, func(c memory.Change) g.Node {
		if c.By == "" {
			return h.Tr(layout.RowHead(g.Text("Change "+c.ID)), layout.Cell("damaged on disk"), h.Td())
		}
		var names []string
		for name := range c.Files {
			names = append(names, name)
		}
		slices.Sort(names)
		why := c.Why
		if why == "" {
			why = strings.Join(names, ", ")
		}
		return h.Tr(
			layout.RowHead(h.A(h.Href(changePath(who, c.ID)), g.Text(p.formatTime(c.Time)))),
			layout.Cell(maker(c.By)),
			layout.TextCell(why, g.If(len(c.Asks) > 0,
				g.Group{g.Text(" "), layout.Status(layout.Busy, "proposes a change")})),
		)
	})
	return h.Section(h.Class("card"),
		h.H2(g.Text("What changed lately")),
		layout.LabelledTable("The latest changes", []string{"When", "By", "What"}, "", rows),
		h.P(h.A(h.Href(changesPath(who)), g.Text("The whole history, with undo"))),
	), nil
}

// editPage shows a file as text.
func (p *Pages) editPage(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	who, _, err := p.personOf(r)
	if err != nil {
		return err
	}
	name := cmp.Or(r.URL.Query().Get("file"), "MEMORY.md")
	text, sum, err := p.Notes.Digest(r.Context(), who, name)
	if err != nil {
		return err
	}
	title, what := titles(name, who)
	back := pagePath + about(who)
	return layout.Frame{
		Path:    editPath,
		Title:   title,
		Lead:    what,
		Actions: g.Group{layout.LinkButton(back, "Cancel")},
		Assets:  []string{"memory.css"},
		Content: g.Group{
			response.ScriptForm(h.Class("whole"),
				h.Data("post", apiPath+"/corrections"+about(who)), h.Data("then", back),
				h.Input(h.Type("hidden"), h.Name("file"), h.Value(name)),
				h.Input(h.Type("hidden"), h.Name("base"), h.Value(sum)),
				h.Label(h.For("text"), g.Text(name+" of "+nameOf(who))),
				h.Textarea(h.ID("text"), h.Name("text"), h.Class("code"), h.Rows("24"), g.Text(text)),
				h.Div(h.Class("actions"), h.Button(h.Class("main"), g.Text("Save")),
					h.Small(g.Text("Saving makes a change that can be undone."))),
			),
		},
	}.Write(w)
}
