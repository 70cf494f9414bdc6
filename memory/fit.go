package memory

import (
	"slices"
	"strings"

	"parley/llm"
	"parley/workspace"
)

// The parts of a model's window that the texts of files may take, all together.
const (
	textShare     = 5
	leanTextShare = 8
)

// fitTexts cuts the longest of texts, which are called names, until they take no more than their share of room.
// Those that are short leave what they do not need to the others.
func fitTexts(names, texts []string, room llm.Room) {
	share := textShare
	if room.Lean {
		share = leanTextShare
	}
	if room.Window <= 0 {
		return
	}
	left := room.Bytes(share)
	shortFirst := make([]int, len(texts))
	for i := range texts {
		shortFirst[i] = i
	}
	slices.SortStableFunc(shortFirst, func(a, b int) int { return len(texts[a]) - len(texts[b]) })
	for n, i := range shortFirst {
		texts[i] = cutText(names[i], texts[i], left/(len(shortFirst)-n))
		left -= len(texts[i])
	}
}

// cutText returns the first lines of text, about most bytes, and says that the rest is missing.
func cutText(name, text string, most int) string {
	if len(text) <= most {
		return text
	}
	note := "(The rest of " + name + " is left out: it is too long.)"
	head := text[:max(most-len(note)-1, 0)]
	if end := strings.LastIndexByte(head, '\n'); end > len(head)/2 {
		head = head[:end]
	}
	return strings.TrimSpace(strings.ToValidUTF8(head, "")) + "\n" + note
}

// dropFirst empties those of texts that are as in a new workspace, by their names.
func dropFirst(names, texts []string) {
	for i, name := range names {
		if first := workspace.First(name); first != "" && texts[i] == strings.TrimSpace(first) {
			texts[i] = ""
		}
	}
}
