package arguments

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// settle returns v with each [json.Number] in it replaced by the Go number with
// exactly the same value: int64, uint64 or float64. A number that fits into none
// of them stays a json.Number, so that no digit is lost.
func settle(v any) any {
	switch v := v.(type) {
	case json.Number:
		return exactNumber(v)
	case map[string]any:
		for k, e := range v {
			v[k] = settle(e)
		}
	case []any:
		for i, e := range v {
			v[i] = settle(e)
		}
	}
	return v
}

func exactNumber(n json.Number) any {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return i
	}
	if u, err := strconv.ParseUint(n.String(), 10, 64); err == nil {
		return u
	}
	if !strings.ContainsAny(n.String(), ".eE") { // as a float64 it would be written as "1e+30"
		return n
	}
	f, err := n.Float64()
	if err != nil {
		return n
	}
	written, ok := parseDecimal(n.String())
	held, _ := parseDecimal(strconv.FormatFloat(f, 'e', -1, 64))
	if !ok || written != held {
		return n
	}
	return f
}

// approximate returns a copy of v whose numbers are float64, perhaps rounded. It
// serves validation only.
func approximate(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, _ := v.Float64() // infinite where it does not fit
		return f
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = approximate(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = approximate(e)
		}
		return out
	}
	return v
}

// A decimal is a number in a normal form: digits * 10^exponent, where digits
// neither begin nor end with a zero.
type decimal struct {
	negative bool
	digits   string // "" is zero
	exponent int
}

// parseDecimal parses a JSON number. It fails if the exponent does not fit into 32
// bits.
func parseDecimal(number string) (d decimal, ok bool) {
	number, d.negative = strings.CutPrefix(number, "-")
	mantissa, exponent := number, ""
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		mantissa, exponent = number[:i], number[i+1:]
	}
	if exponent != "" {
		e, err := strconv.ParseInt(exponent, 10, 32)
		if err != nil {
			return decimal{}, false
		}
		d.exponent = int(e)
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	d.exponent -= len(fraction)
	d.digits = strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(d.digits, "0")
	d.exponent += len(d.digits) - len(short)
	d.digits = short
	if short == "" {
		return decimal{}, true
	}
	return d, true
}

// maxZeros is how many zeros whole writes at most, which is beyond all float64.
const maxZeros = 400

// whole returns d without point and exponent, if it is an integer that is not too
// long.
func (d decimal) whole() (json.Number, bool) {
	if d.exponent < 0 || d.exponent > maxZeros {
		return "", false
	}
	if d.digits == "" {
		return "0", true
	}
	sign := ""
	if d.negative {
		sign = "-"
	}
	return json.Number(sign + d.digits + strings.Repeat("0", d.exponent)), true
}

// kind returns the JSON Schema type of v.
func kind(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case int64, uint64:
		return "integer"
	case float64:
		if v == math.Trunc(v) && !math.IsInf(v, 0) {
			return "integer"
		}
		return "number"
	case json.Number:
		if d, ok := parseDecimal(v.String()); ok && d.exponent >= 0 {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}
