package tools

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"parley/chat"
	"parley/llm"
	"parley/tools/arguments"
)

// counting is a tool that returns how often it has run, which n counts, too.
func counting(name string, h Hints, n *atomic.Int64) Tool {
	t := echo(name, anything)
	t.Hints = h
	t.Run = func(context.Context, Call) (Result, error) {
		return Result{Text: "run " + arguments.JSON(n.Add(1))}, nil
	}
	return t
}

// turnOf makes the kit of one turn that someone of role begins.
func turnOf(t testing.TB, cfg StandardConfig, role chat.Role, tools ...Tool) *Kit {
	t.Helper()
	return turnBy(t, nil, cfg, role, tools...)
}

// turnBy does the same by rules.
func turnBy(t testing.TB, rules Rules, cfg StandardConfig, role chat.Role, tools ...Tool) *Kit {
	t.Helper()
	scope := Scope{From: chat.Sender{ID: "1", Role: role}}
	k, err := NewKit(t.Context(), scope, rules.Permit(Fixed(tools)), Standard(cfg)...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// by returns c as someone of role asks for it.
func by(role chat.Role, c Call) Call {
	c.From = chat.Sender{ID: "1", Role: role}
	return c
}

func listed(k *Kit) string {
	var names []string
	for _, s := range k.Specs() {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

// B-013, B-014, B-073, D-020: who has which tools, and that the others are as
// those that never were. A Rule counts for the category of the tool itself,
// its aliases' too, and from the next turn on.
func TestRules(t *testing.T) {
	var ran atomic.Int64
	all := []Tool{
		counting("calc", Hints{Category: "custom"}, &ran), counting("count", Hints{}, &ran),
		counting("read", Hints{Category: "files"}, &ran), counting("read_old", Hints{Category: "old", AliasOf: "read"}, &ran),
	}
	for _, c := range []struct {
		name   string
		rules  Rules
		role   chat.Role
		listed string
		called string // what can be called
	}{
		{"none", nil, chat.User, "calc count read", "calc count read read_old"},
		{"B-013 owner", Rules{"custom": Owners}, chat.Owner, "calc count read", "calc count read read_old"},
		{"B-013 user", Rules{"custom": Owners}, chat.User, "count read", "count read read_old"},
		{"B-013 stranger", Rules{"custom": Owners}, chat.Unknown, "count read", "count read read_old"},
		{"B-073 off", Rules{"custom": Off, "files": Everyone}, chat.Owner, "count read", "count read read_old"},
		{"general", Rules{"general": Owners}, chat.User, "calc read", "calc read read_old"},
		{"alias stays", Rules{"files": Off}, chat.User, "calc count", "calc count read_old"},
		{"alias goes", Rules{"old": Off}, chat.User, "calc count read", "calc count read"},
		{"no rule", Rules{"custom": "admins"}, chat.Owner, "count read", "count read read_old"},
	} {
		k := turnBy(t, c.rules, StandardConfig{}, c.role, all...)
		if got := listed(k); got != c.listed {
			t.Errorf("%s: listed are %s, want %s", c.name, got, c.listed)
		}
		for _, tool := range all {
			ran.Store(0)
			r := k.Call(t.Context(), by(c.role, callTo(tool.Name, "")))
			if slices.Contains(strings.Fields(c.called), tool.Name) {
				if r.Failed || ran.Load() != 1 {
					t.Errorf("%s: %s: %+v", c.name, tool.Name, r)
				}
				continue
			}
			want := "Error: Tool '" + tool.Name + "' not found. Available: " + strings.ReplaceAll(c.listed, " ", ", ") + hint
			if r.Text != want || r.Code != CodeNotFound || ran.Load() != 0 {
				t.Errorf("%s: %s: %+v, want %s", c.name, tool.Name, r, want)
			}
		}
	}
	if _, err := (Rules{}).Permit(broken{})[0].Tools(t.Context(), Scope{}); err == nil {
		t.Error("a source's error is lost")
	}
	if fixed := Fixed(all); fixed[0].Name != "calc" || fixed[3].Name != "read_old" {
		t.Error("a source's own list was changed")
	}
}

// B-014: the turn of an owner that a user has joined: what is for owners is not
// there for the user, by any of its names, and nobody is asked.
func TestRoleOfTheCall(t *testing.T) {
	var ran atomic.Int64
	ask := func(context.Context, Call, string) (bool, string, error) { return false, "", errors.New("asked") }
	begin := func(context.Context) error { return errors.New("begun") }
	k := turnBy(t, Rules{"custom": Owners}, StandardConfig{Approve: ask}, chat.Owner,
		counting("calc", Hints{Category: "custom"}, &ran), counting("dig", Hints{Category: "custom", Dangerous: true}, &ran), counting("read", Hints{}, &ran))
	for _, name := range []string{"calc", "Calc", "functions.calc", "dig", "nothing"} {
		c := by(chat.User, callTo(name, "{broken"))
		c.Begin = begin
		want := "Error: Tool '" + name + "' not found. Available: read" + hint
		if r := k.Call(t.Context(), c); r.Text != want || r.Code != CodeNotFound {
			t.Errorf("%s: %+v, want %s", name, r, want)
		}
	}
	if r := k.Call(t.Context(), by(chat.Owner, callTo("calc", ""))); r.Failed || ran.Load() != 1 {
		t.Errorf("the owner: %+v", r)
	}
}

// D-072, B-013: a tool says for whom it is unless a rule names its category.
func TestWhoMayByDefault(t *testing.T) {
	var ran atomic.Int64
	exec := counting("exec", Hints{Category: "exec", Who: Owners}, &ran)
	for _, c := range []struct {
		rules Rules
		role  chat.Role
		want  string
	}{
		{nil, chat.Owner, "exec"},
		{nil, chat.User, ""},
		{Rules{"files": Everyone}, chat.User, ""},
		{Rules{"exec": Everyone}, chat.User, "exec"},
		{Rules{"exec": Ask}, chat.User, "exec"},
		{Rules{"exec": Off}, chat.Owner, ""},
	} {
		k := turnBy(t, c.rules, StandardConfig{}, c.role, exec)
		if got := listed(k); got != c.want {
			t.Errorf("%v, %s: %q, want %q", c.rules, c.role, got, c.want)
		}
	}
	// Without any rules, too: a person who joins an owner's turn may not use the tool.
	k, err := NewKit(t.Context(), Scope{}, []Source{Fixed{exec}}, Standard(StandardConfig{})...)
	if err != nil {
		t.Fatal(err)
	}
	call := Call{ToolCall: llm.ToolCall{ID: "1", Name: "exec", Args: "{}"}}
	if r := k.Call(t.Context(), by(chat.User, call)); r.Code != CodeNotFound || ran.Load() > 0 {
		t.Errorf("%+v", r)
	}
	if r := k.Call(t.Context(), by(chat.Owner, call)); r.Failed {
		t.Errorf("%+v", r)
	}
}
