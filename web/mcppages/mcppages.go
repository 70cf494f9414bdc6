// Package mcppages has the page and the API with which owners look after MCP servers.
package mcppages

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/chat"
	"parley/response"
	"parley/tools/mcp"
	"parley/tools/mcp/manage"
	"parley/tools/mcp/pins"
	"parley/tools/mcp/signin"
	"parley/web/layout"
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
func (a Admin) Routes() []layout.Route {
	if a.Manager == nil {
		return nil
	}
	return []layout.Route{
		{Pattern: "GET " + pagePath, Handle: a.listPage},
		{Pattern: "GET " + pagePath + "/server", Handle: a.serverPage},
		{Pattern: "GET " + apiPath, Handle: a.list},
		{Pattern: "GET " + apiPath + "/server", Handle: a.show},
		{Pattern: "POST " + apiPath + "/approve", Handle: a.approve},
		{Pattern: "POST " + apiPath + "/reconnect", Handle: a.reconnect},
		{Pattern: "POST " + apiPath + "/test", Handle: a.test},
		{Pattern: "POST " + apiPath + "/login", Handle: a.login},
		{Pattern: "POST " + apiPath + "/login/finish", Handle: a.finishLogin},
		{Pattern: "POST " + apiPath + "/logout", Handle: a.logout},
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
	case errors.Is(err, signin.ErrFailed):
		return response.Problem{Status: http.StatusBadGateway, Text: err.Error()}
	case errors.Is(err, pins.ErrNumber), errors.Is(err, mcp.ErrDisabled),
		errors.Is(err, signin.ErrNoSignIn), errors.Is(err, signin.ErrWrongCode):
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

	Numbers []int `json:"numbers"` // of the changes that are approved; none: all

	Person chat.Person `json:"person"` // who is signed out
	ID     string      `json:"id"`     // of a sign-in
	Answer string      `json:"answer"` // what the browser shows at its end
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
	if err := a.Manager.Approve(r.Context(), o.Name, o.Code, who.ID, o.Numbers...); err != nil {
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

// login begins to sign the owner in to a server.
func (a Admin) login(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	o, err := readOrder(w, r)
	if err != nil {
		return err
	}
	begun, err := a.Manager.Login(r.Context(), o.Name)
	if err != nil {
		return explain(err)
	}
	return answer(w, begun)
}

// finishLogin ends what login began.
func (a Admin) finishLogin(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	o, err := readOrder(w, r)
	if err != nil {
		return err
	}
	if err := a.Manager.FinishLogin(r.Context(), o.ID, o.Answer); err != nil {
		return explain(err)
	}
	return answer(w, map[string]bool{"signed_in": true})
}

// logout signs somebody out of a server: the owner, unless it says whom.
func (a Admin) logout(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	o, err := readOrder(w, r)
	if err != nil {
		return err
	}
	was, err := a.Manager.Logout(r.Context(), o.Name, cmp.Or(o.Person, chat.TheOwner))
	if err != nil && !was {
		return explain(err)
	}
	return answer(w, map[string]bool{"was_signed_in": was, "revoked": err == nil})
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
	signIns := slices.ContainsFunc(all, func(s manage.Status) bool { return s.SignIn != nil })
	rows := g.Map(all, func(s manage.Status) g.Node {
		return h.Tr(
			layout.RowHead(h.A(h.Href(serverPath(s.Name)), g.Text(s.Name)),
				g.If(s.Person != "", g.Text(" ("+string(s.Person)+")"))),
			h.Td(h.Class("times"), state(s)),
			layout.Cell(s.Tools),
			h.Td(changes(s)),
			h.Td(h.Class("times"), g.Text(calls(s))),
			g.If(signIns, layout.Cell(a.signedIn(s))),
			layout.TextCell(layout.Excerpt(s.LastError)),
		)
	})
	columns := []string{"Server", "State", "Tools", "To approve", "Calls", "Signed in", "Last error"}
	if !signIns {
		columns = slices.DeleteFunc(columns, func(name string) bool { return name == "Signed in" })
	}
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

func offers(s manage.Status) string {
	if s.New {
		return fmt.Sprintf("%d, approved by their first use", s.Tools)
	}
	return fmt.Sprintf("%d offered, %d withheld", s.Tools, s.Withheld)
}

func calls(s manage.Status) string {
	if s.Calls == 0 {
		return "none"
	}
	return fmt.Sprintf("%d, %d failed, %d ms each", s.Calls, s.Failures, s.LatencyMS)
}

// serverPage shows one server, with what waits for approval.
func (a Admin) serverPage(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	name := r.URL.Query().Get("name")
	report, err := a.Manager.Show(r.Context(), name)
	if err != nil {
		return explain(err)
	}
	offers := g.Map(report.Offers, func(o manage.Offer) g.Node {
		return h.Tr(
			layout.RowHead(g.Text(o.Name), g.If(o.Withheld, g.Group{g.Text(" "), layout.Coloured("bad", "withheld")})),
			layout.Cell(o.Kind),
			layout.TextCell(o.Description, g.If(len(o.Parameters) > 0, h.Ul(g.Map(o.Parameters, parameter)))),
		)
	})
	instructions := g.If(report.Instructions != "", g.Group{
		layout.Heading("instructions", "What it tells the model"),
		h.P(h.Class("text"), g.Text(report.Instructions)),
	})
	const empty = "Nothing is known: the server has not been connected since Parley started."
	content := g.Group{
		h.P(h.A(h.Href(pagePath), g.Text("All MCP servers"))),
		g.Map(report.Status, a.status),
		h.P(button("reconnect", "Reconnect", order{Name: name}, "")),
		g.If(report.NeedsSignIn, signInForm(name)),
		a.pending(name, report),
		instructions,
		layout.Heading("offers", "What it offers"),
		layout.Table("offers", []string{"Name", "Kind", "Description"}, empty, offers),
	}
	return response.Page(w, http.StatusOK, layout.Page(pagePath, name, content))
}

// signInForm returns the button that begins to sign the owner in to a server, and what is shown after that.
func signInForm(name string) g.Node {
	link := func(field string) g.Node {
		return h.A(h.Class("text"), h.Data("out", field), h.Target("_blank"), h.Rel("noopener noreferrer"))
	}
	return g.Group{
		h.P(h.Button(h.Data("post", apiPath+"/login"), h.Data("body", encoded(order{Name: name})),
			h.Data("show", "signin"), g.Text("Sign in"))),
		h.Section(h.ID("signin"), h.Aria("label", "Sign in to "+name), h.Hidden(""),
			h.P(g.Text("Open this, and sign in there: "), link("link")),
			h.P(g.Text("If your browser cannot reach that, open this instead: "), link("direct")),
			response.ScriptForm(h.Data("post", apiPath+"/login/finish"), h.Data("then", serverPath(name)),
				h.Span(h.Input(h.Type("hidden"), h.Name("id"), h.Data("out", "id"))),
				h.Label(h.For("answer"), g.Text("Then enter the six digits that the browser shows at the end, or, "+
					"if that page cannot be reached, its address")),
				h.Input(h.ID("answer"), h.Name("answer"), h.Required(), h.AutoComplete("off")),
				h.Button(g.Text("Finish")),
			),
		),
	}
}

// encoded returns o as the API reads it.
func encoded(o order) string {
	body, _ := json.Marshal(o) // strings can be encoded
	return string(body)
}

func parameter(p manage.Parameter) g.Node { return h.Li(g.Text(p.String())) }

// button returns a button that posts o to the API.
func button(action, label string, o order, question string) g.Node {
	return h.Button(h.Data("post", apiPath+"/"+action), h.Data("body", encoded(o)),
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
			g.If(s.SignIn != nil, item("Signed in", g.Text(a.signedIn(s)+" "), button("logout", "Sign out",
				order{Name: s.Name, Person: s.Person}, "Sign "+string(s.Person)+" out of "+s.Name+"?"))),
			g.If(s.LastError != "", item("Last error", g.Text(s.LastError))),
			g.If(!s.NextTry.IsZero(), item("Next attempt", g.Text(a.formatTime(s.NextTry)))),
			g.If(s.Protocol != "", item("Protocol", g.Text(s.Protocol))),
			item("Tools", g.Text(offers(s))),
			item("Calls", g.Text(calls(s))),
			g.If(!s.LastCall.IsZero(), item("Last call", g.Text(a.formatTime(s.LastCall)))),
		)),
		g.If(len(s.Stderr) > 0, h.Details(h.Summary(g.Text("What its program wrote last")),
			h.Pre(h.TabIndex("0"), g.Map(s.Stderr, func(line string) g.Node { return g.Text(line + "\n") })))),
	}
}

// signedIn says until when the person of s is signed in; "" if they are not.
func (a Admin) signedIn(s manage.Status) string {
	switch {
	case s.SignIn == nil:
		return ""
	case s.SignIn.Until.IsZero():
		return "yes"
	case s.SignIn.Renewed:
		return "until " + a.formatTime(s.SignIn.Until) + ", renewed automatically"
	}
	return "until " + a.formatTime(s.SignIn.Until)
}

// pending shows what waits for approval, and the button that approves exactly this.
func (a Admin) pending(name string, report manage.Report) g.Node {
	p := report.Pending
	if len(p.Changes) == 0 {
		return nil
	}
	var list g.Group
	for i, c := range p.Changes {
		one := order{Name: name, Code: p.Code, Numbers: []int{i + 1}}
		list = append(list, h.Li(h.H3(g.Text(report.Summary[i])), layout.Diff("Difference of "+c.Name, c.Diff),
			g.If(len(p.Changes) > 1, h.P(button("approve", "Approve only this", one,
				"Let the agent use "+c.Name+" as it is shown here?")))))
	}
	why := "Since " + a.formatTime(p.Since) + ", the server offers what no owner has approved. The agent " +
		"does not use it, and is not shown it."
	if p.First {
		why = "The agent has not used this server so far. The first message that needs it approves exactly what is " +
			"shown here; what has changed by then waits for you."
	}
	return g.Group{
		layout.Heading("changes", "To approve"),
		h.P(g.Text(why + " Descriptions are instructions to the agent: read them. " +
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
