package markdown

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"parley/lazyregexp"
)

// A markParser reads the marks of emphasis: *, **, ***, _, __, ___ and ~~. It is
// stricter than CommonMark where a mark may be meant literally, as in 5*3*2, 2**3**2,
// src/**/*.go, pkg/__init__.py and 3~5, and within an address: a mark that remains is
// ugly, but one that disappears changes what was written. It is less strict between
// words of East Asian languages, which have no spaces around them: **Note：**这是.
type markParser struct{}

// Trigger implements [parser.InlineParser].
func (markParser) Trigger() []byte { return []byte("*_~") }

// Parse implements [parser.InlineParser]. A run that is no mark becomes text.
func (markParser) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	line, segment := block.PeekLine()
	length := len(line) - len(bytes.TrimLeft(line, string(line[:1])))
	r := run{char: line[0], length: length, before: block.PrecendingCharacter(), rest: line[length:]}
	start := segment.Start
	segment = segment.WithStop(start + length)
	block.Advance(length)
	opens, closes := r.opens(), r.closes()
	source := block.Source()
	isMark := r.plausible() && (opens || closes) && !r.besideStar(source[:start]) && !inAddress(source, start, length)
	if !isMark {
		return ast.NewTextSegment(segment)
	}
	before := bytes.TrimRight(source[:start], " ")
	d := parser.NewDelimiter(opens, closes, length, r.char, match{
		strike:  r.char == '~',
		slash:   opens && (r.before == '/' || r.after() == '/') || closes && r.before == '/',
		number:  len(before) > 0 && strings.IndexByte("0123456789)=", before[len(before)-1]) >= 0,
		counted: numberAhead.Match(r.rest),
	})
	d.Segment = segment
	pc.PushDelimiter(d)
	return d
}

var numberAhead = lazyregexp.New(`^ *[0-9(]`)

// match pairs the runs that begin and end an emphasis.
type match struct {
	strike  bool // the run is ~~
	slash   bool // the run has a / on the side of what it marks
	number  bool // a number comes before the run, perhaps behind a space
	counted bool // a number comes after the run, perhaps behind a space
}

// IsDelimiter implements [parser.DelimiterProcessor].
func (match) IsDelimiter(b byte) bool { return strings.IndexByte("*_~", b) >= 0 }

// CanOpenCloser implements [parser.DelimiterProcessor]. Runs of different lengths are no
// pair, except that a run of three is two marks. **/x/** is a glob, and 5 *3* 2 a
// product.
func (match) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	begin := opener.Processor.(match)
	end := closer.Processor.(match)
	switch {
	case opener.Char != closer.Char, begin.slash && end.slash:
		return false
	case begin.number && begin.counted && end.number && end.counted:
		return false
	}
	return opener.OriginalLength == closer.OriginalLength || opener.OriginalLength == 3 || closer.OriginalLength == 3
}

// OnMatch implements [parser.DelimiterProcessor].
func (m match) OnMatch(length int) ast.Node {
	if m.strike {
		return extast.NewStrikethrough()
	}
	return ast.NewEmphasis(length)
}

// A run is a sequence of equal characters that may be a mark.
type run struct {
	char   byte
	length int
	before rune   // '\n' at the beginning
	rest   []byte // of the line
}

func (r run) after() rune {
	if len(r.rest) == 0 {
		return '\n'
	}
	c, _ := utf8.DecodeRune(r.rest)
	return c
}

var dunder = lazyregexp.New(`^(?:[a-z][a-z0-9_]+|[A-Z][A-Z0-9_]+)__(?:[^A-Za-z0-9_]|$)`)

// plausible reports whether r can be a mark at all. __init__ and __FILE__ are names.
func (r run) plausible() bool {
	if r.char == '~' {
		return r.length == 2
	}
	return r.length <= 3 && (r.char != '_' || r.length != 2 || !dunder.Match(r.rest))
}

// strong reports whether r is almost always a mark.
func (r run) strong() bool { return r.char != '_' && r.length > 1 }

// ASCII characters that may be next to a mark.
const (
	otherMarks = "*_~`"
	quotes     = `"'`
)

