// Package logs shows the owner the latest lines of the log, filtered, and those that come
// while somebody looks. The log is kept in memory, without secrets (R-S26).
package logs

import (
	"context"
	"embed"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/chat"
	"parley/redact"
	"parley/response"
	"parley/web/layout"
	"parley/web/live"
)

//go:embed assets
var assets embed.FS

// Pages are the page of the log and the same as JSON.
type Pages struct {
	Recent  *redact.Recent
	Streams *live.Streams
	Zone    *time.Location
}

// Routes returns all routes.
func (p *Pages) Routes() []layout.Route {
	return append(layout.Assets(assets),
		layout.Route{Pattern: "GET " + pagePath, Handle: p.page},
		layout.Route{Pattern: "GET " + pagePath + "/events", Handle: p.follow},
		layout.Route{Pattern: "GET /api/logs", Handle: p.list},
	)
}

const (
	pagePath = "/owner/logs"
	maxShown = 300 // lines on the page, and in an answer
)

// A filter says which lines are wanted.
type filter struct {
	level slog.Level // and above
	part  string     // a package, and those in it; "": all
	words string     // that the text contains, in any case
	from  time.Time  // zero: from the first on
}

// A span is how long ago lines may be.
type span struct {
	value, title string
	ago          time.Duration // 0: any time
}

// spans are those that can be chosen.
func spans() []span {
	return []span{
		{"", "since the start", 0},
		{"5m", "last 5 minutes", 5 * time.Minute},
		{"1h", "last hour", time.Hour},
		{"24h", "last 24 hours", 24 * time.Hour},
	}
}

// filterOf returns the filter in the query of r.
func filterOf(r *http.Request) (f filter, err error) {
	if level := r.FormValue("level"); level != "" {
		if err := f.level.UnmarshalText([]byte(level)); err != nil {
			return f, response.BadRequest("level must be DEBUG, INFO, WARN or ERROR")
		}
	} else {
		f.level = slog.LevelDebug
	}
	f.part = r.FormValue("part")
	f.words = strings.ToLower(strings.TrimSpace(r.FormValue("q")))
	chosen := r.FormValue("time")
	for _, s := range spans() {
		if s.value == chosen {
			if s.ago > 0 {
				f.from = time.Now().Add(-s.ago)
			}
			return f, nil
		}
	}
	return f, response.BadRequest("time must be 5m, 1h, 24h or nothing")
}

// takes reports whether l is wanted.
func (f filter) takes(l redact.Line) bool {
	var level slog.Level
	_ = level.UnmarshalText([]byte(l.Level)) // slog wrote it
	return level >= f.level && !l.Time.Before(f.from) &&
		(f.part == "" || l.Part == f.part || strings.HasPrefix(l.Part, f.part+"/")) &&
		(f.words == "" || strings.Contains(strings.ToLower(l.Text), f.words))
}

// found are the latest lines that a filter takes, the newest first, and how many more
// there are.
type found struct {
	Lines []redact.Line `json:"lines"`
	More  int           `json:"more"` // older ones that are not among them
	Parts []string      `json:"parts"`
}

func (p *Pages) find(f filter) found {
	all, _ := p.Recent.After(0)
	result := found{Lines: []redact.Line{}, Parts: []string{}}
	for _, l := range slices.Backward(all) {
		if !slices.Contains(result.Parts, l.Part) {
			result.Parts = append(result.Parts, l.Part)
		}
		switch {
		case !f.takes(l):
		case len(result.Lines) < maxShown:
			result.Lines = append(result.Lines, l)
		default:
			result.More++
		}
	}
	slices.Sort(result.Parts)
	return result
}

func (p *Pages) list(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	f, err := filterOf(r)
	if err != nil {
		return err
	}
	response.JSON(w, http.StatusOK, p.find(f))
	return nil
}

// follow sends the lines that come after the one of the number in the query.
func (p *Pages) follow(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	f, err := filterOf(r)
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(r.FormValue("after"), 10, 64)
	if err != nil {
		return response.BadRequest("after must be the number of a line")
	}
	const beat = 20 * time.Second
	return p.Streams.Serve(w, r, func(ctx context.Context, out *live.Out) error {
		for {
			lines, changed := p.Recent.After(n)
			for _, l := range lines {
				n = l.N
				if !f.takes(l) {
					continue
				}
				row := map[string]any{"n": l.N, "html": p.row(l).(interface{ String() string }).String()}
				if err := out.Event("line", row); err != nil {
					return err
				}
			}
			select {
			case <-changed:
			case <-time.After(beat):
				if err := out.Beat(); err != nil {
					return err
				}
			case <-ctx.Done():
				return nil
			}
		}
	})
}

