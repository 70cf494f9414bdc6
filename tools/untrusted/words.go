package untrusted

import (
	"strings"
	"unicode"
)

// plainJSON returns text, which may be JSON, with its escapes decoded.
func plainJSON(text string) string { return jsonEscapes.Replace(text) }

var jsonEscapes = strings.NewReplacer(
	`\u0026`, "&", `\u003c`, "<", `\u003e`, ">",
	`\n`, "\n", `\r`, "\n", `\t`, "\t",
	`\"`, `"`, `\/`, "/",
)

// tokensOf returns the words of texts.
func tokensOf(texts ...string) map[string]bool {
	all := map[string]bool{}
	for _, text := range texts {
		for _, token := range split(text) {
			all[token] = true
		}
	}
	return all
}

// split returns the words of text in lower case. A word is a run of letters and
// digits or, in a script without spaces, each pair of adjacent letters.
func split(text string) (all []string) {
	for _, word := range rawWords(text) {
		runes := []rune(strings.ToLower(word))
		if !dense(word) || len(runes) < 2 {
			all = append(all, string(runes))
			continue
		}
		for i := range len(runes) - 1 {
			all = append(all, string(runes[i:i+2]))
		}
	}
	return all
}

// rawWords returns the words of text as they are written. A word ends where a
// script without spaces meets another script.
func rawWords(text string) (all []string) {
	start := -1
	wasDense := false
	for i, r := range text {
		ofWord := unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
		if start >= 0 && (!ofWord || isDense(r) != wasDense) {
			all = append(all, text[start:i])
			start = -1
		}
		if ofWord && start < 0 {
			start = i
			wasDense = isDense(r)
		}
	}
	if start >= 0 {
		all = append(all, text[start:])
	}
	return all
}

// isDense reports whether r belongs to a script without spaces between words.
func isDense(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

// dense reports whether word has a letter of a script without spaces.
func dense(word string) bool { return strings.ContainsFunc(word, isDense) }

// isYear reports whether token is a year of the last century or this one.
func isYear(token string) bool {
	if len(token) != len("2026") || strings.Trim(token, "0123456789") != "" {
		return false
	}
	return strings.HasPrefix(token, "19") || strings.HasPrefix(token, "20")
}
