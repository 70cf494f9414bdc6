package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"parley/lazyregexp"
	"parley/secrets"
)

// A decoder puts JSON with comments into Go values. Unlike encoding/json it
// goes on after a fault, knows where each value stands, expands ${NAME}, and
// tells keys apart by case.
type decoder struct {
	src      []byte
	drivers  Drivers
	lookup   func(string) (string, bool)
	at       map[string]int      // key path -> offset of its value
	origins  map[string]string   // key path -> what it was made from if it is not in the file
	private  map[string]bool     // key paths whose value no error may show
	secrets  map[string]struct{} // what must never be shown
	vars     map[string]struct{} // environment variables that hold secrets
	unset    []string            // environment variables that are not set
	texts    map[int]bool        // offset of each text of the file -> the page masks it
	removed  []string            // warnings about keys of an earlier release
	problems []problem
	broken   string // where and why the source is no JSON
}

func newDecoder(src []byte, s Source) *decoder {
	return &decoder{
		src: src, drivers: s.Drivers, lookup: s.Environ.Lookup, at: map[string]int{}, origins: map[string]string{},
		private: map[string]bool{}, secrets: map[string]struct{}{}, vars: map[string]struct{}{},
		texts: map[int]bool{},
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
	d.value(root, reflect.ValueOf(v).Elem(), "", "")
	return true
}

// decodeText reads text that is not in the source, but JSON, into v, a pointer.
func (d *decoder) decodeText(text, path string, v any) {
	root, err := hujson.Parse([]byte(text))
	if err != nil {
		panic(err) // in the text of this package or of a tag
	}
	places, texts := d.at, d.texts
	d.at, d.texts = map[string]int{}, map[int]bool{}
	d.value(root, reflect.ValueOf(v).Elem(), path, "")
	d.at, d.texts = places, texts
}

// A field is a key that a struct has.
type field struct {
	name  string
	value reflect.Value
	tag   reflect.StructTag
}

// structs returns the struct v and those that stand inline in it.
func structs(v reflect.Value) []reflect.Value {
	all := []reflect.Value{v}
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("inline") == "" {
			continue
		}
		part := v.Field(i)
		for part.Kind() == reflect.Interface || part.Kind() == reflect.Pointer {
			part = part.Elem()
		}
		if part.IsValid() {
			all = append(all, structs(part)...)
		}
	}
	return all
}

// fields returns the keys of the struct v. Two with one name are given the same value.
func fields(v reflect.Value) (all []field) {
	for _, s := range structs(v) {
		for i := range s.NumField() {
			tag := s.Type().Field(i).Tag
			if name := tag.Get("json"); name != "" && name != "-" {
				all = append(all, field{name, s.Field(i), tag})
			}
		}
	}
	return all
}

// setDefaults gives the fields of the struct that v points to their defaults.
func (d *decoder) setDefaults(v any) {
	for _, f := range fields(reflect.ValueOf(v).Elem()) {
		out := f.value.Addr().Interface()
		if f.value.Kind() == reflect.Struct {
			d.setDefaults(out)
		}
		text, ok := f.tag.Lookup("default")
		if _, isTime := out.(*time.Duration); isTime || f.value.Kind() == reflect.String {
			text = strconv.Quote(text)
		}
		if ok {
			d.decodeText(text, "", out)
		}
	}
}

// value puts v into out, a field with that tag.
func (d *decoder) value(v hujson.Value, out reflect.Value, path string, tag reflect.StructTag) {
	d.at[path] = v.StartOffset
	switch out.Kind() {
	case reflect.Pointer:
		if v.Value.Kind() == 'n' {
			return
		}
		if out.IsNil() {
			out.Set(reflect.New(out.Type().Elem()))
			if out.Elem().Kind() == reflect.Struct {
				d.setDefaults(out.Interface())
			}
		}
		d.value(v, out.Elem(), path, tag)
	case reflect.Struct:
		d.object(v, out, path, tag)
	case reflect.Map:
		d.table(v, out, path, tag)
	case reflect.Slice:
		d.list(v, out, path, tag)
	case reflect.String:
		isAddress := tag.Get("secret") == "address"
		hidden := tag.Get("secret") != "" && !isAddress || out.Type() == reflect.TypeFor[Secret]()
		if isAddress && v.Value.Kind() == '"' {
			d.texts[v.StartOffset] = inAddress(v.Value.(hujson.Literal).String())
		}
		if s, ok := d.text(v, path, tag.Get("plain") != "", hidden); ok {
			out.SetString(s)
		}
	default:
		if tag.Get("seconds") != "" && v.Value.Kind() == '0' {
			d.seconds(v, out, path)
			return
		}
		d.scalar(v, out, path, tag)
	}
}

