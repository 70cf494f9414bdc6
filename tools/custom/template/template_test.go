package template

import (
	"errors"
	"strings"
	"testing"
)

func declared(names ...string) map[string]Parameter {
	all := map[string]Parameter{}
	for _, name := range names {
		all[name] = Parameter{}
	}
	return all
}

// TestRender compares programs with what str.format and the guide's examples want (B-028 to B-037).
func TestRender(t *testing.T) {
	for _, c := range []struct{ name, template, want string }{
		{"bare", "x = {a}\n", "x = __v_a__\n"},
		{"bare with a conversion", "x = {a!r} + {b!s}", "x = __v_a__ + __v_b__"},
		{"bare with a format", "x = {a:.2f}", "x = format(__v_a__, '.2f')"},
		{"beside names", "return{a}if{b}else 1", "return __v_a__ if __v_b__ else 1"},
		{"braces", "d = {{'+': 1, 'k': {{1, 2}}}}", "d = {'+': 1, 'k': {1, 2}}"},
		{"braces around", "d = {{{a}: {b}}}", "d = {__v_a__: __v_b__}"},
		{"quoted", "x = '{a}'", "x = f'{__s_a__}'"},
		{"in a text", `x = "Hi {a}, {{x}}!"`, `x = f"Hi {__s_a__}, {{x}}!"`},
		{"format in a text", "x = '{a:>5} {b!r}'", "x = f'{__v_a__:>5} {__v_b__!r}'"},
		{"braces in a text", "x = '{{}} {{a}}'", "x = '{} {a}'"},
		{"raw", `x = r'\d{{2}} {a}'`, `x = fr'\d{{2}} {__s_a__}'`},
		{"unicode prefix", "x = u'{a}' + U'{b}'", "x = f'{__s_a__}' + f'{__s_b__}'"},
		{"bytes", "x = b'{{}}'", "x = b'{}'"},
		{"triple", "x = '''a\n'{a}'\n\"\"\"'''", "x = f'''a\n'{__s_a__}'\n\"\"\"'''"},
		{"triple double", `x = """{a}"b" """`, `x = f"""{__s_a__}"b" """`},
		{"escaped quote", `x = 'it\'s {a}'`, `x = f'it\'s {__s_a__}'`},
		{"raw escaped quote", `x = r'\' {a}'`, `x = fr'\' {__s_a__}'`},
		{"character by name", `x = '\N{{DASH}} \N{DASH} {a}'`, `x = f'\N{DASH} \N{DASH} {__s_a__}'`},
		{"backslash before a brace", `x = '\{a}'`, `x = f'\{__s_a__}'`},
		{"comment", "# a dict {'a': 1} or '{'\nx = {a}", "# a dict {'a': 1} or '{'\nx = __v_a__"},
		{"comment sign in a text", "x = '# {a}'", "x = f'# {__s_a__}'"},
		{"f-string is Python's", "print(f'{x} {len(x)} {d[\"k\"]:>{w}}')", "print(f'{x} {len(x)} {d[\"k\"]:>{w}}')"},
		{"f-string of a parameter", "print(f'{a}, {a!r}, {b:.2f}, {a.b}')", "print(f'{__s_a__}, {__v_a__!r}, {__v_b__:.2f}, {a.b}')"},
		{"f-string of a variable", "a = '{a}'\nprint(f'{a}')", "a = f'{__s_a__}'\nprint(f'{a}')"},
		{"f-string of a loop's variable", "for a in x: print(f'{a}')", "for a in x: print(f'{a}')"},
		{"f-string of a function's parameter", "def f(x, a=1): return f'{a}'", "def f(x, a=1): return f'{a}'"},
		{"f-string of a lambda's parameter", "f(lambda a=1: f'{a}')", "f(lambda a=1: f'{a}')"},
		{"f-string beside a call's argument", "print(f'{a}', a=1)", "print(f'{__s_a__}', a=1)"},
		{"f-string beside an attribute", "x.a = f'{a}'", "x.a = f'{__s_a__}'"},
		{"f-string with doubled braces", "y = 1\nprint(f'{{y}} {{y + {a}}} {{y:>{b}}}')", "y = 1\nprint(f'{y} {y + __v_a__} {y:>{__s_b__}}')"},
		{"f-string with braces of its own", "print(f'{{{{x}}}}')", "print(f'{{x}}')"},
		{"f-string in an f-string", "print(f'{f\"{x}\"}')", "print(f'{f\"{x}\"}')"},
		{"f-string with the same quotes inside", "print(f'{d['k']}, {a}')", "print(f'{d['k']}, {__s_a__}')"},
		{"f-string with a width", "print(f'{x:{a}}')", "print(f'{x:{__s_a__}}')"},
		{"f-string with a walrus", "print(f'{(y := 1)}')", "print(f'{(y := 1)}')"},
		{"f-string with a comparison", "print(f'{x != y}')", "print(f'{x != y}')"},
		{"a key that is no name", "x = {my-key} + '{my-key}'", "x = __v0__ + f'{__s0__}'"},
		{"another key that is no name", "x = {键}", "x = __v0__"},
		{"a string that does not end", "x = 'abc {a}\ny = {a}", "x = 'abc {a}\ny = __v_a__"},
		{"in a class", "class A:\n    x = '{a}'", "class A:\n    x = f'{__s_a__}'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Render(c.template, declared("a", "b", "my-key", "键"), nil)
			if err != nil {
				t.Fatal(err)
			}
			if p.Source != c.want {
				t.Errorf("%s\nbecame\n%s\nnot\n%s", c.template, p.Source, c.want)
			}
			if strings.Count(p.Source, "\n") != strings.Count(c.template, "\n") {
				t.Error("the lines have other numbers (B-051)")
			}
		})
	}
}

