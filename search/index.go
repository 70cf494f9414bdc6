// Package search finds the texts that have some words, and ranks them by BM25. Memory and the catalog of MCP
// tools are searched with it.
package search

import (
	"math"
	"slices"
	"strings"
)

// An Index knows which texts contain a word, and how often. Texts are numbered
// from 0 in the order in which they were added. The zero Index is empty.
type Index struct {
	lists map[string][]uint32 // for each text with the word: its number times maxCount, plus the word's count minus one
	sizes []uint32            // words per text
	total int                 // words of all texts
}

const maxCount = 8 // occurrences of a word in a text beyond which more make no difference

// Add adds the next text.
func (x *Index) Add(text string) {
	if x.lists == nil {
		x.lists = map[string][]uint32{}
	}
	n := uint32(0)
	first := uint32(len(x.sizes) * maxCount)
	for start, end := range Words(text) {
		word := Fold(text[start:end])
		list := x.lists[word]
		if last := len(list) - 1; last < 0 {
			x.lists[strings.Clone(word)] = []uint32{first} // a clone, so that text is not kept in memory
		} else if list[last] < first {
			x.lists[word] = append(list, first)
		} else if list[last] < first+maxCount-1 {
			list[last]++
		}
		n++
	}
	x.sizes = append(x.sizes, n)
	x.total += int(n)
}

// A Match is a text that has some of the words.
type Match struct {
	In    *Index
	Text  int // its number
	Score float64
}

// Best returns the texts with the words from all indexes, ranked by BM25: the best
// first, and of equally good ones the one added last.
func Best(words []string, most int, indexes ...*Index) (found []Match) {
	texts := 0
	total := 0
	for _, x := range indexes {
		texts += len(x.sizes)
		total += x.total
	}
	weights := make([]float64, len(words))
	for i, w := range words {
		n := 0.5
		for _, x := range indexes {
			n += float64(len(x.lists[w]))
		}
		weights[i] = math.Log1p((float64(texts) - n + 1) / n)
	}
	for _, x := range indexes {
		for text, score := range slices.Backward(x.scores(words, weights, float64(total)/float64(texts))) {
			i := len(found)
			for i > 0 && found[i-1].Score < score {
				i--
			}
			if score > 0 && i < most {
				found = slices.Insert(found[:min(len(found), most-1)], i, Match{x, text, score})
			}
		}
	}
	return found
}

// scores returns the score of each text. average is the average number of words
// per text.
func (x *Index) scores(words []string, weights []float64, average float64) []float64 {
	const k, b = 1.2, 0.75
	scores := make([]float64, len(x.sizes))
	for i, w := range words {
		for _, v := range x.lists[w] {
			text, n := v/maxCount, float64(v%maxCount+1)
			scores[text] += weights[i] * n * (k + 1) / (n + k*(1-b+b*float64(x.sizes[text])/average))
		}
	}
	return scores
}
