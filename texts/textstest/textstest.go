// Package textstest makes a language for tests.
package textstest

import (
	"reflect"
	"regexp"
	"strings"

	"parley/texts"
)

// Wide is a language that says what English says with full-width letters. What
// people are told in other letters does not come from the catalogue.
func Wide() *texts.Catalogue {
	c := texts.English()
	widen(reflect.ValueOf(c).Elem())
	return c
}

func widen(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(wide(v.String()))
	case reflect.Func:
		narrow := v.Interface().(texts.Count)
		v.Set(reflect.ValueOf(texts.Count(func(n int) texts.Format { return texts.Format(wide(string(narrow(n)))) })))
	case reflect.Struct:
		for i := range v.NumField() {
			widen(v.Field(i))
		}
	default:
		panic("a text that is a " + v.Kind().String())
	}
}

var verb = regexp.MustCompile(`%[-+#0]*(\[\d+\])?[\d.]*[a-z]`)

// wide widens the letters of s that are in no verb.
func wide(s string) string {
	var b strings.Builder
	for s != "" {
		at := verb.FindStringIndex(s)
		if at == nil {
			at = []int{len(s), len(s)}
		}
		b.WriteString(strings.Map(func(r rune) rune {
			if letter(r) {
				return r + 0xFEE0
			}
			return r
		}, s[:at[0]]))
		b.WriteString(s[at[0]:at[1]])
		s = s[at[1]:]
	}
	return b.String()
}

func letter(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }

// Foreign returns the words of text that are in no full-width letters, but for
// those that data matches: what is not in the catalogue of [Wide].
func Foreign(text string, data *regexp.Regexp) string {
	text = data.ReplaceAllString(text, " ")
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return !letter(r) }), " ")
}
