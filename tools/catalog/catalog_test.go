package catalog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/chat"
	"parley/llm"
	"parley/tools"
	"parley/tools/catalog"
)

var owner = chat.Sender{ID: "1", Role: chat.Owner}

// offered returns a tool of an MCP server.
func offered(server, name, description string, properties ...string) tools.Tool {
	schema := map[string]any{}
	for _, p := range properties {
		schema[p] = map[string]any{"type": "string", "description": "the value of " + p}
	}
	text, _ := json.Marshal(map[string]any{"type": "object", "properties": schema})
	return tools.Tool{
		ToolSpec: llm.ToolSpec{Name: "mcp_" + server + "_" + name, Description: description, Schema: text},
		Hints:    tools.Hints{Category: "mcp_" + server, ReadOnly: true},
		Run: func(_ context.Context, c tools.Call) (tools.Result, error) {
			return tools.Result{Text: c.Name + " ran with " + c.Args}, nil
		},
	}
}

// ordinary are tools of Parley itself.
func ordinary() (list []tools.Tool) {
	for _, name := range []string{"exec", "read_file", "web_search"} {
		t := offered("", "", "An ordinary tool.", "value")
		t.Name = name
		t.Category = "files"
		list = append(list, t)
	}
	return list
}

// thousand returns as many tools, of 20 servers.
func thousand() (list []tools.Tool) {
	for i := range 1000 {
		verb := []string{"create", "list", "delete", "update", "get"}[i%5]
		thing := []string{"issue", "invoice", "calendar_event", "pull_request", "customer"}[i/5%5]
		description := fmt.Sprintf("%s a %s of the service number %d, with all that belongs to it. %s",
			verb, thing, i, strings.Repeat("It says a lot about itself. ", 8))
		name := fmt.Sprintf("%s_%s_%d", verb, thing, i)
		list = append(list, offered(fmt.Sprintf("service%d", i%20), name, description, "title", "owner_id", "labels"))
	}
	return list
}

type setUp struct {
	tools []tools.Tool
	scope tools.Scope
	rules tools.Rules
	mw    []tools.Middleware

	catalog *catalog.Catalog // nil: a new one
}

func (u setUp) kit(t testing.TB) *tools.Kit {
	t.Helper()
	if u.scope.From == (chat.Sender{}) {
		u.scope.From = owner
	}
	if u.scope.Window == 0 {
		u.scope.Window = 100_000
	}
	sources := u.rules.Permit(tools.Fixed(u.tools))
	if u.mw == nil {
		u.mw = tools.Standard(tools.StandardConfig{})
	}
	kit, err := tools.NewKit(t.Context(), u.scope, sources, u.mw...)
	if err != nil {
		t.Fatal(err)
	}
	if u.catalog == nil {
		u.catalog = new(catalog.Catalog)
	}
	return u.catalog.Shorten(kit, u.scope)
}

func call(name, args string) tools.Call {
	return tools.Call{ToolCall: llm.ToolCall{ID: "1", Name: name, Args: args}, Scope: tools.Scope{From: owner, Turn: "t"}}
}

func names(k *tools.Kit) (list []string) {
	for _, s := range k.Specs() {
		list = append(list, s.Name)
	}
	return list
}

func bytesOf(k *tools.Kit) []byte {
	text, _ := json.Marshal(k.Specs())
	return text
}

// A request with few tools is as if there were no catalog, byte for byte.
func TestFewToolsStay(t *testing.T) {
	for _, few := range [][]tools.Tool{
		ordinary(),
		append(ordinary(), thousand()[:20]...),
	} {
		u := setUp{tools: few}
		plain, err := tools.NewKit(t.Context(), tools.Scope{From: owner}, []tools.Source{tools.Fixed(few)})
		if err != nil {
			t.Fatal(err)
		}
		if got := u.kit(t); !bytes.Equal(bytesOf(got), bytesOf(plain)) {
			t.Errorf("offered: %q", names(got))
		}
	}
}

