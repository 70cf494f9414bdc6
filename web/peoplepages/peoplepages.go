// Package peoplepages has the page that lists the people of all channels: what they may do and why, when they were
// seen, and what they used.
package peoplepages

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/channels/admission"
	"parley/chat"
	"parley/llm"
	"parley/response"
	"parley/store"
	"parley/web/layout"
)

// Pages serves the page and its API.
type Pages struct {
	Access *admission.Control
	Talks  func(ctx context.Context, prefix string) ([]chat.Talk, error)
	// Invited returns when each person was invited who may sign in on the web page, by name.
	Invited func(context.Context) (map[string]time.Time, error)
	Usage   func(context.Context) ([]llm.Spent, error)
	Limit   func() (tokens int, money float64) // of each person, a day; 0 or less is none
	Zone    *time.Location                     // of days and of times that people are shown
	Audit   func(kind, who, what string)       // receives events for the audit log (R-S27)

	// Stop ends what is under way for the person or the group with that ID on channel, who was blocked: turns,
	// background tasks, requests and streams. who did it, for those who are told.
	Stop func(ctx context.Context, channel, id, who string) error
}

const pagePath = "/owner/people"

// Routes implements layout.Pages.
func (p *Pages) Routes() []layout.Route {
	return []layout.Route{
		{Pattern: "GET " + pagePath, Handle: p.page},
		{Pattern: "GET /api/people/everybody", Handle: p.list},
		{Pattern: "POST /api/people/unpair", Handle: p.unpair},
		{Pattern: "POST /api/people/block", Handle: p.block},
		{Pattern: "POST /api/people/unblock", Handle: p.unblock},
	}
}

// Used is what somebody used.
type Used struct {
	Answers int     `json:"answers"`
	Tokens  int     `json:"tokens"`
	Cost    float64 `json:"cost,omitempty"` // in the currency of the prices
}

// A Person is somebody, or a group, who may talk or has talked.
type Person struct {
	ID     string    `json:"id"` // such as telegram:42; "owner" is all owners together
	Name   string    `json:"name,omitempty"`
	Role   chat.Role `json:"role"` // "" has none by now, or is a group
	Why    string    `json:"why"`  // why they have that role
	Paired bool      `json:"paired,omitempty"`
	// Blocked says that they are not heard, whatever else would let them talk.
	Blocked bool   `json:"blocked,omitempty"`
	Config  bool   `json:"config,omitempty"` // the config gives the role
	Seen    string `json:"seen,omitempty"`   // the day when they were last answered
	Today   Used   `json:"today"`
	Month   Used   `json:"month"` // of the last 30 days
}

func (p *Pages) zone() *time.Location {
	if p.Zone == nil {
		return time.Local
	}
	return p.Zone
}

