package python

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/requiretest"
	"parley/tools"
	"parley/tools/sandbox"
	"parley/tools/sandbox/none"
	"parley/workspace"
)

// open is a Sandbox that confines nothing but time. It notes what it ran.
type open struct {
	runner   sandbox.Runner
	choice   sandbox.Choice
	patience time.Duration // times the time that a run may take, because a busy machine needs longer to start Python

	mu   sync.Mutex
	last sandbox.Spec
}

// patience is that of tests that are not about time.
const patience = 12

func unconfined() *open {
	return &open{runner: none.Runner{}, choice: sandbox.Choice{Driver: "test"}, patience: patience}
}

func (o *open) Choice(context.Context) (sandbox.Choice, error) { return o.choice, nil }

func (o *open) Run(ctx context.Context, s sandbox.Spec) (sandbox.Outcome, error) {
	o.mu.Lock()
	o.last = s
	o.mu.Unlock()
	s.Limits.Wall *= max(o.patience, 1)
	return o.runner.Run(ctx, s)
}

func (o *open) spec() sandbox.Spec {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

// skipWithoutPython skips the test if there is no interpreter.
func skipWithoutPython(t testing.TB) {
	if _, err := Find(); err != nil {
		requiretest.Missing(t, err)
	}
}

func interpreter(t testing.TB, cfg Config) *Interpreter {
	t.Helper()
	skipWithoutPython(t)
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A person runs code in a workspace of their own.
type person struct {
	t     testing.TB
	p     *Interpreter
	scope tools.Scope
	n     int
}

func owner(t testing.TB, p *Interpreter) *person {
	w, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	at := chat.Address{Channel: "test", Chat: "1"}
	return &person{t: t, p: p, scope: tools.Scope{
		Session: at.Session(), At: at, From: chat.Sender{ID: "1", Role: chat.Owner}, Workspace: w, Turn: "t",
	}}
}

// call has a tool called with the arguments in input, through the whole pipeline.
func (u *person) call(tool string, input map[string]any) tools.Result {
	u.t.Helper()
	kit, err := tools.NewKit(u.t.Context(), u.scope, []tools.Source{u.p}, tools.Standard(tools.StandardConfig{})...)
	if err != nil {
		u.t.Fatal(err)
	}
	text, err := json.Marshal(input)
	if err != nil {
		u.t.Fatal(err)
	}
	u.n++
	call := tools.Call{ToolCall: llm.ToolCall{ID: fmt.Sprint("c", u.n), Name: tool, Args: string(text)}, Scope: u.scope}
	return kit.Call(u.t.Context(), call)
}

// run runs code, and returns what the model is told.
func (u *person) run(level Level, code string) (said answer, problem string) {
	u.t.Helper()
	input := map[string]any{"code": code}
	if level != "" {
		input["strictness"] = level
	}
	return decode(u.t, u.call("execute_python", input))
}

func decode(t testing.TB, r tools.Result) (said answer, problem string) {
	t.Helper()
	var envelope struct {
		Success bool            `json:"success"`
		Data    json.RawMessage `json:"data"`
		Error   string          `json:"error"`
	}
	if err := json.Unmarshal([]byte(r.Text), &envelope); err != nil || envelope.Success == r.Failed {
		t.Fatalf("%q: %v", r.Text, err)
	}
	if r.Failed {
		return said, envelope.Error
	}
	if err := json.Unmarshal(envelope.Data, &said); err != nil {
		t.Fatalf("%q: %v", r.Text, err)
	}
	return said, ""
}

// wantOutput runs code that must succeed, and print that.
func (u *person) wantOutput(level Level, code, output string) {
	u.t.Helper()
	if said, problem := u.run(level, code); problem != "" || said.Output != output {
		u.t.Errorf("%s: %s\nprinted %q, want %q, %s", level, code, said.Output, output, problem)
	}
}

// wantProblem runs code that must fail with exactly that text.
func (u *person) wantProblem(level Level, code, want string) {
	u.t.Helper()
	if said, problem := u.run(level, code); problem != want {
		u.t.Errorf("%s: %s\n%+v, %q\nwant %q", level, code, said, problem, want)
	}
}

// A-039, E-004: the schema has code, which is required, and strictness; and models that know the tool
// of another system may call it by the name there.
func TestSchema(t *testing.T) {
	u := owner(t, interpreter(t, Config{Sandbox: unconfined()}))
	all, err := u.p.Tools(t.Context(), u.scope)
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	var schema struct {
		Properties map[string]struct {
			Type string
			Enum []string
		}
		Required []string
	}
	main := all[0]
	if err := json.Unmarshal(main.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	levels := schema.Properties["strictness"].Enum
	if main.Name != "execute_python" || main.Kind() != "code" || !slices.Equal(schema.Required, []string{"code"}) ||
		len(schema.Properties) != 2 || !slices.Equal(levels, []string{"lenient", "standard", "strict"}) {
		t.Errorf("%s: %s", main.Name, main.Schema)
	}
	if all[1].AliasOf != main.Name || all[1].Kind() != "code" {
		t.Errorf("%+v", all[1])
	}
	for tool, names := range map[string][]string{
		"execute_python":  {"code", "code_block", "python"},
		"run_python_code": {"code_block", "code", "python"},
	} {
		for _, name := range names {
			said, problem := decode(t, u.call(tool, map[string]any{name: "print(6 * 7)"}))
			if said.Output != "42\n" {
				t.Errorf("%s with %s: %+v, %s", tool, name, said, problem)
			}
		}
	}
}

// Every turn asks for the tools: they are made once, since their schemas take longer than all else of a turn.
func TestToolsAreMadeOnce(t *testing.T) {
	p := interpreter(t, Config{Sandbox: unconfined()})
	p.find = func() (string, error) { return "python3", nil }
	offered := testing.AllocsPerRun(100, func() {
		if all, err := p.Tools(t.Context(), tools.Scope{}); len(all) != 2 || err != nil {
			t.Error(all, err)
		}
	})
	if offered > 5 {
		t.Errorf("to offer the tools takes %.0f allocations, want none to make them", offered)
	}
}

// Without an interpreter the tool is not offered, and one that has gone since is an error.
func TestNoInterpreter(t *testing.T) {
	p := interpreter(t, Config{Sandbox: unconfined()})
	p.find = func() (string, error) { return "", sandbox.ErrNoProgram }
	if all, err := p.Tools(t.Context(), tools.Scope{}); len(all) > 0 || err != nil {
		t.Error(all, err)
	}
	if r, err := p.execute(t.Context(), tools.Call{}, args{Code: "1"}); !errors.Is(err, sandbox.ErrNoProgram) {
		t.Error(r, err)
	}
}

// the shape of success, byte for byte.
func TestAnswer(t *testing.T) {
	u := owner(t, interpreter(t, Config{Sandbox: unconfined()}))
	for code, data := range map[string]string{
		"print('<ä>')":   `{"success":true,"output":"<ä>\n","strictness":"standard","timeout":10}`,
		"x = 1":          `{"success":true,"output":"","strictness":"standard","timeout":10}`,
		"1 + 1":          `{"success":true,"output":"","strictness":"standard","timeout":10,"result":2}`,
		"result = [1,2]": `{"success":true,"output":"","strictness":"standard","timeout":10,"result":[1,2]}`,
	} {
		want := `{"success":true,"data":` + data + `,"error":null}`
		if r := u.call("execute_python", map[string]any{"code": code}); r.Text != want || r.Failed {
			t.Errorf("%s: %s\nwant %s", code, r.Text, want)
		}
	}
}

// The result is the value of the last line, or of the variable result: as JSON if it can be, or as Python shows it.
func TestResult(t *testing.T) {
	u := owner(t, interpreter(t, Config{Sandbox: unconfined()}))
	for _, c := range []struct{ code, want string }{
		{"print(1)", ``},
		{"None", ``},
		{"result = 3\nprint(result)", `3`},
		{"result = 3\n4", `4`},
		{"{'a': [1, 2.5, None, True], 'ü': 'ß'}", `{"a":[1,2.5,null,true],"ü":"ß"}`},
		{"{1, 2}", `"{1, 2}"`},
		{"float('nan')", `"nan"`},
		{"a = []\na.append(a)\na", `"[[...]]"`},
		{"from decimal import Decimal\nDecimal('1.10')", `"Decimal('1.10')"`},
		{"def f(n):\n    return n * 2\nf(21)", `42`},
		{"x = 5\nx += 1; x", `6`},
		{"'\\ud800'", `"�"`},
	} {
		said, problem := u.run("", c.code)
		got := &bytes.Buffer{}
		if len(said.Result) > 0 {
			if err := json.Compact(got, said.Result); err != nil {
				t.Fatal(err)
			}
		}
		var decoded, want any
		if c.want != "" && (json.Unmarshal(got.Bytes(), &decoded) != nil || json.Unmarshal([]byte(c.want), &want) != nil) {
			t.Errorf("%s: %s", c.code, got)
		}
		if fmt.Sprint(decoded) != fmt.Sprint(want) || problem != "" {
			t.Errorf("%s: %s %s, want %s", c.code, got, problem, c.want)
		}
	}
	said, problem := u.run("", "list(range(100000))")
	var shown string
	if err := json.Unmarshal(said.Result, &shown); err != nil || !strings.HasPrefix(shown, "[0, 1, 2,") || len(shown) > 9000 {
		t.Errorf("%d characters, %v, %s", len(shown), err, problem)
	}
}

// the examples of the description that this tool was asked for.
func TestExamples(t *testing.T) {
	u := owner(t, interpreter(t, Config{Sandbox: unconfined()}))
	u.wantOutput("", "import json; print(json.dumps({'key': 'value'}))", "{\"key\": \"value\"}\n")
	u.wantOutput(Strict, "result = sum([1,2,3,4,5]); print(result)", "15\n")
	said, problem := u.run(Lenient, "import os; print(os.getcwd())")
	if !strings.Contains(said.Output, scratchPrefix) || problem != "" {
		t.Errorf("%+v, %s", said, problem)
	}
}

// each level has its own time, standard is the default, and config may choose another.
func TestLevels(t *testing.T) {
	box := unconfined()
	for _, c := range []struct {
		fallback, asked, level Level
		timeout                time.Duration
	}{
		{"", "", Standard, 10 * time.Second},
		{"", Lenient, Lenient, 30 * time.Second},
		{"", Standard, Standard, 10 * time.Second},
		{"", Strict, Strict, 5 * time.Second},
		{Strict, "", Strict, 5 * time.Second},
		{Lenient, Standard, Standard, 10 * time.Second},
	} {
		u := owner(t, interpreter(t, Config{Sandbox: box, Default: c.fallback}))
		said, problem := u.run(c.asked, "print(1)")
		if said.Strictness != c.level || said.Timeout != int(c.timeout/time.Second) || box.spec().Limits.Wall != c.timeout {
			t.Errorf("%+v: %+v, %s, %v", c, said, problem, box.spec().Limits)
		}
	}
}

// an endless loop ends when the time of its level is over.
func TestEndlessLoop(t *testing.T) {
	box := unconfined()
	box.patience = 1
	p := interpreter(t, Config{Sandbox: box})
	u := owner(t, p)
	start := time.Now()
	u.wantProblem(Strict, "while True: pass", "Execution timeout (5s limit in 'strict' mode)")
	if took := time.Since(start); took < 4*time.Second {
		t.Errorf("it took %v", took)
	}
	for _, level := range []Level{Standard, Lenient} {
		shorter := p.levels[level]
		shorter.timeout = time.Second
		p.levels[level] = shorter
		u.wantProblem(level, "print('here')\nwhile True: pass", fmt.Sprintf("Execution timeout (1s limit in '%s' mode)", level))
	}
}

// The modules as they were asked for, one by one.
const (
	wantStandard = "json, csv, re, typing, collections, itertools, functools, operator, heapq, bisect, array, copy, " +
		"pprint, enum, math, cmath, statistics, random, fractions, decimal, numbers, datetime, time, calendar, string, " +
		"textwrap, unicodedata, difflib, base64, binascii, quopri, uu, html, xml.etree.ElementTree, dataclasses, " +
		"hashlib, hmac, abc, contextlib, warnings, logging"
	wantStrict = "collections, itertools, functools, operator, array, copy, enum, math, cmath, numbers, fractions, " +
		"decimal, random, statistics, string, textwrap, unicodedata, typing, dataclasses, abc, contextlib"
	refused = "os, sys, subprocess, socket, pathlib, io, builtins, importlib, ctypes, threading, multiprocessing, shutil, " +
		"tempfile, pickle, inspect, gc, signal, types, asyncio, urllib.request, xml, xml.etree, xml.sax, xml.dom, " +
		"jsonx, os.path"
)

// what each level may import, and that the rest is refused. Every name is looked at by itself.
func TestModules(t *testing.T) {
	u := owner(t, interpreter(t, Config{Sandbox: unconfined()}))
	standard := strings.Split(wantStandard, ", ")
	strict := strings.Split(wantStrict, ", ")
	if len(standard) != 41 || len(strict) != 21 {
		t.Fatalf("%d and %d modules", len(standard), len(strict))
	}
	importAll := func(names []string) string {
		code := ""
		for _, name := range names {
			if name == "uu" { // Python 3.13 has none
				code += "try:\n    import uu\nexcept ModuleNotFoundError: pass\n"
				continue
			}
			code += "import " + name + " as m\nprint(m.__name__)\n"
		}
		return code
	}
	printed := func(names []string) string {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "uu" })
		return strings.Join(names, "\n") + "\n"
	}
	u.wantOutput(Standard, importAll(standard), printed(standard))
	u.wantOutput(Strict, importAll(strict), printed(strict))
	onlyStandard := slices.DeleteFunc(slices.Clone(standard), func(name string) bool { return slices.Contains(strict, name) })
	for level, blocked := range map[Level][]string{
		Standard: strings.Split(refused, ", "),
		Strict:   append(onlyStandard, strings.Split(refused, ", ")...),
	} {
		u.wantProblem(level, "import "+strings.Join(blocked, ", "), fmt.Sprintf(
			"Blocked imports: %s. These modules are not allowed in '%s' mode.", strings.Join(blocked, ", "), level))
	}
}

// only imports of the code itself count, and names of modules are compared as a whole.
func TestImports(t *testing.T) {
	u := owner(t, interpreter(t, Config{Sandbox: unconfined()}))
	for _, code := range []string{
		"import xml.etree.ElementTree\nprint(xml.etree.ElementTree.fromstring('<a>1</a>').text)",
		"import xml.etree.ElementTree as ET\nprint(ET.fromstring('<a>1</a>').text)",
		"from xml.etree import ElementTree\nprint(ElementTree.fromstring('<a>1</a>').text)",
		"from xml.etree.ElementTree import fromstring\nprint(fromstring('<a>1</a>').text)",
		"import datetime\nprint(datetime.date(1, 1, 1).day)",
		"import statistics\nprint(statistics.mean([1, 1]))",
		"import collections.abc\nprint(int(isinstance([], collections.abc.Sized)))",
		"from collections.abc import Mapping\nprint(int(isinstance({}, Mapping)))",
		"import json\ntry:\n    json.loads('x')\nexcept json.decoder.JSONDecodeError:\n    print(1)",
		"from __future__ import annotations\nprint(1)",
		"def f():\n    import math\n    return math.floor(1.5)\nprint(f())",
		"from math import *\nprint(floor(1.5))",
		"import typing\nclass A(typing.NamedTuple):\n    b: 'int' = 1\nprint(A().b)",
		"import logging\nlogging.basicConfig()\nlogging.warning('x')\nprint(1)",
		"import decimal, random, hashlib\nrandom.seed(1)\nprint(len(hashlib.sha256(b'').digest()) // 32)",
	} {
		u.wantOutput("", code, "1\n")
	}
	for code, names := range map[string]string{
		"import xml.sax":                      "xml.sax",
		"import xml":                          "xml",
		"from xml import sax":                 "xml.sax",
		"from xml import etree, sax":          "xml.etree, xml.sax",
		"from xml.etree import ElementPath":   "xml.etree.ElementPath",
		"from xml.etree import *":             "xml.etree.*",
		"from os import path":                 "os",
		"import os\nimport os\nimport sys":    "os, sys",
		"if False:\n    import os":            "os",
		"from . import x":                     ".",
		"from .x import y":                    ".x",
		"import json, jsonpath":               "jsonpath",
		"def f():\n    from sys import stdin": "sys",
	} {
		u.wantProblem("", code, "Blocked imports: "+names+". These modules are not allowed in 'standard' mode.")
	}
}

// What the static check cannot see is stopped when it runs.
func TestDynamicImport(t *testing.T) {
	u := owner(t, interpreter(t, Config{Sandbox: unconfined()}))
	code := "import typing\ndef f(x: '__import__(\"os\")'): pass\nprint(typing.get_type_hints(f))"
	if said, problem := u.run("", code); !strings.Contains(problem, "Blocked imports: os.") {
		t.Errorf("%+v, %s", said, problem)
	}
}

// The built-in functions as they were asked for.
const (
	forbiddenInStandard = "eval, exec, compile, __import__, open, input, globals, locals, vars, breakpoint, exit, quit, " +
		"memoryview, bytearray"
	forbiddenInStrict = "dir, hasattr, getattr, setattr, delattr, type, isinstance, issubclass"
)

// every forbidden function is refused, called or not, and those that only strict forbids
// work in standard.
func TestForbiddenFunctions(t *testing.T) {
	u := owner(t, interpreter(t, Config{Sandbox: unconfined()}))
	both := forbiddenInStandard + ", " + forbiddenInStrict
	for level, list := range map[Level]string{Standard: forbiddenInStandard, Strict: both} {
		want := fmt.Sprintf("Blocked functions: %s. These functions are not allowed in '%s' mode.", list, level)
		u.wantProblem(level, strings.ReplaceAll(list, ", ", "\n"), want)
		u.wantProblem(level, "def f():\n    return "+strings.ReplaceAll(list, ", ", "(), ")+"()", want)
	}
	u.wantProblem("", "eval('1')\nimport os\neval('2')", "Blocked imports: os. These modules are not allowed in 'standard' mode.\n"+
		"Blocked functions: eval. These functions are not allowed in 'standard' mode.")
	u.wantOutput(Standard, "class A: pass\na = A()\nsetattr(a, 'b', 1)\nprint(getattr(a, 'b'), hasattr(a, 'b'), 'b' in dir(a), "+
		"type(a) is A, isinstance(a, A), issubclass(A, A))\ndelattr(a, 'b')", "1 True True True True True\n")
	// A name of their own is not the function.
	u.wantOutput(Strict, "input = [3, 4]\ndef open(x): return x\nclass type: pass\ndef f(dir): return dir\nprint(open(input), f(1))",
		"[3, 4] 1\n")
	u.wantOutput("", "import re\nprint(re.compile('a').pattern)", "a\n")
	if said, problem := u.run("", "def f():\n    open = 1\nprint(open)"); !strings.Contains(problem, "NameError") {
		t.Errorf("the function can be had by a name that is bound elsewhere: %+v, %s", said, problem)
	}
	u.wantOutput(Lenient, "print(eval('1'), len(vars()) > 1, isinstance(bytearray(2), bytearray))", "1 True True\n")
}

// attributes that lead to the interpreter are refused, by their names, by getattr and in patterns,
// and those that ordinary classes use are not.
func TestAttributes(t *testing.T) {
	u := owner(t, interpreter(t, Config{Sandbox: unconfined()}))
	for code, names := range map[string]string{
		"().__class__":                                 "__class__",
		"int.__subclasses__()":                         "__subclasses__",
		"f = lambda: 1\nf.__globals__":                 "__globals__",
		"f = lambda: 1\nf.__code__":                    "__code__",
		"int.__mro__":                                  "__mro__",
		"int.__bases__":                                "__bases__",
		"int.__dict__":                                 "__dict__",
		"getattr(1, '__class__')":                      "__class__",
		"setattr(1, '__class__', 2)":                   "__class__",
		"(i for i in ()).gi_frame":                     "gi_frame",
		"x.f_back.f_builtins":                          "f_builtins, f_back",
		"x.__traceback__.tb_frame":                     "tb_frame, __traceback__",
		"match 1:\n    case object(__class__=c): pass": "__class__",
		"print.__self__":                               "__self__",
	} {
		u.wantProblem("", code, "Blocked attributes: "+names+". These attributes are not allowed in 'standard' mode.")
	}
	for code, names := range map[string]string{
		"__builtins__":              "__builtins__",
		"__loader__":                "__loader__",
		"getattr(1, 'a' + 'b')":     "getattr with a name that is not written out",
		"n = 'real'\ngetattr(1, n)": "getattr with a name that is not written out",
	} {
		u.wantProblem("", code, "Blocked functions: "+names+". These functions are not allowed in 'standard' mode.")
	}
	for _, code := range []string{
		"n = '__cla' + 'ss__'\nlist(map(getattr, [1], [n]))",
		"n = '__cla' + 'ss__'\nsetattr(print, n, 1)",
	} {
		if said, problem := u.run("", code); !strings.Contains(problem, "AttributeError: __class__ is not allowed here") {
			t.Errorf("%s: %+v, %s", code, said, problem)
		}
	}
	u.wantOutput("", `
class A:
    """An A."""
    def __init__(self, x): self.x = x
    def __eq__(self, other): return self.x == other.x
    def __repr__(self): return "A(%r)" % self.x
class B(A):
    def __init__(self, x):
        super().__init__(x)
if __name__ == "__main__":
    print(B(1), B(1) == A(1), type(B(1)).__name__, A.__doc__, list(map(getattr, [3], ["real"])))
`, "A(1) True B An A. [3]\n")
}

// R-S20: modules have their public names and their own modules, and not what they import themselves.
func TestModuleAttributes(t *testing.T) {
	u := owner(t, interpreter(t, Config{Sandbox: unconfined(), Extra: map[Level][]string{Standard: {"zipfile"}}}))
	for _, name := range []string{"logging.sys", "logging.os", "warnings.sys", "contextlib.os", "contextlib.sys", "statistics.sys",
		"typing.sys", "random._os", "json.codecs", "collections._sys", "enum.sys", "dataclasses.inspect", "calendar.sys",
		"xml.etree.ElementTree.sys", "textwrap.re", "logging.handlers.socket", "xml.etree.ElementPath"} {
		module := name[:strings.LastIndex(name, ".")]
		if strings.HasSuffix(name, "ElementPath") {
			module += ".ElementTree"
		}
		said, problem := u.run("", "import "+module+"\n"+name)
		if !strings.Contains(problem, "AttributeError: module") {
			t.Errorf("%s: %+v, %s", name, said, problem)
		}
	}
	u.wantOutput("", "import json.decoder, xml.etree.ElementTree, html.entities\nprint(json.decoder.JSONDecoder().decode('1'), "+
		"xml.etree.ElementTree.Element('a').tag, html.entities.name2codepoint['lt'], json.__name__)", "1 a 60 json\n")
	u.wantOutput("", "import zipfile\nprint(zipfile.os.sep)", "/\n") // config allows it, as it is
}

// the texts of failures.
func TestProblems(t *testing.T) {
	u := owner(t, interpreter(t, Config{Sandbox: unconfined()}))
	for code, want := range map[string]string{
		"x =":      "Syntax error in code: invalid syntax (<code>, line 1)",
		"return 1": "Syntax error in code: 'return' outside function (<code>, line 1)",
		"1\n/ 0":   "Syntax error in code: invalid syntax (<code>, line 2)",
		"def f():\n    return 1 / 0\nf()": "Traceback (most recent call last):\n  File \"<code>\", line 3, in <module>\n    f()\n" +
			"  File \"<code>\", line 2, in f\n    return 1 / 0\n           ~~^~~\nZeroDivisionError: division by zero",
		"raise SystemExit(3)":               "Execution failed",
		"raise SystemExit('done')":          "done",
		"print('a')\nraise SystemExit('b')": "b\n\nIt had printed:\na\n",
	} {
		u.wantProblem("", code, want)
	}
	u.wantProblem(Lenient, "import os\nos.kill(os.getpid(), 9)", "Execution failed")
	u.wantProblem(Lenient, "import os\nos._exit(1)", "Execution failed")
	u.wantOutput("", "raise SystemExit(0)", "")
	u.wantOutput(Lenient, "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)", "True\n")
	for _, code := range []string{strings.Repeat("(", 5000) + strings.Repeat(")", 5000), strings.Repeat("-", 300000) + "1", "x = '\x00'"} {
		if said, problem := u.run("", code); !strings.HasPrefix(problem, "Syntax error in code: ") {
			t.Errorf("%.10s…: %+v, %s", code, said, problem)
		}
	}
	u.wantProblem("loose", "1", "Invalid strictness level: loose. Must be one of: lenient, standard, strict")
	if _, problem := u.run("", ""); problem != "Invalid parameters for tool 'execute_python': code must be at least 1 chars" {
		t.Error(problem)
	}
}

// config allows a level more modules.
func TestExtraModulesOfConfig(t *testing.T) {
	u := owner(t, interpreter(t, Config{Sandbox: unconfined(), Extra: map[Level][]string{Standard: {"os", "xml.dom"}}}))
	u.wantOutput(Standard, "import os\nimport os.path\nimport xml.dom.minidom\nprint(os.sep, xml.dom.minidom.parseString('<a/>').nodeType)", "/ 9\n")
	u.wantProblem(Standard, "import sys", "Blocked imports: sys. These modules are not allowed in 'standard' mode.")
	u.wantProblem(Strict, "import os", "Blocked imports: os. These modules are not allowed in 'strict' mode.")
	for _, name := range []string{"", "a b", "os;", "os\n", "1a", "a..b", "os.", "-x"} {
		if _, err := New(Config{Extra: map[Level][]string{Strict: {name}}}); err == nil {
			t.Errorf("%q is taken for a module", name)
		}
	}
}

// modules can be added while code runs.
func TestRegisterExtraModules(t *testing.T) {
	u := owner(t, interpreter(t, Config{Sandbox: unconfined()}))
	u.wantProblem(Strict, "import zlib", "Blocked imports: zlib. These modules are not allowed in 'strict' mode.")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for _, level := range []Level{Lenient, Strict} {
				if err := u.p.RegisterExtraModules(level, "zlib", "struct"); err != nil {
					t.Error(err)
				}
			}
			_ = u.p.extraModules(Strict)
		})
	}
	all.Wait()
	u.wantOutput(Strict, "import zlib, struct\nprint(zlib.crc32(b''))", "0\n")
	u.wantProblem(Standard, "import zlib", "Blocked imports: zlib. These modules are not allowed in 'standard' mode.")
	err := u.p.RegisterExtraModules("loose", "zlib")
	if want := "Invalid strictness level: loose. Must be one of: lenient, standard, strict"; err == nil || err.Error() != want {
		t.Error(err)
	}
}

