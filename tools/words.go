package tools

import (
	"strings"
	"unicode"
)

// plainJSON returns text without the marks that JSON puts before others.
func plainJSON(text string) string {
	return strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">", `\n`, "\n", `\r`, "\n", `\t`, "\t", `\"`, `"`, `\/`, "/").Replace(text)
}

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

// split returns the words of text in lower case: letters and digits between what
// is none; of scripts without spaces, each two letters that follow each other.
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

// rawWords returns the words of text as they are written; letters of scripts
// without spaces are apart from others.
func rawWords(text string) (all []string) {
	start, was := -1, false
	for i, r := range text {
		is := isDense(r)
		inWord := unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
		if start >= 0 && (!inWord || is != was) {
			all, start = append(all, text[start:i]), -1
		}
		if inWord && start < 0 {
			start, was = i, is
		}
	}
	if start >= 0 {
		all = append(all, text[start:])
	}
	return all
}

// isDense says whether r is of a script that puts no spaces between words.
func isDense(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

func dense(word string) bool { return strings.ContainsFunc(word, isDense) }

// isYear says whether token is one of the years that people talk about.
func isYear(token string) bool {
	return len(token) == 4 && (strings.HasPrefix(token, "19") || strings.HasPrefix(token, "20")) && strings.Trim(token, "0123456789") == ""
}
