package web

import (
	"encoding/json"
	"errors"
	"net/http"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/response"
	"parley/web/layout"
)

// members are the people who were invited, and the API keys.
type members struct {
	People []invited `json:"people"`
	Keys   []pass    `json:"keys"`
}

func (a *admin) members(r *http.Request) (m members, err error) {
	all, err := list(r.Context(), a.access.people.invited, "")
	m.People = []invited{}
	for _, p := range all {
		if p.Removed.IsZero() {
			m.People = append(m.People, p)
		}
	}
	var failed error
	m.Keys, failed = list(r.Context(), a.access.people.passes, passKey(keys, ""))
	return m, errors.Join(err, failed)
}

const nameHelp = "lower-case letters, digits, dots and dashes"

func (p pages) members(m members) g.Group {
	columns := []string{"Key", "Person", "Sessions", "Created", "Action"}
	return g.Group{
		layout.Heading("invited", "Invited to the web page"),
		layout.Table("invited", []string{"Name", "Invited", "Action"}, "", p.personRows(m.People)),
		response.ScriptForm(h.Data("post", "/api/people"),
			h.Label(h.For("name"), g.Text("Invite somebody")),
			nameInput("name", h.Required(), h.Aria("describedby", "nameHelp")),
			h.Button(g.Text("Invite")),
			g.Text(" "),
			h.Small(h.ID("nameHelp"), g.Text(nameHelp)),
		),
		layout.Heading("keys", "API keys"),
		layout.Table("keys", columns, "There are none.", g.Map(m.Keys, p.keyRow)),
		response.ScriptForm(h.Data("post", "/api/keys"),
			h.Label(h.For("person"), g.Text("Create a key for")),
			h.Select(h.ID("person"), h.Name("person"),
				h.Option(g.Text(ownerName)),
				g.Map(m.People, func(p invited) g.Node { return h.Option(g.Text(p.Name)) }),
			),
			h.Label(h.For("prefix"), g.Text("Sessions")),
			nameInput("prefix", h.Placeholder("their name")),
			h.Button(g.Text("Create")),
		),
		h.H2(g.Text("Backup")),
		h.P(
			h.A(h.Href("/api/backup"), g.Attr("download"), g.Text("Download a backup")),
			g.Text(". It contains secrets: whoever has it can read everything."),
		),
		h.H2(g.Text("This browser")),
		h.P(h.Button(h.Data("post", "/signout"), h.Data("then", "/signin"), g.Text("Sign out"))),
	}
}

// nameInput returns a field for a name that validName matches.
func nameInput(id string, attributes ...g.Node) g.Node {
	return h.Input(h.ID(id), h.Name(id), h.Pattern(`[a-z0-9][a-z0-9._\-]*`), h.MaxLength("32"),
		h.AutoComplete("off"), g.Group(attributes))
}

func (p pages) personRows(all []invited) g.Group {
	rows := g.Group{h.Tr(layout.RowHead(g.Text(ownerName+" (you)")), layout.Cell(""), h.Td(linkButton(ownerName)))}
	for _, who := range all {
		remove := layout.Path("api", "people", who.Name)
		rows = append(rows, h.Tr(
			layout.RowHead(g.Text(who.Name)),
			layout.Cell(p.formatTime(who.Invited)),
			h.Td(
				linkButton(who.Name),
				g.Text(" "),
				layout.DeleteButton(remove, "Remove", "Remove "+who.Name+"? Their API keys are revoked, too."),
			),
		))
	}
	return rows
}

// linkButton returns a button that makes a sign-in link for the person of that name.
func linkButton(name string) g.Node {
	body, _ := json.Marshal(map[string]string{"name": name}) // a map of strings can be encoded
	return h.Button(h.Data("post", "/api/people"), h.Data("body", string(body)), g.Text("New link"))
}

func (p pages) keyRow(k pass) g.Node {
	return h.Tr(
		layout.RowHead(g.Text("…"+k.Last)),
		layout.Cell(k.Person),
		layout.Cell(k.Prefix),
		layout.Cell(p.formatTime(k.Made)),
		h.Td(layout.DeleteButton(layout.Path("api", "keys", k.ID), "Revoke", "Revoke this key?")),
	)
}