// Everybody lists the people of all channels, owners first.
func (p *Pages) Everybody(ctx context.Context) ([]Person, error) {
	all := map[string]*Person{}
	person := func(id string) *Person {
		if all[id] == nil {
			all[id] = &Person{ID: id}
		}
		return all[id]
	}
	rules := p.Access.Rules()
	for _, id := range rules.Owners() {
		person(id).Role = chat.Owner
		person(id).Why = "listed in owners of the config"
		if isSignedIn(id) {
			person(id).Why = `signs in as the owner: "web" is listed in owners of the config`
		}
	}
	for channel, ids := range rules.Allowed() {
		for _, id := range ids {
			if isSignedIn(channel + ":" + id) { // the page and the API take whoever was invited or has a key
				continue
			}
			one := person(channel + ":" + id)
			one.Role = cmp.Or(one.Role, chat.User)
			one.Why = cmp.Or(one.Why, "listed in channels."+channel+".allow of the config")
		}
	}
	paired, err := p.Access.Paired(ctx)
	if err != nil {
		return nil, err
	}
	for _, pairing := range paired {
		one := person(pairing.At.Channel + ":" + pairing.Sender)
		one.Name = pairing.Name
		one.Paired = true
		one.Role = cmp.Or(one.Role, chat.User)
		one.Why = cmp.Or(one.Why, "let in by a code on "+pairing.Time.In(p.zone()).Format(time.DateOnly))
	}
	invited, err := p.Invited(ctx)
	if err != nil {
		return nil, err
	}
	for name, since := range invited {
		one := person("web:" + name)
		one.Role = cmp.Or(one.Role, chat.User)
		one.Why = cmp.Or(one.Why, "invited to the web page on "+since.In(p.zone()).Format(time.DateOnly))
	}
	if err := p.count(ctx, person); err != nil {
		return nil, err
	}
	talks, err := p.Talks(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, t := range talks {
		if one := all[string(t.Session)]; one != nil {
			one.Seen = max(one.Seen, t.Last.In(p.zone()).Format(time.DateOnly))
		}
	}
	blocked, err := p.Access.Blocked(ctx)
	if err != nil {
		return nil, err
	}
	list := []Person{}
	for _, one := range all {
		list = append(list, p.explained(ctx, *one))
	}
	list = p.markBlocked(list, blocked)
	rank := map[chat.Role]int{chat.Owner: 0, chat.User: 1, chat.Unknown: 2}
	slices.SortFunc(list, func(a, b Person) int {
		byRole := cmp.Compare(rank[a.Role], rank[b.Role])
		return cmp.Or(byRole, strings.Compare(b.Seen, a.Seen), strings.Compare(a.ID, b.ID))
	})
	return list, nil
}

// count adds what people used.
func (p *Pages) count(ctx context.Context, person func(id string) *Person) error {
	spent, err := p.Usage(ctx)
	if err != nil {
		return err
	}
	today := time.Now().In(p.zone())
	month := today.AddDate(0, 0, -30).Format(time.DateOnly)
	for _, s := range spent {
		one := person(s.Who)
		one.Seen = max(one.Seen, s.Day)
		for _, used := range []struct {
			to *Used
			is bool
		}{{&one.Today, s.Day == today.Format(time.DateOnly)}, {&one.Month, s.Day > month}} {
			if used.is {
				used.to.Answers += s.Turns
				used.to.Tokens += s.Usage.In + s.Usage.Out
				used.to.Cost += s.Cost
			}
		}
	}
	return nil
}

// isSignedIn reports whether id is of the page or the API, where no list in the config says who may talk.
func isSignedIn(id string) bool {
	channel, _, _ := strings.Cut(id, ":")
	return channel == "web" || channel == "api"
}

// explained returns one with a reason, of those who are known by what they used only.
func (p *Pages) explained(ctx context.Context, one Person) Person {
	switch {
	case one.Why != "":
	case one.ID == string(chat.TheOwner):
		one.Role = chat.Owner
		one.Why = "all owners together: they share one memory and one account"
	case isSignedIn(one.ID):
		one.Role = chat.User
		one.Why = "was invited to the web page, or has a key"
	default:
		one.Why = "a group, or nobody who may talk now"
		at := strings.LastIndex(one.ID, ":")
		role, err := p.Access.Role(ctx, chat.Address{Channel: one.ID[:max(at, 0)]}, one.ID[at+1:])
		if err != nil || role == chat.Unknown {
			return one
		}
		one.Role = role
		one.Why = "everybody may talk there: the config says so"
	}
	return one
}

func (p *Pages) list(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	all, err := p.Everybody(r.Context())
	if err != nil {
		return err
	}
	response.JSON(w, http.StatusOK, map[string]any{"people": all})
	return nil
}

// whom returns the channel and the ID that a request names.
func whom(w http.ResponseWriter, r *http.Request) (channel, id string, err error) {
	var ask struct {
		ID string `json:"id"`
	}
	if err := response.ReadJSON(w, r, 1<<10, &ask); err != nil {
		return "", "", err
	}
	at := strings.LastIndex(ask.ID, ":")
	if at <= 0 || at == len(ask.ID)-1 || strings.ContainsFunc(ask.ID, func(r rune) bool { return r <= ' ' }) {
		return "", "", response.BadRequest("id must be a channel, a colon and an id, such as telegram:42")
	}
	return ask.ID[:at], ask.ID[at+1:], nil
}

// unpair takes back what a pairing code has allowed.
func (p *Pages) unpair(w http.ResponseWriter, r *http.Request, by chat.Sender) error {
	channel, id, err := whom(w, r)
	if err != nil {
		return err
	}
	found, err := p.Access.Unpair(r.Context(), channel, id)
	if err != nil {
		return err
	}
	if !found {
		return store.ErrNotFound
	}
	p.Audit("access", by.ID, "unpaired: "+channel+":"+id)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (p *Pages) page(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	all, err := p.Everybody(r.Context())
	if err != nil {
		return err
	}
	columns := []string{"Who", "Role", "Last seen", "Today", "30 days", "Action"}
	return layout.Frame{
		Path:    pagePath,
		Title:   "People",
		Lead:    "Who may talk to Parley on all channels and why, when they last did, and what they used.",
		Actions: g.Group{layout.LinkButton(pagePath+"/access", "Invitations and keys")},
		Content: g.Group{
			layout.LabelledTable("People", columns, "Nobody has talked to Parley yet.", g.Map(all, p.row)),
			h.P(h.Class("lead"), g.Text(p.limit())),
			layout.Grid(rolesCard(), blockCard()),
		},
	}.Write(w)
}

func (p *Pages) limit() string {
	tokens, money := p.Limit()
	var limits []string
	if tokens > 0 {
		limits = append(limits, layout.Grouped(tokens)+" tokens")
	}
	if money > 0 {
		limits = append(limits, layout.Money(money)+" in money")
	}
	if len(limits) == 0 {
		return "Nobody has a limit of tokens or money."
	}
	return "Each person may use " + strings.Join(limits, " and ") + " a day."
}

func (p *Pages) row(one Person) g.Node {
	name := one.ID
	if one.ID == string(chat.TheOwner) {
		name = "All owners"
	}
	role := layout.Status(layout.Idle, "none")
	switch {
	case one.Blocked:
		role = layout.Status(layout.Warn, "blocked")
	case one.Role == chat.Owner:
		role = layout.Status(layout.Good, "owner")
	case one.Role == chat.User:
		role = layout.Status(layout.Busy, "user")
	}
	var action g.Group
	switch {
	case one.Role == chat.Owner: // the config says so
	case one.Blocked:
		action = append(action, idButton("/api/people/unblock", one.ID, "Unblock", ""))
	case !strings.HasSuffix(one.ID, ":*"):
		action = append(action, idButton("/api/people/block", one.ID, "Block",
			"Block "+one.ID+"? They are not heard any more, and what runs for them is stopped."))
	}
	if one.Paired {
		action = append(action, g.Text(" "), idButton("/api/people/unpair", one.ID, "Unpair",
			"Unpair "+one.ID+"? They cannot talk any more until you approve a new code."))
	}
	return h.Tr(
		layout.RowHead(g.Text(name), g.If(one.Name != "", g.Group{g.Text(" "), h.Small(g.Text(one.Name))})),
		h.Td(role, h.Br(), h.Small(g.Text(one.Why))),
		h.Td(h.Class("times"), g.Text(one.Seen)),
		layout.Cell(used(one.Today)),
		layout.Cell(used(one.Month)),
		h.Td(action),
	)
}

// idButton returns a button that posts the ID of somebody to path.
func idButton(path, id, label, question string) g.Node {
	body, _ := json.Marshal(map[string]string{"id": id}) // a map of texts can be encoded
	return h.Button(g.If(question != "", h.Class("bad")), h.Data("post", path), h.Data("body", string(body)),
		layout.Confirmation(question), h.Aria("label", label+" "+id), g.Text(label))
}

func used(u Used) string {
	if u.Answers+u.Tokens == 0 {
		return ""
	}
	answers := "answers"
	if u.Answers == 1 {
		answers = "answer"
	}
	text := fmt.Sprintf("%d %s, %s tokens", u.Answers, answers, layout.Grouped(u.Tokens))
	if u.Cost > 0 {
		text += ", " + layout.Money(u.Cost)
	}
	return text
}
