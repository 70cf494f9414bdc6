package layout

import (
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// A section is an entry of the navigation.
type section struct{ path, title, icon string }

// groups are the entries of the navigation, under their headings.
func groups() []group {
	return []group{
		{"", []section{
			{"/owner", "Dashboard", "dashboard"},
		}},
		{"People", []section{
			{"/owner/talks", "Conversations", "talks"},
			{"/owner/people", "People", "people"},
			{"/owner/memory", "Memory", "memory"},
		}},
		{"Work", []section{
			{"/owner/cron", "Schedule", "schedule"},
			{"/owner/tools", "Tools", "tools"},
			{"/admin/custom-tools", "Custom tools", "custom"},
			{"/admin/mcp", "MCP servers", "servers"},
			{"/admin/policy", "Policy", "policy"},
			{"/admin/approvals", "Approvals", "approvals"},
		}},
		{"Gateway", []section{
			{"/owner/usage", "Usage", "usage"},
			{"/owner/logs", "Logs", "logs"},
			{"/owner/audit", "Audit", "audit"},
			{"/owner/config", "Config", "config"},
		}},
	}
}

type group struct {
	title    string // "" for none
	sections []section
}

// navigation returns the links to all sections, of which the one with path is
// marked. On a narrow window it is a drawer that the button in the top bar opens.
func navigation(path string) g.Node {
	lists := g.Map(groups(), func(part group) g.Node {
		links := g.Map(part.sections, func(s section) g.Node {
			current := path == s.path || s.path != "/owner" && strings.HasPrefix(path, s.path+"/")
			return h.Li(h.A(h.Href(s.path), g.If(current, h.Aria("current", "true")), icon(s.icon), g.Text(s.title)))
		})
		if part.title == "" {
			return h.Ul(links)
		}
		return g.Group{
			h.P(h.Class("group"), h.Aria("hidden", "true"), g.Text(part.title)),
			h.Ul(h.Aria("label", part.title), links),
		}
	})
	return h.Nav(h.ID("nav"), g.Attr("popover"), h.Aria("label", "Owner's pages"),
		h.A(h.Class("name"), h.Href("/owner"), g.Text("Parley")),
		waiting(icon("asks"), g.Text("Waiting for you")),
		lists,
		h.A(h.Class("back"), h.Href("/"), icon("back"), g.Text("To the chat")),
	)
}

// waiting returns a link to what awaits the owner in the chat, with the number of it. It is hidden until waiting.js,
// which is served with owner.js, has found something.
func waiting(text ...g.Node) g.Node {
	return h.A(h.Class("waiting"), h.Href("/"), h.Data("waiting", ""), g.Attr("hidden"),
		g.Group(text), g.Text(" "), h.B())
}

// icons are the paths of pictures of 24 by 24, drawn with a pen of 1.75.
func icons() map[string]string {
	return map[string]string{
		"menu":      "M4 7h16M4 12h16M4 17h16",
		"back":      "M19 12H5m6-6-6 6 6 6",
		"asks":      "M9.500 9.500a2.500 2.500 0 1 1 3.500 2.300c-.7.3-1 .8-1 1.700M12 17h.01M4 4h16v16H4z",
		"dashboard": "M4 4h7v9H4zM13 4h7v5h-7zM13 11h7v9h-7zM4 15h7v5H4z",
		"talks":     "M4 5h16v11H10l-4 4v-4H4zM8 9h8M8 12h5",
		"people":    "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3 20c0-8 12-8 12 0M16 5a3 3 0 0 1 0 5M18 15q3 1 3 5",
		"memory":    "M6 4h12v17l-6-4-6 4zM9.5 8h5M9.5 11.5h5",
		"schedule":  "M4 6h16v14H4zM4 10h16M8 3v4M16 3v4M12 13v3l2 1",
		"tools":     "M19.5 5.5L17 8l.5 1.5 1.5.5 2.5-2.5a4 4 0 0 1-5.5 5l-8 8L3.5 16l8-8a4.5 4.5 0 0 1 8-2.5z",
		"custom":    "M8 8l-4 4 4 4M16 8l4 4-4 4M13.5 5l-3 14",
		"servers":   "M4 4h16v6H4zM4 14h16v6H4zM7.5 7h.01M7.5 17h.01M11 7h5M11 17h5",
		"policy":    "M12 3l8 3v6c0 4.5-3.200 7.5-8 9-4.800-1.5-8-4.5-8-9V6zM9 12l2.200 2.200L15.5 10",
		"approvals": "M4 4h16v16H4zM8 12l3 3 5.5-6",
		"usage":     "M4 20h16M7 16v-5M12 16V6M17 16v-8",
		"logs":      "M5 4h14v16H5zM8.5 8h7M8.5 12h7M8.5 16h4",
		"audit":     "M10 4h4v3h-4zM8 5H5v16h14V5h-3M9 14l2 2 4-4",
		"config":    "M4 7h10m4 0h2M4 17h2m4 0h10M14 7a2 2 0 1 0 4 0a2 2 0 1 0-4 0M6 17a2 2 0 1 0 4 0a2 2 0 1 0-4 0",
	}
}

// icon returns the picture of that name, which says nothing to a screen reader.
func icon(name string) g.Node {
	return h.SVG(h.Class("glyph"), g.Attr("viewBox", "0 0 24 24"), h.Aria("hidden", "true"),
		g.El("path", g.Attr("d", icons()[name])))
}
