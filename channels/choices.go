package channels

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/chat"
)

// asking is which of the parts of a reply asks its question: the last with text.
func asking(parts []chat.Reply) int {
	for i := len(parts) - 1; i > 0; i-- {
		if parts[i].Text != "" {
			return i
		}
	}
	return 0
}

// buttons says whether the channel shows the choices of q as buttons.
func (l *line) buttons(q *chat.Question) bool {
	a, ok := l.Channel.(Asker)
	return ok && len(q.Choices) <= a.MaxChoices()
}

// initial is which of choices alone begins with text, which is one letter, or -1.
func initial(choices []string, text string) int {
	begins := func(c string) bool {
		c = strings.TrimLeftFunc(c, func(r rune) bool { return !unicode.IsLetter(r) })
		_, size := utf8.DecodeRuneInString(c)
		return size > 0 && strings.EqualFold(c[:size], text)
	}
	i := slices.IndexFunc(choices, begins)
	if i >= 0 && slices.ContainsFunc(choices[i+1:], begins) {
		return -1
	}
	return i
}

// bare is text without what people write around a choice.
func bare(text string) string {
	text = strings.TrimSpace(text)
	if cut := strings.TrimSpace(strings.TrimRight(text, ".!")); cut != "" {
		return cut
	}
	return text
}

// worded is r with its choices in its text, for a channel that has no buttons for them.
func (l *line) worded(r chat.Reply) chat.Reply {
	if r.Ask == nil || l.buttons(r.Ask) {
		return r
	}
	q := r.Ask
	if r.Ask = nil; len(q.Choices) == 0 {
		return r
	}
	r.Text += "\n\n"
	for i, c := range q.Choices {
		r.Text += fmt.Sprintf("%d. %s\n", i+1, c)
	}
	how := "with a number"
	if len(q.Choices) == 2 && initial(q.Choices, "y") == 0 && initial(q.Choices, "n") == 1 {
		how = "y or n"
	}
	if q.Free {
		how += " or in your own words"
	}
	r.Text += "\nAnswer " + how + "."
	return r
}

// closing returns the last message of q's reply as it is when q is over.
func (l *line) closing(q question) (chat.Reply, error) {
	r := q.Reply
	r.Ask = nil
	parts, err := l.parts(r)
	if err != nil || len(parts) == 0 {
		return r, err
	}
	r.Text += "\n\n" + outcome(q.Choice)
	if all, err := l.parts(r); err == nil && len(all) == len(parts) {
		parts = all
	}
	return parts[asking(parts)], nil
}

// outcome is the line that tells how a question ended, withdrawn if c is nil.
func outcome(c *Choice) string {
	if c == nil {
		return "✗ *no longer asked*"
	}
	line := fmt.Sprintf("✓ **%s**", plainly(c.Text, maxName))
	if by := oneLine(c.By.Name); by != "" {
		line += " — " + by
	}
	return line
}