// removedKeys are the keys of an earlier release that a file may still have, with
// why they have no effect any more.
var removedKeys = map[string]string{
	"tools.restrictToWorkspace": "the agent never leaves its workspace",
}

func (d *decoder) object(v hujson.Value, out reflect.Value, path string, tag reflect.StructTag) {
	known := d.choose(v, out.Addr().Interface())
	keys := map[string][]field{}
	other := map[string]string{}     // second names of keys
	negation := map[string]string{}  // names that say the opposite of a key
	negated := map[string]negative{} // those of them that v has, by key
	for _, f := range fields(out) {
		keys[f.name] = append(keys[f.name], f)
		if name, has := f.tag.Lookup("also"); has {
			other[name] = f.name
		}
		if name, has := f.tag.Lookup("not"); has {
			negation[name] = f.name
		}
	}
	for name, val := range d.members(v, path) {
		if own, has := other[name]; has && !d.isSet(join(path, own)) {
			name = own
		}
		if own, has := negation[name]; has {
			negated[own] = d.negative(val, join(path, name))
			continue
		}
		if keys[name] == nil && tag.Get("unknown") != "" {
			d.ignore(val.at, path, name, keys)
			continue
		}
		if why, removed := removedKeys[join(path, name)]; removed {
			key := join(path, name)
			d.removed = append(d.removed, key+" has no effect any more, because "+why+": remove it from the config")
			continue
		}
		if keys[name] == nil && known {
			d.unknown(val.at, path, name, keys)
		}
		for _, f := range keys[name] {
			d.value(val.Value, f.value, join(path, name), f.tag)
		}
	}
	for own, n := range negated {
		f := keys[own][0]
		if d.isSet(join(path, own)) && f.value.Bool() == n.value {
			d.fail(n.at, n.path, "contradicts "+own+"; keep one of them")
		}
		f.value.SetBool(!n.value)
	}
}

// A negative is the value of a key that says the opposite of another.
type negative struct {
	at    int
	path  string
	value bool
}

func (d *decoder) negative(val member, path string) negative {
	n := negative{at: val.at, path: path}
	d.value(val.Value, reflect.ValueOf(&n.value).Elem(), path, "")
	return n
}

// table reads an object of any keys. What has a value already keeps what it is not given.
func (d *decoder) table(v hujson.Value, out reflect.Value, path string, tag reflect.StructTag) {
	if all, ok := out.Addr().Interface().(*map[string]*Channel); ok {
		*all = d.channels(v, path)
		return
	}
	if out.IsNil() {
		out.Set(reflect.MakeMap(out.Type()))
	}
	for name, val := range d.members(v, path) {
		elem := reflect.New(out.Type().Elem()).Elem()
		if was := out.MapIndex(reflect.ValueOf(name)); was.IsValid() {
			elem.Set(was)
		}
		d.value(val.Value, elem, join(path, name), memberTag(tag, name))
		if tag.Get("secret") != "" && val.Value.Value.Kind() == '"' {
			d.private[join(path, name)] = true
			d.texts[val.Value.StartOffset] = true // also what a log may show of it by its name
		}
		if elem.Kind() == reflect.Pointer && elem.IsNil() {
			d.wrong(val.Value, join(path, name), "an object { … }")
			continue
		}
		out.SetMapIndex(reflect.ValueOf(name), elem)
	}
}

// memberTag returns the tag of a value in a table with that tag.
func memberTag(tag reflect.StructTag, name string) reflect.StructTag {
	if tag.Get("secret") == "byName" && !secrets.IsSecretName(name) {
		return ""
	}
	return tag
}

// isSet reports whether the file has a value at path.
func (d *decoder) isSet(path string) bool {
	_, set := d.at[path]
	return set
}

// ignore notes that a key has no effect, in an object that other programs have keys in, too. A key that
// differs from one of keys only in how it is written is a fault.
func (d *decoder) ignore(at int, path, name string, keys map[string][]field) {
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
	for known := range keys {
		if plain(known) == plain(name) {
			d.fail(at, join(path, name), "unknown key; it is written "+known)
			return
		}
	}
	if !slices.Contains([]string{"comment", "description", "//"}, name) {
		d.removed = append(d.removed, join(path, name)+" is not a key of Parley and has no effect")
	}
}

