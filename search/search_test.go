package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""}, {" -- \n\t…!", ""},
		{"One two, THREE-4 don't", "One two THREE 4 don t"},
		{"Straße ÄÖÜ naïve, e\u0301t\u00e9 ½", "Straße ÄÖÜ naïve e\u0301t\u00e9 ½"},
		{"Ελλάς Москва שלום", "Ελλάς Москва שלום"},
		{"हिन्दी में", "हिन्दी में"},
		{"黑猫 iPhone手机2", "黑 猫 黑猫 iPhone 手 机 手机 2"},
		{"コーヒー", "コ ー コー ヒ ーヒ ー ヒー"},
		{"고양이가", "고 양 고양 이 양이 가 이가"},
		{"茶、水", "茶 水"},
		{"ไทย", "ไ ท ไท ย ทย"},
		{"x\xffy\u0301\u0301", "x y\u0301\u0301"},
	} {
		var got []string
		for start, end := range Words(c.text) {
			got = append(got, c.text[start:end])
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
	for range Words("a b 黑猫") {
		break
	}
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"ΕΛΛΆΣ", "ελλάς", true}, {"ſTRASSE", "strasse", true}, {"МОСКВА", "москва", true}, {"ab cd", "CD, ab ab", true}, {"ab", "ba", false}, {"猫", "黑猫", false}, {"黑猫", "猫黑", false},
	} {
		if got := slices.Equal(Terms(c.a), Terms(c.b)); got != c.same {
			t.Errorf("%q and %q: %v", c.a, c.b, got)
		}
	}
}

// The index scores as the formula says, whatever the texts and however often a word is in them.
func TestBM25(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var said, known Index
		var texts [][]string
		total := 0
		add := func(x *Index) {
			var text []string
			for range 1 + rng.IntN(30) {
				text = append(text, fmt.Sprintf("w%d", rng.IntN(12)))
			}
			x.Add(strings.Join(text, " "))
			texts, total = append(texts, text), total+len(text)
		}
		for range 1 + rng.IntN(20) {
			add(&said)
		}
		for range rng.IntN(5) {
			add(&known)
		}
		query := []string{"w1", "w2", "w11", "w99"}
		count := func(text []string, word string) (n float64) {
			for _, w := range text {
				if w == word {
					n++
				}
			}
			return min(n, maxCount)
		}
		scores := make([]float64, len(texts))
		for _, word := range query {
			has := 0.0
			for _, text := range texts {
				has += min(count(text, word), 1)
			}
			idf := math.Log(1 + (float64(len(texts))-has+0.5)/(has+0.5))
			for i, text := range texts {
				n := count(text, word)
				scores[i] += idf * n * 2.2 / (n + 1.2*(0.25+0.75*float64(len(text))*float64(len(texts))/float64(total)))
			}
		}
		got := Best(Terms(strings.Join(query, " ")), 1000, &said, &known)
		for i, m := range got {
			text := m.Text
			if m.In == &known {
				text += len(said.sizes)
			}
			if math.Abs(m.Score-scores[text]) > 1e-5 || i > 0 && m.Score > got[i-1].Score {
				t.Fatalf("text %d has %v at place %d, want %v", text, m.Score, i, scores[text])
			}
			scores[text] = 0
		}
		if slices.Max(scores) > 0 {
			t.Fatalf("%v are missing", scores)
		}
		if few := Best(Terms(strings.Join(query, " ")), 3, &said, &known); !slices.Equal(few, got[:min(3, len(got))]) {
			t.Fatalf("the first three are %v of %v", few, got)
		}
	}
}
