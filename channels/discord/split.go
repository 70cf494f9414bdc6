package discord

import (
	"strings"
	"unicode/utf8"

	"parley/channels/markdown"
	"parley/lazyregexp"
)

const (
	maxText  = 2000 // code points of one message
	maxFiles = 10   // of one message
)

// splitText returns text as messages that Discord accepts.
func splitText(text string) []string {
	return render(nil, findCode(markdown.Escape(text)), maxText)
}

var (
	fenceForm = lazyregexp.New("^[ \t>]*(```+|~~~+)([^`]*)$")
	tableForm = lazyregexp.New(`^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)+\|?\s*$`)
)

// findCode returns md with its blocks of code as spans, so that it can be split
// where code begins again. Tables become code.
func findCode(md string) markdown.Text {
	var b codeBuilder
	lines := strings.Split(removeInvisible(md), "\n")
	for len(lines) > 0 {
		n := b.addFence(lines)
		if n == 0 {
			n = b.addTable(lines)
		}
		if n == 0 {
			b.out.WriteString(lines[0] + "\n")
			n = 1
		}
		lines = lines[n:]
	}
	return markdown.Text{Plain: b.out.String(), Spans: b.spans}
}

// A codeBuilder writes a text and notes where its code is.
type codeBuilder struct {
	out   strings.Builder
	spans []markdown.Span
}

// addFence writes the fenced code that lines begin with, and returns how many
// lines that is.
func (b *codeBuilder) addFence(lines []string) int {
	opening := fenceForm.FindStringSubmatch(lines[0])
	if opening == nil {
		return 0
	}
	marker := opening[1]
	end := 1
	for end < len(lines) && !strings.HasPrefix(strings.TrimLeft(lines[end], " \t>"), marker) {
		end++
	}
	language, rest := markdown.FenceInfo(opening[2])
	if rest != "" {
		b.out.WriteString(markdown.Escape(rest) + "\n")
	}
	b.addCode(language, strings.Join(lines[1:end], "\n"))
	return min(end+1, len(lines)) // with the closing fence
}

// addTable writes the table that lines begin with, and returns how many lines that is.
func (b *codeBuilder) addTable(lines []string) int {
	if len(lines) < 2 || !strings.Contains(lines[0], "|") || !tableForm.MatchString(lines[1]) {
		return 0
	}
	end := 2
	for end < len(lines) && strings.Contains(lines[end], "|") {
		end++
	}
	noLinks := func(string) bool { return false }
	table := markdown.Parse(strings.Join(lines[:end], "\n"), noLinks)
	b.addCode("", table.Plain)
	return end
}

// addCode writes a block of code, unless it is blank.
func (b *codeBuilder) addCode(language, code string) {
	code = strings.TrimRight(code, "\n")
	code = strings.ReplaceAll(code, "```", "`\u200b``") // Discord has no longer fences
	if strings.TrimSpace(code) == "" {
		return
	}
	start := b.out.Len()
	b.spans = append(b.spans, markdown.Span{Start: start, End: start + len(code), Kind: markdown.Pre, Arg: language})
	b.out.WriteString(code + "\n")
}

func removeInvisible(s string) string { return strings.Map(markdown.Clean, strings.ToValidUTF8(s, "")) }

// fenceReserve is by how much a message that its fences make too long is shortened.
const fenceReserve = 100 // runes

// render appends t to messages, split to limit. A message that its fences make too
// long is split again.
func render(messages []string, t markdown.Text, limit int) []string {
	for _, part := range t.Split(limit, utf8.RuneCountInString) {
		message := withFences(part)
		if utf8.RuneCountInString(message) > maxText && limit > fenceReserve {
			messages = render(messages, part, limit-fenceReserve)
			continue
		}
		messages = append(messages, message)
	}
	return messages
}

// withFences writes t with fences around its code.
func withFences(t markdown.Text) string {
	var out strings.Builder
	at := 0
	for _, s := range t.Spans {
		out.WriteString(t.Plain[at:s.Start])
		out.WriteString("```" + s.Arg + "\n" + t.Plain[s.Start:s.End] + "\n```")
		at = s.End
	}
	out.WriteString(t.Plain[at:])
	return out.String()
}
