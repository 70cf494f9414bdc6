package policy

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/store/mem"
	"parley/timetest"
	"parley/tools"
)

// A desk is a Book with the tools of a small gateway.
type desk struct {
	*Book
	store   store.Store
	sources []tools.Source
}

// tool returns a tool of that category. An alias is "new=old".
func tool(name, category string) tools.Tool {
	name, of, _ := strings.Cut(name, "=")
	t := tools.Tool{ToolSpec: llm.ToolSpec{Name: name, Description: name, Schema: json.RawMessage(`{"type":"object"}`)}}
	t.Category, t.AliasOf = category, of
	t.Run = func(context.Context, tools.Call) (tools.Result, error) { return tools.Result{Text: "ran " + name}, nil }
	return t
}

// newDesk has the tools calc, count and secret of the category custom, which is for
// owners, web_search and fetch of web, clock of data, and old_clock, an alias of it.
func newDesk(t testing.TB) *desk {
	t.Helper()
	builtIn := tools.Fixed{
		tool("web_search", "web"), tool("fetch", "web"), tool("clock", "data"), tool("old_clock=clock", "compat"),
	}
	own := tools.Fixed{tool("calc", Custom), tool("count", Custom)}
	rules := tools.Rules{Custom: tools.Owners}
	d := &desk{store: mem.New(), sources: rules.Permit(builtIn, own)}
	d.Book = NewBook(d.store, slog.New(slog.DiscardHandler))
	d.Configure(Offer{Sources: d.sources, Models: []string{"small", "large"}})
	return d
}

func (d *desk) set(t testing.TB, kind TargetType, value string, config string) {
	t.Helper()
	var c Config
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Set(t.Context(), Target{kind, value}, c); err != nil {
		t.Fatal(err)
	}
}

