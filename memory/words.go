package memory

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// words yields where the words of text begin and end: the letters and digits
// between what is none. Of scripts without spaces each letter is one, and each
// with the one before it.
func words(text string) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		word, letter := -1, -1 // where the one under way begins, and the letter before
		for i, r := range text {
			if isSpaced(r) || word >= 0 && unicode.IsMark(r) && !isDense(r) {
				if word < 0 {
					word, letter = i, -1
				}
				continue
			}
			if word >= 0 && !yield(word, i) {
				return
			}
			word = -1
			if !isDense(r) {
				letter = -1
				continue
			}
			end := i + utf8.RuneLen(r)
			if !yield(i, end) || letter >= 0 && !yield(letter, end) {
				return
			}
			letter = i
		}
		if word >= 0 {
			yield(word, len(text))
		}
	}
}

// isSpaced reports whether r is of a word in a script with spaces.
func isSpaced(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9'
	}
	return (unicode.IsLetter(r) || unicode.IsNumber(r)) && !isDense(r)
}

// isDense reports whether r is a letter of a script without spaces, or of one
// that puts so much into a word that its parts are looked for.
func isDense(r rune) bool {
	return r >= 0xE00 &&
		(r == 'ー' ||
			unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai,
				unicode.Lao, unicode.Khmer, unicode.Myanmar))
}

// fold returns word as it is compared, whatever its case.
func fold(word string) string {
	// By way of capital letters, as some of them have two small ones.
	return strings.Map(func(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }, word)
}

// wanted returns the words to look for in a search for text, sorted. Of scripts
// without spaces, single letters count if there are no two.
func wanted(text string) []string {
	var all, letters []string
	pairs := false
	for start, end := range words(text) {
		w := fold(text[start:end])
		switch r, size := utf8.DecodeRuneInString(w); {
		case isDense(r) && size == len(w):
			letters = append(letters, w)
		default:
			all, pairs = append(all, w), pairs || isDense(r)
		}
	}
	if !pairs {
		all = append(all, letters...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// excerpt returns a part of text, of some so many characters, where most of
// the wanted words are.
func excerpt(text string, want []string, most int) string {
	var found []int // where they begin
	from := 0
	first := 0
	n := 0
	for start, end := range words(text) {
		if _, ok := slices.BinarySearch(want, fold(text[start:end])); !ok {
			continue
		}
		found = append(found, start)
		for first < len(found)-1 && end-found[first] > most*3/4 {
			first++
		}
		if len(found)-first > n {
			n, from = len(found)-first, found[first]-most/4
		}
	}
	if from <= 0 || len(text) <= most {
		return clip(strings.TrimSpace(text), most)
	}
	for ; !utf8.RuneStart(text[from]); from++ {
	}
	return "…" + clip(strings.TrimSpace(text[from:]), most)
}
