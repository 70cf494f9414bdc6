package search

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Words yields the start and end of each word in text: a run of letters and
// digits. In scripts without spaces, every letter is a word, and so is every pair
// of adjacent letters.
func Words(text string) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		word := -1   // start of the current word
		letter := -1 // start of the letter before, in a script without spaces
		for i, r := range text {
			if isSpaced(r) || word >= 0 && unicode.IsMark(r) && !isDense(r) {
				if word < 0 {
					word = i
					letter = -1
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

// isSpaced reports whether r can be part of a word in a script with spaces.
func isSpaced(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9'
	}
	return (unicode.IsLetter(r) || unicode.IsNumber(r)) && !isDense(r)
}

// isDense reports whether r is a letter of a script without spaces, or of one with
// words so long that parts of them are searched for.
func isDense(r rune) bool {
	return r >= 0xE00 &&
		(r == 'ー' ||
			unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai,
				unicode.Lao, unicode.Khmer, unicode.Myanmar))
}

// Fold returns word in a form for comparison that ignores case.
func Fold(word string) string {
	// Via upper case, because some capital letters have two lower case forms.
	return strings.Map(func(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }, word)
}

// Terms returns the words to search for, sorted. In scripts without spaces,
// single letters only count if there are no pairs.
func Terms(text string) []string {
	var all, letters []string
	pairs := false
	for start, end := range Words(text) {
		w := Fold(text[start:end])
		switch r, size := utf8.DecodeRuneInString(w); {
		case isDense(r) && size == len(w):
			letters = append(letters, w)
		default:
			all = append(all, w)
			pairs = pairs || isDense(r)
		}
	}
	if !pairs {
		all = append(all, letters...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