// A-051, R-S17: the environment has nothing of Parley's.
func TestEnvironment(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "canary-8346")
	u := owner(t, interpreter(t, Config{Sandbox: unconfined()}))
	said, problem := u.run(Lenient, "import os\nprint(dict(os.environ))")
	if problem != "" || strings.Contains(said.Output, "canary") || !strings.Contains(said.Output, "'LANG': 'C.UTF-8'") {
		t.Errorf("%+v, %s", said, problem)
	}
}

// no code runs without a sandbox, unless config says so, and then only that of owners.
func TestNoSandbox(t *testing.T) {
	const none = "Python cannot be run: no sandbox works on this machine"
	late := unconfined()
	late.runner = failing{fmt.Errorf("%w: bwrap does not hold", sandbox.ErrNoSandbox)}
	for name, box := range map[string]Sandbox{
		"none given":          nil,
		"none holds":          &open{runner: failing{errors.New("it must not be asked")}},
		"none holds any more": late,
	} {
		u := owner(t, interpreter(t, Config{Sandbox: box}))
		for _, level := range []Level{Lenient, Standard, Strict} {
			if said, problem := u.run(level, "print(1)"); !strings.HasPrefix(problem, none) {
				t.Errorf("%s, %s: %+v, %q", name, level, said, problem)
			}
		}
	}
	bare := unconfined()
	bare.choice = sandbox.Choice{Driver: "none", Bare: true}
	u := owner(t, interpreter(t, Config{Sandbox: bare}))
	u.wantOutput(Lenient, "print(1)", "1\n")
	u.scope.From.Role = chat.User
	for _, level := range []Level{Lenient, Standard, Strict} {
		if said, problem := u.run(level, "print(1)"); !strings.HasPrefix(problem, "Code is run without a sandbox here, and so only for owners.") {
			t.Errorf("%s: %+v, %q", level, said, problem)
		}
	}
}

