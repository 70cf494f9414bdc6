package template

import (
	"strings"
)

// text reads a string whose prefix was read.
func (p *parser) text(prefix string) error {
	quote := p.rest()[:1]
	if p.at(strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	defer p.follow(true, "")
	lower := strings.ToLower(prefix)
	raw := strings.Contains(lower, "r")
	if strings.ContainsAny(lower, "ft") {
		p.emit(prefix + quote)
		p.pos += len(quote)
		return p.formatted(quote, raw)
	}
	body, closed := p.body(quote)
	if !closed { // Python says what is wrong
		p.emit(prefix)
		p.copy(len(quote) + len(body))
		return nil
	}
	start := p.pos + len(quote)
	p.pos = start + len(body) + len(quote)
	s := plain{parser: p, body: body, start: start, raw: raw}
	if err := s.read(); err != nil {
		return err
	}
	switch {
	case !s.bound:
		p.emit(prefix + quote + s.asPlain.String() + quote)
	case strings.Contains(lower, "b"):
		return &RenderError{Reason: "a placeholder cannot stand in a bytes literal", Line: p.line(start)}
	default:
		p.emit("f" + strings.Trim(prefix, "uU") + quote + s.asFormatted.String() + quote)
	}
	return nil
}

// body returns what is between the quotes that begin here. closed is false if the string does not
// end.
func (p *parser) body(quote string) (body string, closed bool) {
	text := p.rest()[len(quote):]
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++ // also in raw strings
		case strings.HasPrefix(text[i:], quote):
			return text[:i], true
		case text[i] == '\n' && len(quote) == 1:
			return text[:i], false
		}
	}
	return text, false
}

// A plain is a string without the prefix f. It becomes one with the prefix if it has a placeholder.
type plain struct {
	*parser
	body  string
	start int // offset of body
	raw   bool

	bound       bool
	asPlain     strings.Builder
	asFormatted strings.Builder
}

func (s *plain) both(text string) {
	s.asPlain.WriteString(text)
	s.asFormatted.WriteString(text)
}

// brace adds one of Python's braces, as it is in a string.
func (s *plain) brace(one string) {
	s.asPlain.WriteString(one)
	s.asFormatted.WriteString(one + one)
}

func (s *plain) read() error {
	for rest := s.body; rest != ""; {
		offset := s.start + len(s.body) - len(rest)
		switch {
		case !s.raw && strings.HasPrefix(rest, `\N{`):
			rest = s.character(rest)
		case !s.raw && rest[0] == '\\' && len(rest) > 1 && rest[1] != '{' && rest[1] != '}':
			s.both(rest[:2])
			rest = rest[2:]
		case strings.HasPrefix(rest, "{{"):
			s.brace("{")
			rest = rest[2:]
		case strings.HasPrefix(rest, "}}"):
			s.brace("}")
			rest = rest[2:]
		case rest[0] == '}':
			return &RenderError{Reason: "Single '}' encountered in format string", Line: s.line(offset)}
		case rest[0] == '{':
			f, after, err := s.resolve(rest, offset)
			if err != nil {
				return err
			}
			s.bound = true
			s.asFormatted.WriteString("{" + s.field(f) + "}")
			rest = after
		default:
			s.both(rest[:1])
			rest = rest[1:]
		}
	}
	return nil
}

// field returns a placeholder as an f-string has it.
func (s *plain) field(f placeholder) string {
	if f.conversion == "!s" {
		f.conversion = ""
	}
	name := s.variable(f.key, f.conversion == "" && f.spec == "")
	return name + f.conversion + f.spec
}

// character reads \N{NAME}, which is a character by its name, with single or doubled braces.
func (s *plain) character(rest string) (after string) {
	inner := strings.TrimPrefix(rest, `\N`)
	end := strings.IndexByte(inner, '}')
	if end < 0 {
		s.both(`\N`)
		return inner
	}
	name := strings.Trim(inner[:end], "{")
	after = inner[end+1:]
	if strings.HasPrefix(inner, "{{") {
		after = strings.TrimPrefix(after, "}")
	}
	s.both(`\N{` + name + "}")
	return after
}

