package memory

import (
	"context"
	"errors"
	"strings"

	"parley/chat"
	"parley/llm"
)

// maxSummary is the maximum length of a summary, in characters.
const maxSummary = 8_000

// Summarise returns a summary of what is worth keeping from said, a part of a
// conversation, or "" if nothing is. earlier summarises what came before, and may
// be empty. Even a failure may use tokens. Its error is like those of the model;
// an incomplete answer is llm.Cut.
func Summarise(ctx context.Context, model llm.Model, earlier, said string) (text string, usage llm.Usage, err error) {
	ask := "What was said, each line behind a mark:\n\n" + quote(said)
	if earlier != "" {
		ask = "What is known of the conversation before, each line behind a mark:\n\n" + quote(earlier) + "\n\n" + ask
	}
	request := llm.Request{System: summaryInstructions, Messages: []llm.Message{{Role: llm.User, Text: ask}}}
	m, err := model.Generate(ctx, request, nil)
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
	return chat.Shorten(text, maxSummary), m.Usage, nil
}

// quote puts a mark before each line, so that no line of text can pass for
// anything else.
func quote(text string) string {
	return "> " + strings.Join(rows(text), "\n> ")
}

// rows splits text into lines, at any kind of line break.
func rows(text string) []string {
	return strings.Split(lineBreaks.Replace(text), "\n")
}

var lineBreaks = strings.NewReplacer(
	"\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")
