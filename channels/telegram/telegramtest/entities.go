package telegramtest

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// An Entity is a stretch of a message's text that is shown in a special way.
type Entity struct {
	Type     string `json:"type"`
	Offset   int    `json:"offset"` // UTF-16 units
	Length   int    `json:"length"` // UTF-16 units
	URL      string `json:"url,omitempty"`
	Language string `json:"language,omitempty"`
}

func (e Entity) end() int { return e.Offset + e.Length }

// ParseHTML reads s as the Bot API reads a text with parse_mode HTML. Its errors
// are what the API says after "Bad Request: can't parse entities: ". A text in which
// nothing is visible comes back empty. Like Telegram, it silently drops entities of
// mere space, of addresses that it does not open, and those that may not be nested.
// It is stricter in one thing: a & that begins no known entity, which the manual
// forbids and Telegram accepts as text, is an error.
func ParseHTML(s string) (text string, entities []Entity, err error) {
	if !utf8.ValidString(s) {
		return "", nil, malformed("Text must be encoded in UTF-8")
	}
	p := htmlParser{src: s}
	if err := p.parse(); err != nil {
		return "", nil, err
	}
	entities = dropForbidden(p.found)
	entities = trimEntities(p.text, entities)
	p.text, entities = trimText(p.text, entities)
	text = string(utf16.Decode(p.text))
	if blank(text) {
		return "", nil, nil
	}
	return text, entities, nil
}

// blank reports whether Telegram sees nothing in text.
func blank(text string) bool {
	const unseen = " \n\u00a0\u1680\u180e\u2800\u3000\ufffc\ufeff\u202f\u205f"
	return strings.Trim(strings.Map(func(r rune) rune {
		if '\u2000' <= r && r <= '\u200f' || 0xe0000 <= r && r <= 0xe007f {
			return -1
		}
		return r
	}, text), unseen) == ""
}

// types gives the entity of each tag.
var types = map[string]string{
	"b": "bold", "strong": "bold", "i": "italic", "em": "italic", "u": "underline", "ins": "underline",
	"s": "strikethrough", "strike": "strikethrough", "del": "strikethrough", "tg-spoiler": "spoiler", "span": "spoiler",
	"a": "text_link", "code": "code", "pre": "pre", "blockquote": "blockquote", "tg-emoji": "custom_emoji",
}

// An htmlError says what is wrong with markup, in Telegram's words.
type htmlError string

func (e htmlError) Error() string { return string(e) }

func malformed(format string, args ...any) error { return htmlError(fmt.Sprintf(format, args...)) }

type openTag struct {
	name, arg  string
	offset     int // where its text begins
	expandable bool
}

type htmlParser struct {
	src   string
	at    int
	text  []uint16
	open  []openTag
	found []Entity
}

func (p *htmlParser) parse() error {
	for p.at < len(p.src) {
		var err error
		switch {
		case strings.HasPrefix(p.src[p.at:], "</"):
			err = p.endTag()
		case p.src[p.at] == '<':
			err = p.startTag()
		case p.src[p.at] == '&':
			var r rune
			if r, err = p.reference(); err == nil {
				p.write(r)
			}
		default:
			r, n := utf8.DecodeRuneInString(p.src[p.at:])
			p.at += n
			p.write(r)
		}
		if err != nil {
			return err
		}
	}
	if n := len(p.open); n > 0 {
		return malformed("Can't find end tag corresponding to start tag %q", p.open[n-1].name)
	}
	return nil
}

// write appends r, or what Telegram puts in its place.
func (p *htmlParser) write(r rune) {
	switch {
	case r == '\r', '\u2028' <= r && r <= '\u202e', r == '\u030a', r == '\u0333', r == '\u033f':
		return
	case r < ' ' && r != '\n':
		r = ' '
	}
	p.text = utf16.AppendRune(p.text, r)
}

// reference reads a character reference such as &lt; or &#60;.
func (p *htmlParser) reference() (rune, error) {
	rest := p.src[p.at+1:]
	n := strings.IndexFunc(rest, func(r rune) bool { return r != '#' && !isAlnum(r) })
	if n < 0 {
		n = len(rest)
	}
	name := rest[:n]
	r, ok := map[string]rune{"lt": '<', "gt": '>', "amp": '&', "quot": '"'}[name]
	if number, numeric := strings.CutPrefix(name, "#"); numeric {
		base := 10
		if hex, ok := strings.CutPrefix(number, "x"); ok {
			number, base = hex, 16
		}
		v, err := strconv.ParseUint(number, base, 32)
		r, ok = rune(v), err == nil && v > 0 && v < 0x10ffff && !utf16.IsSurrogate(rune(v))
	}
	if !ok {
		return 0, malformed("Unsupported character reference \"&%s\" at byte offset %d", name, p.at)
	}
	p.at += 1 + n
	if strings.HasPrefix(p.src[p.at:], ";") {
		p.at++
	}
	return r, nil
}

func (p *htmlParser) startTag() error {
	begin := p.at
	name := strings.ToLower(p.until(begin+1, " \t\r\n>"))
	p.at += 1 + len(name)
	if p.at >= len(p.src) {
		return malformed("Unclosed start tag at byte offset %d", begin)
	}
	if types[name] == "" {
		return malformed("Unsupported start tag %q at byte offset %d", name, begin)
	}
	t := openTag{name: name, offset: len(p.text)}
	for {
		p.space()
		if p.at >= len(p.src) {
			return malformed("Unclosed start tag %q at byte offset %d", name, begin)
		}
		if p.src[p.at] == '>' {
			p.at++
			break
		}
		if err := p.attribute(&t, begin); err != nil {
			return err
		}
	}
	if name == "span" && t.arg != "spoiler" {
		return malformed("Tag \"span\" must have class \"tg-spoiler\" at byte offset %d", begin)
	}
	p.open = append(p.open, t)
	return nil
}