func (d *desk) kit(t testing.TB, s tools.Scope) *tools.Kit {
	t.Helper()
	k, err := d.Kit(t.Context(), s, d.sources)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// names lists the tools of k, aliases included.
func names(k *tools.Kit) string {
	var all []string
	for _, t := range k.Tools() {
		all = append(all, t.Name)
	}
	return strings.Join(all, " ")
}

// scope returns that of somebody at a channel.
func scope(channel, id string, role chat.Role) tools.Scope {
	return tools.Scope{At: chat.Address{Channel: channel, Chat: id}, From: chat.Sender{ID: id, Role: role}}
}

var (
	owner = scope("telegram", "1", chat.Owner)
	user  = scope("telegram", "42", chat.User)
	anna  = scope("web", "anna", chat.User)
)

const everything = "calc clock count fetch old_clock web_search"

// B-072: global, role, invite, user and channel are merged in this order: for maps
// the later one wins, lists are joined.
func TestB072MergeOrder(t *testing.T) {
	for _, c := range []struct {
		name  string
		set   []string // TYPE VALUE CONFIG
		scope tools.Scope
		want  string
	}{
		{"nothing", nil, user, `{}`},
		{
			"later wins", []string{
				`global - {"forced_category_states":{"a":true,"b":true,"c":true,"d":true,"e":true}}`,
				`role user {"forced_category_states":{"b":false,"c":false,"d":false,"e":false}}`,
				`invite anna {"forced_category_states":{"c":true,"d":true,"e":true}}`,
				`user web:anna {"forced_category_states":{"d":false,"e":false}}`,
				`channel web {"forced_category_states":{"e":true}}`,
			}, anna, `{"forced_category_states":{"a":true,"b":false,"c":true,"d":false,"e":true}}`,
		},
		{
			"lists are joined", []string{
				`global - {"remove_categories":["x"],"disabled_models":["m"]}`,
				`role user {"remove_categories":["y","x"]}`,
				`channel web {"disabled_models":["a"]}`,
			}, anna, `{"remove_categories":["x","y"],"disabled_models":["a","m"]}`,
		},
		{
			"overrides by field", []string{
				`global - {"category_overrides":{"net":{"label":"Net","tools":["calc"]},"other":{"tools":["fetch"]}}}`,
				`user telegram:42 {"category_overrides":{"net":{"default_enabled":false}}}`,
			}, user, `{"category_overrides":{"net":{"label":"Net","tools":["calc"],"default_enabled":false},"other":{"tools":["fetch"]}}}`,
		},
		{
			"null lifts what was forced", []string{
				`global - {"forced_category_states":{"web":false},"ui_blocks":{"block_upload":true,"block_steps":true}}`,
				`role user {"forced_category_states":{"web":null},"ui_blocks":{"block_upload":false}}`,
			}, user, `{"forced_category_states":{"web":null},"ui_blocks":{"block_upload":false,"block_steps":true}}`,
		},
		{
			"of somebody else", []string{
				`role owner {"remove_categories":["a"]}`, `role admin {"remove_categories":["b"]}`,
				`invite 42 {"remove_categories":["c"]}`, `user web:42 {"remove_categories":["d"]}`,
				`channel web {"remove_categories":["e"]}`,
			}, user, `{}`,
		},
		{"an admin is an owner", []string{`role admin {"remove_categories":["b"]}`}, owner, `{"remove_categories":["b"]}`},
		{"owners are one person", []string{`user owner {"remove_categories":["b"]}`}, owner, `{"remove_categories":["b"]}`},
		{"one of the owners", []string{`user telegram:1 {"remove_categories":["b"]}`}, owner, `{"remove_categories":["b"]}`},
	} {
		d := newDesk(t)
		for _, line := range c.set {
			words := strings.SplitN(line, " ", 3)
			d.set(t, TargetType(words[0]), words[1], words[2])
		}
		got, err := d.rules(t.Context(), c.scope)
		var want Config
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		want = want.filled()
		got.config.UpdatedAt = time.Time{}
		if err != nil || !reflect.DeepEqual(got.config, want) {
			a, _ := json.Marshal(got.config)
			b, _ := json.Marshal(want)
			t.Errorf("%s: %v\n got %s\nwant %s", c.name, err, a, b)
		}
	}
}

// A group is a person, too, and so is who speaks in it.
func TestB072Group(t *testing.T) {
	d := newDesk(t)
	d.set(t, User, "telegram:-100", `{"remove_categories":["web"]}`)
	d.set(t, User, "telegram:42", `{"remove_categories":["data"]}`)
	s := user
	s.Group, s.At.Chat = true, "-100"
	if got := names(d.kit(t, s)); got != "" {
		t.Errorf("in the group: %q", got)
	}
	if got := names(d.kit(t, user)); got != "fetch web_search" {
		t.Errorf("in private: %q", got)
	}
}

// B-017, B-070: a tool that is moved is switched with its new category. Moving is
// grouping only: who may not have a tool never gets it.
func TestB017Move(t *testing.T) {
	d := newDesk(t)
	d.set(t, Global, "", `{"category_overrides":{"net":{"tools":["calc","web_search"]}}}`)
	if got := names(d.kit(t, owner)); got != everything {
		t.Errorf("an owner has %q", got)
	}
	if got := names(d.kit(t, user)); got != "clock fetch old_clock web_search" {
		t.Errorf("a user gained from a move: %q", got)
	}
	d.set(t, Global, "", `{"category_overrides":{"net":{"tools":["calc","web_search"]}},"forced_category_states":{"net":false}}`)
	if got := names(d.kit(t, owner)); got != "clock count fetch old_clock" {
		t.Errorf("with net off an owner has %q", got)
	}
	d.set(t, Global, "", `{"category_overrides":{"net":{"tools":["calc"]}},"forced_category_states":{"net":true,"custom":true}}`)
	if got := names(d.kit(t, user)); got != "clock fetch old_clock web_search" {
		t.Errorf("a user gained from a force: %q", got)
	}
	d.set(t, Role, "user", `{"category_overrides":{"web":{"tools":["calc"]}}}`)
	if got := names(d.kit(t, user)); strings.Contains(got, "calc") {
		t.Errorf("a user gained from a role: %q", got)
	}
}

// B-073: what is off is gone from the list of tools, aliases too; the model is told,
// unless the category is silent, was removed, or never had a tool for the person.
func TestB073Off(t *testing.T) {
	for _, c := range []struct {
		name, config string
		scope        tools.Scope
		left         string
		notice       string // "" for none
	}{
		{"forced off", `{"forced_category_states":{"web":false}}`, user, "clock old_clock", "tools off here: web."},
		{"an alias goes with its tool", `{"forced_category_states":{"data":false}}`, user, "fetch web_search", "tools off here: data."},
		{"an alias alone", `{"forced_category_states":{"compat":false}}`, user, "clock fetch web_search", ""},
		{"a moved tool takes its alias along", `{"category_overrides":{"x":{"label":"Time","tools":["clock"],"default_enabled":false}}}`, user, "fetch web_search", "tools off here: x (Time)."},
		{"off by default, forced on", `{"category_overrides":{"web":{"default_enabled":false}},"forced_category_states":{"web":true}}`, user, "clock fetch old_clock web_search", ""},
		{"silent", `{"category_overrides":{"web":{"silent_when_disabled":true}},"forced_category_states":{"web":false}}`, user, "clock old_clock", ""},
		{"removed", `{"remove_categories":["web"],"forced_category_states":{"web":true}}`, user, "clock old_clock", ""},
		{"two", `{"forced_category_states":{"web":false,"custom":false}}`, owner, "clock old_clock", "tools off here: custom (Custom tools), web."},
		{"what the person never had", `{"forced_category_states":{"custom":false}}`, user, "clock fetch old_clock web_search", ""},
		{"in two categories, one of them off", `{"category_overrides":{"a":{"tools":["clock"]},"b":{"tools":["clock"],"default_enabled":false}}}`, user, "fetch web_search", "tools off here: b."},
	} {
		d := newDesk(t)
		d.set(t, Global, "", c.config)
		k := d.kit(t, c.scope)
		if got := names(k); got != c.left {
			t.Errorf("%s: left are %q, want %q", c.name, got, c.left)
		}
		if (k.Notice == "") != (c.notice == "") || !strings.Contains(k.Notice, c.notice) {
			t.Errorf("%s: the model is told %q", c.name, k.Notice)
		}
	}
}

// B-014: somebody who joins a turn has no tool that is off for them, and the others
// are not found either when the policy cannot be read.
func TestB014Joining(t *testing.T) {
	d := newDesk(t)
	d.set(t, User, "telegram:42", `{"forced_category_states":{"web":false}}`)
	k := d.kit(t, owner)
	call := func(s tools.Scope, name string) string {
		return k.Call(t.Context(), tools.Call{ToolCall: llm.ToolCall{ID: "1", Name: name, Args: "{}"}, Scope: s}).Text
	}
	joined := owner
	joined.From = user.From
	for _, c := range []struct {
		scope tools.Scope
		tool  string
		runs  bool
	}{{owner, "fetch", true}, {joined, "fetch", false}, {joined, "clock", true}, {owner, "calc", true}, {joined, "calc", false}} {
		got := call(c.scope, c.tool)
		if runs := got == "ran "+c.tool; runs != c.runs || !runs && !strings.Contains(got, "not found") {
			t.Errorf("%s by %s: %q", c.tool, c.scope.From.ID, got)
		}
	}
}

// P21: a part of the policy that cannot be read switches tools off for those whom it
// is for, and for nobody else, until it is saved again.
func TestDamagedPolicy(t *testing.T) {
	d := newDesk(t)
	bucket := d.store.Bucket(store.BucketPolicy)
	if _, err := bucket.Put(t.Context(), "role/user", []byte("{"), store.Any); err != nil {
		t.Fatal(err)
	}
	k := d.kit(t, user)
	if got := names(k); got != "" || !strings.Contains(k.Notice, "cannot be read") {
		t.Errorf("a user has %q, told %q", got, k.Notice)
	}
	if got := names(d.kit(t, owner)); got != everything {
		t.Errorf("an owner has %q", got)
	}
	all, err := d.All(t.Context())
	if err != nil || !slices.Equal(all.Damaged, []Target{{Role, "user"}}) {
		t.Errorf("damaged: %v %v", all.Damaged, err)
	}
	d.set(t, Role, "user", `{}`)
	if got := names(d.kit(t, user)); got == "" {
		t.Error("saving it again does not help")
	}
}

// B-015, B-016: the category of custom tools is there, with all of them in it.
func TestB015Defaults(t *testing.T) {
	d := newDesk(t)
	d.set(t, Global, "", `{"remove_categories":["custom"],"category_overrides":{"net":{"tools":["calc"]}}}`)
	got, err := d.Defaults(t.Context())
	want := Category{ID: "custom", Label: "Custom tools", Tools: []string{"calc", "count"}, DefaultEnabled: true}
	if err != nil || !reflect.DeepEqual(got.Categories["custom"], want) {
		t.Errorf("custom = %+v, %v", got.Categories["custom"], err)
	}
	if ids := slices.Sorted(maps.Keys(got.Categories)); !slices.Equal(ids, []string{"custom", "data", "web"}) {
		t.Errorf("categories %v", ids)
	}
	if !slices.Equal(got.Models, []string{"large", "small"}) || len(got.UIBlockKeys) == 0 {
		t.Errorf("models %v, keys %v", got.Models, got.UIBlockKeys)
	}
	d.Configure(Offer{})
	if got, err := d.Defaults(t.Context()); err != nil || got.Categories["custom"].Tools == nil || len(got.Categories) != 1 {
		t.Errorf("with no tools: %+v, %v", got.Categories, err)
	}
}

// B-074: what holds for somebody names only tools that they could have.
func TestB074Effective(t *testing.T) {
	d := newDesk(t)
	d.set(t, Global, "", `{"category_overrides":{"net":{"label":"Net","tools":["calc","web_search"]}},"forced_category_states":{"net":false,"custom":true},"disabled_models":["large"],"ui_blocks":{"block_upload":true}}`)
	got, err := d.Effective(t.Context(), user)
	if err != nil {
		t.Fatal(err)
	}
	net := got.Categories["net"]
	if net.Label != "Net" || !slices.Equal(net.Tools, []string{"web_search"}) || net.Enabled || !net.Locked {
		t.Errorf("net = %+v", net)
	}
	if _, told := got.Categories["custom"]; told || len(got.Categories) != 3 {
		t.Errorf("categories %v", got.Categories)
	}
	if !maps.Equal(got.ForcedCategoryStates, map[string]bool{"net": false}) || !slices.Equal(got.DisabledModels, []string{"large"}) || !got.UIBlocks["block_upload"] {
		t.Errorf("effective %+v", got)
	}
	if off, err := d.ModelsOff(t.Context(), user); err != nil || !slices.Equal(off, []string{"large"}) {
		t.Errorf("models off: %v %v", off, err)
	}
	d.set(t, Global, "", `{"remove_categories":["web"]}`)
	if got, err := d.Effective(t.Context(), user); err != nil || len(got.Categories) != 1 {
		t.Errorf("a removed category is told: %v %v", got.Categories, err)
	}
}

// B-071: what cannot be a policy is refused with a reason, and nothing is stored.
func TestB071Refused(t *testing.T) {
	d := newDesk(t)
	many := make([]string, maxEntries+1)
	for i := range many {
		many[i] = "x"
	}
	long := strings.Repeat("x", maxName+1)
	for _, c := range []struct {
		target Target
		config Config
		want   string
	}{
		{Target{"planet", "earth"}, Config{}, "invalid target_type"},
		{Target{"", ""}, Config{}, "invalid target_type"},
		{Target{Role, "king"}, Config{}, `a role is "owner" or "user"`},
		{Target{User, " "}, Config{}, "target_value is empty"},
		{Target{User, long}, Config{}, "target_value is longer than 128 bytes"},
		{Target{Channel, "a\nb"}, Config{}, "a character that cannot be shown"},
		{Target{Type: Global}, Config{RemoveCategories: many}, "more than 500 entries"},
		{Target{Type: Global}, Config{RemoveCategories: []string{""}}, "a category of remove_categories is empty"},
		{Target{Type: Global}, Config{DisabledModels: []string{long}}, "longer"},
		{Target{Type: Global}, Config{UIBlocks: map[string]bool{"x": true}}, `there is no ui_blocks key "x"`},
		{Target{Type: Global}, Config{CategoryOverrides: map[string]Override{"net": {Tools: []string{"\x00"}}}}, "a tool of net"},
		{Target{Type: Global}, Config{CategoryOverrides: map[string]Override{"net": {Label: new(string)}}}, "the label of net is empty"},
	} {
		_, _, err := d.Set(t.Context(), c.target, c.config)
		if _, told := errors.AsType[UserError](err); !told || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.target, err, c.want)
		}
	}
	for key, err := range d.store.Bucket(store.BucketPolicy).Keys(t.Context(), "") {
		t.Errorf("stored %s %v", key, err)
	}
}

// Two owners who edit the same policy: the second is told.
func TestB071Conflict(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.set(t, Global, "", `{"remove_categories":["a"]}`)
		first, err := d.Of(t.Context(), Target{Type: Global})
		if err != nil {
			t.Fatal(err)
		}
		timetest.Sleep(time.Second)
		second := first
		second.RemoveCategories = []string{"b"}
		if _, _, err := d.Set(t.Context(), Target{Type: Global}, second); err != nil {
			t.Fatal(err)
		}
		timetest.Sleep(time.Second)
		if _, _, err := d.Set(t.Context(), Target{Type: Global}, first); !errors.Is(err, ErrConflict) {
			t.Errorf("the second editor: %v", err)
		}
		d.set(t, Global, "", `{}`)
		if got, err := d.All(t.Context()); err != nil || !got.Global.empty() || !got.UpdatedAt.IsZero() {
			t.Errorf("an empty policy leaves %+v, %v", got, err)
		}
	})
}
