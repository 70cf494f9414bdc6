package memory

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"parley/llm"
)

// maxSummary is how many characters of a summary are kept.
const maxSummary = 8_000

// Summarise tells in a few words what of a part of a conversation is worth
// keeping: "" if nothing is. What was said before it is told by earlier, which
// may be empty. Tokens may be used up by a failure, too, which is as that of
// model: an answer that is not whole is llm.Cut.
func Summarise(ctx context.Context, model llm.Model, earlier, said string) (text string, usage llm.Usage, err error) {
	ask := "What was said, each line behind a mark:\n\n" + quote(said)
	if earlier != "" {
		ask = "What is known of the conversation before, each line behind a mark:\n\n" + quote(earlier) + "\n\n" + ask
	}
	m, err := model.Generate(ctx, llm.Request{System: summaryInstructions, Messages: []llm.Message{{Role: llm.User, Text: ask}}},
		nil)
	if err != nil {
		return "", m.Usage, err
	}
	text = strings.TrimSpace(strings.ToValidUTF8(m.Text, "\uFFFD"))
	switch {
	case text == "", m.Finish != llm.Stopped:
		return "", m.Usage, &llm.Error{Kind: llm.Cut, Err: errors.New("the summary is not whole")}
	case strings.EqualFold(strings.Trim(text, "()*_. \n"), "nothing"):
		text = ""
	}
	return clip(text, maxSummary), m.Usage, nil
}

// quote puts a mark before each line, so that nothing in text can pass for what
// is not part of it.
func quote(text string) string {
	return "> " + strings.Join(rows(text), "\n> ")
}

// rows are the lines of text, by whatever ends one.
func rows(text string) []string {
	return strings.Split(
		strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n",
			"\u2029", "\n").
			Replace(text),
		"\n",
	)
}

// clip returns the first n characters of text, with a sign where it is cut.
func clip(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return strings.TrimSpace(string([]rune(text)[:n-1])) + "…"
}
