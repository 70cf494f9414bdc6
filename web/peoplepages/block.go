package peoplepages

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/channels/admission"
	"parley/chat"
	"parley/response"
	"parley/store"
	"parley/web/layout"
)

// channelsOf returns where the person with an ID on channel is known by the same ID: whoever was invited to the web
// page may have keys.
func channelsOf(channel string) []string {
	if channel == "web" || channel == "api" {
		return []string{"web", "api"}
	}
	return []string{channel}
}

// markBlocked adds to list who is blocked.
func (p *Pages) markBlocked(list []Person, blocked []admission.Block) []Person {
	for _, b := range blocked {
		id := b.Channel + ":" + b.ID
		i := slices.IndexFunc(list, func(one Person) bool { return one.ID == id })
		if i < 0 {
			if b.Channel == "api" { // of whom only the web page is known
				continue
			}
			list = append(list, Person{ID: id})
			i = len(list) - 1
		}
		if list[i].Role == chat.Owner { // the config made them one since
			continue
		}
		list[i].Blocked = true
		list[i].Role = chat.Unknown
		list[i].Why = "blocked"
		if !b.Time.IsZero() {
			list[i].Why += " on " + b.Time.In(p.zone()).Format(time.DateOnly) + " by " + cmp.Or(b.By, "an owner")
		}
	}
	return list
}

// mayBlock returns a problem if there is no such channel, if nobody has that ID there, or if it is an owner's.
func (p *Pages) mayBlock(channel, id string, by chat.Sender) error {
	channels := slices.Sorted(maps.Keys(p.Access.Rules().Allowed()))
	switch {
	case !slices.Contains(channels, channel):
		return response.BadRequest("there is no channel " + channel + "; there are " + strings.Join(channels, ", "))
	case id == "*":
		return response.BadRequest("* is everybody: take it from the allow list in the config")
	case id == by.ID && len(channelsOf(channel)) > 1:
		return response.Problem{Status: http.StatusConflict, Text: "nobody can block themselves"}
	}
	for _, name := range channelsOf(channel) { // before any block is stored
		if p.Access.Rules().Role(name, id) == chat.Owner {
			return response.Problem{
				Status: http.StatusConflict,
				Text:   "owners cannot be blocked: take " + name + ":" + id + " from owners in the config first",
			}
		}
	}
	return nil
}

// block has somebody not be heard any more, and ends what is under way for them.
func (p *Pages) block(w http.ResponseWriter, r *http.Request, by chat.Sender) error {
	channel, id, err := whom(w, r)
	if err != nil {
		return err
	}
	if err := p.mayBlock(channel, id, by); err != nil {
		return err
	}
	for _, name := range channelsOf(channel) {
		if err := p.Access.Block(r.Context(), name, id, by.ID); err != nil {
			return err
		}
	}
	p.Audit("access", by.ID, "blocked: "+channel+":"+id)
	for _, name := range channelsOf(channel) {
		if err := p.Stop(r.Context(), name, id, by.ID); err != nil {
			return err
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// unblock takes back a block.
func (p *Pages) unblock(w http.ResponseWriter, r *http.Request, by chat.Sender) error {
	channel, id, err := whom(w, r)
	if err != nil {
		return err
	}
	undone := false
	for _, name := range channelsOf(channel) {
		found, err := p.Access.Unblock(r.Context(), name, id)
		if err != nil {
			return err
		}
		undone = undone || found
	}
	if !undone {
		return store.ErrNotFound
	}
	p.Audit("access", by.ID, "unblocked: "+channel+":"+id)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// rolesCard says where roles come from.
func rolesCard() g.Node {
	const text = "Owners and allow lists are in the config, and nowhere else: who is an owner, and who may talk " +
		"without a code, is changed there. A change counts from the next message on. The last owner cannot be " +
		"taken away on that page."
	return layout.Card("Roles",
		h.P(g.Text(text)),
		h.P(h.Class("actions"), layout.LinkButton("/owner/config", "Change roles in the config")),
	)
}

// blockCard has a form to block somebody who is not in the list.
func blockCard() g.Node {
	const text = "Whoever is blocked is not heard on that channel, whatever lets them talk otherwise. They are told " +
		"nothing, what runs for them is stopped, and their sessions on the web page end. A group can be blocked, " +
		"too. Owners cannot be blocked."
	return layout.Card("Block somebody",
		h.P(g.Text(text)),
		response.ScriptForm(h.Data("post", "/api/people/block"),
			h.Label(h.For("block"), g.Text("Channel and ID")),
			h.Input(h.ID("block"), h.Name("id"), h.Placeholder("telegram:42"), h.Required(), h.AutoComplete("off")),
			h.Button(g.Text("Block")),
		),
	)
}
