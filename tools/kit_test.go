package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/tools/arguments"
	"parley/workspace"
)

// echo is a tool that returns its arguments as JSON.
func echo(name, schema string) Tool {
	return Tool{
		ToolSpec: llm.ToolSpec{Name: name, Description: "Echoes.", Schema: []byte(schema)},
		Run:      func(_ context.Context, c Call) (Result, error) { return Result{Text: arguments.JSON(c.Input)}, nil },
	}
}

const anything = `{"type":"object"}`

// kitOf makes a kit behind the standard pipeline.
func kitOf(t testing.TB, tools ...Tool) *Kit {
	t.Helper()
	k, err := NewKit(t.Context(), Scope{}, []Source{Fixed(tools)}, Standard(StandardConfig{})...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func callTo(name, args string) Call {
	return Call{ToolCall: llm.ToolCall{ID: "c1", Name: name, Args: args}, Scope: Scope{Session: "telegram:42", Turn: "t1"}}
}

type broken struct{}

func (broken) Tools(context.Context, Scope) ([]Tool, error) { return nil, errors.New("out of order") }

func TestNewKit(t *testing.T) {
	ok := echo("a", anything)
	without := func(change func(*Tool)) []Source { u := ok; change(&u); return []Source{Fixed{u}} }
	for _, c := range []struct {
		id, want string
		sources  []Source
	}{
		{"D-001, C-022", "tool without a name", without(func(t *Tool) { t.Name = "" })},
		{"D-001", "tool a: no description", without(func(t *Tool) { t.Description = "" })},
		{"D-001", "tool a: no schema", without(func(t *Tool) { t.Schema = nil })},
		{"D-001", "tool a: nothing to run", without(func(t *Tool) { t.Run = nil })},
		{"C-023", `gather tools: Tool "a" is already registered`, []Source{Fixed{ok, ok}}},
		{"source", "gather tools: out of order", []Source{broken{}}},
	} {
		if _, err := NewKit(t.Context(), Scope{}, c.sources); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.id, err, c.want)
		}
	}
}

// A-003, C-023, merge.md: the higher layer wins in the list and in the call.
func TestLayers(t *testing.T) {
	low, high := echo("a", anything), echo("a", anything)
	high.Description = "Echoes louder."
	high.Run = func(context.Context, Call) (Result, error) { return Result{Text: "high"}, nil }
	k, err := NewKit(t.Context(), Scope{}, []Source{Fixed{low}, Fixed{high}})
	if err != nil {
		t.Fatal(err)
	}
	if r := k.Call(t.Context(), callTo("a", "")); r.Text != "high" || len(k.Specs()) != 1 || k.Specs()[0].Description != high.Description {
		t.Errorf("got %q of %v", r.Text, k.Specs())
	}
}

// D-025, D-026: the same bytes, whatever the order of registration. D-010: a copy that is changed changes no other.
func TestSpecs(t *testing.T) {
	names := []string{"mcp_b_x", "write_file", "exec", "mcp_a_x", "read_file", "zeta"}
	const want = "exec read_file write_file zeta mcp_a_x mcp_b_x"
	for range 100 {
		rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		var tools []Tool
		for _, n := range names {
			tools = append(tools, echo(n, anything))
		}
		k := kitOf(t, tools...)
		for range 2 {
			var got []string
			for i, s := range k.Specs() {
				got = append(got, s.Name)
				if string(s.Schema) != anything {
					t.Fatalf("the schema is %s", s.Schema)
				}
				k.Specs()[i].Schema[0] = '?'
			}
			if strings.Join(got, " ") != want {
				t.Fatalf("got %s, want %s", got, want)
			}
		}
	}
}