type failing struct{ err error }

func (f failing) Run(context.Context, sandbox.Spec) (sandbox.Outcome, error) {
	return sandbox.Outcome{}, f.err
}

// A-052, R-S20: at every level the sandbox is asked for no network, no workspace, and limits on all there is.
func TestSpec(t *testing.T) {
	box := unconfined()
	u := owner(t, interpreter(t, Config{Sandbox: box}))
	for _, level := range []Level{Lenient, Standard, Strict} {
		if _, problem := u.run(level, "1"); problem != "" {
			t.Fatal(problem)
		}
		s := box.spec()
		if s.Network.All || len(s.Network.Hosts) > 0 {
			t.Errorf("%s: %+v", level, s.Network)
		}
		if len(s.Folders) != 1 || s.Folders[0].Path != s.Dir || !strings.HasPrefix(filepath.Base(s.Dir), scratchPrefix) {
			t.Errorf("%s: %+v", level, s.Folders)
		}
		l := s.Limits
		if l.Wall == 0 || l.CPU == 0 || l.Memory == 0 || l.Processes == 0 || l.FileSize == 0 || l.Output == 0 {
			t.Errorf("%s: %+v", level, l)
		}
		if s.Args[0] != "/usr/bin/python3" && s.Args[0] != "/usr/local/bin/python3" {
			t.Errorf("%s: %s", level, s.Args[0])
		}
		if packages := !slices.Contains(s.Args, "-S"); packages != (level == Lenient) {
			t.Errorf("%s: installed packages: %t", level, packages)
		}
	}
}

