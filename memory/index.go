package memory

import (
	"encoding/binary"
	"math"
	"slices"
)

// An index tells which of many texts have a word, and how often. Texts are
// numbered from 0 as they are added. The zero index is empty.
type index struct {
	ids   map[uint64]int // of the lists, by the word's sum
	lists []list
	sizes []uint32 // words of each text
	total int      // of all
}

// A list says which texts have a word: a uvarint for each, how many are
// between it and the one before, times often, and how often less one.
type list struct {
	texts []byte
	next  int // the last text + 1
	n     int // how many
}

const often = 8 // more of a word in a text makes no difference

func (x *index) add(text string) {
	var sums []uint64
	for w := range words(text) {
		sums = append(sums, w.sum)
	}
	slices.Sort(sums)
	for i := 0; i < len(sums); {
		from := i
		for i++; i < len(sums) && sums[i] == sums[from]; i++ {
		}
		l := x.list(sums[from])
		l.texts = binary.AppendUvarint(l.texts, uint64((len(x.sizes)-l.next)*often+min(i-from, often)-1))
		l.next = len(x.sizes) + 1
		l.n++
	}
	x.sizes = append(x.sizes, uint32(len(sums)))
	x.total += len(sums)
}

// list returns the list of a word, which it makes.
func (x *index) list(word uint64) *list {
	id, ok := x.ids[word]
	if !ok {
		if x.ids == nil {
			x.ids = map[uint64]int{}
		}
		id = len(x.lists)
		x.ids[word] = id
		x.lists = append(x.lists, list{})
	}
	return &x.lists[id]
}

// A match is a text that has some of the words.
type match struct {
	in    *index
	text  int
	score float64
}

// best returns those texts of the indexes, taken as one, that have the words,
// by BM25: the best first, and of those as good the one added last.
func best(words []uint64, most int, indexes ...*index) (found []match) {
	texts, total := 0, 0
	for _, x := range indexes {
		texts, total = texts+len(x.sizes), total+x.total
	}
	weights := make([]float64, len(words))
	for i, w := range words {
		n := 0.5
		for _, x := range indexes {
			n += float64(x.list(w).n)
		}
		weights[i] = math.Log1p((float64(texts) - n + 1) / n)
	}
	for _, x := range indexes {
		for text, score := range slices.Backward(x.scores(words, weights, float64(total)/float64(texts))) {
			i := len(found)
			for i > 0 && found[i-1].score < float64(score) {
				i--
			}
			if score > 0 && i < most {
				found = slices.Insert(found[:min(len(found), most-1)], i, match{x, text, float64(score)})
			}
		}
	}
	return found
}

// scores returns the score of each text, given how long they are on average.
func (x *index) scores(words []uint64, weights []float64, average float64) []float32 {
	const k, b = 1.2, 0.75
	scores := make([]float32, len(x.sizes))
	for i, w := range words {
		text := -1
		for texts := x.list(w).texts; len(texts) > 0; {
			v, size := binary.Uvarint(texts)
			texts = texts[size:]
			text += int(v/often) + 1
			n := float64(v%often) + 1
			scores[text] += float32(weights[i] * n * (k + 1) / (n + k*(1-b+b*float64(x.sizes[text])/average)))
		}
	}
	return scores
}
