package markdown

import (
	"slices"
	"strings"

	"parley/lazyregexp"
)

// Terminal returns src, read as by [Parse], for a terminal of that many columns: no word is
// cut at the end of a row unless it is longer than one, tables are as wide as they need to
// be, and addresses of links are written out. With colour, headings and emphasis, code and
// quotes have the attributes of ANSI; nothing else of the result moves the cursor or
// changes the terminal.
func Terminal(src string, columns int, colour bool) string {
	t := parse(src, func(string) bool { return false }, columns)
	p := terminalWriter{text: t, columns: max(columns, 10), colour: colour}
	for start := 0; start <= len(t.Plain); {
		end := len(t.Plain)
		if n := strings.IndexByte(t.Plain[start:], '\n'); n >= 0 {
			end = start + n
		}
		p.line(start, end)
		start = end + 1
	}
	return strings.TrimSuffix(p.out.String(), "\n")
}

// attributes are how a terminal shows each Kind with colour.
var attributes = [kinds]string{Bold: "1", Italic: "3", Strike: "9", Code: "36", Pre: "36", Quote: "2"}

// A terminalWriter writes the rows of a Text.
type terminalWriter struct {
	text    Text
	columns int
	colour  bool
	out     strings.Builder

	open []Span // those around the byte that is written next
	next int    // the first span behind it
	set  string // the attributes in force
}

// line writes the line of the text between two bytes.
func (p *terminalWriter) line(start, end int) {
	margin, indent := "", itemForm.FindString(p.text.Plain[start:end])
	switch {
	case p.text.inKind(Pre, start):
		p.row("", start, end)
		return
	case p.text.inKind(Quote, start):
		margin = "│ "
	}
	if width(indent) > p.columns/2 {
		indent = ""
	}
	before, shortest := margin, len(indent)
	for first := true; first || start < end; first = false {
		stop := start + fits(p.text.Plain[start:end], p.columns-1-width(before))
		next := stop
		if stop < end {
			if blank := strings.LastIndexByte(p.text.Plain[start:stop+1], ' '); blank > shortest {
				stop = start + blank
				next = stop + 1
			}
		}
		p.row(before, start, stop)
		start = next
		before = margin + strings.Repeat(" ", width(indent))
		shortest = 0
	}
}

// row writes a row: what is before, and the bytes of the text from start to end.
func (p *terminalWriter) row(before string, start, end int) {
	p.out.WriteString(before)
	for i, r := range p.text.Plain[start:end] {
		p.attributesAt(start + i)
		p.out.WriteRune(r)
	}
	p.change("")
	p.out.WriteByte('\n')
}

// attributesAt puts the attributes of the byte at i in force.
func (p *terminalWriter) attributesAt(i int) {
	if !p.colour {
		return
	}
	p.open = slices.DeleteFunc(p.open, func(s Span) bool { return s.End <= i })
	for ; p.next < len(p.text.Spans) && p.text.Spans[p.next].Start <= i; p.next++ {
		if s := p.text.Spans[p.next]; s.End > i && attributes[s.Kind] != "" {
			p.open = append(p.open, s)
		}
	}
	var codes []string
	for _, s := range p.open {
		codes = append(codes, attributes[s.Kind])
	}
	p.change(strings.Join(codes, ";"))
}

// change puts attributes in force.
func (p *terminalWriter) change(to string) {
	if to == p.set {
		return
	}
	if p.set != "" {
		p.out.WriteString("\x1b[0m")
	}
	if to != "" {
		p.out.WriteString("\x1b[" + to + "m")
	}
	p.set = to
}

// inKind reports whether the byte at i is in a span of that kind.
func (t Text) inKind(k Kind, i int) bool {
	return slices.ContainsFunc(t.Spans, func(s Span) bool { return s.Kind == k && s.Start <= i && i < s.End })
}

// fits returns how many bytes at the start of s fit in that many columns, at least those of one character.
func fits(s string, columns int) int {
	used := 0
	for i, r := range s {
		if used += width(string(r)); used > columns && i > 0 {
			return i
		}
	}
	return len(s)
}

// itemForm matches what the further rows of a line stand below.
var itemForm = lazyregexp.New(`^ *(• |\d{1,9}[.)] |☐ |☑ )?`)

// Finished returns how many bytes at the start of src, an answer that is still being
// written, are blocks that will not change whatever follows.
func Finished(src string) (n int) {
	fence := ""
	for start := 0; start < len(src); {
		end := strings.IndexByte(src[start:], '\n')
		if end < 0 {
			break
		}
		line := strings.TrimLeft(src[start:start+end], " >")
		mark := fenceForm.FindString(line)
		next := start + end + 1
		switch {
		case fence != "":
			if strings.HasPrefix(mark, fence) && strings.TrimSpace(line[len(mark):]) == "" {
				fence = ""
				if mark == src[start:start+len(mark)] { // not in a list or a quote
					n = next
				}
			}
		case mark != "":
			fence = mark
		case headingForm.MatchString(src[start : start+end]):
			n = next
		case strings.TrimSpace(line) == "" && next < len(src) && !strings.ContainsRune(" \t\n", rune(src[next])):
			n = next
		}
		start = next
	}
	return n
}

// headingForm matches a line that is a heading.
var headingForm = lazyregexp.New(`^#{1,6} `)

// fenceForm matches the beginning of a fence.
var fenceForm = lazyregexp.New("^(`{3,}|~{3,})")

// HasMarks reports whether Markdown may make anything of src but its words.
func HasMarks(src string) bool { return marksForm.MatchString(src) }

var marksForm = lazyregexp.New("[*_`\\[|~<>#\\\\$]|(?m:^\\s*([-+]|\\d+[.)])|^    |^\t)|---")