// Models whose window is small have a short list earlier, and a list that would not become shorter stays.
func TestWindow(t *testing.T) {
	few := append(ordinary(), thousand()[:20]...)
	size := 0
	for _, tool := range few {
		size += len(tool.Name) + len(tool.Description) + len(tool.Schema)
	}
	size /= 4
	for window, short := range map[int]bool{10*size + 10: false, 10 * size: true, 1000: true} {
		u := setUp{tools: few, scope: tools.Scope{Window: window}}
		if u.kit(t).Short != short {
			t.Errorf("in a window of %d, %d of tools are short: %v", window, size, !short)
		}
	}
	u := setUp{tools: few[:4], scope: tools.Scope{Window: 1000}}
	if u.kit(t).Short {
		t.Error("one tool was replaced by two longer ones")
	}
	u.scope.Short = true
	if !u.kit(t).Short {
		t.Error("the list became long again")
	}
}

// 1,000 tools take at most 12 kB of a request.
func TestThousandTools(t *testing.T) {
	kit := setUp{tools: append(ordinary(), thousand()...)}.kit(t)
	if got := names(kit); !slices.Equal(got, []string{"exec", "read_file", "web_search", "find_tool", "call_tool"}) {
		t.Errorf("listed: %q", got)
	}
	if n := len(bytesOf(kit)); n > 12_000 {
		t.Errorf("%d bytes of tools", n)
	}
	index := kit.Specs()[3].Description
	if !strings.Contains(index, "- service0 (50): ") || !strings.Contains(index, "- service9 (50): ") || !strings.Contains(index, "more") {
		t.Errorf("index:\n%s", index)
	}
}

// The list is the same whatever the order in which sources offer tools, and after a restart.
func TestListIsStable(t *testing.T) {
	u := setUp{tools: thousand()}
	want := bytesOf(u.kit(t))
	for range 20 {
		rand.Shuffle(len(u.tools), func(i, j int) { u.tools[i], u.tools[j] = u.tools[j], u.tools[i] })
		if got := bytesOf(u.kit(t)); !bytes.Equal(got, want) {
			t.Fatalf("%s\nwas\n%s", got, want)
		}
	}
}

// Every server is in the index with as many names as fit, small ones with all.
func TestIndex(t *testing.T) {
	list := thousand()
	list = append(list, offered("tiny", "zip", "Zips."), offered("tiny", "unzip", "Unzips."))
	long := offered("tiny", "x", "Has another name.")
	long.Name = "mcp_tin_shortened_1a2b3c4d"
	kit := setUp{tools: append(list, long)}.kit(t)
	specs := kit.Specs()
	if index := specs[0].Description; !strings.Contains(index, "\n- tiny (3): mcp_tin_shortened_1a2b3c4d, unzip, zip\n") &&
		!strings.HasSuffix(index, "\n- tiny (3): mcp_tin_shortened_1a2b3c4d, unzip, zip") {
		t.Errorf("index:\n%s", index)
	}
	var many []tools.Tool
	for i := range 300 {
		many = append(many, offered(fmt.Sprintf("server_with_a_long_name_%d", i), strings.Repeat("x", 30), strings.Repeat("Does it. ", 100)))
	}
	kit = setUp{tools: many}.kit(t)
	if index := kit.Specs()[0].Description; len(index) > 5000 || !strings.Contains(index, "and 240 more servers") {
		t.Errorf("%d bytes of index:\n%s", len(index), index)
	}
}