func (p *Pages) page(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	f, err := filterOf(r)
	if err != nil {
		return err
	}
	all := p.find(f)
	last := uint64(0)
	if lines, _ := p.Recent.After(0); len(lines) > 0 {
		last = lines[len(lines)-1].N
	}
	query := url.Values{}
	for _, name := range []string{"level", "part", "q", "time"} {
		if value := r.FormValue(name); value != "" {
			query.Set(name, value)
		}
	}
	return layout.Frame{
		Path:   pagePath,
		Title:  "Logs",
		Lead:   "What Parley logged since it started, without secrets. New lines appear by themselves.",
		Assets: []string{"logs.css", "logs.js"},
		Actions: g.Group{
			h.Span(h.ID("tail"), h.Role("status"), h.Class("state busy"), g.Text("Connecting")),
			h.Button(h.ID("pause"), h.Type("button"), g.Text("Pause")),
		},
		Content: g.Group{
			p.form(r, all.Parts),
			h.Ol(h.ID("lines"), h.Aria("label", "Lines, the newest first"), h.Data("events", pagePath+"/events"),
				h.Data("query", query.Encode()), h.Data("last", strconv.FormatUint(last, 10)),
				g.Map(all.Lines, p.row)),
			h.Div(h.ID("nothing"), g.If(len(all.Lines) > 0, h.Hidden("")), p.empty(len(query) > 0)),
			g.If(all.More > 0, h.P(g.Textf("%d older lines are not shown. Filter to find them.", all.More))),
		},
	}.Write(w)
}

func (p *Pages) empty(filtered bool) g.Node {
	if filtered {
		return layout.Empty("No line is like that", "Lines that match appear here as they come.",
			layout.LinkButton(pagePath, "Show all lines"))
	}
	return layout.Empty("Nothing was logged yet",
		"Lines appear here as they come; log.level in the config says which are written.")
}

func (p *Pages) form(r *http.Request, parts []string) g.Node {
	option := func(name, value, title string) g.Node {
		return h.Option(h.Value(value), g.If(r.FormValue(name) == value, h.Selected()), g.Text(title))
	}
	chosen := r.FormValue("part")
	if chosen != "" && !slices.Contains(parts, chosen) {
		parts = append(parts, chosen)
	}
	return h.Form(h.Class("filters"), h.Action(pagePath), h.Role("search"),
		h.Div(h.Label(h.For("level"), g.Text("Level")), h.Select(h.ID("level"), h.Name("level"),
			option("level", "", "all"), option("level", "INFO", "info and above"),
			option("level", "WARN", "warnings and errors"), option("level", "ERROR", "errors only"))),
		h.Div(h.Label(h.For("part"), g.Text("Part")), h.Select(h.ID("part"), h.Name("part"),
			option("part", "", "all"), g.Map(parts, func(name string) g.Node { return option("part", name, name) }))),
		h.Div(h.Label(h.For("time"), g.Text("Time")), h.Select(h.ID("time"), h.Name("time"),
			g.Map(spans(), func(s span) g.Node { return option("time", s.value, s.title) }))),
		h.Div(h.Class("words"), h.Label(h.For("q"), g.Text("Text")),
			h.Input(h.ID("q"), h.Name("q"), h.Type("search"), h.Value(r.FormValue("q")), h.AutoComplete("off"))),
		h.Button(h.Class("main"), g.Text("Filter")),
	)
}

// row returns a line of the log as an item of the list.
func (p *Pages) row(l redact.Line) g.Node {
	zone := p.Zone
	if zone == nil {
		zone = time.Local
	}
	state := map[string]layout.State{"ERROR": layout.Bad, "WARN": layout.Warn, "INFO": layout.Good}[l.Level]
	if state == "" {
		state = layout.Idle
	}
	words, rest := split(l)
	at := l.Time.In(zone)
	return h.Li(
		h.Div(h.Class("about"),
			h.Time(h.DateTime(at.Format(time.RFC3339)), h.Title(at.Format("2006-01-02 15:04:05 MST")),
				g.Text(at.Format("15:04:05"))),
			layout.Status(state, strings.ToLower(l.Level)),
			h.Span(h.Class("part"), g.Text(l.Part)),
		),
		h.Div(h.Class("text"), h.B(g.Text(words)), g.If(rest != "", h.Code(g.Text(rest)))),
	)
}

// split returns the message of a line, and its attributes.
func split(l redact.Line) (words, rest string) {
	text := strings.TrimPrefix(l.Text, "level="+l.Level+" ")
	after, found := strings.CutPrefix(text, "msg=")
	if !found {
		return text, ""
	}
	if quoted, err := strconv.QuotedPrefix(after); err == nil {
		words, _ = strconv.Unquote(quoted)
		return words, strings.TrimSpace(after[len(quoted):])
	}
	words, rest, _ = strings.Cut(after, " ")
	return words, rest
}
