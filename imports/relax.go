package imports

import (
	"encoding/json"
	"strings"
)

// relax turns JSON5 into JSON: comments, commas before a closing bracket, names without quotes and
// texts in single quotes. What is not even that stays as it is, and is no JSON either.
func relax(text []byte) []byte {
	r := relaxer{in: string(text)}
	for r.at < len(r.in) {
		r.next()
	}
	return []byte(r.out.String())
}

type relaxer struct {
	in    string
	at    int
	out   strings.Builder
	comma bool // one is held back until it is known what follows
}

// next reads one token.
func (r *relaxer) next() {
	rest := r.in[r.at:]
	c := rest[0]
	switch {
	case strings.HasPrefix(rest, "//"):
		r.skip(rest, "\n")
	case strings.HasPrefix(rest, "/*"):
		r.skip(rest, "*/")
	case strings.HasPrefix(rest, "\ufeff"):
		r.at += len("\ufeff")
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		r.out.WriteByte(c)
		r.at++
	case c == ',':
		r.flush()
		r.comma = true
		r.at++
	case c == '}' || c == ']':
		r.comma = false
		r.put(1)
	case c == '"':
		r.flush()
		r.put(quotedLength(rest))
	case c == '\'':
		r.flush()
		n := quotedLength(rest)
		r.out.WriteString(requote(rest[:n]))
		r.at += n
	case isNameByte(c, false):
		r.flush()
		r.name(rest)
	default:
		r.flush()
		r.put(1)
	}
}

// skip leaves out a comment up to end.
func (r *relaxer) skip(rest, end string) {
	before, _, _ := strings.Cut(rest, end)
	r.at = min(r.at+len(before)+len(end), len(r.in))
}

func (r *relaxer) flush() {
	if r.comma {
		r.out.WriteByte(',')
	}
	r.comma = false
}

func (r *relaxer) put(n int) {
	r.out.WriteString(r.in[r.at : r.at+n])
	r.at += n
}

// name writes a name without quotes, in quotes if it is a key.
func (r *relaxer) name(rest string) {
	n := 1
	for n < len(rest) && isNameByte(rest[n], true) {
		n++
	}
	if !strings.HasPrefix(strings.TrimLeft(rest[n:], " \t\r\n"), ":") {
		r.put(n) // true, false, null, or a part of a number
		return
	}
	r.out.WriteString(`"` + rest[:n] + `"`)
	r.at += n
}

func isNameByte(c byte, inside bool) bool {
	letter := c == '_' || c == '$' || 'a' <= c|0x20 && c|0x20 <= 'z'
	return letter || inside && '0' <= c && c <= '9'
}

// quotedLength returns the bytes of the quoted text at the beginning of s.
func quotedLength(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i + 1
		}
	}
	return len(s)
}

// requote returns a text in single quotes as one in double quotes.
func requote(s string) string {
	if len(s) < 2 || s[len(s)-1] != '\'' {
		return s
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(s, "'"), "'")
	inner = strings.ReplaceAll(strings.ReplaceAll(inner, `\'`, `'`), `"`, `\"`)
	inner = strings.ReplaceAll(inner, `\\"`, `\"`) // it was escaped already
	var text string
	if err := json.Unmarshal([]byte(`"`+inner+`"`), &text); err != nil {
		return s
	}
	return `"` + inner + `"`
}
