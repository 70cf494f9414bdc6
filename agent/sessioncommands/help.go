package sessioncommands

import (
	"fmt"
	"strings"

	"parley/chat"
	"parley/texts"
	"parley/tools"
)

// Listed is a command that people are shown.
type Listed struct{ Name, Help string }

// Help lists the commands.
func Help(say texts.Help, all []Listed, m chat.Message) string {
	if word, _ := chat.Word(m.Text); strings.HasPrefix(strings.ToLower(word), "/start") {
		return say.Start // what a chat on Telegram begins with
	}
	var b strings.Builder
	b.WriteString(say.Intro + "\n")
	for _, c := range all {
		fmt.Fprintf(&b, "\n/%s – %s", c.Name, c.Help)
	}
	if m.From.Role == chat.Owner {
		b.WriteString("\n" + say.Owners)
	}
	return b.String()
}

// Unknown answers m, which gives a command that there is not, with the one that is most like it.
func Unknown(say texts.Commands, all []Listed, m chat.Message) string {
	word, _ := chat.Word(m.Text)
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(word, "/")), "@")
	best, distance := "", 2+len(name)/5
	for _, c := range all {
		d := tools.EditDistance(name, c.Name)
		if len(name) > 2 && strings.HasPrefix(c.Name, name) {
			d = 0
		}
		if d < min(distance, len(name)) && c.Name != name {
			best, distance = c.Name, d
		}
	}
	if best == "" {
		return say.Unknown.With(word)
	}
	return say.UnknownNear.With(word, best)
}