// A Catalog remembers what it made of a list, and makes it anew when anything of the list or of the turn is another.
func TestListFollowsItsTools(t *testing.T) {
	few := append(ordinary(), thousand()[:40]...)
	for i := range few[:3] {
		few[i].Description = strings.Repeat("Is worth finding. ", 100)
	}
	few[2].Use = tools.Rare
	changes := []func(u *setUp){
		func(*setUp) {},
		func(u *setUp) { u.tools[0].Use = tools.Rare },
		func(u *setUp) { u.tools[1].Use = tools.Basic },
		func(u *setUp) { u.scope.Lean = true },
		func(u *setUp) { u.tools[10].Description = strings.Repeat("Does something. ", 8000) },
		func(u *setUp) { u.tools[11].Schema = offered("", "", "", strings.Repeat("x", 100_000)).Schema },
		func(u *setUp) { u.tools[2].Hidden = true },
		func(u *setUp) { u.tools[13].AliasOf = u.tools[14].Name },
		func(u *setUp) { u.tools[15].Category = "files" },
		func(u *setUp) { u.tools[16].Name += "_new" },
		func(u *setUp) { u.tools = u.tools[:len(u.tools)-1] },
		func(u *setUp) { u.scope.Window = 20_000 },
		func(u *setUp) { u.scope.Short = true },
		func(u *setUp) { u.scope.Window = 0 },
	}
	kept := new(catalog.Catalog)
	for _, first := range changes {
		for i, second := range changes {
			for _, change := range []func(*setUp){first, second, first} {
				u := setUp{tools: slices.Clone(few), scope: tools.Scope{Window: 200_000}}
				change(&u)
				want := u.kit(t)
				u.catalog = kept
				got := u.kit(t)
				if !bytes.Equal(bytesOf(got), bytesOf(want)) || got.Short != want.Short {
					t.Fatalf("after change %d: %q, want %q", i, names(got), names(want))
				}
			}
		}
	}
}

func find(t *testing.T, kit *tools.Kit, args string) string {
	t.Helper()
	r := kit.Call(t.Context(), call("find_tool", args))
	return r.Text
}

// found returns the names of the tools that were found, in order.
func found(text string) (list []string) {
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			list = append(list, strings.TrimSpace(name))
		}
	}
	return list
}

// Tools are found by their name, by what they do, and by their arguments.
func TestFind(t *testing.T) {
	kit := setUp{scope: tools.Scope{Short: true}, tools: []tools.Tool{
		offered("github", "create_issue", "Open a new ticket in a repository.", "repository", "title"),
		offered("github", "search", "Search code, issues and ticket comments.", "query"),
		offered("github", "listPullRequests", "All changes that wait for review.", "state"),
		offered("mail", "create_draft", "Write a letter, such as one that mentions create_issue and mcp_github_search.", "recipient_address"),
		offered("mail", "search", "Look for letters.", "query"),
		offered("maps", "find_route_to_place", "Find, find, find and find: find a place, or find what is there."),
		offered("maps", "find", "What is said here has to do with places on the map of a town, of a country or of the whole world, and a lot of other things that nobody looks for."),
		offered("maps", "route", "路线规划", "from", "to"),
	}}.kit(t)
	for _, c := range []struct{ args, want string }{
		{`{"query":"mcp_github_create_issue","limit":1}`, "mcp_github_create_issue"},
		{`{"query":"mcp_github_search, mcp_mail_search","limit":2}`, "mcp_github_search mcp_mail_search"},
		{`{"query":"create_issue","limit":1}`, "mcp_github_create_issue"},
		{`{"query":"Create Issue","limit":1}`, "mcp_github_create_issue"},
		{`{"query":"search","limit":2}`, "mcp_github_search mcp_mail_search"},
		{`{"query":"search","server":"mail","limit":1}`, "mcp_mail_search"},
		{`{"query":"search","server":"mcp_mail","limit":1}`, "mcp_mail_search"},
		{`{"query":"tickets in repositories","limit":1}`, "mcp_github_create_issue"},
		{`{"query":"pull request","limit":1}`, "mcp_github_listPullRequests"},
		{`{"query":"recipient","limit":1}`, "mcp_mail_create_draft"},
		{`{"query":"find","limit":1}`, "mcp_maps_find"},
		{`{"query":"路线","limit":1}`, "mcp_maps_route"},
		{`{"query":"zebra"}`, ""},
	} {
		text := find(t, kit, c.args)
		if got := strings.Join(found(text), " "); got != c.want {
			t.Errorf("%s finds %q, want %q", c.args, got, c.want)
		}
	}
	if text := find(t, kit, `{"query":"create_issue","limit":1}`); !strings.Contains(text, `"repository":{`) || !strings.Contains(text, "Open a new ticket") {
		t.Errorf("description and schema are missing:\n%s", text)
	}
	if text := find(t, kit, `{"query":"x","server":"gihub"}`); !strings.Contains(text, "github, mail, maps") {
		t.Errorf("of an unknown server: %s", text)
	}
	if text := find(t, kit, `{"server":"mail"}`); text != "- mcp_mail_create_draft: Write a letter, such as one that mentions create_issue and mcp_github_search.\n- mcp_mail_search: Look for letters." {
		t.Errorf("list: %s", text)
	}
}

