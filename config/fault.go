package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"parley/lazyregexp"
)

// A problem is one fault in the file.
type problem struct {
	at   int // offset
	key  string
	text string
}

var hujsonPlace = lazyregexp.New(`^hujson: line (\d+), column (\d+): `)

// syntax says that the source is no JSON. The parser quotes what it stumbled
// over, which may be half a secret: that is left out.
func (d *decoder) syntax(err error) {
	d.broken = hujsonPlace.ReplaceAllString(err.Error(), "$1:$2: ")
	if m := hujsonPlace.FindStringSubmatch(err.Error()); m != nil {
		if what := lookalike(d.characterAt(m[1], m[2])); what != "" {
			d.broken = m[1] + ":" + m[2] + ": " + what
			return
		}
	}
	for what, plain := range map[string]string{
		"invalid literal": `not a value: text stands in "quotes", and \ and line ends in it are written \\ and \n`,
		"unexpected EOF":  "the file ends too early: something is missing, such as a } or ]",
	} {
		if place, _, ok := strings.Cut(d.broken, what); ok {
			d.broken = place[:strings.Index(place, ": ")+2] + plain
		}
	}
	if at := bytes.IndexAny(d.src, "“”„"); at >= 0 { // maybe it was to end a text
		line, column := d.place(at)
		d.broken += fmt.Sprintf("; the curly quote at %d:%d may be why: JSON wants the straight one", line, column)
	}
}

// characterAt returns the character that stands at a line and column, which count
// bytes from 1, or 0.
func (d *decoder) characterAt(line, column string) rune {
	l, _ := strconv.Atoi(line)
	c, _ := strconv.Atoi(column)
	lines := bytes.Split(d.src, []byte("\n"))
	if l < 1 || l > len(lines) || c < 1 || c > len(lines[l-1]) {
		return 0
	}
	r, _ := utf8.DecodeRune(lines[l-1][c-1:])
	return r
}

// lookalike says what r is, if it looks like a character of JSON, or like none at
// all, and is another; else it is "".
func lookalike(r rune) string {
	switch {
	case r < utf8.RuneSelf:
		return ""
	case strings.ContainsRune("“”„‟«»‘’‚‛", r):
		return string(r) + ` is a curly quote, as word processors make them; JSON wants the straight one: "`
	case 0xff01 <= r && r <= 0xff5e: // their ASCII forms are as far apart
		return fmt.Sprintf("%c is the full-width form of a character; JSON wants %c", r, r-0xfee0)
	case unicode.IsSpace(r), unicode.Is(unicode.Cf, r):
		return fmt.Sprintf("here is an invisible character, %U, "+
			"as word processors and web pages make them: delete it", r)
	}
	return ""
}

// encodingFault says, with line and column, why the source is not text in UTF-8, or "".
func (d *decoder) encodingFault() string {
	const save = "save it as UTF-8"
	src := d.src
	switch {
	case bytes.HasPrefix(src, []byte{0xff, 0xfe}), bytes.HasPrefix(src, []byte{0xfe, 0xff}),
		len(src) > 1 && (src[0] == 0) != (src[1] == 0): // one of each two bytes of plain text in UTF-16
		return "1:1: the file is UTF-16: " + save
	case utf8.Valid(src):
		return ""
	}
	at := 0
	for at < len(src) {
		r, size := utf8.DecodeRune(src[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	line, column := d.place(at)
	return fmt.Sprintf("%d:%d: here the file is not UTF-8, but maybe Latin-1 or Windows-1252: %s", line, column, save)
}

var kinds = map[hujson.Kind]string{
	'n': "null", 't': "true", 'f': "false", '"': "text", '0': "a number", '{': "an object", '[': "a list",
}

// wrong notes a value of the wrong type. It does not show the value.
func (d *decoder) wrong(v hujson.Value, path, want string) {
	d.fail(v.StartOffset, path, "is "+kinds[v.Value.Kind()]+", must be "+want)
}

func (d *decoder) unknown(at int, path, name string, keys map[string][]field) {
	var allowed []string
	for n := range keys {
		allowed = append(allowed, n)
	}
	slices.Sort(allowed)
	d.fail(at, join(path, name), "unknown key; allowed: "+cmp.Or(strings.Join(allowed, ", "), "none"))
}

// fail notes a problem, once: a value may be read for a struct and for that of its driver.
func (d *decoder) fail(at int, key, text string) {
	if p := (problem{at, key, text}); !slices.Contains(d.problems, p) {
		d.problems = append(d.problems, p)
	}
}

// failed says whether key, or what it is part of, has a problem already.
func (d *decoder) failed(key string) bool {
	return slices.ContainsFunc(d.problems, func(p problem) bool {
		rest, ok := strings.CutPrefix(key, p.key)
		return ok && (p.key == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// err returns all the problems, in the order of the file, or nil.
func (d *decoder) err(file string) error {
	if d.broken != "" {
		return errors.New(file + ":" + d.broken)
	}
	slices.SortStableFunc(d.problems, func(a, b problem) int { return cmp.Compare(a.at, b.at) })
	var errs []error
	for _, p := range d.problems {
		text := p.text
		if key := cmp.Or(d.origins[p.key], p.key); key != "" {
			text = key + ": " + text
		}
		if d.src == nil {
			errs = append(errs, errors.New(text))
			continue
		}
		line, col := d.place(p.at)
		errs = append(errs, fmt.Errorf("%s:%d:%d: %s", file, line, col, text))
	}
	return errors.Join(errs...)
}

// place returns the line and the column of an offset, both from 1, the column in characters.
func (d *decoder) place(at int) (line, col int) {
	before := d.src[:min(at, len(d.src))]
	line = 1 + strings.Count(string(before), "\n")
	col = 1 + utf8.RuneCount(before[strings.LastIndexByte(string(before), '\n')+1:])
	return line, col
}

var named = lazyregexp.New(`^[A-Za-z0-9_:.-]+$`)

// join adds name to a key path, in quotes where it would be misread.
func join(path, name string) string {
	switch {
	case !named.MatchString(name):
		return path + fmt.Sprintf("[%+q]", name)
	case path == "":
		return name
	}
	return path + "." + name
}