// D-002
func TestParallel(t *testing.T) {
	for _, c := range []struct{ readOnly, exclusive, want bool }{{false, false, false}, {false, true, false}, {true, false, true}, {true, true, false}} {
		if got := (Tool{Hints: Hints{ReadOnly: c.readOnly, Exclusive: c.exclusive}}).Parallel(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// D-020, A-003, C-025, C-027: names as models write them.
func TestNames(t *testing.T) {
	k := kitOf(t, echo("read_file", anything), echo("write_file", anything), echo("mcp_x_y_z", anything), echo("mcp_x_yz", anything))
	for _, c := range []struct{ asked, want string }{
		{"read_file", "read_file"}, {"readFile", "read_file"}, {"ReadFile", "read_file"}, {"READ-FILE", "read_file"}, {" read_file\n", "read_file"},
		{"functions.read_file", "read_file"}, {"functions.read_file:0", "read_file"}, {"default_api:read_file", "read_file"},
		{"tools/read_file", "read_file"}, {"read_file<|channel|>commentary", "read_file"}, {"mcp_x_yz", "mcp_x_yz"},
		{"mcpXYZ", ""}, {"red_file", ""}, {"", ""}, {"...", ""}, {"functions.", ""}, {"<>", ""}, {":1", ""},
	} {
		if got, ok := k.Tool(c.asked); got.Name != c.want || ok != (c.want != "") {
			t.Errorf("Tool(%q) = %q, %v; want %q", c.asked, got.Name, ok, c.want)
		}
	}
	const available = "Available: read_file, write_file, mcp_x_y_z, mcp_x_yz"
	for _, c := range []struct{ asked, want string }{
		{"red_file", "Error: Tool 'red_file' not found. " + available + hint},
		{"fly", "Error: Tool 'fly' not found. " + available + hint},
		{"", "Error: Tool '' not found. " + available + hint},
	} {
		call := callTo(c.asked, "{broken")
		r := k.Call(t.Context(), call)
		if r.Text != c.want || !r.Failed || r.Code != CodeNotFound {
			t.Errorf("Call(%q) = %+v, want %s", c.asked, r, c.want)
		}
		told := NewRecord(call.ToolCall, r.Text, r, "main", 1).Result // programs read it in other words
		if want := `{"success":false,"data":null,"error":"Tool not found: ` + c.asked + `"}`; told != want {
			t.Errorf("the record says %s, want %s", told, want)
		}
	}
}

// D-027, A-012, P11: arguments as models write them; broken ones are never run.
func TestArguments(t *testing.T) {
	k := kitOf(t, echo("open", anything), echo("own", `{"type":"object","properties":{"arguments":{"type":"object"}}}`))
	bad := func(cause string) string {
		return "Error: Invalid JSON arguments for tool 'open': " + cause + ". The tool was not run. Send the call again, with one complete JSON object as its arguments." + hint
	}
	not := func(kind string) string {
		return "Error: Invalid parameters for tool 'open': parameters must be a JSON object, got " + kind + hint
	}
	for _, c := range []struct{ tool, args, want string }{
		{"open", ``, `{}`}, {"open", ` `, `{}`}, {"open", `null`, `{}`}, {"open", `""`, `{}`}, {"open", `"null"`, `{}`}, {"open", `{}`, `{}`},
		{"open", `{"a":1}`, `{"a":1}`}, {"open", `"{\"a\":1}"`, `{"a":1}`}, {"open", `"\"{\\\"a\\\":1}\""`, `{"a":1}`},
		{"open", `{"arguments":{"a":1}}`, `{"a":1}`}, {"open", `{"arguments":"{\"a\":1}"}`, `{"a":1}`},
		{"open", `{"arguments":{"a":1},"b":2}`, `{"arguments":{"a":1},"b":2}`}, {"open", `{"arguments":"words"}`, `{"arguments":"words"}`},
		{"own", `{"arguments":{"a":1}}`, `{"arguments":{"a":1}}`},
		{"open", `{"a":1234567890123456789,"b":1.5,"c":1e3}`, `{"a":1234567890123456789,"b":1.5,"c":1000}`},
		{"open", `[1]`, not("array")}, {"open", `7`, not("integer")}, {"open", `true`, not("boolean")}, {"open", `"[1]"`, not("array")},
		{"open", `{"a":"b`, bad("the JSON ends too early")}, {"open", `{"a":`, bad("the JSON ends too early")}, {"open", `{`, bad("the JSON ends too early")},
		{"open", `{"a":1}{"b":2}`, bad("there is more after the JSON value")}, {"open", `{'a':1`, bad("invalid character '\\'' looking for beginning of object key string")},
		{"open", `{'a':1}`, `{"a":1}`}, {"open", `{'a':'it\'s "x"','b':"it's"}`, `{"a":"it's \"x\"","b":"it's"}`}, // E-036
		{"open", `{"a":[1,2, ],}`, `{"a":[1,2]}`}, {"open", `{"a":",}"}`, `{"a":",}"}`}, {"open", "{\"a\":\"x\ny\tz\\n\"}", `{"a":"x\ny\tz\n"}`},
		{"open", `{'a':'x\u00e4\\'}`, `{"a":"xä\\"}`}, {"open", `{'a':'it's'}`, bad("invalid character '\\'' looking for beginning of object key string")},
		{"open", `"words"`, bad("invalid character 'w' looking for beginning of value")},
	} {
		r := k.Call(t.Context(), callTo(c.tool, c.args))
		if r.Text != c.want || r.Failed != strings.HasPrefix(c.want, "Error") {
			t.Errorf("%s(%s) = %q\nwant %q", c.tool, c.args, r.Text, c.want)
		}
		if _, err := k.Check(callTo(c.tool, c.args)); r.Failed != (err != nil) || err != nil && prefix+err.Error()+hint != r.Text {
			t.Errorf("%s(%s) is found %v", c.tool, c.args, err)
		}
	}
}

// D-024, D-040: the text of a failure, and what decides that it is one.
func TestFailures(t *testing.T) {
	tool := func(r Result, err error) Tool {
		u := echo("a", anything)
		u.Run = func(context.Context, Call) (Result, error) { return r, err }
		return u
	}
	for _, c := range []struct {
		tool Tool
		want Result
	}{
		{tool(Result{}, errors.New("no luck")), Result{Text: "Error: no luck" + hint, Failed: true, Code: CodeError}},
		{tool(Failf(CodeDenied, "Error: no"), nil), Result{Text: "Error: no" + hint, Failed: true, Code: CodeDenied}},
		{tool(Result{Text: "no" + hint, Failed: true}, nil), Result{Text: "Error: no" + hint, Failed: true, Code: CodeError}},
		{tool(Result{Failed: true}, nil), Result{Text: "Error: a failed and did not say why" + hint, Failed: true, Code: CodeError}},
		{tool(Result{Text: "Error: not at all"}, nil), Result{Text: "Error: not at all"}},
		{tool(Result{}, nil), Result{Text: "(a completed with no output)"}}, // D-044
		{tool(Result{Text: "caf\xe9"}, nil), Result{Text: "caf\ufffd"}},
	} {
		got := kitOf(t, c.tool).Call(t.Context(), callTo("a", ""))
		if got.Time, got.Took = c.want.Time, 0; !reflect.DeepEqual(got, c.want) {
			t.Errorf("got  %+v\nwant %+v", got, c.want)
		}
	}
}

// a panic is the tool's failure; its stack is for the log only.
func TestRecover(t *testing.T) {
	u := echo("a", anything)
	u.Run = func(_ context.Context, c Call) (Result, error) {
		return Result{Text: strings.Fields("")[len(c.Name)]}, nil
	}
	var log bytes.Buffer
	cfg := StandardConfig{Log: slog.New(slog.NewTextHandler(&log, nil))}
	k, err := NewKit(t.Context(), Scope{}, []Source{Fixed{u}}, Standard(cfg)...)
	if err != nil {
		t.Fatal(err)
	}
	r := k.Call(t.Context(), callTo("a", ""))
	if want := "Error: a crashed: runtime error: index out of range [1] with length 0. This is a bug in the tool, not a fault in your arguments" + hint; r.Text != want || !r.Failed {
		t.Errorf("got %+v, want %s", r, want)
	}
	if !strings.Contains(log.String(), "kit_test.go") || !strings.Contains(log.String(), "call=t1#c1") {
		t.Errorf("the log has no stack: %s", &log)
	}
}

// E-024: every call is logged, those that were not run too, and no content.
func TestObserve(t *testing.T) {
	var log bytes.Buffer
	cfg := StandardConfig{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	k, err := NewKit(t.Context(), Scope{}, []Source{Fixed{echo("a", anything)}}, Standard(cfg)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []Call{callTo("A", `{"key":"hush"}`), callTo("b", `{}`), callTo("a", `{`)} {
		k.Call(t.Context(), c)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	for i, want := range []string{
		`level=DEBUG msg="Tool a completed in 0ms" tool=a session=telegram:42 call=t1#c1 round=0 code=""`,
		`level=DEBUG msg="Tool b failed to execute: Tool 'b' not found. Available: a" tool=b session=telegram:42 call=t1#c1 round=0 code=TOOL_NOT_FOUND`,
		`level=DEBUG msg="Tool a failed to execute: Invalid JSON arguments for tool 'a': the JSON ends too early.`,
	} {
		if len(lines) != 3 || !strings.Contains(lines[i], want) {
			t.Errorf("no %s in the log", want)
		}
	}
	if strings.Contains(log.String(), "hush") {
		t.Errorf("logged\n%s", &log)
	}
}

// The pipeline's order.
func TestChain(t *testing.T) {
	var order []string
	note := func(name string) Middleware {
		return around(func(ctx context.Context, t Tool, c Call) (Result, error) {
			order = append(order, name)
			return t.Run(ctx, c)
		})
	}
	u := Chain(echo("a", anything), note("outer"), note("inner"))
	if _, err := u.Run(t.Context(), Call{}); err != nil || !slices.Equal(order, []string{"outer", "inner"}) {
		t.Errorf("order is %v, %v", order, err)
	}
}

// D-042, D-043: what does not fit is kept in a file.
func TestTruncate(t *testing.T) {
	w, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	long := strings.Repeat("ä", 50_000)
	u := echo("a", anything)
	u.Run = func(context.Context, Call) (Result, error) { return Result{Text: long}, nil }
	c := callTo("a", "")
	if r := kitOf(t, u).Call(t.Context(), c); r.Text != strings.Repeat("ä", 16_000)+"\n... (truncated)" {
		t.Errorf("D-043: got %d bytes: %.50q", len(r.Text), r.Text)
	}
	c.Workspace = w
	r := kitOf(t, u).Call(t.Context(), c)
	_, rest, _ := strings.Cut(r.Text, "saved to: ")
	path, _, _ := strings.Cut(rest, "\n")
	want := "[tool output persisted]\nFull output saved to: " + path + "\nOriginal size: 50000 chars\nPreview:\n" +
		strings.Repeat("ä", 1200) + "\n...\n(Read the saved file if you need the full output.)"
	if r.Text != want {
		t.Errorf("D-042: got %.300q", r.Text)
	}
	if data, err := w.Names().ReadFile(path); string(data) != long || err != nil || !strings.HasPrefix(path, ".parley/tool-results/telegram_42-") {
		t.Errorf("%s holds %d bytes, %v", path, len(data), err)
	}
	u.Run = func(context.Context, Call) (Result, error) {
		return Result{Text: `{"a":[1],"b":"` + strings.Repeat(`one\ntwo`, 10_000) + `"}`}, nil
	}
	kitOf(t, u).Call(t.Context(), c)
	if data, err := w.Names().ReadFile(path); err != nil || !strings.HasPrefix(string(data), "{\n  \"a\": [\n    1\n  ],\n  \"b\": \"\"\"\none\ntwoone\n") {
		t.Errorf("JSON is kept as %.100q, %v", data, err)
	}
	u.Run = func(context.Context, Call) (Result, error) { return Result{}, errors.New(long) }
	if r := kitOf(t, u).Call(t.Context(), c); len(r.Text) > 5000 || !r.Failed || !strings.Contains(r.Text, "Original size: 50000 chars") {
		t.Errorf("a long error: %d bytes", len(r.Text))
	}
	u.Run = func(context.Context, Call) (Result, error) { return Result{Text: long}, nil }
	for _, limit := range []int{50_000, -1} {
		u.MaxText = limit
		if r := kitOf(t, u).Call(t.Context(), c); r.Text != long {
			t.Errorf("MaxText %d: got %.50q", limit, r.Text)
		}
	}
}

// D-042: results are kept for 7 days, of 32 sessions at most.
func TestPrune(t *testing.T) {
	for _, c := range []struct {
		sessions, left int
		apart          time.Duration
	}{{40, 31, time.Hour}, {9, 9, 30 * time.Hour}} {
		w, err := workspace.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		now := time.Now()
		var want []string
		for i := range c.sessions {
			dir := fmt.Sprintf("%s/s%02d", resultsDir, i)
			err := errors.Join(w.Names().WriteFile(dir+"/x.txt", nil), os.Chtimes(filepath.Join(w.Dir(), dir), now, now.Add(-time.Duration(i)*c.apart)))
			if err != nil {
				t.Fatal(err)
			}
			if i < c.left {
				want = append(want, filepath.Join(w.Dir(), dir))
			}
		}
		call := callTo("a", "")
		call.Workspace = w
		if _, err := keep(call, "text", false); err != nil {
			t.Fatal(err)
		}
		if got, _ := filepath.Glob(filepath.Join(w.Dir(), resultsDir, "s*")); !slices.Equal(got, want) {
			t.Errorf("left are %v, want %v", got, want)
		}
	}
}

// P28: long results go when their session had none for as long as the config says.
func TestTrimResults(t *testing.T) {
	w, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	now := time.Now()
	removed := 0
	pass := store.Trimming{Before: now.AddDate(0, 0, -7), Step: func(n int) error {
		removed += n
		return nil
	}}
	if err := TrimResults(w, pass); err != nil {
		t.Errorf("without any results: %v", err)
	}
	outside := t.TempDir()
	for name, at := range map[string]struct{ folder, file int }{"old": {-8, -8}, "young": {-6, -6}, "written": {-8, -1}} {
		dir := filepath.Join(w.Dir(), resultsDir, name)
		err := errors.Join(
			w.Names().WriteFile(resultsDir+"/"+name+"/x.txt", nil),
			os.Chtimes(filepath.Join(dir, "x.txt"), now, now.AddDate(0, 0, at.file)),
			os.Chtimes(dir, now, now.AddDate(0, 0, at.folder)),
		)
		if err != nil {
			t.Fatal(err)
		}
	}
	kept := filepath.Join(outside, "kept.txt")
	err = errors.Join(
		os.WriteFile(kept, nil, 0o600),
		os.Chtimes(kept, now, now.AddDate(0, 0, -8)),
		os.Chtimes(outside, now, now.AddDate(0, 0, -8)),
		os.Symlink(outside, filepath.Join(w.Dir(), resultsDir, "link")),
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := TrimResults(w, pass); err != nil {
		t.Error(err)
	}
	left, _ := filepath.Glob(filepath.Join(w.Dir(), resultsDir, "*", "x.txt"))
	if len(left) != 2 || removed != 1 || strings.Contains(fmt.Sprint(left), "old") {
		t.Errorf("left are %q, %d were removed", left, removed)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}

func TestSlug(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []string{"telegram:42", "telegram_42", "telegram/42", "", "..", "../..", strings.Repeat("x", 500), "ä\x00/"} {
		s := chat.Slug(id)
		if seen[s] || len(s) > 60 || strings.ContainsAny(s, "/\x00.") {
			t.Errorf("chat.Slug(%q) = %q", id, s)
		}
		seen[s] = true
	}
}

// TestResultsAreBounded: the long results of a session do not fill the disk; the
// latest are kept.
func TestResultsAreBounded(t *testing.T) {
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	big, last := strings.Repeat(strings.Repeat("x", 99)+"\n", 300_000), ""
	for i := range 9 {
		call := Call{ToolCall: llm.ToolCall{ID: fmt.Sprint(i)}, Scope: Scope{Session: "telegram:42", Turn: "t", Workspace: ws}}
		if last, err = keep(call, big, false); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := ws.Names().ReadDir(path.Dir(last))
	total := int64(0)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if _, lost := ws.Names().Stat(last); err != nil || lost != nil || total > maxResults {
		t.Errorf("%d MB are kept, %v, %v", total>>20, err, lost)
	}
}

// A Kit is made for each turn, and a turn that waits for its model holds it: what a tool takes of it is the tool
// itself, and not what would wrap it in the pipeline.
func TestKitIsLight(t *testing.T) {
	var all Fixed
	for i := range 100 {
		all = append(all, benchTool(fmt.Sprintf("tool_%d", i), Hints{}))
	}
	stages := Standard(StandardConfig{})
	made := testing.AllocsPerRun(100, func() {
		if _, err := NewKit(t.Context(), Scope{}, []Source{all}, stages...); err != nil {
			t.Error(err)
		}
	})
	if made > 50 {
		t.Errorf("a Kit of 100 tools takes %.0f allocations, want less than one for each tool", made)
	}
}
