package config

import (
	"encoding/json"
	"slices"
	"strings"

	"parley/lazyregexp"
)

// A Literal is a secret that stands in the text of a config itself, and not in the environment.
type Literal struct {
	Start, End int    // offsets of the JSON text, with its quotes
	Value      string // what it says
}

var (
	// secretMember matches the name of a secret up to the quote with which its value begins, in comments, too.
	secretMember = lazyregexp.New(`(?i)"[^"\\\n]*(?:key|token|secret|passw|auth|credential|cookie)[^"\\\n]*"\s*:\s*"`)
	// login matches a user name or a password in an address.
	login = lazyregexp.New(`://[^/?#\s]+@`)
	// scheme matches what stands around the reference to a secret in a header.
	scheme = lazyregexp.New(`(?i)^\s*(bearer|basic|token|bot|apikey)?\s*$`)
)

const minKnownSecret = 8 // bytes of a secret that is one wherever it stands

// Literals returns the secrets that stand in src, a text of s.File, in order: what the config has as secrets, and
// logins in addresses; and elsewhere, as in comments, what has the name of a secret. Those are all that can be told of
// a text that is no JSON, and where a secret stands that is known already.
func Literals(s Source, src []byte, known []string) (all []Literal) {
	d := newDecoder(src, s)
	c := &Config{}
	d.setDefaults(c)
	isJSON := d.decode(c)
	text := string(d.src)
	add := func(start int, hidden bool) {
		l := Literal{Start: start, End: endOfText(text, start)}
		if err := json.Unmarshal([]byte(text[l.Start:l.End]), &l.Value); err != nil {
			l.Value = strings.Trim(text[l.Start:l.End], `"`)
		}
		hidden = hidden && !scheme.MatchString(placeholder.ReplaceAllString(l.Value, ""))
		if hidden || login.MatchString(l.Value) {
			all = append(all, l)
		}
	}
	for start, hidden := range d.texts {
		add(start, hidden)
	}
	for _, m := range secretMember.FindAllStringIndex(text, -1) {
		if _, isKnown := d.texts[m[1]-1]; !isKnown {
			add(m[1]-1, true)
		}
	}
	for _, secret := range known {
		for at := 0; !isJSON && len(secret) >= minKnownSecret; at += len(secret) {
			next := strings.Index(text[at:], `"`+secret+`"`)
			if next < 0 {
				break
			}
			at += next
			add(at, true)
		}
	}
	return inOrder(all, len(src)-len(text))
}

// inOrder returns all by where they stand, each once, after the bytes that mark the order of bytes.
func inOrder(all []Literal, mark int) (sorted []Literal) {
	slices.SortFunc(all, func(a, b Literal) int { return a.Start - b.Start })
	end := 0
	for _, l := range all {
		if l.Start < end {
			continue
		}
		end = l.End
		sorted = append(sorted, Literal{l.Start + mark, l.End + mark, l.Value})
	}
	return sorted
}

// endOfText returns where the JSON text ends that begins at text[start:], or the line if it does not end.
func endOfText(text string, start int) int {
	for i := start + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		case '\n', '\r':
			return i
		}
	}
	return len(text)
}
