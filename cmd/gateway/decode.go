package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// A decoder puts JSON with comments into Go values. Unlike encoding/json it
// goes on after a fault, knows where each value stands, expands ${NAME}, and
// tells keys apart by case.
type decoder struct {
	src      []byte
	lookup   func(string) (string, bool)
	at       map[string]int      // key path -> offset of its value
	private  map[string]bool     // key paths whose value no error may show
	secrets  map[string]struct{} // what must never be shown
	vars     map[string]struct{} // environment variables that hold secrets
	problems []problem
}

// A problem is one fault in the file.
type problem struct {
	at   int // offset
	key  string
	text string
}

func newDecoder(src []byte, lookup func(string) (string, bool)) *decoder {
	return &decoder{
		src: src, lookup: lookup, at: map[string]int{}, private: map[string]bool{},
		secrets: map[string]struct{}{}, vars: map[string]struct{}{},
	}
}

// decode reads the whole source into v, a pointer to a struct, and says
// whether the source is JSON at all.
func (d *decoder) decode(v any) bool {
	root, err := hujson.Parse(d.src)
	if err != nil {
		d.syntax(err)
		return false
	}
	d.value(root, reflect.ValueOf(v).Elem(), "", false)
	return true
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

// value puts v into out. Plain values are no secrets even when they come from
// the environment.
func (d *decoder) value(v hujson.Value, out reflect.Value, path string, plain bool) {
	d.at[path] = v.StartOffset
	if c, ok := out.Addr().Interface().(*Channels); ok {
		d.channels(v, c, path)
		return
	}
	switch out.Kind() {
	case reflect.Pointer:
		if v.Value.Kind() == 'n' {
			return
		}
		out.Set(reflect.New(out.Type().Elem()))
		d.value(v, out.Elem(), path, plain)
	case reflect.Struct:
		d.object(v, out, path)
	case reflect.Map:
		d.table(v, out, path)
	case reflect.Slice:
		d.list(v, out, path)
	case reflect.String:
		if s, ok := d.text(v, path, plain, out.Type() == reflect.TypeFor[secret]()); ok {
			out.SetString(s)
		}
	default:
		d.scalar(v, out, path)
	}
}

func (d *decoder) object(v hujson.Value, out reflect.Value, path string) {
	fields := map[string]reflect.StructField{}
	for f := range out.Type().Fields() {
		if name := f.Tag.Get("json"); name != "" {
			fields[name] = f
		}
	}
	for name, val := range d.members(v, path) {
		f, ok := fields[name]
		if !ok {
			d.unknown(val.at, path, name, fields)
			continue
		}
		d.value(val.Value, out.FieldByIndex(f.Index), join(path, name), f.Tag.Get("plain") != "")
	}
}

func (d *decoder) table(v hujson.Value, out reflect.Value, path string) {
	out.Set(reflect.MakeMap(out.Type()))
	for name, val := range d.members(v, path) {
		elem := reflect.New(out.Type().Elem()).Elem()
		d.value(val.Value, elem, join(path, name), false)
		if elem.IsNil() {
			d.wrong(val.Value, join(path, name), "an object { … }")
			continue
		}
		out.SetMapIndex(reflect.ValueOf(name), elem)
	}
}

func (d *decoder) list(v hujson.Value, out reflect.Value, path string) {
	arr, ok := v.Value.(*hujson.Array)
	if !ok {
		d.wrong(v, path, "a list [ … ]")
		return
	}
	out.Set(reflect.MakeSlice(out.Type(), len(arr.Elements), len(arr.Elements)))
	for i, e := range arr.Elements {
		d.value(e, out.Index(i), fmt.Sprintf("%s[%d]", path, i), false)
	}
}

// channels reads an object whose keys are "type" or "type:label".
func (d *decoder) channels(v hujson.Value, out *Channels, path string) {
	*out = Channels{Telegram: map[string]*Telegram{}}
	for name, val := range d.members(v, path) {
		key := join(path, name)
		kind, label, labelled := strings.Cut(name, ":")
		switch {
		case labelled && (label == "" || !simple.MatchString(label)):
			d.fail(val.at, key, `the label after ":" is made of letters, digits, - and _`)
		case kind == "telegram":
			t := &Telegram{}
			d.value(val.Value, reflect.ValueOf(t).Elem(), key, false)
			out.Telegram[name] = t
		case name == "console":
			d.value(val.Value, reflect.ValueOf(&out.Console).Elem(), key, false)
		default:
			d.fail(val.at, key, "no channel of this type"+hint(name, []string{"console", "telegram"})+"; allowed: console, telegram, telegram:LABEL")
		}
	}
}

// A member is the value of a key and the offset of the key.
type member struct {
	hujson.Value
	at int
}

// members yields the members of an object, in order, each key once.
func (d *decoder) members(v hujson.Value, path string) func(func(string, member) bool) {
	return func(yield func(string, member) bool) {
		obj, ok := v.Value.(*hujson.Object)
		if !ok {
			d.wrong(v, path, "an object { … }")
			return
		}
		seen := map[string]bool{}
		for _, m := range obj.Members {
			name, at := m.Name.Value.(hujson.Literal).String(), m.Name.StartOffset
			if seen[name] {
				d.fail(at, join(path, name), "is there twice; keep one")
				continue
			}
			seen[name] = true
			if !yield(name, member{m.Value, at}) {
				return
			}
		}
	}
}

// text reads a string and expands it.
func (d *decoder) text(v hujson.Value, path string, plain, hidden bool) (string, bool) {
	if v.Value.Kind() != '"' {
		d.wrong(v, path, `text in "quotes"`)
		return "", false
	}
	s, vars, err := expand(v.Value.(hujson.Literal).String(), d.lookup)
	for _, name := range vars {
		if val, _ := d.lookup(name); !plain {
			d.hide(name, val)
		}
	}
	d.private[path] = hidden || len(vars) > 0
	if err != nil {
		d.fail(v.StartOffset, path, strings.ReplaceAll(err.Error(), "\n", "; "))
		return "", false
	}
	if hidden && s != "" {
		d.secrets[s] = struct{}{}
	}
	return s, true
}

// hide notes that the environment variable name holds a secret.
func (d *decoder) hide(name, val string) {
	d.secrets[val] = struct{}{}
	d.vars[name] = struct{}{}
}

func (d *decoder) scalar(v hujson.Value, out reflect.Value, path string) {
	lit, _ := v.Value.(hujson.Literal)
	switch {
	case out.Type() == reflect.TypeFor[time.Duration]():
		d.duration(v, out, path)
	case out.Kind() == reflect.Bool:
		if err := json.Unmarshal(lit, out.Addr().Interface()); err != nil || v.Value.Kind() == 'n' {
			d.wrong(v, path, "true or false")
		}
	case out.Kind() == reflect.Int:
		if n, err := strconv.Atoi(string(lit)); err != nil {
			d.wrong(v, path, "a whole number")
		} else {
			out.SetInt(int64(n))
		}
	case out.Kind() == reflect.Float64:
		if f, err := strconv.ParseFloat(string(lit), 64); err != nil || v.Value.Kind() != '0' {
			d.wrong(v, path, "a number")
		} else {
			out.SetFloat(f)
		}
	}
}

func (d *decoder) duration(v hujson.Value, out reflect.Value, path string) {
	const want = `a length of time such as "90s", "15m" or "24h"`
	if v.Value.Kind() != '"' {
		d.wrong(v, path, want)
		return
	}
	s, ok := d.text(v, path, false, false)
	if !ok {
		return
	}
	n, err := time.ParseDuration(s)
	if err != nil {
		d.fail(v.StartOffset, path, "must be "+want)
		return
	}
	out.SetInt(int64(n))
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
