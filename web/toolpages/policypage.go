package toolpages

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/chat"
	"parley/response"
	"parley/store"
	"parley/tools"
	"parley/tools/policy"
	"parley/web/layout"
)

// A sheet is what the policy page shows of one target.
type sheet struct {
	target   policy.Target
	config   policy.Config
	damaged  bool // config cannot be read
	all      policy.Policy
	defaults policy.Defaults
	inTheEnd policy.Effective // what holds for somebody whom target is about
	asWhat   string           // who that is
	people   []Person
	changes  []Change
	showTime func(time.Time) string
}

// loadSheet returns the sheet of t.
func (a *Admin) loadSheet(r *http.Request, t policy.Target) (s sheet, err error) {
	ctx := r.Context()
	s.target = t
	s.config, err = a.Policy.Of(ctx, t)
	if s.damaged = errors.Is(err, store.ErrDamaged); err != nil && !s.damaged {
		return s, explain(err)
	}
	if s.all, err = a.Policy.All(ctx); err != nil {
		return s, err
	}
	if s.defaults, err = a.Policy.Defaults(ctx); err != nil {
		return s, err
	}
	if s.people, err = a.People(ctx); err != nil {
		return s, err
	}
	if s.changes, err = a.Changes(ctx, policyEvent); err != nil {
		return s, err
	}
	s.showTime = a.formatTime
	scope, err := a.exampleOf(r, t)
	if err != nil {
		return s, err
	}
	s.asWhat = describeScope(scope)
	s.inTheEnd, err = a.Policy.Effective(ctx, scope)
	return s, err
}

// exampleOf returns the scope of a turn that t is about.
func (a *Admin) exampleOf(r *http.Request, t policy.Target) (s tools.Scope, err error) {
	s.From.Role = chat.User
	switch {
	case t.Type == policy.Role && t.Value != string(chat.User),
		t.Type == policy.User && t.Value == string(chat.TheOwner):
		s.From.Role = chat.Owner
	case t.Type == policy.Invite:
		return policy.PageScope(chat.Sender{ID: t.Value, Role: chat.User}), nil
	case t.Type == policy.Channel:
		s.At.Channel = t.Value
	case t.Type == policy.User:
		at := strings.LastIndex(t.Value, ":")
		if at < 0 {
			return s, nil
		}
		s.At = chat.Address{Channel: t.Value[:at], Chat: t.Value[at+1:]}
		s.From.ID = s.At.Chat
		role, err := a.RoleOf(r.Context(), s.At, s.From.ID)
		if role == chat.Owner {
			s.From.Role = role
		}
		return s, err
	}
	return s, nil
}

// describeScope says for whom a turn in s is.
func describeScope(s tools.Scope) string {
	who := "somebody who is no owner"
	switch {
	case s.From.Role == chat.Owner && s.From.ID != "":
		who = s.From.ID + ", an owner"
	case s.From.Role == chat.Owner:
		who = "an owner"
	case s.From.ID != "":
		who = s.From.ID
	}
	if s.At.Channel != "" {
		who += ", at " + s.At.Channel
	}
	return who
}

// policyPage serves the policy for the target that the query names (B-070).
func (a *Admin) policyPage(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	query := r.URL.Query()
	t := policy.Target{
		Type:  cmp.Or(policy.TargetType(query.Get("type")), policy.Global),
		Value: strings.TrimSpace(query.Get("value")),
	}
	s, err := a.loadSheet(r, t)
	if err != nil {
		return err
	}
	return response.Page(w, http.StatusOK, layout.Page("/admin/policy", "Policy", s.content()))
}

func (s sheet) content() g.Group {
	damaged := h.Section(h.Class("alert"), h.H2(g.Text("This policy is damaged on disk")),
		h.P(g.Text("Until it is saved again, all tools are off for whom it is for.")))
	return g.Group{
		h.P(g.Text("Switch groups of tools off, and move tools between groups, for everybody or for some. " +
			"A change counts from the next turn on. The policy only takes away: whoever may not use a tool " +
			"by tools.rules in the config, or because it is for owners, does not get it here.")),
		s.chooser(),
		g.If(s.damaged, damaged),
		s.form(),
		s.result(),
		s.history(),
	}
}

