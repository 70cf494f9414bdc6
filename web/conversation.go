package web

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/chat"
	"parley/store"
	"parley/web/layout"
)

const (
	maxFound   = 50   // results of a search
	maxListed  = 200  // conversations on a page; older ones are found by searching
	maxEntries = 1000 // of a conversation on a page
)

// conversations are all conversations, or the messages that contain Words.
type conversations struct {
	Words string      `json:"words,omitempty"`
	Found []chat.Find `json:"found"`
	Talks []chat.Talk `json:"talks"`
}

func (a *admin) conversations(r *http.Request) (c conversations, err error) {
	c.Words = r.FormValue("q")
	if c.Words != "" {
		c.Found, err = a.cfg.Gateway.Conversations.Search(r.Context(), nil, c.Words, maxFound)
	} else {
		c.Talks, err = a.cfg.Gateway.Conversations.List(r.Context(), "")
	}
	return c, err
}

func (p pages) conversations(c conversations) g.Group {
	page := g.Group{h.Form(h.Action("/owner/talks"), h.Role("search"),
		h.Label(h.For("q"), g.Text("Search messages")),
		h.Input(h.ID("q"), h.Name("q"), h.Type("search"), h.Value(c.Words)),
		h.Button(g.Text("Search")),
	)}
	if c.Words != "" {
		return append(page, h.H2(g.Text("Found")), p.foundList(c.Found))
	}
	latest := c.Talks[:min(len(c.Talks), maxListed)]
	rows := g.Map(latest, func(t chat.Talk) g.Node {
		return h.Tr(
			layout.RowHead(conversationLink(t.Session, cmp.Or(t.Title, "without words"))),
			layout.Cell(t.Session),
			layout.Cell(p.formatTime(t.Began)),
			layout.Cell(p.formatTime(t.Last)),
		)
	})
	columns := []string{"Conversation", "Where", "Began", "Last"}
	page = append(page, layout.LabelledTable("Conversations, the latest first", columns, "There are none.", rows))
	if older := len(c.Talks) - len(latest); older > 0 {
		page = append(page, h.P(g.Textf("%d older ones are not listed. Search to find them.", older)))
	}
	return page
}

func (p pages) foundList(found []chat.Find) g.Node {
	if len(found) == 0 {
		return h.Ul(h.Class("list"), h.Li(g.Text("No message contains that.")))
	}
	return h.Ul(h.Class("list"), g.Map(found, func(f chat.Find) g.Node {
		return h.Li(
			conversationLink(f.Session, string(f.Session)),
			g.Text(" "),
			h.Small(g.Text(f.Entry.Who+", "+p.formatTime(f.Entry.Time))),
			h.P(h.Class("text"), g.Text(layout.Excerpt(f.Entry.Text))),
		)
	}))
}

func conversationLink(id chat.SessionID, title string) g.Node {
	return h.A(h.Href(layout.Path("owner", "talks", string(id))), g.Text(title))
}

// A conversation is a whole conversation, with the note that it may contain secrets
// (R-S6).
type conversation struct {
	Session chat.SessionID `json:"session"`
	Note    string         `json:"note"`
	Entries []chat.Entry   `json:"entries"`
}

// conversation returns the conversation that the path names. The error is
// store.ErrNotFound if there is none.
func (a *admin) conversation(r *http.Request) (conversation, error) {
	t := conversation{
		Session: chat.SessionID(r.PathValue("id")),
		Note:    "This transcript contains whatever secrets were said in the conversation.",
	}
	for e, err := range a.cfg.Gateway.Conversations.Transcript(r.Context(), t.Session) {
		if err != nil {
			return t, err
		}
		t.Entries = append(t.Entries, e)
	}
	if t.Entries == nil {
		return t, store.ErrNotFound
	}
	return t, nil
}

func (p pages) conversation(c conversation) g.Group {
	at := layout.Path("api", "sessions", string(c.Session))
	latest := c.Entries[max(0, len(c.Entries)-maxEntries):]
	cut := h.P(g.Text("Only the latest messages are shown. The export has all of them."))
	return g.Group{
		h.P(h.Class("text"), g.Text(string(c.Session))),
		h.P(
			h.A(h.Href(at+"/export"), h.Download("conversation.md"), g.Text("Export as text")),
			g.Text(" · "),
			h.A(h.Href(at), h.Download("conversation.json"), g.Text("Export as JSON")),
			g.Text(" · "),
			h.Button(
				h.Data("delete", at),
				layout.Confirmation("Delete this conversation for ever?"),
				h.Data("then", "/owner/talks"),
				g.Text("Delete"),
			),
		),
		g.If(len(latest) < len(c.Entries), cut),
		h.Ol(h.Class("talk"), g.Map(latest, p.entryItem)),
	}
}

func (p pages) entryItem(e chat.Entry) g.Node {
	at := h.Small(g.Text(p.formatTime(e.Time)))
	if e.Kind == chat.Called || e.Kind == chat.Gave {
		return h.Li(h.Class(string(e.Kind)), h.Details(
			h.Summary(g.Text(e.Who+" "+string(e.Kind)+" "), at),
			h.Pre(h.TabIndex("0"), g.Text(e.Text)),
		))
	}
	files := g.Map(e.Files, func(f chat.File) g.Node {
		return h.P(h.Class("text"), g.Text("file: "+cmp.Or(f.Name, f.Path)))
	})
	return h.Li(h.Class(string(e.Kind)),
		h.P(h.B(g.Text(cmp.Or(e.Who, string(e.Kind)))), g.Text(" "), at),
		h.P(h.Class("text"), g.Text(e.Text)),
		files,
	)
}

// export serves the conversation as Markdown.
func (a *admin) export(w http.ResponseWriter, r *http.Request, _ visitor) error {
	t, err := a.conversation(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/markdown; charset=utf-8")
	fmt.Fprintf(w, "# %s\n\n%s\n", plain(string(t.Session)), t.Note) // an error means that the client left
	for _, e := range t.Entries {
		text := e.Text
		if e.Kind == chat.Called || e.Kind == chat.Gave {
			text = fenced(text)
		}
		for _, f := range e.Files {
			text += "\n\n[file: " + plain(f.Name) + "]"
		}
		at := e.Time.In(a.cfg.Zone).Format("2006-01-02 15:04 MST")
		fmt.Fprintf(w, "\n**%s** %s · %s\n\n%s\n", e.Kind, plain(e.Who), at, text)
	}
	return nil
}

// fenced returns text as a code block with a fence that does not occur in it.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + text + "\n" + fence
}

// plain returns name as one line without Markdown.
func plain(name string) string {
	return strings.NewReplacer(
		"\n", " ", "\r", " ",
		"*", `\*`, "`", "\\`", "[", `\[`, "<", `\<`, "#", `\#`,
	).Replace(name)
}

// recording sends the recording of a session, which contains whatever secrets were
// said in it.
func (a *admin) recording(w http.ResponseWriter, r *http.Request, _ visitor) error {
	begun := false
	for line, err := range a.cfg.Gateway.Conversations.Recording(r.Context(), chat.SessionID(r.PathValue("id"))) {
		if err != nil && !begun {
			return err
		}
		if err != nil {
			panic(http.ErrAbortHandler) // an incomplete recording must not look complete
		}
		if !begun {
			w.Header().Set("Content-Type", "application/x-ndjson")
		}
		begun = true
		if _, err := w.Write(line); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	return nil
}
