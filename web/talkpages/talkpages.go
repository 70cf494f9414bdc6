// Package talkpages has the pages on which owners read conversations: the list with filters, and one conversation with
// what was said, every call with what came of it, and what it cost.
package talkpages

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/chat"
	"parley/web/layout"
)

//go:embed assets
var assets embed.FS

const (
	pagePath  = "/owner/talks"
	maxFound  = 50  // results of a search
	maxListed = 200 // conversations on a page; older ones are found by filters
)

// Pages serves the pages.
type Pages struct {
	List   func(ctx context.Context, prefix string) ([]chat.Talk, error) // newest first
	Search func(ctx context.Context, in func(chat.SessionID) bool, words string, most int) ([]chat.Find, error)
	// Turns returns the turns of a conversation, oldest first; none if there is no such session.
	Turns func(context.Context, chat.SessionID) ([]chat.Turn, error)
	Names func(context.Context) (map[string]string, error) // of people, by IDs such as telegram:42; nil: none
	Zone  *time.Location                                   // in which people read times
}

// Routes implements layout.Pages.
func (p *Pages) Routes() []layout.Route {
	return append(layout.Assets(assets),
		layout.Route{Pattern: "GET " + pagePath, Handle: p.list},
		layout.Route{Pattern: "GET " + pagePath + "/{id}", Handle: p.talk},
	)
}

// A place is where a conversation is.
type place struct {
	channel string // such as "telegram", or "telegram:work"
	chat    string // with its channel: telegram:42, a person or a group
}

// placeOf returns where the session id is: whatever is behind a slash is a thread.
func placeOf(id chat.SessionID) place {
	at, _, _ := strings.Cut(string(id), "/")
	return place{at[:max(strings.LastIndex(at, ":"), 0)], at}
}

// title returns what people call a channel.
func (p place) title() string {
	switch name, label, _ := strings.Cut(p.channel, ":"); {
	case name == "agent":
		return "Background tasks"
	case name == "cron":
		return "Scheduled jobs"
	case name == "api":
		return "API"
	case name == "":
		return "Elsewhere"
	case label != "":
		return strings.ToUpper(name[:1]) + name[1:] + " (" + label + ")"
	default:
		return strings.ToUpper(name[:1]) + name[1:]
	}
}

// A filter says which conversations are listed.
type filter struct {
	words, channel, chat string
	days                 int // 0: of any time
}

func filterOf(r *http.Request) filter {
	days, _ := strconv.Atoi(r.FormValue("days")) // 0 if it is no number
	return filter{
		words: strings.TrimSpace(r.FormValue("q")), channel: r.FormValue("channel"), chat: r.FormValue("who"),
		days: min(max(days, 0), 10_000),
	}
}

func (f filter) empty() bool { return f == filter{} }

// has reports whether the session id is where f says.
func (f filter) has(id chat.SessionID) bool {
	at := placeOf(id)
	return (f.channel == "" || f.channel == at.channel) && (f.chat == "" || f.chat == at.chat)
}

// since returns the beginning of the time that f is about: of a day, that of now being the last.
func (f filter) since(now time.Time) time.Time {
	if f.days == 0 {
		return time.Time{}
	}
	return time.Date(now.Year(), now.Month(), now.Day()-f.days+1, 0, 0, 0, 0, now.Location())
}

// list serves the list of conversations, or of what was found.
func (p *Pages) list(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	f := filterOf(r)
	all, err := p.List(r.Context(), "")
	if err != nil {
		return err
	}
	names := map[string]string{}
	if p.Names != nil {
		if names, err = p.Names(r.Context()); err != nil {
			return err
		}
	}
	content := g.Group{p.filters(f, all, names)}
	if f.words != "" {
		found, err := p.Search(r.Context(), f.has, f.words, maxFound)
		if err != nil {
			return err
		}
		content = append(content, p.found(f, found, all, names))
	} else {
		content = append(content, p.days(f, all, names)...)
	}
	return layout.Frame{
		Path:    pagePath,
		Title:   "Conversations",
		Lead:    "What people and Parley said to each other, on all channels.",
		Assets:  []string{"talks.css"},
		Content: content,
	}.Write(w)
}

// filters returns the form by which the list is made shorter.
func (p *Pages) filters(f filter, all []chat.Talk, names map[string]string) g.Node {
	channels := map[string]string{}
	chats := map[string]string{}
	for _, t := range all {
		at := placeOf(t.Session)
		channels[at.channel] = at.title()
		if f.channel == "" || f.channel == at.channel {
			chats[at.chat] = whoIs(at.chat, names)
		}
	}
	times := map[string]string{"1": "Today", "7": "The last 7 days", "30": "The last 30 days", "365": "The last year"}
	return h.Form(h.Action(pagePath), h.Role("search"), h.Class("filters"),
		h.Div(h.Class("words"),
			h.Label(h.For("q"), g.Text("Words")),
			h.Input(h.ID("q"), h.Name("q"), h.Type("search"), h.Value(f.words), h.Placeholder("What was said")),
		),
		choice("channel", "Channel", "All channels", f.channel, channels),
		choice("who", "Person or group", "Everybody", f.chat, chats),
		choice("days", "Time", "Any time", strconv.Itoa(f.days), times),
		h.Div(h.Class("actions"),
			h.Button(h.Class("main"), g.Text("Show")),
			g.If(!f.empty(), layout.LinkButton(pagePath, "Show all")),
		),
	)
}