// What is found stays short, except for the schema of the one tool that is looked for.
func TestFoundIsShort(t *testing.T) {
	var list []tools.Tool
	for i := range 20 {
		list = append(list, offered("big", fmt.Sprintf("tool%d", i), "Weighs a lot. "+strings.Repeat("Really. ", 400)))
	}
	kit := setUp{tools: list, scope: tools.Scope{Short: true}}.kit(t)
	text := find(t, kit, `{"query":"weighs","limit":20}`)
	if len(text) > 14_000 || !strings.Contains(text, "Find each by its name alone") || strings.Count(text, "mcp_big_tool") != 20 {
		t.Errorf("%d bytes: …%s", len(text), text[len(text)-400:])
	}
}

// A call of call_tool is one of the inner tool, for all that looks at calls.
func TestCallIsInner(t *testing.T) {
	var asked []string
	var ran int
	stats := new(tools.Stats)
	mw := tools.Standard(tools.StandardConfig{Stats: stats, Approve: func(_ context.Context, c tools.Call, prompt string) (bool, string, error) {
		asked = append(asked, c.Name+" "+c.Args+" "+prompt)
		return true, "1", nil
	}})
	issue := offered("github", "create_issue", "Opens an issue.", "title")
	issue.Schema = json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"},"number":{"type":"integer"}},"required":["title"]}`)
	issue.ReadOnly = false
	run := issue.Run
	issue.Run = func(ctx context.Context, c tools.Call) (tools.Result, error) {
		ran++
		r, err := run(ctx, c)
		r.Text = fmt.Sprint(c.Name, " ", c.Input)
		return r, err
	}
	u := setUp{scope: tools.Scope{Short: true}, rules: tools.Rules{"mcp_github": tools.Ask}, mw: mw, tools: []tools.Tool{issue, offered("github", "list", "Lists.")}}
	kit := u.kit(t)
	through := call("call_tool", `{"name":"mcp_github_create_issue","arguments":{"title":"x","number":"12"}}`)
	if !kit.Asks(tools.Call{ToolCall: kit.Inner(through.ToolCall), Scope: through.Scope}) {
		t.Error("the rule does not hold")
	}
	const want = "mcp_github_create_issue map[number:12 title:x]"
	for _, args := range []string{
		through.Args,
		`{"name":"mcp_github_create_issue","arguments":"{\"title\":\"x\",\"number\":\"12\"}"}`,
		`{"name":"mcp_github_create_issue","args":{"title":"x","number":12}}`,
		`{"name":"mcp_github_create_issue","title":"x","number":"12"}`,
		`{"name":"call_tool","arguments":{"name":"mcp_github_create_issue","arguments":{"title":"x","number":12}}}`,
		`{"name":"mcp_github_createIssue","arguments":{"title":"x","number":12}}`,
		"```json\n{\"name\":\"mcp_github_create_issue\",\"arguments\":{\"title\":\"x\",\"number\":12}}\n```",
	} {
		asked = nil
		if r := kit.Call(t.Context(), call("call_tool", args)); r.Failed || r.Text != want || r.By != "1" {
			t.Errorf("%s: %+v", args, r)
		}
		if len(asked) != 1 || !strings.HasPrefix(asked[0], "mcp_github_create") || strings.Contains(asked[0], "call_tool") {
			t.Errorf("%s: asked %q", args, asked)
		}
	}
	if r := kit.Call(t.Context(), call("mcp_github_create_issue", `{"title":"x","number":12}`)); r.Text != want {
		t.Errorf("by its name: %+v", r)
	}
	for _, s := range stats.All() {
		if s.Tool != "mcp_github_create_issue" {
			t.Errorf("counted: %+v", s)
		}
	}
	ran = 0
	asked = nil
	for args, part := range map[string]string{
		`{"name":"mcp_github_create_issue","arguments":{"number":1}}`: "Invalid parameters for tool 'mcp_github_create_issue': title is required",
		`{"name":"mcp_github_create_isue","arguments":{"title":"x"}}`: "Tool 'mcp_github_create_isue' not found. Available: find_tool, call_tool. Did you mean 'mcp_github_create_issue'?",
		`{"name":"create_issue","arguments":{"title":"x"}}`:           "Did you mean 'mcp_github_create_issue'?",
		`{"arguments":{"title":"x"}}`:                                 "name is required",
		`{"name":"","arguments":{"title":"x"}}`:                       "name is required",
	} {
		if r := kit.Call(t.Context(), call("call_tool", args)); !r.Failed || !strings.Contains(r.Text, part) {
			t.Errorf("%s: %+v", args, r)
		}
	}
	if ran > 0 || len(asked) > 0 {
		t.Errorf("ran %d times, asked %q", ran, asked)
	}
	if _, err := kit.Check(through); err == nil || !strings.Contains(err.Error(), "name the tool mcp_github_create_issue itself") {
		t.Errorf("a job may call it: %v", err)
	}
}

