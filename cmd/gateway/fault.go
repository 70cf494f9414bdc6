package main

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
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

// syntax notes that the source is no JSON. The parser quotes what it stumbled
// over, which may be half a secret: that is left out.
func (d *decoder) syntax(err error) {
	text, at := err.Error(), 0
	if m := hujsonPlace.FindStringSubmatch(text); m != nil {
		line, _ := strconv.Atoi(m[1])
		col, _ := strconv.Atoi(m[2])
		at, text = d.offset(line, col), text[len(m[0]):]
	}
	if strings.Contains(text, "invalid literal") {
		text = `not a value: text stands in "quotes", and \ and line ends in it are written \\ and \n`
	}
	d.problems = append(d.problems, problem{at, "", text})
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
	d.fail(at, join(path, name), "unknown key"+hint(name, allowed)+"; allowed: "+orNone(allowed))
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

// offset is place backwards, with the column in bytes.
func (d *decoder) offset(line, col int) int {
	at := 0
	for ; line > 1; line-- {
		at += strings.IndexByte(string(d.src[at:]), '\n') + 1
	}
	return min(at+col-1, len(d.src))
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

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// hint asks whether name was meant to be one of names.
func hint(name string, names []string) string {
	best, least := "", 1+max(1, (len(name)+1)/3)
	for _, n := range names {
		if d := distance(strings.ToLower(name), strings.ToLower(n)); d < least {
			best, least = n, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// distance counts the bytes to insert, delete or change to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
