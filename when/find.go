package when

import (
	"strings"
	"time"
)

// maxWords is how many words of a text Find looks at.
const maxWords = 60

// Find returns the longest run of words of text that Parse reads, and what stands
// before and after it. It reports whether there is one.
func Find(text string, now time.Time) (s Schedule, before, after string, ok bool) {
	var begins, ends []int // of the words
	inWord := false
	for i, c := range text + " " {
		isSpace := strings.ContainsRune(" \t\r\n", c)
		switch {
		case !isSpace && !inWord:
			begins = append(begins, i)
		case isSpace && inWord:
			ends = append(ends, i)
		}
		inWord = !isSpace
	}
	n := min(len(ends), maxWords)
	for length := n; length > 0; length-- {
		for i := 0; i+length <= n; i++ {
			from, to := begins[i], ends[i+length-1]
			if s, err := Parse(text[from:to], now); err == nil {
				return s, text[:from], text[to:], true
			}
		}
	}
	return Schedule{}, text, "", false
}
