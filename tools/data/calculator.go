package data

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"unicode"
	"unicode/utf8"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"parley/lazyregexp"
	"parley/tools"
)

type sum struct {
	Expression string `json:"expression" jsonschema:"(2 + 3) * 4, 2 ** 64, round(sqrt(2), 3) …" limit:"max=10000"`
}

func calculator() tools.Tool {
	t := tools.New(
		"calculator",
		"Calculate an arithmetic expression exactly: + - * / // % ** and parentheses, integers of any size, pi, e, "+
			"and sqrt sin cos tan log log10 exp abs round min max floor ceil pow factorial.",
		calculate,
	)
	t.Aliases = map[string]string{"expr": "expression", "input": "expression"}
	return t
}

func calculate(_ context.Context, _ tools.Call, in sum) (tools.Result, error) {
	v, wrong := evaluate(in.Expression)
	if wrong != "" {
		return tools.Failf(tools.CodeError, "%s", wrong), nil
	}
	if f, ok := v.(starlark.Float); ok {
		return is("result", float64(f)), nil
	}
	return is("result", json.Number(v.String())), nil
}

// A parser evaluates an expression while it reads it. Starlark's own parser knows
// no powers, but its numbers are Python's. After an error there is nothing more to
// read.
type parser struct {
	text  string   // the current token, "" at the end
	rest  []string // the tokens after it
	parts int      // number of values and signs so far
	wrong string   // the error, for the model
}

// maxParts limits the values and signs of an expression.
const maxParts = 1000

var words = lazyregexp.New(`\*\*|//|[\pL_][\pL\d_]*|0[xX]\w*|\.?\d(?:[eE][-+]|[\w.])*|\S`)

// evaluate returns the value of expression, or what is wrong with it (A-036, F23).
func evaluate(expression string) (v starlark.Value, wrong string) {
	p := &parser{rest: words.FindAllString(expression, -1)}
	p.next()
	switch v = p.binary(0); p.text {
	case "":
	case "^":
		p.fail(`unexpected "^": a power is written **`)
	default:
		p.fail("unexpected %q", p.text)
	}
	return v, p.wrong
}

func (p *parser) next() {
	p.text = ""
	if len(p.rest) > 0 {
		p.text, p.rest = p.rest[0], p.rest[1:]
	}
}

// fail records an error, and returns a harmless value.
func (p *parser) fail(why string, args ...any) starlark.Value {
	return p.refuse("Calculation error: " + fmt.Sprintf(why, args...))
}

func (p *parser) refuse(wrong string) starlark.Value {
	p.wrong = cmp.Or(p.wrong, wrong)
	p.text = ""
	p.rest = nil
	return starlark.MakeInt(1)
}

// operators are the binary operators, with their precedence.
var operators = map[string]struct {
	token syntax.Token
	rank  int
}{"+": {syntax.PLUS, 1}, "-": {syntax.MINUS, 1}, "*": {syntax.STAR, 2}, "/": {syntax.SLASH, 2},
	"//": {syntax.SLASHSLASH, 2}, "%": {syntax.PERCENT, 2}}

// binary parses values and operators with a precedence higher than above.
func (p *parser) binary(above int) starlark.Value {
	x := p.unary()
	for op := operators[p.text]; op.rank > above; op = operators[p.text] {
		p.next()
		x = p.bounded(apply(op.token, x, p.binary(op.rank)))
	}
	return x
}

// unary parses a value with its signs and powers: -2 ** 2 is -4, and 2 ** -1 is
// 0.5.
func (p *parser) unary() starlark.Value {
	if p.parts++; p.parts > maxParts {
		return p.fail("the expression has more than %d parts", maxParts)
	}
	if op := operators[p.text]; op.rank == 1 {
		p.next()
		return p.bounded(starlark.Unary(op.token, p.unary()))
	}
	x := p.value()
	if p.text != "**" {
		return x
	}
	p.next()
	return p.bounded(power(x, p.unary()))
}

func (p *parser) value() starlark.Value {
	text := p.text
	p.next()
	switch first, _ := utf8.DecodeRuneInString(text); {
	case text == "":
		return p.fail("the expression ends too early")
	case text == "(":
		x := p.binary(0)
		p.closing()
		return x
	case first == '_' || unicode.IsLetter(first):
		return p.named(text)
	}
	return p.bounded(number(text))
}

func (p *parser) closing() {
	if p.text != ")" {
		p.fail("a closing parenthesis is missing")
	}
	p.next()
}

// named parses a constant or a function call. A-036 allows no calls, but the usual
// functions are supported, as users expect of a calculator.
func (p *parser) named(name string) starlark.Value {
	f, known := names[name]
	_, callable := f.(starlark.Callable)
	switch called := p.text == "("; {
	case called && !callable:
		return p.refuse("Function calls not allowed")
	case !called && (callable || !known):
		return p.refuse("Variable names not allowed")
	case !called:
		return f
	}
	var args starlark.Tuple
	for p.next(); p.text != ")"; p.next() {
		args = append(args, p.binary(0))
		if p.text != "," {
			break
		}
	}
	if p.closing(); p.wrong != "" {
		return f
	}
	return p.bounded(starlark.Call(&starlark.Thread{}, f, args, nil))
}
