package memory

import (
	"slices"
	"strings"
	"unicode/utf8"

	"parley/chat"
	"parley/search"
)

// excerpt returns a part of text, of about so many characters, that contains most
// of the wanted words.
func excerpt(text string, want []string, most int) string {
	var found []int // starts of the wanted words
	from := 0
	first := 0
	n := 0
	for start, end := range search.Words(text) {
		if _, ok := slices.BinarySearch(want, search.Fold(text[start:end])); !ok {
			continue
		}
		found = append(found, start)
		for first < len(found)-1 && end-found[first] > most*3/4 {
			first++
		}
		if len(found)-first > n {
			n = len(found) - first
			from = found[first] - most/4
		}
	}
	if from <= 0 || len(text) <= most {
		return chat.Shorten(strings.TrimSpace(text), most)
	}
	for ; !utf8.RuneStart(text[from]); from++ {
	}
	return "…" + chat.Shorten(strings.TrimSpace(text[from:]), most)
}
