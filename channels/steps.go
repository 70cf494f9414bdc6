package channels

import (
	"cmp"
	"slices"
	"strings"

	"parley/chat"
)

const (
	maxStepLines    = 8 // above the text of a reply
	maxStepRunes    = 80
	maxSummaryRunes = 200
)

// sumSteps says in one line what was done.
func (rr *renderer) sumSteps(steps chat.Steps) string {
	return chat.Sum(steps, func(n int) string { return rr.texts.FailedSteps.Of(n) })
}

// withSteps returns text, as far as it is known, below a line for each step. Once all
// are over and the text has begun, they share one line.
func (rr *renderer) withSteps(text string, steps chat.Steps) string {
	over := !slices.ContainsFunc(steps, func(s chat.Step) bool { return !s.State.Over() })
	if len(steps) == 0 || over && strings.TrimSpace(text) != "" {
		return withQuote(text, rr.sumSteps(steps))
	}
	signs := map[chat.StepState]string{chat.Waiting: "⏳", chat.Done: "✅", chat.Failed: "❌", chat.Refused: "🚫"}
	var lines []string
	for _, s := range steps[max(0, len(steps)-maxStepLines):] {
		sign := cmp.Or(signs[s.State], "🔧")
		lines = append(lines, chat.Shorten(chat.OneLine(sign+" "+cmp.Or(s.Name, s.Tool)+" "+s.Tip), maxStepRunes))
	}
	return withQuote(text, lines...)
}

// withStepsSummary returns r with the summary of its steps in its text, if there is a
// text and the messages show steps.
func (rr *renderer) withStepsSummary(r chat.Reply) chat.Reply {
	if strings.TrimSpace(r.Text) != "" && rr.showsSteps {
		r.Text = withQuote(r.Text, r.Steps)
		r.Steps = ""
	}
	return r
}

// withQuote returns text below a quote of lines, which are not Markdown.
func withQuote(text string, lines ...string) string {
	quote := ""
	for _, line := range lines {
		quote += "> " + markdownEscapes.Replace(chat.Shorten(chat.OneLine(line), maxSummaryRunes)) + "\n"
	}
	if strings.Trim(quote, "> \n") == "" {
		return text
	}
	return quote + "\n" + text
}

// markdownEscapes escapes characters that have a meaning in Markdown.
var markdownEscapes = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", `*`, `\*`, `_`, `\_`, `[`, `\[`, `]`, `\]`, `<`, `\<`, `>`, `\>`,
	`~`, `\~`, `|`, `\|`, `#`, `\#`, `://`, `\://`,
)
