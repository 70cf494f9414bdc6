package arguments

import (
	"encoding/json"
	"strings"
)

// Partial returns what is known of arguments that are still being received: the
// complete fields, and the beginning of an incomplete string (C-016). It returns
// nil if args does not begin like an object.
func Partial(args string) map[string]any {
	p := partial{tokens: json.NewDecoder(strings.NewReader(args)), args: args}
	p.tokens.UseNumber()
	v, _ := p.value(0)
	in, _ := v.(map[string]any)
	return in
}

// deepest limits the nesting of values that Partial reads.
const deepest = 100

type partial struct {
	tokens *json.Decoder
	args   string
	over   bool // nothing more can be read
}

// token returns the next token, unless it may be incomplete.
func (p *partial) token() (json.Token, bool) {
	if p.over {
		return nil, false
	}
	t, err := p.tokens.Token()
	_, isNumber := t.(json.Number)
	p.over = err != nil || isNumber && p.tokens.InputOffset() == int64(len(p.args))
	return t, !p.over
}

// value returns the next value, or its beginning.
func (p *partial) value(depth int) (v any, ok bool) {
	t, ok := p.token()
	if !ok {
		return p.growing()
	}
	switch {
	case depth > deepest:
		p.over = true
		return nil, false
	case t == json.Delim('{'):
		m := map[string]any{}
		for p.tokens.More() && !p.over {
			if key, ok := p.token(); ok {
				if v, ok := p.value(depth + 1); ok {
					m[key.(string)] = v
				}
			}
		}
		p.token()
		return m, true
	case t == json.Delim('['):
		list := []any{}
		for p.tokens.More() && !p.over {
			if v, ok := p.value(depth + 1); ok {
				list = append(list, v)
			}
		}
		p.token()
		return list, true
	}
	return settle(t), true
}

// growing returns the string whose beginning is the rest of the input.
func (p *partial) growing() (any, bool) {
	rest := strings.TrimLeft(p.args[p.tokens.InputOffset():], " \t\r\n:,")
	if !strings.HasPrefix(rest, `"`) {
		return nil, false
	}
	for range len(`\ud83d\ude0`) + 1 { // the end may be half an escape
		var s string
		if json.Unmarshal([]byte(rest+`"`), &s) == nil {
			return strings.TrimRight(s, "\ufffd"), true // or half a character
		}
		if rest = rest[:len(rest)-1]; rest == "" {
			break
		}
	}
	return nil, false
}
