package conversation

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"parley/chat"
)

// NothingToSay is what a model answers if it has nothing to say.
const NothingToSay = "NOTHING_TO_SAY"

// IsQuiet reports whether m asks for an answer only if there is something to say.
func IsQuiet(m chat.Message) bool { return m.Options != nil && m.Options.Quiet }

// render returns m as the model reads it: one line in brackets that the
// gateway writes, and then the text. Only the first line of a message is ever
// the gateway's, so that nobody can forge one (R-S11).
func render(m chat.Message, zone *time.Location) string {
	head := []string{m.Time.In(zone).Format("Mon 2006-01-02 15:04")}
	switch m.Origin {
	case chat.FromPerson:
		if name := chat.Inline(m.From.Name, 64); name != "" {
			head = append(head, "from "+name)
		}
	default:
		head = append(head, "from the "+string(m.Origin))
	}
	if IsQuiet(m) {
		head = append(head, "to be answered with "+NothingToSay+
			" alone unless there is something that the person should know")
	}
	if m.Edits != "" {
		head = append(head, "corrects an earlier message")
	}
	if m.Media != "" {
		head = append(head, "with a "+chat.Inline(m.Media, 200))
	}
	var b strings.Builder
	if q := m.Quote; q != nil {
		how, most := "in reply to ", 1000
		if q.Forwarded {
			how, most = "passing on ", 50_000
		}
		head = append(head, how+whose(q.From)+" message quoted below")
		for line := range strings.Lines(chat.ClipMiddle(q.Text, most)) {
			b.WriteString("> " + strings.TrimRight(line, "\n") + "\n")
		}
	}
	b.WriteString(m.Text)
	for _, f := range m.Files {
		if f.Path != "" {
			head = append(head, "with the file "+usable(f.Path))
		} else {
			head = append(head, "with a file that is not here: "+cmp.Or(chat.Inline(f.Name, 64), "without a name"))
		}
	}
	return "[" + strings.Join(head, ", ") + "]\n" + b.String()
}

// usable returns path as a model can repeat it, in quotes unless it is plain.
func usable(path string) string {
	if strings.ContainsAny(path, " ,") || chat.Inline(path, 400) != path {
		return strconv.Quote(path)
	}
	return path
}

// whose returns whose message was quoted: "your", "Ann's".
func whose(name string) string {
	switch name = chat.Inline(name, 64); name {
	case "":
		return "the"
	case "you":
		return "your"
	}
	return name + "'s"
}
