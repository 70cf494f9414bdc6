package config

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"parley/lazyregexp"
	"parley/secrets"
)

// A Literal is a secret that stands in the text of a config itself, and not in the environment.
type Literal struct {
	Start, End int    // offsets of the JSON text, with its quotes
	Value      string // what it says
}

var (
	// quotedName matches a name up to the quote with which its value begins, in comments, too.
	quotedName = lazyregexp.New(`"([^"\\\n]*)"\s*:\s*"`)
	// variables matches the beginning of what has a value for each variable or header.
	variables = lazyregexp.New(`"(?:env|headers)"\s*:\s*\{`)
	// arguments matches the beginning of the arguments of a program.
	arguments = lazyregexp.New(`"args"\s*:\s*\[`)
	// scheme matches what stands around the reference to a secret in a header.
	scheme = lazyregexp.New(`(?i)^\s*(bearer|basic|token|bot|apikey)?\s*$`)
)

const minKnownSecret = 8 // bytes of a secret that is one wherever it stands

// Literals returns the secrets that stand in src, a text of s.File, in order: what the config has as secrets, the
// values of variables and headers, arguments that have secrets, and addresses with a login or a key; and elsewhere,
// as in comments, what has the name of a secret. Those are all that can be told of a text that is no JSON, and where a
// secret stands that is known already.
func Literals(s Source, src []byte, known []string) (all []Literal) {
	d := newDecoder(src, s)
	c := &Config{}
	d.setDefaults(c)
	isJSON := d.decode(c)
	text := string(d.src)
	for start, hidden := range d.texts {
		l := literalAt(text, start)
		hidden = hidden && !scheme.MatchString(withoutReferences(l.Value))
		if hidden || secrets.InText(withoutReferences(l.Value)) {
			all = append(all, l)
		}
	}
	for _, l := range unread(text) {
		if _, isKnown := d.texts[l.Start]; !isKnown {
			all = append(all, l)
		}
	}
	for _, secret := range known {
		for at := 0; !isJSON && len(secret) >= minKnownSecret; at += len(secret) {
			next := strings.Index(text[at:], `"`+secret+`"`)
			if next < 0 {
				break
			}
			at += next
			all = append(all, literalAt(text, at))
		}
	}
	return inOrder(all, len(src)-len(text))
}

// unread returns the secrets of a text that may be a comment, or broken, by what stands before them.
func unread(text string) (all []Literal) {
	add := func(l Literal, hidden bool) {
		value := withoutReferences(l.Value)
		if hidden && !scheme.MatchString(value) || secrets.InText(value) {
			all = append(all, l)
		}
	}
	for _, m := range quotedName.FindAllStringSubmatchIndex(text, -1) {
		l, name := literalAt(text, m[1]-1), text[m[2]:m[3]]
		add(l, secrets.IsName(name) || name == "url" && inAddress(l.Value))
	}
	for _, m := range variables.FindAllStringIndex(text, -1) {
		for _, l := range literalsUntil(text, m[1], '}') {
			isName := strings.HasPrefix(strings.TrimSpace(text[l.End:]), ":")
			add(l, !isName)
		}
	}
	for _, m := range arguments.FindAllStringIndex(text, -1) {
		list := literalsUntil(text, m[1], ']')
		var args []string
		for _, l := range list {
			args = append(args, l.Value)
		}
		for i, secret := range secretArguments(args) {
			add(list[i], secret)
		}
	}
	return all
}

// literalAt returns the JSON text that begins at text[start:].
func literalAt(text string, start int) Literal {
	l := Literal{Start: start, End: endOfText(text, start)}
	if err := json.Unmarshal([]byte(text[l.Start:l.End]), &l.Value); err != nil {
		l.Value = strings.Trim(text[l.Start:l.End], `"`)
	}
	return l
}

// literalsUntil returns the JSON texts between text[start:] and what ends them.
func literalsUntil(text string, start int, end byte) (all []Literal) {
	for i := start; i < len(text) && text[i] != end; i++ {
		if text[i] == '"' {
			l := literalAt(text, i)
			all = append(all, l)
			i = l.End - 1
		}
	}
	return all
}

// withoutReferences returns text without its references to variables.
func withoutReferences(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(p string) string {
		if variable.MatchString(p) {
			return ""
		}
		return p
	})
}

// secretArguments reports which arguments of a program have secrets in them. A reference to a variable is none.
func secretArguments(args []string) []bool {
	plain := make([]string, len(args))
	for i, arg := range args {
		plain[i] = withoutReferences(arg)
	}
	found := secrets.InArguments(plain)
	for i, arg := range plain {
		if arg == args[i] {
			continue
		}
		if pair, is := secrets.CutPair(arg); is {
			arg = pair
		}
		value := arg
		if at := strings.IndexAny(arg, "=:"); at >= 0 && !strings.Contains(arg, "://") {
			value = arg[at+1:]
		}
		if scheme.MatchString(value) { // all of the rest is references
			found[i] = false
		}
	}
	return found
}

// maskArguments notes which of the arguments of a program are never shown, and what of them no log may show.
func (d *decoder) maskArguments(args *hujson.Array) {
	texts := make([]string, len(args.Elements))
	for i, arg := range args.Elements {
		if arg.Value.Kind() == '"' {
			texts[i] = arg.Value.(hujson.Literal).String()
		}
	}
	for i, secret := range secretArguments(texts) {
		if secret {
			d.texts[args.Elements[i].StartOffset] = true
		}
	}
	for i, text := range texts { // what a reference stands for is known already
		texts[i] = withoutReferences(text)
	}
	for _, value := range secrets.Values(texts) {
		d.secrets[value] = struct{}{}
	}
}

// inAddress reports whether an address may have a secret in it. One with references is looked at as any text.
func inAddress(address string) bool {
	return withoutReferences(address) == address && secrets.InAddress(address)
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
