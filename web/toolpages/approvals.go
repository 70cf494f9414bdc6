package toolpages

import (
	"encoding/json"
	"net/http"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/chat"
	"parley/response"
	"parley/web/layout"
)

func (a *Admin) listApprovals(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	all, err := a.Approvals(r.Context())
	if err != nil {
		return err
	}
	return answer(w, append([]chat.Approval{}, all...))
}

// revoke takes an approval back: owners are asked again from the next call on.
func (a *Admin) revoke(w http.ResponseWriter, r *http.Request, who chat.Sender) error {
	var ask chat.Approval
	if err := readLenient(w, r, &ask); err != nil {
		return err
	}
	if err := a.Revoke(r.Context(), ask); err != nil {
		return err
	}
	a.Audit("approval", who.ID, "revoked in "+string(ask.Chat)+": "+ask.Effect)
	return answer(w, map[string]string{"revoked": ask.Effect})
}

// approvalsPage lists what owners approved for a while, with buttons to revoke it.
func (a *Admin) approvalsPage(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	all, err := a.Approvals(r.Context())
	if err != nil {
		return err
	}
	items := g.Map(all, func(p chat.Approval) g.Node {
		until := "the end of the conversation"
		if !p.Until.IsZero() {
			until = a.formatTime(p.Until)
		}
		body, _ := json.Marshal(p) // strings and times can be encoded
		where := g.Group{h.A(h.Href(layout.Path("owner", "talks", string(p.Chat))), g.Text(string(p.Chat)))}
		if p.Session != p.Chat {
			where = append(where, g.Text(" for "+string(p.Session)))
		}
		return h.Li(
			h.Div(
				h.H2(g.Text(p.Effect)),
				h.Dl(
					h.Dt(g.Text("In")), h.Dd(where),
					h.Dt(g.Text("Until")), h.Dd(g.Text(until)),
					h.Dt(g.Text("By")), h.Dd(g.Text(p.By)),
				),
			),
			h.Div(h.Button(h.Data("post", "/api/admin/approvals/revoke"), h.Data("body", string(body)),
				h.Aria("label", "Revoke "+layout.Excerpt(p.Effect)), g.Text("Revoke"))),
		)
	})
	if len(items) == 0 {
		items = g.Group{h.Li(g.Text("There are none."))}
	}
	content := g.Group{
		h.P(g.Text("These calls run without asking an owner each time. " +
			"Revoked approvals are asked for again from the next call on. " +
			"In a chat, /approvals shows and revokes them, too.")),
		h.Ul(h.Class("list jobs"), h.Aria("label", "Approvals"), items),
	}
	return response.Page(w, http.StatusOK, layout.Page("/admin/approvals", "Approvals", content))
}
