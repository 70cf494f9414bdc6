package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

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
	broken   string // where and why the source is no JSON
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
	d.src = bytes.TrimPrefix(d.src, []byte("\ufeff"))
	if d.broken = d.encodingFault(); d.broken != "" {
		return false
	}
	root, err := hujson.Parse(d.src)
	if err != nil {
		d.syntax(err)
		return false
	}
	d.value(root, reflect.ValueOf(v).Elem(), "", false)
	return true
}

// value puts v into out.
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
		if out.IsNil() {
			out.Set(reflect.New(out.Type().Elem()))
		}
		d.value(v, out.Elem(), path, plain)
	case reflect.Struct:
		d.object(v, out, path)
	case reflect.Map:
		d.table(v, out, path)
	case reflect.Slice:
		d.list(v, out, path)
	case reflect.String:
		if s, ok := d.text(v, path, plain, out.Type() == reflect.TypeFor[Secret]()); ok {
			out.SetString(s)
		}
	default:
		d.scalar(v, out, path)
	}
}

func (d *decoder) object(v hujson.Value, out reflect.Value, path string) {
	fields := map[string]reflect.StructField{}
	for _, f := range reflect.VisibleFields(out.Type()) {
		if name := f.Tag.Get("json"); name != "" && name != "-" {
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

// table reads an object of any keys. What has a value already keeps what it is not given.
func (d *decoder) table(v hujson.Value, out reflect.Value, path string) {
	if out.IsNil() {
		out.Set(reflect.MakeMap(out.Type()))
	}
	for name, val := range d.members(v, path) {
		elem := reflect.New(out.Type().Elem()).Elem()
		if was := out.MapIndex(reflect.ValueOf(name)); was.IsValid() {
			elem.Set(was)
		}
		d.value(val.Value, elem, join(path, name), false)
		if elem.Kind() == reflect.Pointer && elem.IsNil() {
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
	*out = Channels{Telegram: map[string]*Telegram{}, Discord: map[string]*Discord{}}
	for name, val := range d.members(v, path) {
		key := join(path, name)
		kind, label, labelled := strings.Cut(name, ":")
		switch {
		case labelled && (label == "" || !simple.MatchString(label)):
			d.fail(val.at, key, `the label after ":" is made of letters, digits, - and _`)
		case kind == "telegram":
			out.Telegram[name] = &Telegram{Bot: Bot{Groups: GroupsMention, APIURL: "https://api.telegram.org", Reactions: true}, Rate: 30}
			d.value(val.Value, reflect.ValueOf(out.Telegram[name]).Elem(), key, false)
		case kind == "discord":
			out.Discord[name] = &Discord{Bot: Bot{Groups: GroupsMention, APIURL: "https://discord.com/api/v9", Reactions: true}}
			d.value(val.Value, reflect.ValueOf(out.Discord[name]).Elem(), key, false)
		case name == "console":
			d.value(val.Value, reflect.ValueOf(&out.Console).Elem(), key, false)
		case name == "web":
			d.value(val.Value, reflect.ValueOf(&out.Web).Elem(), key, false)
		default:
			d.fail(val.at, key, "no channel of this type; allowed: console, web, telegram, discord, and telegram:LABEL or discord:LABEL")
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

var wanted = map[reflect.Kind]string{reflect.Bool: "true or false", reflect.Int: "a whole number", reflect.Float64: "a number"}

func (d *decoder) scalar(v hujson.Value, out reflect.Value, path string) {
	if out.Type() == reflect.TypeFor[time.Duration]() {
		d.duration(v, out, path)
		return
	}
	lit, _ := v.Value.(hujson.Literal)
	if err := json.Unmarshal(lit, out.Addr().Interface()); err != nil || v.Value.Kind() == 'n' {
		d.wrong(v, path, wanted[out.Kind()])
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

// An Environ is the environment as the process found it. It is kept, so that
// a reload can read the variables that keep has taken out of the process.
type Environ map[string]string

func NewEnviron(vars []string) Environ {
	e := Environ{}
	for _, v := range vars {
		if name, val, ok := strings.Cut(v, "="); ok {
			e[name] = val
		}
	}
	return e
}

// Lookup returns a variable. An empty one counts as unset.
func (e Environ) Lookup(name string) (string, bool) {
	v := e[name]
	return v, v != ""
}

var placeholder = regexp.MustCompile(`\$?\$\{[^}]*\}?`)
var variable = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)

// expand puts the value of the environment variable NAME for each ${NAME} in s,
// and returns the names used. $${ stands for ${ itself.
func expand(s string, lookup func(string) (string, bool)) (out string, vars []string, err error) {
	var errs []error
	out = placeholder.ReplaceAllStringFunc(s, func(p string) string {
		if strings.HasPrefix(p, "$$") {
			return p[1:]
		}
		m := variable.FindStringSubmatch(p)
		if m == nil {
			errs = append(errs, errors.New("has a ${ that is not ${NAME}; write $${ for a plain ${"))
			return p
		}
		v, ok := lookup(m[1])
		if !ok {
			errs = append(errs, fmt.Errorf("the environment variable %s is not set", m[1]))
			return p
		}
		vars = append(vars, m[1])
		return v
	})
	return out, vars, errors.Join(errs...)
}
