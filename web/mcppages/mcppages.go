// Package mcppages has the page and the API with which owners look after MCP servers.
package mcppages

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/chat"
	"parley/response"
	"parley/tools/mcp"
	"parley/tools/mcp/manage"
	"parley/tools/mcp/pins"
	"parley/web/layout"
	"parley/web/toolpages"
)

// An Admin serves the page and the API.
type Admin struct {
	Manager *manage.Manager // nil: there are no routes
	Zone    *time.Location  // of times that people are shown
}

const (
	pagePath = "/admin/mcp"
	apiPath  = "/api/admin/mcp-servers"
)

// Routes returns all routes. They are for owners only.
func (a Admin) Routes() []toolpages.Route {
	if a.Manager == nil {
		return nil
	}
	return []toolpages.Route{
		{Pattern: "GET " + pagePath, Handle: a.listPage},
		{Pattern: "GET " + pagePath + "/server", Handle: a.serverPage},
		{Pattern: "GET " + apiPath, Handle: a.list},
		{Pattern: "GET " + apiPath + "/server", Handle: a.show},
		{Pattern: "POST " + apiPath + "/approve", Handle: a.approve},
		{Pattern: "POST " + apiPath + "/reconnect", Handle: a.reconnect},
		{Pattern: "POST " + apiPath + "/test", Handle: a.test},
	}
}

func answer(w http.ResponseWriter, data any) error {
	response.JSON(w, http.StatusOK, map[string]any{"success": true, "data": data})
	return nil
}

// explain makes err a Problem if whoever asked can do something about it.
func explain(err error) error {
	switch {
	case errors.Is(err, manage.ErrUnknown):
		return response.Problem{Status: http.StatusNotFound, Text: err.Error()}
	case errors.Is(err, pins.ErrStale), errors.Is(err, pins.ErrNothing):
		return response.Problem{Status: http.StatusConflict, Text: err.Error()}
	case errors.Is(err, mcp.ErrDisabled):
		return response.BadRequest(err.Error())
	}
	return err
}

func (a Admin) list(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	all, err := a.Manager.List(r.Context())
	if err != nil {
		return err
	}
	return answer(w, all)
}

func (a Admin) show(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	report, err := a.Manager.Show(r.Context(), r.URL.Query().Get("name"))
	if err != nil {
		return explain(err)
	}
	return answer(w, report)
}

// An order is what the API is sent.
type order struct {
	Name string `json:"name"`
	Code string `json:"code"` // of what is approved
}

func readOrder(w http.ResponseWriter, r *http.Request) (o order, err error) {
	const maxBody = 64 << 10 // bytes
	err = response.ReadJSON(w, r, maxBody, &o)
	return o, err
}

// approve approves what was shown with a code (R-S22).
func (a Admin) approve(w http.ResponseWriter, r *http.Request, who chat.Sender) error {
	o, err := readOrder(w, r)
	if err != nil {
		return err
	}
	if err := a.Manager.Approve(r.Context(), o.Name, o.Code, who.ID); err != nil {
		return explain(err)
	}
	return answer(w, map[string]string{"approved": o.Name})
}

func (a Admin) reconnect(w http.ResponseWriter, r *http.Request, who chat.Sender) error {
	o, err := readOrder(w, r)
	if err != nil {
		return err
	}
	if err := a.Manager.Reconnect(o.Name, who.ID); err != nil {
		return explain(err)
	}
	return answer(w, map[string]string{"reconnecting": o.Name})
}

// test connects a server and answers with what it offers.
func (a Admin) test(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	o, err := readOrder(w, r)
	if err != nil {
		return err
	}
	report, err := a.Manager.Test(r.Context(), o.Name)
	if err != nil {
		return explain(err)
	}
	return answer(w, report)
}

// serverPath returns the path of the page of one server.
func serverPath(name string) string {
	return pagePath + "/server?" + url.Values{"name": {name}}.Encode()
}

// listPage lists all servers.
func (a Admin) listPage(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	all, err := a.Manager.List(r.Context())
	if err != nil {
		return err
	}
	rows := g.Map(all, func(s manage.Status) g.Node {
		return h.Tr(
			layout.RowHead(h.A(h.Href(serverPath(s.Name)), g.Text(s.Name)),
				g.If(s.Person != "", g.Text(" ("+string(s.Person)+")"))),
			h.Td(state(s)),
			layout.Cell(s.Tools),
			h.Td(changes(s)),
			layout.Cell(calls(s)),
			layout.TextCell(layout.Excerpt(s.LastError)),
		)
	})
	columns := []string{"Server", "State", "Tools", "To approve", "Calls", "Last error"}
	const empty = "There are none: tools.mcpServers in the config names them."
	return response.Page(w, http.StatusOK, layout.Page(pagePath, "MCP servers", g.Group{
		h.P(g.Text("Programs and services of other people, whose tools the agent can use.")),
		layout.LabelledTable("MCP servers", columns, empty, rows),
	}))
}

