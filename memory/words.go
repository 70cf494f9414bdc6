package memory

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A word is one of a text. The same words have the same sum, whatever their
// case; of others, one in 10^19.
type word struct {
	sum        uint64
	start, end int // bytes
	letters    int // of a script without spaces: 1 or 2
}

// words yields the words of text: the letters and digits between what is none.
// Of scripts without spaces each letter is one, and each with the one before it.
func words(text string) iter.Seq[word] {
	return func(yield func(word) bool) {
		w, last := word{sum: seed}, rune(0)
		for i, r := range text {
			end, spaced, dense := i+utf8.RuneLen(r), isSpaced(r), isDense(r)
			if spaced || w.end > 0 && !dense && unicode.IsMark(r) {
				if w.end == 0 {
					w.start = i
				}
				w.sum, w.end, last = add(w.sum, r), end, 0
				continue
			}
			if w.end > 0 && !yield(w) {
				return
			}
			w = word{sum: seed}
			if !dense {
				last = 0
				continue
			}
			if !yield(word{add(seed, r), i, end, 1}) || last != 0 && !yield(word{add(add(seed, last), r), i - utf8.RuneLen(last), end, 2}) {
				return
			}
			last = r
		}
		if w.end > 0 {
			yield(w)
		}
	}
}

// isSpaced says whether r is of a word in a script with spaces.
func isSpaced(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9'
	}
	return (unicode.IsLetter(r) || unicode.IsNumber(r)) && !isDense(r)
}

// isDense says whether r is a letter of a script without spaces, or of one
// that puts so much into a word that its parts are looked for.
func isDense(r rune) bool {
	return r >= 0xE00 && (r == 'ー' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar))
}

const seed = 14695981039346656037 // of FNV-1a

// add adds r to a sum, whatever its case.
func add(sum uint64, r rune) uint64 {
	switch {
	case 'A' <= r && r <= 'Z':
		r |= 0x20
	case r >= utf8.RuneSelf:
		r = unicode.ToLower(unicode.ToUpper(r)) // some letters have two small ones
	}
	return (sum ^ uint64(r)) * 1099511628211
}

// wanted returns the sums of the words to look for in a search for text,
// sorted. Single letters count if there are no two.
func wanted(text string) []uint64 {
	var sums, letters []uint64
	pairs := false
	for w := range words(text) {
		pairs = pairs || w.letters == 2
		if w.letters == 1 {
			letters = append(letters, w.sum)
		} else {
			sums = append(sums, w.sum)
		}
	}
	if !pairs {
		sums = append(sums, letters...)
	}
	slices.Sort(sums)
	return slices.Compact(sums)
}

// excerpt returns a part of text, of some so many characters, where most of
// the wanted words are.
func excerpt(text string, want []uint64, most int) string {
	var found []word
	from, first, n := 0, 0, 0
	for w := range words(text) {
		if _, ok := slices.BinarySearch(want, w.sum); !ok {
			continue
		}
		found = append(found, w)
		for w.end-found[first].start > most*3/4 {
			first++
		}
		if len(found)-first > n {
			n, from = len(found)-first, found[first].start-most/4
		}
	}
	if from <= 0 || len(text) <= most {
		return clip(strings.TrimSpace(text), most)
	}
	for ; !utf8.RuneStart(text[from]); from++ {
	}
	return "…" + clip(strings.TrimSpace(text[from:]), most)
}
