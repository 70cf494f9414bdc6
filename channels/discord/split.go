package discord

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"parley/channels/markdown"
	"parley/chat"
)

const (
	maxText  = 2000 // code points of one message
	maxFiles = 10   // of one message
)

// Split returns text as messages that Discord takes. What models write is what
// Discord reads, but for what only looks like a mark, which is escaped, and
// tables, which become code; code that is cut goes on as code.
func (c *Channel) Split(text string) []string {
	return render(nil, fenced(markdown.Escape(text)), maxText)
}

// Group puts as many files together as one message can have.
func (c *Channel) Group(files []chat.File) [][]chat.File {
	return slices.Collect(slices.Chunk(files, maxFiles))
}

var (
	fenceForm = regexp.MustCompile("^[ \t>]*(```+|~~~+)([^`]*)$")
	tableForm = regexp.MustCompile(`^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)+\|?\s*$`)
)

// fenced returns md with its lines of code as spans, so that it can be cut
// where code begins anew.
func fenced(md string) (t markdown.Text) {
	var out strings.Builder
	pre := func(lang, code string) {
		code = strings.ReplaceAll(strings.TrimRight(code, "\n"), "```", "`\u200b``") // Discord knows no longer fences
		if strings.TrimSpace(code) == "" {
			return
		}
		t.Spans = append(t.Spans, markdown.Span{Start: out.Len(), End: out.Len() + len(code), Kind: markdown.Pre, Arg: lang})
		out.WriteString(code + "\n")
	}
	lines := strings.Split(cleaned(md), "\n")
	for i := 0; i < len(lines); i++ {
		from := i + 1
		if open := fenceForm.FindStringSubmatch(lines[i]); open != nil {
			for i++; i < len(lines) && !strings.HasPrefix(strings.TrimLeft(lines[i], " \t>"), open[1]); i++ {
			}
			lang, more := markdown.FenceInfo(open[2])
			if more != "" {
				out.WriteString(markdown.Escape(more) + "\n")
			}
			pre(lang, strings.Join(lines[from:min(i, len(lines))], "\n"))
			continue
		}
		if i+1 < len(lines) && strings.Contains(lines[i], "|") && tableForm.MatchString(lines[i+1]) {
			for i++; i+1 < len(lines) && strings.Contains(lines[i+1], "|"); i++ {
			}
			table := markdown.Parse(strings.Join(lines[from-1:i+1], "\n"), func(string) bool { return false })
			pre("", table.Plain)
			continue
		}
		out.WriteString(lines[i] + "\n")
	}
	t.Plain = out.String()
	return t
}

// cleaned returns s without what could not be shown.
func cleaned(s string) string { return strings.Map(markdown.Clean, strings.ToValidUTF8(s, "")) }

// render appends t to messages, cut to limit. A message that its fences make
// too long is cut again.
func render(messages []string, t markdown.Text, limit int) []string {
	for _, part := range t.Split(limit, utf8.RuneCountInString) {
		message := unfenced(part)
		if utf8.RuneCountInString(message) > maxText && limit > 100 {
			messages = render(messages, part, limit-100)
			continue
		}
		messages = append(messages, message)
	}
	return messages
}

// unfenced writes t with its fences.
func unfenced(t markdown.Text) string {
	var out strings.Builder
	at := 0
	for _, s := range t.Spans {
		out.WriteString(t.Plain[at:s.Start] + "```" + s.Arg + "\n" + t.Plain[s.Start:s.End] + "\n```")
		at = s.End
	}
	out.WriteString(t.Plain[at:])
	return out.String()
}
