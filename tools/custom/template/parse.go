package template

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A parser reads a template once, from its beginning to its end.
type parser struct {
	src        string
	parameters map[string]Parameter
	arguments  map[string]any

	pos       int
	out       []piece
	mentioned map[string]bool // names of variables in the code
	variables map[string]int  // numbers of keys that are no names
	bound     []Variable

	// What came last in the code, without comments and white space.
	operand bool      // it ends an expression, so that an operator may follow
	words   [2]string // the last names and keywords, the latest first; "" for anything else
	parens  []bool    // for each open bracket: it holds the parameters of a function
	lambda  bool      // the parameters of a lambda are open
}

// A piece is part of the program. If key is not "", the piece is a placeholder in an f-string, unless
// the code has a variable of that name: then it is Python's (B-037).
type piece struct {
	text string
	key  string
	bare bool // nothing follows the key in its braces
}

// join returns the program.
func (p *parser) join() string {
	var b strings.Builder
	for _, one := range p.out {
		if one.key == "" || p.mentioned[one.key] {
			b.WriteString(one.text)
			continue
		}
		b.WriteString(p.variable(one.key, one.bare))
	}
	return b.String()
}

func (p *parser) emit(text string) { p.out = append(p.out, piece{text: text}) }

// line returns the number of the line in which offset is.
func (p *parser) line(offset int) int { return strings.Count(p.src[:offset], "\n") + 1 }

func (p *parser) refuse(reason string) error {
	return &RenderError{Reason: reason, Line: p.line(p.pos)}
}

// rest returns what has not been read.
func (p *parser) rest() string { return p.src[p.pos:] }

func (p *parser) at(text string) bool { return strings.HasPrefix(p.rest(), text) }

// copy emits the next n bytes as they are.
func (p *parser) copy(n int) {
	n = min(n, len(p.src)-p.pos)
	p.emit(p.src[p.pos : p.pos+n])
	p.pos += n
}

func (p *parser) parse() error {
	for p.pos < len(p.src) {
		if _, err := p.code(false); err != nil {
			return err
		}
	}
	return nil
}

// code reads one element of the code: a comment, a string, a name, a brace or any other character. In
// a field of an f-string that {{ has opened, done says that a colon or the closing braces are next.
func (p *parser) code(inField bool) (done bool, err error) {
	c, size := utf8.DecodeRuneInString(p.rest())
	switch {
	case p.at("{{"):
		p.pos += 2
		p.emit("{")
		p.open()
	case p.at("}}"):
		if inField && len(p.parens) == 0 {
			return true, nil
		}
		p.pos += 2
		p.emit("}")
		p.close()
	case c == '{':
		return false, p.bind()
	case c == '}':
		return false, p.refuse("Single '}' encountered in format string")
	case c == '#':
		end := strings.IndexByte(p.rest(), '\n')
		if end < 0 {
			end = len(p.rest())
		}
		p.copy(end)
	case c == '\'' || c == '"':
		return false, p.text("")
	case startsName(c):
		return false, p.name()
	case c >= '0' && c <= '9':
		p.copy(len(takeName(p.rest())))
		p.follow(true, "")
	case c == ':' && inField && len(p.parens) == 0:
		return true, nil
	default:
		p.sign(c, size)
	}
	return false, nil
}

// open and close count brackets.
func (p *parser) open() {
	isDef := p.words[0] != "" && p.words[1] == "def"
	p.parens = append(p.parens, isDef)
	p.follow(false, "")
}

func (p *parser) close() {
	p.parens = p.parens[:max(0, len(p.parens)-1)]
	p.follow(true, "")
}

// follow notes what came last in the code.
func (p *parser) follow(operand bool, word string) {
	p.operand = operand
	p.words = [2]string{word, p.words[0]}
}

// sign reads one character that is part of no name, string or comment.
func (p *parser) sign(c rune, size int) {
	p.copy(size)
	switch {
	case unicode.IsSpace(c):
	case c == '(' || c == '[':
		p.open()
	case c == ')' || c == ']':
		p.close()
	default:
		p.lambda = p.lambda && c != ':'
		p.follow(false, string(c))
	}
}

func startsName(c rune) bool {
	return c == '_' || unicode.IsLetter(c) || c >= utf8.RuneSelf && !unicode.IsSpace(c)
}

func takeName(text string) string {
	end := strings.IndexFunc(text, func(c rune) bool { return !startsName(c) && !unicode.IsDigit(c) })
	if end < 0 {
		return text
	}
	return text[:end]
}

// prefixes are what may stand before a string, in lower case.
var prefixes = []string{"r", "u", "b", "f", "t", "br", "rb", "fr", "rf", "tr", "rt"}

// keywords are those after which no operator can follow.
var keywords = strings.Fields(`and as assert async await break class continue def del elif else except finally for
	from global if import in is lambda nonlocal not or pass raise return try while with yield`)

// name reads a name, a keyword, or a string with a prefix.
func (p *parser) name() error {
	word := takeName(p.rest())
	after := p.src[p.pos+len(word):]
	quoted := strings.HasPrefix(after, "'") || strings.HasPrefix(after, `"`)
	if quoted && slices.Contains(prefixes, strings.ToLower(word)) {
		p.pos += len(word)
		return p.text(word)
	}
	p.copy(len(word))
	if p.isVariable(strings.TrimLeft(after, " \t")) {
		p.mentioned[word] = true
	}
	isKeyword := slices.Contains(keywords, word)
	p.lambda = p.lambda || word == "lambda"
	p.follow(!isKeyword, word)
	return nil
}

// isVariable reports whether the name before after is one of a variable: no attribute, no function
// that is called, and no argument of a call.
func (p *parser) isVariable(after string) bool {
	attribute := p.words[0] == "."
	called := strings.HasPrefix(after, "(")
	assigned := strings.HasPrefix(after, "=") && !strings.HasPrefix(after, "==")
	inCall := len(p.parens) > 0 && !p.parens[len(p.parens)-1] && !p.lambda
	return !attribute && !called && !(assigned && inCall)
}

// bind reads a placeholder in the code.
func (p *parser) bind() error {
	f, rest, err := p.resolve(p.rest(), p.pos)
	if err != nil {
		return err
	}
	before, _ := utf8.DecodeLastRuneInString(p.src[:p.pos])
	after, _ := utf8.DecodeRuneInString(rest)
	text := p.variable(f.key, false)
	if sign, ok := p.operator(f.key); ok && f.spec == "" && p.operand && startsOperand(rest) {
		p.take(rest, " "+sign+" ")
		p.follow(false, "")
		return nil
	}
	if f.spec != "" {
		text = "format(" + text + ", " + repr(f.spec[1:]) + ")"
	}
	if p.pos > 0 && (startsName(before) || unicode.IsDigit(before)) {
		text = " " + text
	}
	if rest != "" && (startsName(after) || unicode.IsDigit(after)) {
		text += " "
	}
	p.take(rest, text)
	p.follow(true, "")
	return nil
}

// take emits text for everything up to rest.
func (p *parser) take(rest, text string) {
	p.pos = len(p.src) - len(rest)
	p.emit(text)
}

// startsOperand reports whether text begins with an expression.
func startsOperand(text string) bool {
	c, _ := utf8.DecodeRuneInString(strings.TrimLeft(text, " \t"))
	return text != "" && (startsName(c) || unicode.IsDigit(c) || strings.ContainsRune(`'"([{-+~`, c))
}
