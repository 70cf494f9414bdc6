package web

import (
	"net/http"
	"slices"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/audit"
	"parley/redact"
	"parley/web/layout"
)

// admin serves the owner's pages and the same as JSON.
type admin struct {
	cfg    *Config
	access *access
	pages  pages
	began  time.Time
}

// views returns the routes of the owner's pages.
func (a *admin) views() []route {
	show := a.pages
	return slices.Concat(
		a.dashboard(),
		[]route{
			{"GET /api/sessions", owner, serveJSON(a.conversations)},
			{"GET /api/sessions/{id}", owner, serveJSON(a.conversation)},
		},
		view("/owner/usage", "/api/usage", "Usage", a.usage, show.usage),
		view("/owner/tools", "/api/tools", "Tools", a.listTools, show.tools),
		view("/owner/memory/changes", "/api/memory/changes", "Memory changes", a.changes, show.changes),
		view("/owner/memory/changes/{id}", "/api/memory/changes/{id}", "Memory change", a.changed, show.changed),
		view("/owner/people/access", "/api/people", "Invitations and keys", a.members, show.members),
		[]route{{"GET /api/errors", owner, serveJSON(a.errors)}},
		view("/owner/audit", "/api/audit", "Audit", a.events, show.events),
	)
}

// others returns the routes of the pages in packages of their own. Who is no owner is told so by those of tools
// (B-068), and that there is nothing by all others.
func (a *admin) others() (routes []route) {
	all := append(a.cfg.Gateway.ToolAdmin.Routes(), a.cfg.Gateway.MCP.Routes()...)
	all = append(all, a.cfg.Gateway.Dashboard.Routes()...)
	for _, pages := range a.cfg.Gateway.Pages {
		all = append(all, pages.Routes()...)
	}
	for _, rt := range all {
		may := owner
		switch {
		case rt.Anybody:
			may = person
		case strings.Contains(rt.Pattern, "/admin/"):
			may = administrator
		}
		routes = append(routes, route{rt.Pattern, may, func(w http.ResponseWriter, r *http.Request, v visitor) error {
			return rt.Handle(w, r, v.Sender)
		}})
	}
	return routes
}

// errors returns the latest warnings and errors of the log.
func (a *admin) errors(*http.Request) ([]redact.Line, error) { return a.cfg.Gateway.Errors(), nil }

const maxEvents = 200 // of the audit log on a page

// events are the newest entries of the audit log, and the result of verifying it if
// that was requested.
type events struct {
	Events  []audit.Event `json:"events"`
	Verdict *verdict      `json:"verdict,omitempty"`
}

type verdict struct {
	Whole bool   `json:"whole"`
	Why   string `json:"why,omitempty"`
}

// events returns the newest entries of the audit log. With ?verify=1 it also
// verifies the whole log, which takes a while.
func (a *admin) events(r *http.Request) (e events, err error) {
	if r.FormValue("verify") != "" {
		e.Verdict = &verdict{Whole: true}
		if err := a.cfg.Gateway.Events.Verify(r.Context()); err != nil {
			e.Verdict = &verdict{Why: err.Error()}
		}
	}
	e.Events, err = a.cfg.Gateway.Events.Tail(r.Context(), maxEvents)
	return e, err
}

func (p pages) events(e events) g.Group {
	verified := h.A(h.Href("/owner/audit?verify=yes"), g.Text("Verify the log"))
	switch {
	case e.Verdict != nil && e.Verdict.Whole:
		verified = layout.Coloured("good", "The log is intact.")
	case e.Verdict != nil:
		verified = layout.Coloured("bad", "Verification failed: "+e.Verdict.Why)
	}
	rows := g.Map(e.Events, func(e audit.Event) g.Node {
		return h.Tr(layout.Cell(p.formatTime(e.Time)), layout.Cell(e.Kind), layout.Cell(e.Who), layout.TextCell(e.What))
	})
	columns := []string{"Time", "Kind", "Who", "What"}
	return g.Group{
		h.P(verified),
		layout.LabelledTable("The newest entries of the audit log", columns, "There are none.", rows),
	}
}
