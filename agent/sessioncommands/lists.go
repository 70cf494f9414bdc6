package sessioncommands

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/agent/conversation"
	"parley/chat"
	"parley/texts"
	"parley/tools"
)

// Tools lists the tools of kit by category: all of them under every name, or as the
// model is told.
func Tools(say texts.Commands, kit *tools.Kit, all bool) string {
	by := map[string][]string{}
	for _, t := range kit.Tools() {
		what, _, _ := strings.Cut(strings.TrimSuffix(chat.Inline(t.Description, 1000), "."), ". ")
		if t.AliasOf != "" {
			what = say.OtherName.With(t.AliasOf)
		}
		if category := t.Kind(); all || t.AliasOf == "" && !t.Hidden {
			by[category] = append(by[category], fmt.Sprintf("\n- `%s` – %s", t.Name, what))
		}
	}
	if len(by) == 0 {
		return say.NoTools
	}
	var b strings.Builder
	for _, category := range slices.Sorted(maps.Keys(by)) {
		b.WriteString("\n\n**" + category + "**" + strings.Join(by[category], ""))
	}
	return strings.TrimSpace(b.String())
}

// NextRequest is the request that would be made next. Sizes are in estimated tokens.
type NextRequest struct {
	Model               string
	Window, MaxTokens   int
	Ratio               float64 // how many tokens an estimated one is
	Instructions, Tools int
	View                *conversation.View
}

// Context tells how large r is, and what of.
func Context(say texts.Commands, r NextRequest) string {
	tokens := func(estimated int) int { return int(float64(estimated) * r.Ratio) }
	instructions := tokens(r.Instructions)
	toolTexts := tokens(r.Tools)
	messages := tokens(r.View.Size())
	lines := []string{
		say.ContextModel.With(r.Model, r.Window, r.MaxTokens),
		say.ContextNext.With(instructions+toolTexts+messages, instructions, toolTexts, messages),
		say.ContextMessages.With(r.View.EntryCount(), r.View.OmittedResults(), len(r.View.Pictures())),
	}
	if n := r.View.SummarySize(); n > 0 {
		lines = append(lines, say.ContextSummary.With(tokens(n)))
	}
	return strings.Join(lines, "\n")
}

const maxDeadLetters = 5 // that DeadLetters names

// DeadLetters tells which messages could not be answered (P8).
func DeadLetters(say texts.Commands, all []chat.DeadLetter) (lines []string) {
	for _, a := range all[:min(len(all), maxDeadLetters)] {
		line := say.DeadMessage
		if a.Retried {
			line = say.DeadMessageRetried
		}
		lines = append(lines, line.With(a.Key))
	}
	if n := len(all) - maxDeadLetters; n > 0 {
		lines = append(lines, say.AndMore.With(n))
	}
	return lines
}