// opens reports whether r may begin an emphasis.
func (r run) opens() bool {
	after := r.after()
	notAfter := `,;:!?)]}=./+>%^|`
	notBefore := `.,;:!?/`
	if r.strong() {
		notAfter = `,;:!?)]}=`
		notBefore = ``
	}
	if unicode.IsSpace(after) || strings.ContainsRune(notAfter, after) || r.besideName(after) {
		return false
	}
	switch {
	case unicode.IsSpace(r.before), r.loose(r.before), strings.ContainsRune("([{<"+quotes+otherMarks, r.before):
		return true
	case isWord(r.before):
		return r.strong() && isEastAsian(after)
	case after < utf8.RuneSelf && !isWord(after) && !strings.ContainsRune(`([{<`+quotes+otherMarks, after):
		return false
	}
	return strings.ContainsRune(`->|.,;:!?/`, r.before) && !strings.ContainsRune(notBefore, r.before)
}

// closes reports whether r may end an emphasis.
func (r run) closes() bool {
	after := r.after()
	notBefore := `([{/=<+-|^`
	if r.strong() {
		notBefore = `([{=`
	}
	switch {
	case unicode.IsSpace(r.before), strings.ContainsRune(notBefore, r.before), r.besideName(r.before):
		return false
	case unicode.IsSpace(after), r.loose(after), strings.ContainsRune(")]}>"+quotes+otherMarks, after):
		return true
	case r.strong():
		return !isWord(after) || !isWord(r.before) && unicode.IsLetter(after) || isEastAsian(r.before)
	}
	return strings.ContainsRune(".,;:!?-", after) && !isWord(rune2(r.rest))
}

// besideStar reports whether r is a _ next to a single *, as in foo_* and *_test.go.
func (r run) besideStar(src []byte) bool {
	before := len(src) - len(bytes.TrimRight(src, "*"))
	after := len(r.rest) - len(bytes.TrimLeft(r.rest, "*"))
	return r.char == '_' && r.length == 1 && (before == 1 || after == 1)
}

// besideName reports whether r and the character c next to it belong to a glob, as in
// *_test.go.
func (r run) besideName(c rune) bool { return r.char == '*' && r.length == 1 && c == '_' }

// rune2 returns the second character of s, or '\n' if there is none.
func rune2(s []byte) rune { return run{rest: s[min(len(s), 1):]}.after() }

// loose reports whether a mark may touch c on either side: punctuation outside ASCII,
// such as “ and emoji, and, if the mark is strong, letters of languages without spaces.
func (r run) loose(c rune) bool {
	if isEastAsian(c) {
		return r.strong()
	}
	return c >= utf8.RuneSelf && !isWord(c)
}

func isWord(c rune) bool {
	return (unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c)) && !isEastAsian(c)
}

// isEastAsian reports whether c is a letter of a language that has no spaces between words.
func isEastAsian(c rune) bool {
	return unicode.In(c, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// maxWord is the greatest distance at which the beginning of a word is looked for.
const maxWord = 2048 // bytes

var schemeForm = lazyregexp.New(`(?i)(?:\b[a-z][a-z0-9+.-]*://|\bwww\.)`)

// inAddress reports whether the run of marks at src[start:] is part of an address. It is
// not at the end of one, nor if the address itself is marked in the same way.
func inAddress(src []byte, start, length int) bool {
	word := src[wordStart(src, start):start]
	at := schemeForm.FindIndex(word)
	if at == nil {
		return false
	}
	mark := src[start : start+length]
	rest := src[start+length:]
	if end := bytes.IndexFunc(rest, endsAddress); end >= 0 {
		rest = rest[:end]
	}
	if len(bytes.Trim(rest, `*_~.,;:!?'")]}|`)) == 0 {
		return false
	}
	before := word[:at[0]]
	return !bytes.HasSuffix(before, mark) || len(bytes.TrimRight(before, string(mark))) != len(before)-length
}

func endsAddress(c rune) bool {
	return unicode.IsSpace(c) || c >= utf8.RuneSelf || strings.ContainsRune("<>\"`", c)
}

// wordStart returns where the word around or before src[at] begins.
func wordStart(src []byte, at int) int {
	from := max(0, at-maxWord)
	if i := bytes.LastIndexFunc(src[from:at], endsAddress); i >= 0 {
		_, size := utf8.DecodeRune(src[from+i:])
		return from + i + size
	}
	return from
}