// Of what is printed both ends are kept, and what is left out is counted.
func TestMuchOutput(t *testing.T) {
	u := owner(t, interpreter(t, Config{Sandbox: unconfined()}))
	for code, want := range map[string][]string{
		"for i in range(9): print('x' * 1000000)\nprint('the end', end='')": {
			"x\n\n... (7,951,440 chars truncated) ...\n\nx", "x\nthe end",
		},
		"for i in range(1000): print('x' * 1000000)": {
			" chars truncated) ...", fmt.Sprintf("\n... (%d more bytes were left out)", 1000*1000001-maxOutput),
		},
	} {
		r, err := u.p.execute(t.Context(), tools.Call{Scope: u.scope}, args{Code: code, Strictness: Lenient})
		if err != nil || r.Failed {
			t.Fatal(r, err)
		}
		got := r.Data.(answer).Output
		if len(got) > maxKept+200 || !strings.Contains(got, want[0]) || !strings.HasSuffix(got, want[1]) {
			t.Errorf("%s: %d bytes, %q", code, len(got), got[len(got)-60:])
		}
	}
}

// Only so many programs run at once, and who waits for a place can stop waiting.
func TestPlaces(t *testing.T) {
	p := interpreter(t, Config{Sandbox: unconfined()})
	u := owner(t, p)
	for range maxAtOnce {
		p.places <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := p.execute(ctx, tools.Call{Scope: u.scope}, args{Code: "1"}); !errors.Is(err, context.Canceled) {
		t.Error(r, err)
	}
	<-p.places
	u.wantOutput("", "print(1)", "1\n")
}

// A cancelled turn ends its code.
func TestCancel(t *testing.T) {
	u := owner(t, interpreter(t, Config{Sandbox: unconfined()}))
	stopped := errors.New("stopped by a test")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		for u.p.cfg.Sandbox.(*open).spec().Dir == "" {
			time.Sleep(time.Millisecond)
		}
		cancel(stopped)
	}()
	start := time.Now()
	if r, err := u.p.execute(ctx, tools.Call{Scope: u.scope}, args{Code: "while True: pass"}); err == nil || time.Since(start) > time.Minute {
		t.Error(r, err, time.Since(start))
	}
}