func state(s manage.Status) g.Node {
	class := map[mcp.Phase]string{mcp.Connected: "good", mcp.Failed: "bad"}[s.Phase]
	return layout.Coloured(class, string(s.Phase))
}

func changes(s manage.Status) g.Node {
	if s.Changes == 0 {
		return g.Text("")
	}
	return layout.Coloured("bad", fmt.Sprint(s.Changes))
}

func calls(s manage.Status) string {
	if s.Calls == 0 {
		return "none"
	}
	return fmt.Sprintf("%d, %d failed, %d ms on average", s.Calls, s.Failures, s.LatencyMS)
}

// serverPage shows one server, with what waits for approval.
func (a Admin) serverPage(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	name := r.URL.Query().Get("name")
	report, err := a.Manager.Show(r.Context(), name)
	if err != nil {
		return explain(err)
	}
	offers := g.Map(report.Offers, func(o manage.Offer) g.Node {
		return h.Tr(layout.RowHead(g.Text(o.Name)), layout.Cell(o.Kind), layout.TextCell(o.Description))
	})
	const empty = "Nothing is known: the server has not been connected since Parley started."
	content := g.Group{
		h.P(h.A(h.Href(pagePath), g.Text("All MCP servers"))),
		g.Map(report.Status, a.status),
		h.P(button("reconnect", "Reconnect", order{Name: name}, "")),
		a.pending(name, report),
		layout.Heading("offers", "What it offers"),
		layout.Table("offers", []string{"Name", "Kind", "Description"}, empty, offers),
	}
	return response.Page(w, http.StatusOK, layout.Page(pagePath, name, content))
}

// button returns a button that posts o to the API.
func button(action, label string, o order, question string) g.Node {
	body, _ := json.Marshal(o) // strings can be encoded
	return h.Button(h.Data("post", apiPath+"/"+action), h.Data("body", string(body)),
		layout.Confirmation(question), g.Text(label))
}

// status shows the state of one connection.
func (a Admin) status(s manage.Status) g.Node {
	item := func(name string, value ...g.Node) g.Node { return g.Group{h.Dt(g.Text(name)), h.Dd(value...)} }
	since := ""
	if !s.Since.IsZero() {
		since = " since " + a.formatTime(s.Since)
	}
	return g.Group{
		h.Div(h.Class("jobs"), h.Dl(
			g.If(s.Person != "", item("For", g.Text(string(s.Person)))),
			item("State", state(s), g.Text(since)),
			g.If(s.LastError != "", item("Last error", g.Text(s.LastError))),
			g.If(!s.NextTry.IsZero(), item("Next attempt", g.Text(a.formatTime(s.NextTry)))),
			g.If(s.Protocol != "", item("Protocol", g.Text(s.Protocol))),
			item("Tools", g.Text(fmt.Sprintf("%d offered, %d withheld", s.Tools, s.Withheld))),
			item("Calls", g.Text(calls(s))),
			g.If(!s.LastCall.IsZero(), item("Last call", g.Text(a.formatTime(s.LastCall)))),
		)),
		g.If(len(s.Stderr) > 0, h.Details(h.Summary(g.Text("What its program wrote last")),
			h.Pre(h.TabIndex("0"), g.Map(s.Stderr, func(line string) g.Node { return g.Text(line + "\n") })))),
	}
}

// pending shows what waits for approval, and the button that approves exactly this.
func (a Admin) pending(name string, report manage.Report) g.Node {
	p := report.Pending
	if len(p.Changes) == 0 {
		return nil
	}
	var list g.Group
	for i, c := range p.Changes {
		list = append(list, h.Li(h.H3(g.Text(report.Summary[i])), layout.Diff("Difference of "+c.Name, c.Diff)))
	}
	return g.Group{
		layout.Heading("changes", "To approve"),
		h.P(g.Text("Since " + a.formatTime(p.Since) + ", the server offers what no owner has approved. The agent " +
			"does not use it, and is not shown it. Descriptions are instructions to the agent: read them. " +
			"Characters that cannot be seen are shown by their numbers.")),
		g.If(p.Damaged, h.P(h.Class("bad"),
			g.Text("What was approved earlier cannot be read any more: all of it waits."))),
		g.If(p.Before != "", g.Group{
			h.P(g.Text("The entry in the config was changed since the last approval. Before, and now:")),
			h.Pre(h.TabIndex("0"), g.Text(p.Before+"\n"+p.Command)),
		}),
		h.Ul(h.Class("list"), h.Aria("labelledby", "changes"), list),
		h.P(button("approve", "Approve all of this", order{Name: name, Code: p.Code},
			"Let the agent use "+name+" as it is shown here?")),
	}
}

// formatTime returns t for people.
func (a Admin) formatTime(t time.Time) string {
	zone := a.Zone
	if zone == nil {
		zone = time.Local
	}
	return t.In(zone).Format("2006-01-02 15:04:05")
}