// attribute reads name=value into t, which began at begin.
func (p *htmlParser) attribute(t *openTag, begin int) error {
	name := p.until(p.at, " \t\r\n=>")
	p.at += len(name)
	if name == "" {
		return malformed("Empty attribute name in the tag %q at byte offset %d", t.name, begin)
	}
	p.space()
	if !strings.HasPrefix(p.src[p.at:], "=") {
		if t.name == "blockquote" && name == "expandable" {
			t.expandable = true
			return nil
		}
		return malformed("Expected equal sign in declaration of an attribute of the tag %q at byte offset %d",
			t.name, begin)
	}
	p.at++
	p.space()
	value, err := p.value(begin)
	if err != nil {
		return err
	}
	known := map[string]string{"a href": "", "code class": "language-", "span class": "tg-", "tg-emoji emoji-id": ""}
	if prefix, ok := known[t.name+" "+name]; ok && strings.HasPrefix(value, prefix) {
		t.arg = value[len(prefix):]
	}
	return nil
}

// value reads the value of an attribute, quoted or a single word.
func (p *htmlParser) value(begin int) (string, error) {
	if p.at >= len(p.src) {
		return "", malformed("Unclosed start tag at byte offset %d", begin)
	}
	quote := p.src[p.at]
	if quote != '"' && quote != '\'' {
		at := p.at
		for p.at < len(p.src) && (isAlnum(rune(p.src[p.at])) || strings.IndexByte(".-", p.src[p.at]) >= 0) {
			p.at++
		}
		if p.at < len(p.src) && strings.IndexByte(" \t\r\n>", p.src[p.at]) < 0 {
			return "", malformed("Unexpected end of name token at byte offset %d", at)
		}
		return strings.ToLower(p.src[at:p.at]), nil
	}
	var value strings.Builder
	for p.at++; p.at < len(p.src) && p.src[p.at] != quote; {
		if p.src[p.at] != '&' {
			value.WriteByte(p.src[p.at])
			p.at++
			continue
		}
		r, err := p.reference()
		if err != nil {
			return "", err
		}
		value.WriteRune(r)
	}
	if p.at >= len(p.src) {
		return "", malformed("Unclosed start tag at byte offset %d", begin)
	}
	p.at++
	return value.String(), nil
}

func (p *htmlParser) endTag() error {
	begin := p.at
	if len(p.open) == 0 {
		return malformed("Unexpected end tag at byte offset %d", begin)
	}
	name := p.until(begin+2, " \t\r\n>")
	p.at = begin + 2 + len(name)
	p.space()
	if !strings.HasPrefix(p.src[p.at:], ">") {
		return malformed("Unclosed end tag at byte offset %d", begin)
	}
	t := p.open[len(p.open)-1]
	if name = strings.ToLower(name); name != "" && name != t.name {
		return malformed("Unmatched end tag at byte offset %d, expected \"</%s>\", found \"</%s>\"",
			begin, t.name, name)
	}
	p.open = p.open[:len(p.open)-1]
	p.at++
	if len(p.text) > t.offset {
		return p.entity(t)
	}
	return nil
}

// entity adds what t, which ends here, stands for.
func (p *htmlParser) entity(t openTag) error {
	e := Entity{Type: types[t.name], Offset: t.offset, Length: len(p.text) - t.offset}
	switch t.name {
	case "tg-emoji":
		if id, err := strconv.ParseInt(t.arg, 10, 64); err != nil || id == 0 {
			return malformed("Invalid custom emoji identifier specified")
		}
	case "blockquote":
		if t.expandable {
			e.Type = "expandable_blockquote"
		}
	case "a":
		if t.arg == "" {
			t.arg = string(utf16.Decode(p.text[t.offset:]))
		}
		if !opensURL(t.arg) {
			return nil
		}
		e.URL = t.arg
	case "code":
		e.Language = t.arg
	case "pre":
		// <pre><code class="language-x"> is one entity.
		if n := len(p.found) - 1; n >= 0 && p.found[n].Type == "code" && p.found[n].Offset == e.Offset && p.found[n].Length == e.Length && p.found[n].Language != "" {
			p.found[n].Type = "pre"
			return nil
		}
	}
	p.found = append(p.found, e)
	return nil
}

// opensURL reports whether Telegram takes link as the address of a text_link.
func opensURL(link string) bool {
	u, err := url.Parse(link)
	if err != nil {
		return false
	}
	switch u.Scheme {
	case "tg", "ton":
		return u.Host+u.Opaque != "" && u.User == nil && u.Port() == ""
	case "http", "https":
		return strings.Contains(u.Hostname(), ".") || strings.Contains(u.Hostname(), ":")
	case "":
		return strings.Contains(link, ".")
	}
	return false
}

func (p *htmlParser) until(at int, stops string) string {
	if n := strings.IndexAny(p.src[at:], stops); n >= 0 {
		return p.src[at : at+n]
	}
	return p.src[at:]
}

func (p *htmlParser) space() {
	for p.at < len(p.src) && strings.IndexByte(" \t\r\n", p.src[p.at]) >= 0 {
		p.at++
	}
}

func isAlnum(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