// history returns the last changes of the policy, whoever it is for.
func (s sheet) history() g.Node {
	rows := g.Map(s.changes, func(c Change) g.Node {
		return h.Tr(
			h.Td(h.Class("times"), g.Text(s.showTime(c.Time))),
			layout.Cell(c.Who),
			layout.TextCell(strings.TrimPrefix(c.What, policyEvent)),
		)
	})
	return g.Group{
		layout.Heading("history", "Last changes"),
		layout.Table("history", []string{"Time", "By", "For whom, and what it says since"}, "None lately.", rows),
	}
}

// result returns what holds in the end, when all that is said for others counts, too.
func (s sheet) result() g.Node {
	rows := g.Map(slices.Sorted(maps.Keys(s.inTheEnd.Categories)), func(id string) g.Node {
		c := s.inTheEnd.Categories[id]
		state := layout.Coloured("good", "on")
		if !c.Enabled {
			state = layout.Coloured("bad", "off")
		}
		return h.Tr(
			layout.RowHead(g.Text(id)),
			h.Td(state, g.If(c.Locked, g.Text(", by the policy"))),
			h.Td(h.Class("text"), g.Text(strings.Join(c.Tools, " "))),
		)
	})
	list := func(label string, names []string) g.Node {
		return g.If(len(names) > 0, h.P(g.Text(label+": "+strings.Join(names, ", "))))
	}
	var hidden []string
	for _, key := range s.defaults.UIBlockKeys {
		if s.inTheEnd.UIBlocks[key] {
			hidden = append(hidden, blockLabels[key])
		}
	}
	return g.Group{
		layout.Heading("result", "What holds in the end for "+s.asWhat),
		h.P(g.Text("This counts everything that is saved: for everybody, the role, the person and the channel. " +
			"Groups without tools for them are left out.")),
		layout.Table("result", []string{"Group", "State", "Tools"}, "They have no tools.", rows),
		list("Models that may not be used", s.inTheEnd.DisabledModels),
		list("Hidden on the chat page", hidden),
	}
}

// describe returns the name of t for people.
func describe(t policy.Target) string {
	switch t.Type {
	case policy.Global:
		return "Everybody"
	case policy.Role:
		return map[string]string{"owner": "Owners", "admin": "Owners", "user": "Everybody else"}[t.Value]
	case policy.Invite:
		return "Invited as " + t.Value
	case policy.Channel:
		return "Channel " + t.Value
	}
	return t.Value
}

// chooser returns links to the targets that have a policy, and a form for others.
func (s sheet) chooser() g.Node {
	targets := []policy.Target{
		{Type: policy.Global}, {Type: policy.Role, Value: "owner"}, {Type: policy.Role, Value: "user"},
	}
	for _, kind := range []struct {
		name policy.TargetType
		of   map[string]policy.Config
	}{{policy.Invite, s.all.Invites}, {policy.User, s.all.Users}, {policy.Channel, s.all.Channels}} {
		for _, value := range slices.Sorted(maps.Keys(kind.of)) {
			targets = append(targets, policy.Target{Type: kind.name, Value: value})
		}
	}
	for _, t := range append(s.all.Damaged, s.target) {
		if !slices.Contains(targets, t) {
			targets = append(targets, t)
		}
	}
	links := g.Map(targets, func(t policy.Target) g.Node {
		return h.Li(h.A(h.Href(sheetPath(t)), g.If(t == s.target, h.Aria("current", "true")), g.Text(describe(t))))
	})
	return g.Group{
		h.Nav(h.Class("chips"), h.Aria("label", "Whom a policy is for"), h.Ul(links)),
		h.Form(h.Method("get"), h.Action("/admin/policy"),
			h.Label(h.For("type"), g.Text("Somebody else")),
			h.Select(h.ID("type"), h.Name("type"),
				h.Option(h.Value("user"), g.Text("Person or group")),
				h.Option(h.Value("channel"), g.Text("Channel")),
				h.Option(h.Value("invite"), g.Text("Invitation")),
			),
			h.Label(h.For("value"), g.Text("called")),
			h.Input(h.ID("value"), h.Name("value"), h.Required(), h.MaxLength("128"), h.AutoComplete("off"),
				h.Placeholder("telegram:42"), h.List("people"), h.Aria("describedby", "valueHelp")),
			h.DataList(h.ID("people"), g.Map(s.people, func(p Person) g.Node {
				return h.Option(h.Value(p.ID), g.Text(p.About))
			})),
			h.Button(g.Text("Open")),
			h.Small(h.ID("valueHelp"), g.Text("A person or group such as telegram:42, a channel such as discord, "+
				"or the name in an invitation to this page.")),
		),
	}
}