// A call that is coming in is shown as one of the inner tool once its name is there.
func TestInnerSoFar(t *testing.T) {
	kit := setUp{scope: tools.Scope{Short: true}, tools: []tools.Tool{offered("a", "list", "Lists."), offered("a", "list_all", "Lists.")}}.kit(t)
	for args, want := range map[string]string{
		`{"na`:              "",
		`{"name":"mcp_a_li`: "",
		`{"name":"mcp_a_list","arguments":{"title":"he`: `mcp_a_list {"title":"he"}`,
	} {
		inner, ok := kit.InnerSoFar(llm.ToolCall{Name: "call_tool", Args: args})
		if got := inner.Name + " " + inner.Args; ok != (want != "") || ok && got != want {
			t.Errorf("%s: %v %s", args, ok, got)
		}
	}
}

// What somebody may not use is neither found nor named nor called for them, also if they join a turn.
func TestHiddenStaysHidden(t *testing.T) {
	secret := offered("safe", "open_vault", "Opens the vault.")
	secret.Who = tools.Owners
	off := offered("old", "open_door", "Opens the door.")
	guest := chat.Sender{ID: "2", Role: chat.User}
	withheld := offered("home", "open_window", "Opens the window.")
	withheld.Withheld = func(s chat.Sender) bool { return s.ID == "2" }
	u := setUp{
		tools: []tools.Tool{secret, off, withheld, offered("home", "open_gate", "Opens the gate."), offered("home", "bark", "Barks.")},
		rules: tools.Rules{"mcp_old": tools.Off},
		scope: tools.Scope{Short: true, Only: []string{
			"mcp_safe_open_vault", "mcp_old_open_door", "mcp_home_open_window", "mcp_home_open_gate",
		}},
	}
	for _, began := range []chat.Sender{owner, guest} {
		u.scope.From = began
		kit := u.kit(t)
		if began == guest {
			if text := string(bytesOf(kit)); strings.Contains(text, "vault") || strings.Contains(text, "door") || strings.Contains(text, "bark") {
				t.Errorf("listed: %s", text)
			}
		}
		c := call("find_tool", `{"query":"mcp_safe_open_vault opens barks window","limit":20}`)
		c.From = guest
		if got := found(kit.Call(t.Context(), c).Text); !slices.Equal(got, []string{"mcp_home_open_gate"}) {
			t.Errorf("found: %q", got)
		}
		c.Args = `{}`
		if r := kit.Call(t.Context(), c); r.Text != "- mcp_home_open_gate: Opens the gate." {
			t.Errorf("listed: %s", r.Text)
		}
		c.Args = `{"server":"safe"}`
		if r := kit.Call(t.Context(), c); !r.Failed || strings.Contains(strings.TrimPrefix(r.Text, `Error: there is no server "safe"`), "safe") {
			t.Errorf("listed: %s", r.Text)
		}
		for _, name := range []string{"mcp_safe_open_vault", "mcp_old_open_door", "mcp_home_open_window", "mcp_home_bark", "mcp_safe_open_vaul"} {
			c := call("call_tool", `{"name":"`+name+`"}`)
			c.From = guest
			if r := kit.Call(t.Context(), c); r.Code != tools.CodeNotFound || strings.Contains(r.Text, "mean") {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
}

// A model that had a short list may go on with find_tool and call_tool when the list is long again.
func TestGoesOnWithLongList(t *testing.T) {
	kit := setUp{tools: []tools.Tool{offered("a", "list", "Lists.")}}.kit(t)
	if got := names(kit); !slices.Equal(got, []string{"mcp_a_list"}) {
		t.Errorf("listed: %q", got)
	}
	if r := kit.Call(t.Context(), call("call_tool", `{"name":"mcp_a_list"}`)); r.Text != "mcp_a_list ran with {}" {
		t.Errorf("%+v", r)
	}
	if got := found(find(t, kit, `{"query":"lists"}`)); !slices.Equal(got, []string{"mcp_a_list"}) {
		t.Errorf("found: %q", got)
	}
}

// What is searched is kept, but never the tools of another turn.
func TestOtherTurn(t *testing.T) {
	c := new(catalog.Catalog)
	for _, who := range []chat.Role{chat.Owner, chat.User, chat.Owner} {
		list := []tools.Tool{offered("a", "list", "Lists."), offered("a", "lose", "Lists nothing.")}
		list[0].Withheld = func(chat.Sender) bool { return who != chat.Owner }
		scope := tools.Scope{Short: true, Window: 1000, From: owner}
		kit, err := tools.NewKit(t.Context(), scope, []tools.Source{tools.Fixed(list)})
		if err != nil {
			t.Fatal(err)
		}
		want := 2
		if who != chat.Owner {
			want = 1
		}
		if got := found(find(t, c.Shorten(kit, scope), `{"query":"lists"}`)); len(got) != want {
			t.Errorf("%s found %q", who, got)
		}
	}
	for _, does := range []string{"Paints.", "Sings.", "Paints.", "Dances.", "Writes.", "Reads.", "Cooks.", "Paints."} {
		scope := tools.Scope{Short: true, Window: 1000, From: owner}
		list := []tools.Tool{offered("a", "list", "Lists."), offered("a", "lose", does)}
		kit, err := tools.NewKit(t.Context(), scope, []tools.Source{tools.Fixed(list)})
		if err != nil {
			t.Fatal(err)
		}
		if got := found(find(t, c.Shorten(kit, scope), `{"query":"`+does+`"}`)); !slices.Equal(got, []string{"mcp_a_lose"}) {
			t.Errorf("what %s is %q", does, got)
		}
	}
}

func BenchmarkThousandTools(b *testing.B) {
	list := thousand()
	b.Run("Shorten", func(b *testing.B) {
		for b.Loop() {
			setUp{tools: list}.kit(b)
		}
		bytes := 0
		for _, s := range (setUp{tools: list}).kit(b).Specs() {
			bytes += len(s.Name) + len(s.Description) + len(s.Schema)
		}
		b.ReportMetric(float64(bytes), "listed-bytes")
	})
	b.Run("First", func(b *testing.B) {
		for b.Loop() {
			kit := setUp{tools: list}.kit(b)
			kit.Call(b.Context(), call("find_tool", `{"query":"create an invoice"}`))
		}
	})
	kit := setUp{tools: list}.kit(b)
	b.Run("Find", func(b *testing.B) {
		for b.Loop() {
			kit.Call(b.Context(), call("find_tool", `{"query":"create an invoice"}`))
		}
	})
}

// use returns ordinary tools that are used so often.
func use(often tools.Use, list ...string) (all []tools.Tool) {
	for _, name := range list {
		t := offered("", "", "Does "+name+". "+strings.Repeat("It says a lot about itself. ", 20), "value")
		t.Name = name
		t.Category = "files"
		t.Use = often
		all = append(all, t)
	}
	return all
}

// Rare tools are left out and named, whatever the window, and found and called as any other. With a lean
// prompt so are all but the basic ones. Nothing of that makes the list one that has to stay short.
func TestRare(t *testing.T) {
	list := slices.Concat(use(tools.Usual, "exec", "spawn"), use(tools.Basic, "read_file"), use(tools.Rare, "glob", "grep", "mkdir"))
	for isLean, want := range map[bool][]string{
		false: {"exec", "read_file", "spawn", "find_tool", "call_tool"},
		true:  {"read_file", "find_tool", "call_tool"},
	} {
		u := setUp{tools: list, scope: tools.Scope{Window: 1_000_000, Lean: isLean}}
		kit := u.kit(t)
		if got := names(kit); !slices.Equal(got, want) || kit.Short {
			t.Errorf("lean %v: listed %q, short %v", isLean, got, kit.Short)
		}
		left := "glob, grep, mkdir"
		if isLean {
			left = "exec, glob, grep, mkdir, spawn"
		}
		specs := kit.Specs()
		if index := specs[len(specs)-2].Description; !strings.HasSuffix(index, "There are:\n"+left) {
			t.Errorf("lean %v: the index is %q", isLean, index)
		}
		if got := found(kit.Call(t.Context(), call("find_tool", `{"query":"mkdir, exec, read_file, find_tool"}`)).Text); slices.Contains(got, "exec") != isLean ||
			!slices.Contains(got, "mkdir") || slices.Contains(got, "read_file") || slices.Contains(got, "find_tool") {
			t.Errorf("lean %v: found %q", isLean, got)
		}
		for _, c := range []tools.Call{call("call_tool", `{"name":"grep","arguments":{"value":"x"}}`), call("grep", `{"value":"x"}`)} {
			if r := kit.Call(t.Context(), c); !strings.HasPrefix(r.Text, "grep ran with ") {
				t.Errorf("lean %v: %s: %+v", isLean, c.Name, r)
			}
		}
	}
}

// Who has a few rare tools only, such as a subagent, has them in the list. A Kit that no model sees is whole.
func TestFewRareToolsAreListed(t *testing.T) {
	few := []tools.Tool{offered("", "", "Finds files.", "pattern")}
	few[0].Name = "glob"
	few[0].Category = "files"
	few[0].Use = tools.Rare
	u := setUp{tools: append(ordinary(), few...)}
	if got := names(u.kit(t)); !slices.Contains(got, "glob") || slices.Contains(got, "find_tool") {
		t.Errorf("listed: %q", got)
	}
	u = setUp{tools: use(tools.Rare, "glob", "grep", "mkdir"), scope: tools.Scope{Window: -1}}
	if got := names(u.kit(t)); len(got) != 3 {
		t.Errorf("listed: %q", got)
	}
}

// Conversations, and instructions of subagents, from before the tools were renamed go on.
func TestFormerNames(t *testing.T) {
	kit := setUp{tools: thousand()}.kit(t)
	if got := found(kit.Call(t.Context(), call("mcp_find", `{"query":"invoice","limit":1}`)).Text); len(got) != 1 {
		t.Errorf("found %q", got)
	}
	if r := kit.Call(t.Context(), call("mcp_call", `{"name":"mcp_service0_create_issue_0"}`)); !strings.HasPrefix(r.Text, "mcp_service0_create_issue_0 ran") {
		t.Errorf("%+v", r)
	}
	if got := tools.Canonical(kit.Tools(), "mcp_call"); got != "call_tool" {
		t.Errorf("mcp_call is another name of %q", got)
	}
}
