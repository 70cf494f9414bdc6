package data

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	starmath "go.starlark.net/lib/math"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// maxBits limits integers to 10,000 digits.
const maxBits = 33_219

var errTooLong = errors.New("the result has more than 10,000 digits")

// bounded returns v, unless it is too large or not a number.
func (p *parser) bounded(v starlark.Value, err error) starlark.Value {
	switch x := v.(type) {
	case starlark.Int:
		if x.BigInt().BitLen() > maxBits {
			err = errTooLong
		}
	case starlark.Float:
		if math.IsNaN(float64(x)) {
			err = errors.New("math domain error")
		} else if math.IsInf(float64(x), 0) {
			err = errors.New("math range error")
		}
	}
	if err != nil {
		return p.fail("%v", err)
	}
	return v
}

func number(text string) (starlark.Value, error) {
	text = strings.ReplaceAll(text, "_", "")
	i, ok := new(big.Int).SetString(text, 0)
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case len(text) > 1 && text[0] == '0' && strings.Trim(text, "0123456789") == "": // some would read it as octal
	case ok:
		return starlark.MakeBigInt(i), nil
	case err == nil || math.IsInf(f, 0):
		return starlark.Float(f), nil
	}
	return nil, fmt.Errorf("unexpected %q", text)
}

// apply is starlark.Binary, except that // of floats is consistent with %, as in
// Python: 1 // 0.1 is 9.
func apply(op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	v, err := starlark.Binary(op, x, y)
	if _, float := v.(starlark.Float); !float || op != syntax.SLASHSLASH {
		return v, err
	}
	rest, err := starlark.Binary(syntax.PERCENT, x, y)
	f, _ := starlark.AsFloat(x)
	g, _ := starlark.AsFloat(y)
	r, _ := starlark.AsFloat(rest)
	return starlark.Float(math.Round((f - r) / g)), err
}

func power(x, y starlark.Value) (starlark.Value, error) {
	i, _ := x.(starlark.Int)
	n, whole := y.(starlark.Int)
	f, ok := starlark.AsFloat(x)
	g, alsoOK := starlark.AsFloat(y)
	switch {
	case !ok || !alsoOK:
		return nil, errors.New("want numbers")
	case x.Type() == "int" && whole && n.Sign() >= 0:
		if bits := float64(i.BigInt().BitLen()); bits > 1 && g > maxBits/(bits-1) {
			return nil, errTooLong
		}
		return starlark.MakeBigInt(new(big.Int).Exp(i.BigInt(), n.BigInt(), nil)), nil
	case f == 0 && g < 0:
		return nil, errors.New("division by zero")
	}
	return starlark.Float(math.Pow(f, g)), nil
}

// names are the constants and functions that expressions may use.
var names = starlark.StringDict{
	"pi": starlark.Float(math.Pi), "e": starlark.Float(math.E),
	"abs": starlark.Universe["abs"], "min": starlark.Universe["min"], "max": starlark.Universe["max"],
	"sqrt": standard("sqrt"), "exp": standard("exp"), "log": standard("log"), "sin": standard("sin"),
	"cos": standard("cos"), "tan": standard("tan"), "floor": standard("floor"), "ceil": standard("ceil"),

	"pow": function("pow", 2, func(x, y starlark.Value) (starlark.Value, error) { return power(x, y) }),
	"log10": function("log10", 1, func(x, _ starlark.Value) (starlark.Value, error) {
		f, _ := starlark.AsFloat(x)
		return starlark.Float(math.Log10(f)), nil
	}),
	"factorial": function("factorial", 1, func(x, _ starlark.Value) (starlark.Value, error) {
		n, err := starlark.AsInt32(x)
		if err != nil || n < 0 || n > 1000 {
			return nil, errors.New("factorial: want an integer from 0 to 1000")
		}
		return starlark.MakeBigInt(new(big.Int).MulRange(1, int64(n))), nil
	}),
	"round": function("round", 1, round),
}

func standard(name string) starlark.Value { return starmath.Module.Members[name] }

// function makes a function with one or two arguments from f. The second may be
// nil.
func function(name string, least int, f func(x, y starlark.Value) (starlark.Value, error)) starlark.Value {
	return starlark.NewBuiltin(
		name,
		func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			var x, y starlark.Value
			if err := starlark.UnpackPositionalArgs(name, args, nil, least, &x, &y); err != nil {
				return nil, err
			}
			return f(x, y)
		},
	)
}

// round rounds halves to the even neighbour: to an integer, or to a number of
// digits.
func round(x, y starlark.Value) (starlark.Value, error) {
	f, float := x.(starlark.Float)
	switch {
	case !float:
		return x, nil
	case y == nil:
		return starlark.NumberToInt(starlark.Float(math.RoundToEven(float64(f))))
	}
	digits, err := starlark.AsInt32(y)
	if err != nil || digits < 0 || digits > 300 {
		return nil, errors.New("round: want 0 to 300 digits")
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'f', digits, 64), 64)
	return starlark.Float(rounded), err
}
