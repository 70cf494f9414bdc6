package memory

import (
	"math"
	"slices"
	"strings"
)

// An index tells which of many texts have a word, and how often. Texts are
// numbered from 0 as they are added. The zero index is empty.
type index struct {
	lists map[string][]uint32 // of each text that has a word: its number times often, and how often less one
	sizes []uint32            // words of each text
	total int                 // of all
}

const often = 8 // more of a word in a text makes no difference

func (x *index) add(text string) {
	if x.lists == nil {
		x.lists = map[string][]uint32{}
	}
	n, first := uint32(0), uint32(len(x.sizes)*often)
	for start, end := range words(text) {
		word := fold(text[start:end])
		list := x.lists[word]
		if last := len(list) - 1; last < 0 {
			x.lists[strings.Clone(word)] = []uint32{first} // not to hold all of text
		} else if list[last] < first {
			x.lists[word] = append(list, first)
		} else if list[last] < first+often-1 {
			list[last]++
		}
		n++
	}
	x.sizes = append(x.sizes, n)
	x.total += int(n)
}

// A match is a text that has some of the words.
type match struct {
	in    *index
	text  int
	score float64
}

// best returns those texts of the indexes, taken as one, that have the words,
// by BM25: the best first, and of those as good the one added last.
func best(words []string, most int, indexes ...*index) (found []match) {
	texts, total := 0, 0
	for _, x := range indexes {
		texts, total = texts+len(x.sizes), total+x.total
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
			for i > 0 && found[i-1].score < score {
				i--
			}
			if score > 0 && i < most {
				found = slices.Insert(found[:min(len(found), most-1)], i, match{x, text, score})
			}
		}
	}
	return found
}

// scores returns the score of each text, given how long they are on average.
func (x *index) scores(words []string, weights []float64, average float64) []float64 {
	const k, b = 1.2, 0.75
	scores := make([]float64, len(x.sizes))
	for i, w := range words {
		for _, v := range x.lists[w] {
			text, n := v/often, float64(v%often+1)
			scores[text] += weights[i] * n * (k + 1) / (n + k*(1-b+b*float64(x.sizes[text])/average))
		}
	}
	return scores
}