func (d *decoder) list(v hujson.Value, out reflect.Value, path string, tag reflect.StructTag) {
	arr, ok := v.Value.(*hujson.Array)
	if !ok {
		d.wrong(v, path, "a list [ … ]")
		return
	}
	out.Set(reflect.MakeSlice(out.Type(), len(arr.Elements), len(arr.Elements)))
	for i, e := range arr.Elements {
		d.value(e, out.Index(i), fmt.Sprintf("%s[%d]", path, i), "")
	}
	if tag.Get("secret") == "arguments" {
		d.maskArguments(arr)
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
			name := m.Name.Value.(hujson.Literal).String()
			at := m.Name.StartOffset
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
	d.texts[v.StartOffset] = d.texts[v.StartOffset] || hidden
	s, vars, err := expand(v.Value.(hujson.Literal).String(), func(name string) (string, bool) {
		val, ok := d.lookup(name)
		if !ok && !slices.Contains(d.unset, name) {
			d.unset = append(d.unset, name)
		}
		return val, ok
	})
	for _, name := range vars {
		if val, _ := d.lookup(name); !plain {
			d.secrets[val] = struct{}{}
			d.vars[name] = struct{}{}
		}
	}
	d.private[path] = hidden || len(vars) > 0 || d.texts[v.StartOffset] || secrets.InText(s)
	if err != nil {
		d.fail(v.StartOffset, path, strings.ReplaceAll(err.Error(), "\n", "; "))
		return "", false
	}
	if hidden && s != "" {
		d.secrets[s] = struct{}{}
	}
	for _, value := range secrets.Parameters(s) {
		d.secrets[value] = struct{}{}
	}
	return s, true
}

// expected says for people what a value of that kind is.
func expected(kind reflect.Kind) string {
	switch kind {
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

func (d *decoder) scalar(v hujson.Value, out reflect.Value, path string, tag reflect.StructTag) {
	if out.Type() == reflect.TypeFor[time.Duration]() {
		d.duration(v, out, path, tag)
		return
	}
	lit, _ := v.Value.(hujson.Literal)
	if err := json.Unmarshal(lit, out.Addr().Interface()); err != nil || v.Value.Kind() == 'n' {
		d.wrong(v, path, expected(out.Kind()))
	}
}

// seconds reads a length of time that is a number of seconds.
func (d *decoder) seconds(v hujson.Value, out reflect.Value, path string) {
	lit, _ := v.Value.(hujson.Literal)
	n := lit.Float()
	if math.Abs(n) > 1e9 {
		d.fail(v.StartOffset, path, "must be fewer seconds")
		return
	}
	out.SetInt(int64(n * float64(time.Second)))
}

func (d *decoder) duration(v hujson.Value, out reflect.Value, path string, tag reflect.StructTag) {
	want := `a length of time such as "90s", "15m", "24h" or "30d"` + orZero(out, tag)
	if v.Value.Kind() != '"' {
		d.wrong(v, path, want)
		return
	}
	s, ok := d.text(v, path, false, false)
	if !ok {
		return
	}
	n, err := parseDuration(s)
	if err != nil {
		d.fail(v.StartOffset, path, "must be "+want)
		return
	}
	out.SetInt(int64(n))
}

// orZero says that a length of time with that tag may be "0s", too, whatever its limits are.
func orZero(v reflect.Value, tag reflect.StructTag) string {
	if tag.Get("optional") == "" || v.Type() != reflect.TypeFor[time.Duration]() {
		return ""
	}
	return `, or "0s"`
}

// parseDuration is time.ParseDuration that also knows whole days of 24 hours: "30d".
func parseDuration(s string) (time.Duration, error) {
	days, inDays := strings.CutSuffix(s, "d")
	if !inDays {
		return time.ParseDuration(s)
	}
	n, err := strconv.ParseUint(days, 10, 16)
	return time.Duration(n) * 24 * time.Hour, err
}

var placeholder = lazyregexp.New(`\$?\$\{[^}]*\}?`)
var variable = lazyregexp.New(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)

// notSet begins the fault of a text that names a variable which is not set.
const notSet = "the environment variable "

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
			errs = append(errs, fmt.Errorf(notSet+"%s is not set", m[1]))
			return p
		}
		vars = append(vars, m[1])
		return v
	})
	return out, vars, errors.Join(errs...)
}
