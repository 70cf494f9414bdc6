package channels

import (
	"cmp"
	"slices"
	"strings"

	"parley/chat"
)

const (
	maxStepLines = 8   // above the text of a reply
	maxStepLine  = 80  // runes
	maxSum       = 200 // runes of the line for all of them
)

// sum says in one line what was done.
func (l *line) sum(ss chat.Steps) string {
	return chat.Sum(ss, func(n int) string { return l.hub.cfg.Texts.FailedSteps.Of(n) })
}

// above returns text, as far as it is, below a line for each step, or below one
// line for all of them once they are over and the text goes on.
func (l *line) above(text string, ss chat.Steps) string {
	over := !slices.ContainsFunc(ss, func(s chat.Step) bool { return !s.State.Over() })
	if len(ss) == 0 || over && strings.TrimSpace(text) != "" {
		return below(text, l.sum(ss))
	}
	var lines []string
	for _, s := range ss[max(0, len(ss)-maxStepLines):] {
		sign := map[chat.StepState]string{chat.Waiting: "⏳", chat.Done: "✅", chat.Failed: "❌"}[s.State]
		lines = append(lines, Line(cmp.Or(sign, "🔧")+" "+cmp.Or(s.Name, s.Tool)+" "+s.Tip, maxStepLine))
	}
	return below(text, lines...)
}

// below returns text below a quote of lines, which are not Markdown.
func below(text string, lines ...string) string {
	quote := ""
	for _, line := range lines {
		quote += "> " + markup.Replace(Line(line, maxSum)) + "\n"
	}
	if strings.Trim(quote, "> \n") == "" {
		return text
	}
	return quote + "\n" + text
}

// markup makes what could be Markdown the characters that it is.
var markup = strings.NewReplacer(`\`, `\\`, "`", "\\`", `*`, `\*`, `_`, `\_`, `[`, `\[`, `]`, `\]`, `<`, `\<`, `>`, `\>`, `~`, `\~`, `|`, `\|`, `#`, `\#`, `://`, `\://`)

// lists says whether the steps are shown in the messages themselves.
func (l *line) lists() bool { return l.editor != nil }

// summed is r with the line on its steps in its text.
func (l *line) summed(r chat.Reply) chat.Reply {
	if strings.TrimSpace(r.Text) != "" && l.lists() {
		r.Text, r.Steps = below(r.Text, r.Steps), ""
	}
	return r
}
