package console

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"parley/channels/greeting"
)

// greet shows somebody who types into this terminal for the first time what they can
// try, and returns it. Others are not greeted.
func greet(t Terminal) (suggestions []string) {
	if info, err := os.Stat(t.History); t.History == "" || err == nil && info.Size() > 0 {
		return nil
	}
	suggestions = greeting.Suggestions()
	var b strings.Builder
	b.WriteString("\nWrite anything, or the number of something to try:\n\n")
	for i, s := range suggestions {
		fmt.Fprintf(&b, "  %d. %s\n", i+1, s)
	}
	_, _ = io.WriteString(t.Out, b.String()+"\n") // a screen that is gone shows in what follows
	return suggestions
}

// suggested returns the suggestion whose number text is, or text.
func suggested(suggestions []string, text string) string {
	n, err := strconv.Atoi(strings.TrimRight(strings.TrimSpace(text), ".)"))
	if err != nil || n < 1 || n > len(suggestions) {
		return text
	}
	return suggestions[n-1]
}