func sheetPath(t policy.Target) string {
	return "/admin/policy?" + url.Values{"type": {string(t.Type)}, "value": {t.Value}}.Encode()
}

// Names of the form's fields begin with what they say of the name that follows.
const (
	fieldState  = "state:"  // of a category
	fieldSilent = "silent:" // of a category
	fieldLabel  = "label:"  // of a category
	fieldTool   = "tool:"   // the categories of a tool
	fieldModel  = "model:"
	fieldBlock  = "block:"
)

// States of a category in the form; "" leaves it as it is elsewhere.
const (
	stateOn      = "on"
	stateOff     = "off"
	stateLifted  = "lifted"
	stateRemoved = "removed"
	stateOpenOn  = "open on"  // by default: people may switch it off
	stateOpenOff = "open off" // by default: people may switch it on
)

func (s sheet) form() g.Node {
	base := ""
	if !s.config.UpdatedAt.IsZero() {
		base = s.config.UpdatedAt.Format(time.RFC3339Nano)
	}
	return response.ScriptForm(h.Class("sheet"),
		h.Data("post", "/admin/policy"), h.Data("done", "The policy was saved."),
		h.Input(h.Type("hidden"), h.Name("type"), h.Value(string(s.target.Type))),
		h.Input(h.Type("hidden"), h.Name("value"), h.Value(s.target.Value)),
		h.Input(h.Type("hidden"), h.Name("updated_at"), h.Value(base)),
		s.categoryTable(),
		s.toolTable(),
		h.FieldSet(h.Legend(g.Text("Models that may not be used")),
			g.If(len(s.defaults.Models) == 0, g.Text("There are none.")),
			g.Map(s.defaults.Models, func(name string) g.Node {
				return checkbox(fieldModel+name, name, slices.Contains(s.config.DisabledModels, name))
			}),
		),
		h.FieldSet(h.Legend(g.Text("Hidden on the chat page")),
			g.Map(s.defaults.UIBlockKeys, func(key string) g.Node {
				return checkbox(fieldBlock+key, blockLabels[key], s.config.UIBlocks[key])
			}),
		),
		h.P(saveButtons()),
	)
}

// blockLabels say what each key of policy.UIBlockKeys hides.
var blockLabels = map[string]string{
	"block_delete": "Deleting conversations",
	"block_steps":  "Which tools are at work",
	"block_upload": "Attaching files",
}

func checkbox(name, label string, checked bool) g.Node {
	return h.Label(h.Class("check"),
		h.Input(h.Type("checkbox"), h.Name(name), g.If(checked, h.Checked())), g.Text(label))
}

// categories returns the categories that exist or that the policy names.
func (s sheet) categories() []string {
	return slices.Compact(slices.Sorted(func(yield func(string) bool) {
		for _, names := range [][]string{
			slices.Collect(maps.Keys(s.defaults.Categories)),
			slices.Collect(maps.Keys(s.config.CategoryOverrides)),
			slices.Collect(maps.Keys(s.all.Global.CategoryOverrides)),
			slices.Collect(maps.Keys(s.config.ForcedCategoryStates)),
			s.config.RemoveCategories,
		} {
			for _, name := range names {
				if !yield(name) {
					return
				}
			}
		}
	}))
}

// state returns the state of a category in the form.
func (s sheet) state(category string) string {
	forced, known := s.config.ForcedCategoryStates[category]
	byDefault := s.config.CategoryOverrides[category].DefaultEnabled
	switch {
	case slices.Contains(s.config.RemoveCategories, category):
		return stateRemoved
	case !known && byDefault != nil && *byDefault:
		return stateOpenOn
	case !known && byDefault != nil:
		return stateOpenOff
	case !known:
		return ""
	case forced == nil:
		return stateLifted
	case *forced:
		return stateOn
	}
	return stateOff
}

