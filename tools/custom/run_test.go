package custom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"parley/chat"
	"parley/llm"
	"parley/tools"
	"parley/tools/sandbox"
	"parley/tools/sandbox/none"
)

var owner = tools.Scope{Session: "test/1", From: chat.Sender{ID: "1", Role: chat.Owner}}

// examples returns a Source of the tools in testdata, in a folder of its own.
func examples(t *testing.T) (*Source, string) {
	t.Helper()
	l, dir := library(t)
	if err := os.CopyFS(dir, os.DirFS("testdata/tools")); err != nil {
		t.Fatal(err)
	}
	return &Source{Library: l, Runner: none.Runner{}}, dir
}

// kit returns the tools that scope has, in the standard pipeline.
func (s *Source) kit(t *testing.T, scope tools.Scope) *tools.Kit {
	t.Helper()
	k, err := newKit(t.Context(), scope, tools.Rules{}.Permit(s)...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func newKit(ctx context.Context, scope tools.Scope, sources ...tools.Source) (*tools.Kit, error) {
	return tools.NewKit(ctx, scope, sources, tools.Standard(tools.StandardConfig{})...)
}

// call has a tool called as a model calls it.
func (s *Source) call(t *testing.T, id string, arguments any) tools.Result {
	t.Helper()
	args, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	c := tools.Call{ToolCall: llm.ToolCall{ID: "1", Name: id, Args: string(args)}, Scope: owner}
	return s.kit(t, owner).Call(t.Context(), c)
}

// try tests a tool as the admin page does.
func (s *Source) try(t *testing.T, id string, arguments any) Report {
	t.Helper()
	args, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Test(t.Context(), owner, Trial{ID: id, Arguments: args}, tools.Standard(tools.StandardConfig{})...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// message returns the message that a model reads of a success.
func message(t *testing.T, r tools.Result) string {
	t.Helper()
	var read struct {
		Success bool
		Data    struct {
			Message    string
			ReturnCode *int `json:"return_code"`
		}
	}
	if err := json.Unmarshal([]byte(r.Text), &read); err != nil || !read.Success || r.Failed {
		t.Fatalf("the model reads %s", r.Text)
	}
	if read.Data.ReturnCode == nil || *read.Data.ReturnCode != 0 {
		t.Errorf("no return code in %s", r.Text)
	}
	return read.Data.Message
}

// failure returns the error that a model reads.
func failure(t *testing.T, r tools.Result) string {
	t.Helper()
	var read struct {
		Success bool
		Error   string
	}
	if err := json.Unmarshal([]byte(r.Text), &read); err != nil || read.Success || !r.Failed {
		t.Fatalf("the model reads %s", r.Text)
	}
	return read.Error
}

type args map[string]any

// TestGuideExamples runs the four tools of the guide (B-036, B-037, B-041, B-042, B-043, B-059, B-076).
func TestGuideExamples(t *testing.T) {
	s, _ := examples(t)
	for _, c := range []struct {
		tool string
		args args
		want string
	}{
		{"echo", args{"text": "hello"}, "hello"},
		{"greet", args{"name": "  Bob "}, "你好,Bob!"},
		{"greet", args{"name": "{__import__('os').system('id')}"}, "你好,{__import__('os').system('id')}!"},
		{"greet", args{}, "你好!"},
		{"calc", args{"a": 3, "op": "*", "b": 4}, "[calc] 结果: 12"},
		{"calc", args{"a": "3", "op": "+", "b": "4"}, "[calc] 结果: 7"},
		{"calc", args{"a": 7, "op": "/", "b": 2}, "[calc] 结果: 3.5"},
		{"text_len", args{"text": "héllo"}, "[text_len] 字符数: 5"},
	} {
		r := s.call(t, c.tool, c.args)
		if got := message(t, r); got != c.want || r.Shown != c.want {
			t.Errorf("%s %v: %q, to people %q, want %q", c.tool, c.args, got, r.Shown, c.want)
		}
	}
	r := s.try(t, "calc", args{"a": 3, "op": "*", "b": 4})
	if r.Output != "12" || r.Status != "completed" || !r.Success || r.Timeout != 15 || !r.CustomTool || r.ToolID != "calc" {
		t.Errorf("calc: %+v", r.Outcome)
	}
	if !strings.Contains(r.CodeRendered, "a = __v_a__\n") || fmt.Sprint(r.Arguments["a"]) != "3" {
		t.Errorf("calc ran %s with %v", r.CodeRendered, r.Arguments)
	}
	failed := s.call(t, "calc", args{"a": 1, "op": "/", "b": 0})
	if want := "the program failed (return code: 1)"; !strings.Contains(failed.Shown, "[calc]") && failed.Shown != want {
		t.Errorf("people read of a failure: %q", failed.Shown)
	}
	wrong := failure(t, failed)
	if !strings.Contains(wrong, "ZeroDivisionError") || !strings.Contains(wrong, "return code: 1") {
		t.Errorf("1/0: %s", wrong)
	}
	if wrong := failure(t, s.call(t, "calc", args{"a": 1, "op": "!", "b": 0})); !strings.Contains(wrong, "op must be one of") {
		t.Errorf("an operator that is not listed: %s", wrong)
	}
	if strings.Contains(wrong, "__v_") {
		t.Errorf("the model reads the program: %s", wrong)
	}
}

// hostile are arguments that would run if they became part of a program.
var hostile = []string{
	`it's "q"`, "a\nb", `back\slash`, "{braces}", "{{double}}", "中文", "", " ", "\t", "\\", "\\'", `\"`, "'''", `"""`, "\\\n",
	`x'; import os; os.system('id') #`, `"; import os; os.system("id") #`, `'''; import os #`, `"""; import os #`,
	`{__import__('os').system('id')}`, `{__v_text__.__class__}`, `{0.__class__}`, "%s%n", "${HOME}", "`id`", "$(id)",
	"\x00", "\u2028", "\u202e", "'+__import__('os').popen('id').read()+'", `\N{DASH}`, `\x27`, `\u0027`, `\'; 1/0 #`,
	"]};import os", "0\r\nimport os", "# comment", "__v_text__", "\ufeff", "😀", `{{}`, "}", "{", `\{`, "'\n'", "a'b\"c'''d\"\"\"e",
}

// TestArgumentsAreData gives hostile arguments to templates with every kind of placeholder. They
// come out as they went in, and the program's text is the same for all of them (B-035, R-S21).
func TestArgumentsAreData(t *testing.T) {
	s, dir := examples(t)
	const schema = `{"id":"probe","parameters":{"type":"object","properties":{"text":{"type":"string"}}}}`
	const code = `import json

class A:
    x = '{text}'

def f(a={text}, b="{text}"):
    return [a, b]

print(json.dumps([
    '{text}', "{text}", '''{text}''', r'{text}', R"""{text}""", u'{text}', {text}, {text!r},
    f'{text}', F"{text}", f"{{ {text} }}", f"{{ '{text}' }}", '' + '{text}' "", '%s' % '{text}', A.x, *f(),
]))
`
	put(t, dir, "probe", map[string]string{fileDefinition: schema, fileCode: code})
	programs := map[string]bool{}
	for _, text := range hostile {
		r := s.try(t, "probe", args{"text": text})
		var got []string
		if err := json.Unmarshal([]byte(r.Output), &got); err != nil || len(got) != 17 {
			t.Fatalf("%q: %v: %s", text, err, r.Output)
		}
		for i, one := range got {
			if one != text {
				t.Errorf("%q came out of place %d as %q", text, i, one)
			}
		}
		programs[r.CodeRendered] = true
	}
	if len(programs) != 1 {
		t.Errorf("the program depends on the argument: %v", programs)
	}
	for _, text := range hostile[:8] { // B-041
		r := s.try(t, "echo", args{"text": text})
		if r.Output != text {
			t.Errorf("echo %q: %q (%s)", text, r.Output, r.Error)
		}
	}
}

// TestBareAndQuoted wants both forms of a placeholder to give the same (B-034, B-038).
func TestBareAndQuoted(t *testing.T) {
	s, dir := examples(t)
	put(t, dir, "both", map[string]string{
		fileDefinition: `{"parameters":{"type":"object","properties":{"name":{"type":"string"},"name_json":{"type":"string"}}}}`,
		fileCode:       "import json\nprint({name} == '{name}', json.loads({name_json}))",
	})
	if got := message(t, s.call(t, "both", args{"name": "Bob", "name_json": `"Bo'b"`})); got != "True Bo'b" {
		t.Errorf("%q", got)
	}
}

// TestTemplateFaults runs templates that their authors got wrong (B-029 to B-033, B-045, B-051).
func TestTemplateFaults(t *testing.T) {
	s, dir := examples(t)
	for code, want := range map[string]string{
		"import operator\nops = {'+': operator.add}": "missing required argument: \"'+'\"\nNo argument has this name. " +
			"Braces of Python's own must be doubled: {{ and }} (execution.py, line 2)",
		"x = {}":           "the template cannot be rendered: Replacement index 0 out of range for positional args tuple (execution.py, line 1)",
		"  \n":             "the custom tool has no code in execution.py",
		"x = 1\n\n  y = 2": "  File \"execution.py\", line 3\n    y = 2\nIndentationError: unexpected indent",
		"x = '{a}\n":       "  File \"execution.py\", line 1\n    x = '{a}\nSyntaxError: unterminated string literal (detected at line 1)",
		"print(1)\nraise ValueError('{a}')": "1\nTraceback (most recent call last):\n  File \"execution.py\", line 2, in <module>\n" +
			"    raise ValueError('{a}')\nValueError: x",
		"import sys\nsys.exit('{a}')": "x",
	} {
		put(t, dir, "wrong", map[string]string{
			fileDefinition: `{"parameters":{"type":"object","properties":{"a":{"type":"string"}}}}`,
			fileCode:       code,
		})
		got := failure(t, s.call(t, "wrong", args{"a": "x"}))
		if got != want && got != "the program failed (return code: 1)\n"+want {
			t.Errorf("%s\nfails with\n%s\nnot\n%s", code, got, want)
		}
	}
	put(t, dir, "wrong", map[string]string{
		fileDefinition: `{"parameters":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}`,
		fileCode:       "print('{name}')",
	})
	if got := failure(t, s.call(t, "wrong", args{})); !strings.Contains(got, "name is required") { // D-021
		t.Errorf("without a required argument: %s", got)
	}
	o, _ := s.run(t.Context(), must(s.Library.Get("wrong")), tools.Call{}) // what no schema caught
	if o.Message != "missing required argument: 'name'" || o.Missing != "name" {
		t.Errorf("%+v", o)
	}
	for _, function := range []string{"eval", "exec"} {
		put(t, dir, "wrong", map[string]string{fileDefinition: "{}", fileCode: "d = {'k': 1}\n" + function + "('1')"})
		if d := must(s.Library.Get("wrong")); len(d.Warnings) != 2 ||
			!strings.Contains(d.Warnings[0], "must be doubled") || !strings.Contains(d.Warnings[1], "eval or exec") { // B-040
			t.Errorf("warnings: %q", d.Warnings)
		}
	}
}

// TestReportJSON: the fields of a result, by the names that other programs know (B-050).
func TestReportJSON(t *testing.T) {
	s, dir := examples(t)
	put(t, dir, "both", map[string]string{
		fileDefinition: `{"timeout":5}`, fileCode: "import sys\nprint('out')\nprint('err', file=sys.stderr)",
	})
	r := s.try(t, "both", args{})
	r.ElapsedMS = 12
	got, err := json.Marshal(r)
	const want = `{"success":true,"status":"completed","output":"out\nerr","stderr":"err\n","return_code":0,"truncated":false,` +
		`"timeout":5,"elapsed_ms":12,"custom_tool":true,"tool_id":"both","message":"out\nerr",` +
		`"code_rendered":"import sys\nprint('out')\nprint('err', file=sys.stderr)","arguments":{},` +
		`"text":"{\"success\":true,\"data\":{\"message\":\"out\\nerr\",\"return_code\":0},\"error\":null}"}`
	if err != nil || string(got) != want {
		t.Errorf("%v: %s\nwant %s", err, got, want)
	}
	put(t, dir, "both", map[string]string{fileCode: "x = {'k': 1}"})
	r = s.try(t, "both", args{})
	got, err = json.Marshal(r.Outcome)
	const failed = `{"success":false,"status":"error","output":"","return_code":-1,"truncated":false,"timeout":5,"elapsed_ms":0,` +
		`"custom_tool":true,"tool_id":"both","message":`
	if err != nil || !strings.HasPrefix(string(got), failed) || !strings.HasSuffix(string(got), `,"missing":"'k'"}`) { // B-030
		t.Errorf("%v: %s", err, got)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestTimeout ends a program that does not end by itself (B-047).
func TestTimeout(t *testing.T) {
	t.Parallel()
	s, dir := examples(t)
	put(t, dir, "loop", map[string]string{ // in half its time Python begins on any machine
		fileDefinition: `{"timeout":5.5}`,
		fileCode:       "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('begun')\nwhile True:\n    pass",
	})
	r := s.try(t, "loop", args{})
	if r.Status != "timeout" || r.Success || r.Output != "begun" ||
		r.Message != "the program was stopped because it took too long (5.5 seconds)" {
		t.Errorf("%+v", r.Outcome)
	}
	if result := s.call(t, "loop", args{}); result.Code != tools.CodeTimeout || !strings.Contains(result.Text, "begun") {
		t.Errorf("%s: %s", result.Code, result.Text)
	}
}

// TestMuchOutput keeps the beginning and the end of the output only (B-048, B-049).
func TestMuchOutput(t *testing.T) {
	s, dir := examples(t)
	for code, want := range map[string]func(r Report) bool{
		"print('A' * 1000000)": func(r Report) bool {
			return r.Truncated && strings.Contains(r.Output, "(990,001 chars truncated)") && strings.HasSuffix(r.Output, "AAA")
		},
		"for i in range(200000): print('é中', i)": func(r Report) bool {
			return r.Truncated && strings.HasPrefix(r.Output, "é中 0\n") && strings.HasSuffix(r.Output, "é中 199999")
		},
		"print('A' * 9999)": func(r Report) bool { return !r.Truncated && len(r.Output) == 9999 },
		"import sys\nprint('out')\nprint('err', file=sys.stderr)": func(r Report) bool {
			return r.Output == "out\nerr" && r.Stderr == "err\n"
		},
		"print('A' * 20000)\n1/0": func(r Report) bool {
			return r.Truncated && strings.HasSuffix(r.Output, "ZeroDivisionError: division by zero")
		},
		"import sys\nsys.stdout.buffer.write(b'\\xff\\x00' * 9)": func(r Report) bool {
			return utf8.ValidString(r.Output) && !strings.Contains(r.Output, "\x00")
		},
	} {
		put(t, dir, "much", map[string]string{fileDefinition: `{"timeout":600}`, fileCode: code})
		r := s.try(t, "much", args{})
		if n := utf8.RuneCountInString(r.Output); n > maxOutput+100 || !want(r) {
			t.Errorf("%s: %d characters, truncated %v: %.60q …", code, n, r.Truncated, r.Output)
		}
	}
}

// TestReturnLayer applies return.json (B-052 to B-059).
func TestReturnLayer(t *testing.T) {
	s, dir := examples(t)
	for _, c := range []struct {
		layer, code     string
		output, message string
		truncated       bool
	}{
		{`{"truncate":200}`, "print('é' * 300)", strings.Repeat("é", 200), strings.Repeat("é", 200), true},
		{`{"truncate":0}`, "print(12345)", "12345", "12345", false},
		{`{"truncate":-3}`, "print(12345)", "12345", "12345", false},
		{`{"truncate":"3"}`, "print(12345)", "12345", "12345", false},
		{`{"truncate":2.5}`, "print(12345)", "12345", "12345", false},
		{`{"truncate":3,"template":"<{output}> {return_code} {tool_id} {stderr}|{{}}"}`, "print(12345)", "123", "<123> 0 t |{}", true},
		{`{"template":"{result}"}`, "print(1)", "1", "1", false},
		{`{"template":"{output"}`, "print(1)", "1", "1", false},
		{`{"template":"{output!r}"}`, "print(1)", "1", "1", false},
		{`{"template":5}`, "print(1)", "1", "1", false},
		{`{"template":"{output}"}`, "print('{{tool_id}}')", "{tool_id}", "{tool_id}", false},
		{`{}`, "pass", "", "the custom tool was run, and wrote nothing", false},
		{`{}`, "import sys; sys.exit(3)", "", "the program failed (return code: 3)", false},
		{`{"template":"code {return_code}"}`, "import sys; sys.exit(3)", "", "code 3", false},
	} {
		put(t, dir, "t", map[string]string{fileDefinition: "{}", fileCode: c.code, fileReturn: c.layer})
		r := s.try(t, "t", args{})
		if r.Output != c.output || r.Message != c.message || r.Truncated != c.truncated {
			t.Errorf("%s with %s: output %q, message %q, truncated %v", c.code, c.layer, r.Output, r.Message, r.Truncated)
		}
	}
}

// A fakeRunner answers each run with what it has, and notes how it was asked.
type fakeRunner struct {
	outcome sandbox.Outcome
	err     error
	asked   []sandbox.Spec
}

func (f *fakeRunner) Run(_ context.Context, s sandbox.Spec) (sandbox.Outcome, error) {
	f.asked = append(f.asked, s)
	_, _ = io.WriteString(s.Stdout, "out\n")
	return f.outcome, f.err
}

// TestSandboxOfTools wants tools to have nothing but their time, and the network only if their
// definition and the config say so (B-046, R-S21).
func TestSandboxOfTools(t *testing.T) {
	s, dir := examples(t)
	f := &fakeRunner{outcome: sandbox.Outcome{End: sandbox.Exited}}
	s.Runner = f
	put(t, dir, "net", map[string]string{fileDefinition: `{"network":true}`, fileCode: "pass"})
	s.try(t, "echo", args{"text": "secret of the argument"})
	s.try(t, "net", args{})
	s.Hosts = []string{"pypi.org"}
	s.try(t, "echo", args{"text": "x"})
	s.try(t, "net", args{})
	s.Hosts = []string{"*"}
	s.try(t, "net", args{})
	s.HostNetwork = true
	s.try(t, "net", args{})
	s.try(t, "echo", args{"text": "x"})
	s.HostNetwork = false
	var networks []string
	for _, spec := range f.asked {
		networks = append(networks, fmt.Sprint(spec.Network.Hosts, spec.Network.All, spec.Network.Key))
		if len(spec.Folders) != 0 || len(spec.Env) != 0 || spec.Dir != "" {
			t.Errorf("a tool sees %v %v %q", spec.Folders, spec.Env, spec.Dir)
		}
		if strings.Contains(strings.Join(spec.Args, " "), "secret") {
			t.Error("an argument is in the command line, which everybody can read")
		}
	}
	const key = "tools.custom.network"
	if want := []string{"[] false", "[] false" + key, "[] false", "[pypi.org] false" + key, "[*] false" + key, "[] true", "[] false"}; !slices.Equal(networks, want) {
		t.Errorf("networks: %q", networks)
	}
	if f.asked[0].Limits.Wall != 10*time.Second {
		t.Errorf("limits: %+v", f.asked[0].Limits)
	}
	for _, c := range []struct {
		runner fakeRunner
		want   string
	}{
		{fakeRunner{err: fmt.Errorf("x: %w", sandbox.ErrNoSandbox)}, "no sandbox works on this machine: custom tools are disabled"},
		{fakeRunner{outcome: sandbox.Outcome{End: sandbox.Exited, Exit: 1, WithoutHosts: true}},
			"the sandbox of this machine cannot let a program reach some hosts only, so it reached none"},
		{fakeRunner{err: errors.New("no python3")}, "the program could not be started: no python3"},
		{fakeRunner{outcome: sandbox.Outcome{End: sandbox.Exceeded, Exit: -1}},
			"the program was stopped because it used more memory, time or processes than a custom tool may"},
		{fakeRunner{outcome: sandbox.Outcome{End: sandbox.Exited, Exit: 1, Refused: []string{"evil.example:443"}}},
			"not reached: evil.example:443. A custom tool reaches the hosts of tools.custom.network in the config"},
	} {
		s.Runner = &c.runner
		if got := failure(t, s.call(t, "net", args{})); !strings.Contains(got, c.want) {
			t.Errorf("%+v: %s", c.runner, got)
		}
	}
}

// TestOwnersOnly offers the tools to owners, decided for each person (B-013, B-014, B-017).
func TestOwnersOnly(t *testing.T) {
	s, dir := examples(t)
	put(t, dir, "calc", map[string]string{fileDefinition: `{"id":"calc","category":"net","read_only":true}`})
	f := &fakeRunner{outcome: sandbox.Outcome{End: sandbox.Exited}}
	s.Runner = f
	guest := owner
	guest.Group = true
	guest.From = chat.Sender{ID: "2"}
	open := tools.Rules{"custom": tools.Everyone, "net": tools.Everyone}
	for name, rules := range map[string]tools.Rules{"no rules": {}, "rules for everyone": open} {
		k, err := newKit(t.Context(), guest, rules.Permit(s)...)
		if err != nil {
			t.Fatal(err)
		}
		if len(k.Specs()) != 0 {
			t.Errorf("%s: a guest is offered %v", name, k.Specs())
		}
		k, err = newKit(t.Context(), owner, rules.Permit(s)...)
		if err != nil {
			t.Fatal(err)
		}
		if len(k.Specs()) != 4 {
			t.Errorf("%s: an owner is offered %v", name, k.Specs())
		}
		for _, id := range []string{"echo", "calc"} { // calc needs no approval
			call := tools.Call{ToolCall: llm.ToolCall{ID: "1", Name: id, Args: `{"text":"x"}`}, Scope: guest}
			joined := k.Call(t.Context(), call)
			if joined.Code != tools.CodeNotFound || !strings.Contains(joined.Text, "Tool '"+id+"' not found") {
				t.Errorf("%s: a guest who joins the turn of an owner reads %s", name, joined.Text)
			}
		}
	}
	if len(f.asked) != 0 {
		t.Error("a program was run for a guest")
	}
}

// TestHotCall edits a tool between two calls of one turn (B-012).
func TestHotCall(t *testing.T) {
	s, dir := examples(t)
	k := s.kit(t, owner)
	call := func(id string) tools.Result {
		return k.Call(t.Context(), tools.Call{ToolCall: llm.ToolCall{ID: id, Name: "echo", Args: `{"text":"x"}`}, Scope: owner})
	}
	if got := message(t, call("1")); got != "x" {
		t.Errorf("first %q", got)
	}
	put(t, dir, "echo", map[string]string{fileCode: "print('new {text}')"})
	if got := message(t, call("2")); got != "new x" {
		t.Errorf("after the edit %q", got)
	}
	put(t, dir, "echo", map[string]string{fileDefinition: `{"id":"echo",`}) // half of a file
	if got := failure(t, call("3")); got != "custom tool not found: echo" {
		t.Errorf("with half a definition: %s", got)
	}
	if err := os.RemoveAll(filepath.Join(dir, "echo")); err != nil {
		t.Fatal(err)
	}
	if got := failure(t, call("4")); got != "custom tool not found: echo" { // B-045
		t.Errorf("without the tool: %s", got)
	}
}

// TestTrialOfDraft tests a tool that is not saved (B-018).
func TestTrialOfDraft(t *testing.T) {
	s, dir := examples(t)
	trial := func(body string) (Report, error) {
		var one Trial
		if err := json.Unmarshal([]byte(body), &one); err != nil {
			t.Fatal(err)
		}
		return s.Test(t.Context(), owner, one, tools.Standard(tools.StandardConfig{})...)
	}
	r, err := trial(`{"draft":{"id":"fresh","execution_code":"print({{1: '{x}'}})","parameters":{"type":"object","properties":{"x":{"type":"integer"}}}},"arguments":{"x":"5"}}`)
	if err != nil || r.Output != "{1: '5'}" || r.Text == "" {
		t.Errorf("%v: %+v", err, r)
	}
	if _, err := os.Stat(filepath.Join(dir, "fresh")); !os.IsNotExist(err) {
		t.Error("the draft was saved")
	}
	r, err = trial(`{"id":"calc","arguments":{"a":"many"}}`)
	if err != nil || r.Success || r.Arguments != nil || !strings.Contains(r.Message, "a should be number") {
		t.Errorf("%v: %+v", err, r)
	}
	if json.Valid([]byte(r.Message)) || r.Error != r.Message || !json.Valid([]byte(r.Text)) {
		t.Errorf("people are told %q and %q, models %q", r.Message, r.Error, r.Text)
	}
	if _, err = trial(`{"id":"nothing"}`); !errors.Is(err, ErrNotFound) {
		t.Errorf("a tool that is not there: %v", err)
	}
	if _, err := trial(`{"draft":{"id":"../x"}}`); !refused(err) {
		t.Errorf("a bad id: %v", err)
	}
}

func refused(err error) bool {
	_, ok := errors.AsType[*Refusal](err)
	return ok
}

// TestReadOnly reuses results of tools that say that they change nothing, until they are edited
// (B-078).
func TestReadOnly(t *testing.T) {
	s, dir := examples(t)
	cache := tools.NewCache(time.Hour)
	ask := func(id string) string {
		k, err := tools.NewKit(t.Context(), owner, []tools.Source{s}, tools.Standard(tools.StandardConfig{Cache: cache})...)
		if err != nil {
			t.Fatal(err)
		}
		return message(t, k.Call(t.Context(), tools.Call{ToolCall: llm.ToolCall{ID: "1", Name: id, Args: "{}"}, Scope: owner}))
	}
	const code = "import time\nprint(time.time_ns())"
	put(t, dir, "pure", map[string]string{fileDefinition: `{"read_only":true}`, fileCode: code})
	put(t, dir, "acts", map[string]string{fileDefinition: `{}`, fileCode: code})
	first := ask("acts")
	if ask("acts") == first {
		t.Error("a tool that may change something was not run again")
	}
	before := ask("pure")
	if ask("pure") != before {
		t.Error("a read-only tool was run again")
	}
	put(t, dir, "pure", map[string]string{fileCode: code + "#"})
	if ask("pure") == before {
		t.Error("the result of an older program was reused")
	}
}

// TestUntrustedTurn asks before a tool is run because of what strangers wrote (R-S12).
func TestUntrustedTurn(t *testing.T) {
	s, dir := examples(t)
	put(t, dir, "pure", map[string]string{fileDefinition: `{"read_only":true}`, fileCode: "print(1)"})
	put(t, dir, "net", map[string]string{fileDefinition: `{"read_only":true,"network":true}`, fileCode: "print(1)"})
	s.Hosts = []string{"*"}
	tainted := owner
	tainted.Tainted = true
	for id, want := range map[string]bool{"pure": false, "net": true, "echo": true} {
		for _, scope := range []tools.Scope{owner, tainted} {
			c := tools.Call{ToolCall: llm.ToolCall{ID: "1", Name: id, Args: `{"text":"x"}`}, Scope: scope}
			if asks := s.kit(t, scope).Asks(c); asks != (want && scope.Tainted) {
				t.Errorf("%s, untrusted %v: asks %v", id, scope.Tainted, asks)
			}
		}
	}
}

// TestMaxTimeout caps the timeout of a tool (B-025).
func TestMaxTimeout(t *testing.T) {
	s, _ := examples(t)
	s.MaxTimeout = 2 * time.Second
	f := &fakeRunner{outcome: sandbox.Outcome{End: sandbox.TimedOut, Exit: -1}}
	s.Runner = f
	r := s.try(t, "calc", args{"a": 1, "op": "+", "b": 1})
	if f.asked[0].Limits.Wall != 2*time.Second || r.Timeout != 2 || !strings.Contains(r.Message, "(2 seconds)") {
		t.Errorf("%+v", r.Outcome)
	}
}

// TestSchemaOfModels shows models the schema as its author wrote it (B-027).
func TestSchemaOfModels(t *testing.T) {
	s, _ := examples(t)
	for _, spec := range s.kit(t, owner).Specs() {
		if spec.Name != "calc" {
			continue
		}
		var schema struct {
			Properties map[string]struct {
				Type, Description string
				Enum              []string
			}
			Required []string
		}
		if err := json.Unmarshal(spec.Schema, &schema); err != nil {
			t.Fatal(err)
		}
		op := schema.Properties["op"]
		if op.Description != "运算符" || strings.Join(op.Enum, "") != "+-*/" || strings.Join(schema.Required, " ") != "a op b" {
			t.Errorf("the model reads %s", spec.Schema)
		}
		return
	}
	t.Error("calc is not offered")
}

// TestMissingOverrides names built-in tools whose place is taken by a tool that cannot be used. What
// was replaced stays away: a typing error in a file never gives it back (C-035).
func TestMissingOverrides(t *testing.T) {
	s, dir := examples(t)
	s.Overrides = map[string]Override{
		"calculator": {Tool: "calc"}, "grep": {Tool: "nothing"}, "glob": {Description: "x"},
	}
	if got := s.Missing(); !slices.Equal(got, []string{"grep"}) {
		t.Errorf("missing: %q", got)
	}
	builtIn := tools.Fixed{
		{ToolSpec: llm.ToolSpec{Name: "grep"}},
		{ToolSpec: llm.ToolSpec{Name: "find"}, Hints: tools.Hints{AliasOf: "grep"}},
		{ToolSpec: llm.ToolSpec{Name: "glob", Description: "own"}},
	}
	sources, err := s.Above(builtIn)
	if err != nil {
		t.Fatal(err)
	}
	left, err := sources[0].Tools(t.Context(), owner)
	if err != nil || len(left) != 1 || left[0].Description != "x" || builtIn[2].Description != "own" {
		t.Errorf("%v: left %+v", err, left)
	}
	if _, err := s.Library.Save(draft(t, `{"id":"find"}`), ""); !refused(err) {
		t.Errorf("a custom tool of a reserved name: %v", err)
	}
	put(t, dir, "nothing", small("nothing"))
	if got := s.Missing(); len(got) != 0 {
		t.Errorf("missing although it is there now: %q", got)
	}
}

// TestOneToolInTwoPlaces puts a custom tool into the places of two built-in ones (C-035).
func TestOneToolInTwoPlaces(t *testing.T) {
	s, _ := examples(t)
	s.Overrides = map[string]Override{"grep": {Tool: "calc"}, "glob": {Tool: "calc", Description: "x"}}
	var names []string
	for _, spec := range s.kit(t, owner).Specs() {
		names = append(names, spec.Name)
	}
	slices.Sort(names)
	if want := []string{"echo", "glob", "greet", "grep", "text_len"}; !slices.Equal(names, want) {
		t.Errorf("offered: %q", names)
	}
}

// TestSwitchedOff offers and tries no tool while they are off. What the config says of built-in tools
// still holds (C-036).
func TestSwitchedOff(t *testing.T) {
	s, _ := examples(t)
	s.Off = true
	s.Overrides = map[string]Override{"grep": {Tool: "calc"}, "glob": {Description: "x"}}
	if specs := s.kit(t, owner).Specs(); len(specs) != 0 {
		t.Errorf("offered: %v", specs)
	}
	if _, err := s.Test(t.Context(), owner, Trial{ID: "calc"}); !refused(err) {
		t.Errorf("tried: %v", err)
	}
	if got := s.Missing(); !slices.Equal(got, []string{"grep"}) {
		t.Errorf("missing: %q", got)
	}
	sources, err := s.Above(tools.Fixed{{ToolSpec: llm.ToolSpec{Name: "grep"}}, {ToolSpec: llm.ToolSpec{Name: "glob"}}})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := sources[0].Tools(t.Context(), owner); err != nil || len(left) != 1 || left[0].Description != "x" {
		t.Errorf("%v: left %+v", err, left)
	}
}

// TestMissingArgument says which required argument was not given (B-033).
func TestMissingArgument(t *testing.T) {
	s, _ := examples(t)
	if r := s.try(t, "calc", args{"a": 1, "op": "+"}); r.Missing != "b" || r.Success || r.ToolID != "calc" {
		t.Errorf("%+v", r.Outcome)
	}
}

// A recorder notes what is run, and runs nothing.
type recorder struct{ specs []sandbox.Spec }

func (r *recorder) Run(_ context.Context, s sandbox.Spec) (sandbox.Outcome, error) {
	r.specs = append(r.specs, s)
	return sandbox.Outcome{End: sandbox.Exited}, nil
}

// TestWorkspace gives programs the view of the workspace that their definition asks for. What untrusted
// content they may have read makes their results untrusted; a result that depends on files is not reused.
func TestWorkspace(t *testing.T) {
	s, dir := examples(t)
	ran := &recorder{}
	s.Runner = ran
	visits := ""
	s.Visit = func(_ context.Context, c tools.Call, mayWrite, mayReach bool) (sandbox.Visit, error) {
		visits += fmt.Sprintf("%s %t %t ", c.Name, mayWrite, mayReach)
		return sandbox.Visit{
			Folders: []sandbox.Folder{{Path: "/w", Access: sandbox.ReadOnly}}, Work: "/w/work", Sources: []string{"a file"},
			End: func() { visits += "ended. " },
		}, nil
	}
	for id, definition := range map[string]string{
		"without": `{}`, "none": `{"workspace":"none"}`, "reads": `{"workspace":"read","read_only":true}`, "writes": `{"workspace":"write"}`,
	} {
		put(t, dir, id, map[string]string{fileDefinition: definition, fileCode: "print(1)"})
	}
	for _, id := range []string{"without", "none"} {
		if r := s.call(t, id, args{}); r.Failed || r.Tainted || visits != "" {
			t.Errorf("%s: %+v, %s", id, r, visits)
		}
	}
	if spec := ran.specs[1]; spec.Dir != "" || len(spec.Folders) > 0 {
		t.Errorf("without the workspace: %+v", spec)
	}
	for id, want := range map[string]string{"reads": "reads false false ended. ", "writes": "writes true false ended. "} {
		visits = ""
		r := s.call(t, id, args{})
		if r.Failed || !r.Tainted || !slices.Equal(r.Sources, []string{"a file"}) || visits != want {
			t.Errorf("%s: %+v, %s", id, r, visits)
		}
		if spec := ran.specs[len(ran.specs)-1]; spec.Dir != "/w/work" || len(spec.Folders) != 1 {
			t.Errorf("%s: %+v", id, spec)
		}
	}
	all := must(s.Tools(t.Context(), owner))
	i := slices.IndexFunc(all, func(t tools.Tool) bool { return t.Name == "reads" })
	if all[i].Cacheable || !all[i].ReadOnly {
		t.Errorf("%+v", all[i].Hints)
	}
	s.Visit = nil
	if r := s.call(t, "reads", args{}); !strings.Contains(failure(t, r), "for want of the workspace") {
		t.Errorf("%s", r.Text)
	}
	for definition, want := range map[string]string{
		`{"workspace":"all"}`:                    `"workspace" must be "none", "read" or "write"`,
		`{"workspace":true}`:                     `"workspace" must be a text`,
		`{"workspace":"write","read_only":true}`: `a tool with "workspace": "write" cannot be "read_only"`,
	} {
		_, err := parse("x", map[string]string{fileDefinition: definition, fileCode: ""})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", definition, err)
		}
	}
}