// TestRefusals wants the texts of str.format for what it refuses (B-030 to B-033).
func TestRefusals(t *testing.T) {
	for template, want := range map[string]string{
		"ops = {'+': operator.add}": `missing required argument: "'+'"`,
		"s = {1,2,3}":               "missing required argument: '1,2,3'",
		"d = {k:v for k, v in x}":   "missing required argument: 'k'",
		"x = {name}":                "missing required argument: 'name'",
		"x = '{name}'":              "missing required argument: 'name'",
		"x = f'{name}'":             "missing required argument: 'name'",
		"x = '{\"a\": 1}'":          `missing required argument: '"a"'`,
		"x = { a }":                 "missing required argument: ' a '",
		"x = {b.c}":                 "missing required argument: 'b'",
		"\n\nx = {}":                "the template cannot be rendered: Replacement index 0 out of range for positional args tuple (execution.py, line 3)",
		"x = {0}":                   "the template cannot be rendered: Replacement index 0 out of range for positional args tuple (execution.py, line 1)",
		"x = {12}":                  "the template cannot be rendered: Replacement index 12 out of range for positional args tuple (execution.py, line 1)",
		"x = 1 }":                   "the template cannot be rendered: Single '}' encountered in format string (execution.py, line 1)",
		"x = '}'":                   "the template cannot be rendered: Single '}' encountered in format string (execution.py, line 1)",
		"x = f'}'":                  "the template cannot be rendered: Single '}' encountered in format string (execution.py, line 1)",
		"x = {":                     "the template cannot be rendered: Single '{' encountered in format string (execution.py, line 1)",
		"x = {a":                    "the template cannot be rendered: expected '}' before end of string (execution.py, line 1)",
		"x = '''\n{a'''":            "the template cannot be rendered: expected '}' before end of string (execution.py, line 2)",
		"x = {a!x}":                 "the template cannot be rendered: Unknown conversion specifier x (execution.py, line 1)",
		"x = {a != 1}":              "the template cannot be rendered: expected ':' after conversion specifier (execution.py, line 1)",
		"x = {a!rr}":                "the template cannot be rendered: expected ':' after conversion specifier (execution.py, line 1)",
		"x = {a.__class__}":         "the template cannot be rendered: attributes and items of an argument are not supported: {a.__class__} (execution.py, line 1)",
		"x = '{a[0]}'":              "the template cannot be rendered: attributes and items of an argument are not supported: {a[0]} (execution.py, line 1)",
		"x = b'{a}'":                "the template cannot be rendered: a placeholder cannot stand in a bytes literal (execution.py, line 1)",
		"x = {a:{b}}":               "the template cannot be rendered: a placeholder in the format of another one is not supported: {a:{b}} (execution.py, line 1)",
		"x = f'{{'\ny":              "the template cannot be rendered: expected '}' before the end of the f-string (execution.py, line 2)",
		"x = f'{a":                  "the template cannot be rendered: expected '}' before the end of the f-string (execution.py, line 1)",
	} {
		parameters := declared("a")
		parameters["name"] = Parameter{Required: true}
		_, err := Render(template, parameters, nil)
		if err == nil || err.Error() != want {
			t.Errorf("%s\nis refused with\n%v\nnot\n%s", template, err, want)
		}
	}
	_, err := Render("\n{k: 1}", nil, nil)
	if missing, ok := errors.AsType[*MissingError](err); !ok || missing.Declared || missing.Line != 2 {
		t.Errorf("%+v", err)
	}
}

// TestOperator copies an operator into the program only where one can stand, and only if the author
// of the tool lists it.
func TestOperator(t *testing.T) {
	parameters := declared("a", "b")
	parameters["op"] = Parameter{Choices: []any{"+", "**", "add", "+ __import__('os')"}}
	for _, c := range []struct {
		template, value, want string
	}{
		{"x = {a} {op} {b}", "+", "x = __v_a__  +  __v_b__"},
		{"x = {a}{op}{b}", "**", "x = __v_a__ ** __v_b__"},
		{"x = f(1) {op} 2", "+", "x = f(1)  +  2"},
		{"x = {op}", "+", "x = __v_op__"},
		{"x = ops[{op}](1)", "+", "x = ops[__v_op__](1)"},
		{"return {op}", "+", "return __v_op__"},
		{"x = {a} {op} {b}", "-", "x = __v_a__ __v_op__ __v_b__"},
		{"x = {a} {op} {b}", "add", "x = __v_a__ __v_op__ __v_b__"},
		{"x = {a} {op} {b}", "+ __import__('os')", "x = __v_a__ __v_op__ __v_b__"},
		{"x = '{op}'", "+", "x = f'{__s_op__}'"},
	} {
		p, err := Render(c.template, parameters, map[string]any{"op": c.value})
		if err != nil || p.Source != c.want {
			t.Errorf("%v: %s with %q became %s", err, c.template, c.value, p.Source)
		}
	}
}

// TestVariables binds arguments, defaults and what is left out (B-036).
func TestVariables(t *testing.T) {
	parameters := map[string]Parameter{"a": {}, "b": {Default: "x"}}
	p, err := Render("{a} '{a}' {b} {c} {a}", parameters, map[string]any{"c": 3})
	if err != nil {
		t.Fatal(err)
	}
	want := []Variable{{"__v_a__", false, nil}, {"__s_a__", true, nil}, {"__v_b__", false, "x"}, {"__v_c__", false, 3}}
	for i, v := range p.Variables {
		if i >= len(want) || v != want[i] {
			t.Errorf("variable %d: %+v", i, v)
		}
	}
	if len(p.Variables) != len(want) {
		t.Errorf("variables: %+v", p.Variables)
	}
}