func (s sheet) categoryTable() g.Node {
	options := []struct{ value, text string }{
		{"", "no change"},
		{stateOn, "on"},
		{stateOff, "off"},
		{stateOpenOn, "on, people may switch it off"},
		{stateOpenOff, "off, people may switch it on"},
		{stateRemoved, "removed"},
	}
	if s.target.Type != policy.Global {
		options = append(options, struct{ value, text string }{stateLifted, "not forced"})
	}
	rows := g.Map(s.categories(), func(category string) g.Node {
		now := s.state(category)
		o := s.config.CategoryOverrides[category]
		own := s.defaults.Categories[category].Label
		label := ""
		if o.Label != nil {
			label = *o.Label
		}
		return h.Tr(
			layout.RowHead(g.Text(category)),
			h.Td(h.Input(h.Name(fieldLabel+category), h.Value(label), h.Placeholder(cmp.Or(own, category)),
				h.MaxLength("128"), h.AutoComplete("off"), h.Aria("label", "Name of "+category+" for people"))),
			h.Td(h.Select(h.Name(fieldState+category), h.Aria("label", category+" is"),
				g.Map(options, func(option struct{ value, text string }) g.Node {
					return h.Option(h.Value(option.value), g.If(option.value == now, h.Selected()), g.Text(option.text))
				}))),
			h.Td(h.Input(h.Type("checkbox"), h.Name(fieldSilent+category),
				h.Aria("label", "Do not tell the model that "+category+" is off"),
				g.If(o.SilentWhenDisabled != nil && *o.SilentWhenDisabled, h.Checked()))),
			h.Td(h.Class("text"), g.Text(strings.Join(s.members(category), " "))),
		)
	})
	return g.Group{
		layout.Heading("categories", "Groups of tools: "+describe(s.target)),
		layout.Table("categories", []string{"Group", "Name", "State", "Silent", "Tools"}, "There are none.", rows),
		h.Small(g.Text("The model is told which groups are off, by their names, unless they are silent. " +
			"A removed group is gone without a word. People switch groups with /groups.")),
	}
}

// moved returns the categories to which the policy moves each tool.
func (s sheet) moved() map[string][]string {
	moved := map[string][]string{}
	for _, category := range slices.Sorted(maps.Keys(s.config.CategoryOverrides)) {
		for _, tool := range s.config.CategoryOverrides[category].Tools {
			moved[tool] = append(moved[tool], category)
		}
	}
	return moved
}

// own returns the category of each tool when no policy moves it.
func (s sheet) own() map[string]string {
	own := map[string]string{}
	for category, c := range s.defaults.Categories {
		for _, tool := range c.Tools {
			own[tool] = category
		}
	}
	return own
}

// placed returns the categories of a tool, as the form shows them.
func (s sheet) placed(tool string) string {
	if moved := s.moved()[tool]; len(moved) > 0 {
		return strings.Join(moved, ", ")
	}
	return s.own()[tool]
}

// members returns the tools of a category as this sheet groups them.
func (s sheet) members(category string) (names []string) {
	moved := s.moved()
	for tool, own := range s.own() {
		if slices.Contains(moved[tool], category) || len(moved[tool]) == 0 && own == category {
			names = append(names, tool)
		}
	}
	slices.Sort(names)
	return names
}

func (s sheet) toolTable() g.Node {
	own := s.own()
	rows := g.Map(slices.Sorted(maps.Keys(own)), func(tool string) g.Node {
		return h.Tr(
			layout.RowHead(g.Text(tool)),
			h.Td(h.Input(h.Name(fieldTool+tool), h.Value(s.placed(tool)), h.List("groups"), h.MaxLength("128"),
				h.AutoComplete("off"), h.Aria("label", "Group of "+tool))),
		)
	})
	return g.Group{
		layout.Heading("tools", "Move tools"),
		h.DataList(h.ID("groups"), g.Map(s.categories(), func(name string) g.Node { return h.Option(h.Value(name)) })),
		layout.Table("tools", []string{"Tool", "Group"}, "There are none.", rows),
		h.Small(g.Text("A name that is no group yet makes one. Moving a tool gives it to nobody new.")),
	}
}