// formatted reads an f-string after its opening quotes.
func (p *parser) formatted(quote string, raw bool) error {
	for p.pos < len(p.src) {
		switch {
		case p.at(quote):
			p.copy(len(quote))
			return nil
		case p.at("\n") && len(quote) == 1: // Python says what is wrong
			return nil
		case !raw && p.at(`\N{`):
			s := plain{parser: p}
			after := s.character(p.rest())
			p.take(after, s.asPlain.String())
		case p.at(`\`) && !strings.HasPrefix(p.rest()[1:], "{") && !strings.HasPrefix(p.rest()[1:], "}"):
			p.copy(2)
		case p.at("{{{{") || p.at("}}}}"):
			p.emit(p.src[p.pos : p.pos+2])
			p.pos += 4
		case p.at("{{"):
			p.pos += 2
			p.emit("{")
			if err := p.field(); err != nil {
				return err
			}
		case p.at("{"):
			if err := p.ownField(quote); err != nil {
				return err
			}
		case p.at("}}"):
			p.copy(2)
		case p.at("}"):
			return p.refuse("Single '}' encountered in format string")
		default:
			p.copy(1)
		}
	}
	return nil
}

const msgOpenField = "expected '}' before the end of the f-string"

// field reads a field of an f-string after the {{ that opened it, up to }}. It is code, in which
// placeholders are bound.
func (p *parser) field() error {
	parens, lambda := p.parens, p.lambda
	p.parens = nil
	p.follow(false, "")
	defer func() {
		p.parens = parens
		p.lambda = lambda
	}()
	for done := false; !done; {
		if p.pos >= len(p.src) {
			return p.refuse(msgOpenField)
		}
		var err error
		if done, err = p.code(true); err != nil {
			return err
		}
	}
	for !p.at("}}") { // what follows a colon
		switch {
		case p.pos >= len(p.src) || p.at("\n"):
			return p.refuse(msgOpenField)
		case p.at("{{"):
			p.pos += 2
			p.emit("{")
			if err := p.field(); err != nil {
				return err
			}
		case p.at("{"):
			f, rest, err := p.resolve(p.rest(), p.pos)
			if err != nil {
				return err
			}
			p.take(rest, "{"+(&plain{parser: p}).field(f)+"}")
		default:
			p.copy(1)
		}
	}
	p.pos += 2
	p.emit("}")
	return nil
}

// ownField reads a field of an f-string that { has opened. It is Python's, unless it is exactly a
// parameter (B-037).
func (p *parser) ownField(quote string) error {
	p.copy(1)
	name := takeName(p.rest())
	after := p.rest()[len(name):]
	_, declared := p.parameters[name]
	if declared && after != "" && strings.ContainsAny(after[:1], "}!:") && !strings.HasPrefix(after, "!=") {
		if _, given := p.arguments[name]; !given && p.parameters[name].Required {
			return &MissingError{Key: name, Declared: true, Line: p.line(p.pos)}
		}
		p.out = append(p.out, piece{text: name, key: name, bare: after[0] == '}'})
		p.pos += len(name)
	}
	return p.pythonField(quote)
}

// pythonField copies the rest of a field that is Python's, up to its closing brace.
func (p *parser) pythonField(quote string) error {
	for depth := 0; p.pos < len(p.src); {
		c := p.src[p.pos]
		switch {
		case c == '}' && depth == 0:
			p.copy(1)
			return nil
		case c == ':' && depth == 0 && !p.at(":="):
			return p.pythonSpec(quote)
		case c == '\'' || c == '"':
			p.pythonText()
			continue
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		}
		p.copy(1)
	}
	return p.refuse(msgOpenField)
}

// pythonSpec copies what follows the colon of a field that is Python's.
func (p *parser) pythonSpec(quote string) error {
	for p.pos < len(p.src) {
		switch {
		case p.at("}"):
			p.copy(1)
			return nil
		case p.at(quote):
			return p.refuse(msgOpenField)
		case p.at("{"):
			if err := p.ownField(quote); err != nil {
				return err
			}
		default:
			p.copy(1)
		}
	}
	return p.refuse(msgOpenField)
}

// pythonText copies a string in a field that is Python's. Strings in it that are f-strings
// themselves end where a plain one would, unless they have the same quotes inside.
func (p *parser) pythonText() {
	quote := p.rest()[:1]
	if p.at(strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	body, closed := p.body(quote)
	p.copy(len(quote) + len(body))
	if closed {
		p.copy(len(quote))
	}
}
