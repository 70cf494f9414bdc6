package main

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// A problem is one fault in the file.
type problem struct {
	at   int // offset
	key  string
	text string
}

var hujsonPlace = regexp.MustCompile(`^hujson: line (\d+), column (\d+): `)

// syntax says that the source is no JSON. The parser quotes what it stumbled
// over, which may be half a secret: that is left out.
func (d *decoder) syntax(err error) {
	d.broken = hujsonPlace.ReplaceAllString(err.Error(), "$1:$2: ")
	for what, plain := range map[string]string{
		"invalid literal": `not a value: text stands in "quotes", and \ and line ends in it are written \\ and \n`,
		"unexpected EOF":  "the file ends too early: something is missing, such as a } or ]",
	} {
		if place, _, ok := strings.Cut(d.broken, what); ok {
			d.broken = place[:strings.Index(place, ": ")+2] + plain
		}
	}
}

var kinds = map[hujson.Kind]string{
	'n': "null", 't': "true", 'f': "false", '"': "text", '0': "a number", '{': "an object", '[': "a list",
}

// wrong notes a value of the wrong type. It does not show the value.
func (d *decoder) wrong(v hujson.Value, path, want string) {
	d.fail(v.StartOffset, path, "is "+kinds[v.Value.Kind()]+", must be "+want)
}

func (d *decoder) unknown(at int, path, name string, fields map[string]reflect.StructField) {
	var allowed []string
	for n := range fields {
		allowed = append(allowed, n)
	}
	slices.Sort(allowed)
	d.fail(at, join(path, name), "unknown key; allowed: "+cmp.Or(strings.Join(allowed, ", "), "none"))
}

func (d *decoder) fail(at int, key, text string) {
	d.problems = append(d.problems, problem{at, key, text})
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
		if p.key != "" {
			text = p.key + ": " + text
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

var simple = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
var named = regexp.MustCompile(`^[A-Za-z0-9_:.-]+$`)

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