// choice returns a labelled list of values to choose from, with what people call them.
func choice(name, label, none, chosen string, values map[string]string) g.Node {
	if chosen != "" && chosen != "0" && values[chosen] == "" {
		values[chosen] = chosen
	}
	var keys []string
	for value := range values {
		keys = append(keys, value)
	}
	slices.SortFunc(keys, func(a, b string) int {
		x, failed := strconv.Atoi(a)
		y, failedToo := strconv.Atoi(b)
		if failed == nil && failedToo == nil {
			return x - y
		}
		return cmp.Or(strings.Compare(values[a], values[b]), strings.Compare(a, b))
	})
	return h.Div(
		h.Label(h.For("filter-"+name), g.Text(label)),
		h.Select(h.ID("filter-"+name), h.Name(name),
			h.Option(h.Value(""), g.Text(none)),
			g.Map(keys, func(value string) g.Node {
				return h.Option(h.Value(value), g.If(value == chosen, h.Selected()), g.Text(values[value]))
			}),
		),
	)
}

// whoIs returns what people call whoever is at chat.
func whoIs(at string, names map[string]string) string {
	if name := names[at]; name != "" {
		return name + " (" + at + ")"
	}
	return at
}

// days returns the conversations, those of each day under its name.
func (p *Pages) days(f filter, all []chat.Talk, names map[string]string) (content g.Group) {
	now := time.Now().In(p.Zone)
	since := f.since(now)
	fits := slices.DeleteFunc(slices.Clone(all), func(t chat.Talk) bool {
		return !f.has(t.Session) || t.Last.Before(since)
	})
	switch {
	case len(all) == 0:
		return g.Group{layout.Empty("Nothing was said yet",
			"Conversations of all channels appear here once somebody writes.", layout.LinkButton("/", "To the chat"))}
	case len(fits) == 0:
		return g.Group{layout.Empty("No conversation fits", "Choose another channel, person or time.",
			layout.LinkButton(pagePath, "Show all"))}
	}
	latest := fits[:min(len(fits), maxListed)]
	for begin := 0; begin < len(latest); {
		name := day(latest[begin].Last.In(p.Zone), now)
		end := begin
		for end < len(latest) && day(latest[end].Last.In(p.Zone), now) == name {
			end++
		}
		content = append(content,
			h.H2(h.Class("day"), g.Text(name)),
			h.Ul(h.Class("talks card"), g.Map(latest[begin:end], func(t chat.Talk) g.Node { return p.item(t, names) })))
		begin = end
	}
	if older := len(fits) - len(latest); older > 0 {
		text := fmt.Sprintf("%d older ones are not listed. Search or filter to find them.", older)
		content = append(content, h.P(h.Class("lead"), g.Text(text)))
	}
	return content
}

// day returns what people call the day of t.
func day(t, now time.Time) string {
	switch t.Format(time.DateOnly) {
	case now.Format(time.DateOnly):
		return "Today"
	case now.AddDate(0, 0, -1).Format(time.DateOnly):
		return "Yesterday"
	}
	if t.Year() == now.Year() {
		return t.Format("Monday, 2 January")
	}
	return t.Format("2 January 2006")
}

func (p *Pages) item(t chat.Talk, names map[string]string) g.Node {
	at := placeOf(t.Session)
	return h.Li(h.A(h.Href(talkPath(t.Session)),
		h.Span(h.Class("about"), g.Text(cmp.Or(t.Title, "Without words"))),
		at.node(t.Session, names),
		h.Time(h.DateTime(t.Last.Format(time.RFC3339)), g.Text(t.Last.In(p.Zone).Format("15:04"))),
	))
}

// node returns where the session id is.
func (p place) node(id chat.SessionID, names map[string]string) g.Node {
	return h.Span(h.Class("where"), h.B(g.Text(p.title())), g.Text(" "+cmp.Or(names[p.chat], string(id))))
}

func talkPath(id chat.SessionID) string { return layout.Path("owner", "talks", string(id)) }

// found returns the places where the words were said, the latest first.
func (p *Pages) found(f filter, found []chat.Find, all []chat.Talk, names map[string]string) g.Node {
	now := time.Now().In(p.Zone)
	since := f.since(now)
	found = slices.DeleteFunc(found, func(x chat.Find) bool { return x.Entry.Time.Before(since) })
	if len(found) == 0 {
		return layout.Empty("No message has all of these words", "Words are found in what was said, in any order.",
			layout.LinkButton(pagePath+"?q="+url.QueryEscape(f.words), "Look everywhere"),
			layout.LinkButton(pagePath, "Show all"))
	}
	titles := map[chat.SessionID]string{}
	for _, t := range all {
		titles[t.Session] = t.Title
	}
	return g.Group{
		h.H2(h.Class("day"), g.Text("Found")),
		h.Ul(h.Class("talks card"), g.Map(found, func(x chat.Find) g.Node {
			at := placeOf(x.Session)
			who := cmp.Or(x.Entry.Who, string(x.Entry.Kind))
			return h.Li(h.A(h.Href(talkPath(x.Session)),
				h.Span(h.Class("about"), g.Text(cmp.Or(titles[x.Session], string(x.Session)))),
				at.node(x.Session, names),
				h.Time(h.DateTime(x.Entry.Time.Format(time.RFC3339)), g.Text(p.moment(x.Entry.Time, now))),
				h.Span(h.Class("quote"), h.B(g.Text(who+": ")), g.Text(layout.Excerpt(x.Entry.Text))),
			))
		})),
	}
}

// moment returns t for people, as shortly as it can be said now.
func (p *Pages) moment(t, now time.Time) string {
	t = t.In(p.Zone)
	switch {
	case t.Format(time.DateOnly) == now.Format(time.DateOnly):
		return t.Format("15:04")
	case t.Year() == now.Year():
		return t.Format("2 Jan, 15:04")
	}
	return t.Format("2 Jan 2006, 15:04")
}
