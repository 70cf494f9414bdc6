package markdown

import (
	"slices"
	"strings"
	"unicode"

	extast "github.com/yuin/goldmark/extension/ast"
)

// maxTable is the width in columns up to which a table fits on a phone.
const maxTable = 42

// table writes a table with its columns aligned, as Pre. One that is wider
// than a phone, or that has links, is written row by row instead.
func (w *writer) table(t *extast.Table) {
	var rows [][]string
	widths, linked := make([]int, len(t.Alignments)), false
	for r := t.FirstChild(); r != nil; r = r.NextSibling() {
		var row []string
		for c := r.FirstChild(); c != nil; c = c.NextSibling() {
			cell := writer{src: w.src, opens: w.opens}
			cell.inlines(c)
			text := strings.ReplaceAll(strings.TrimSpace(string(cell.out)), "\n", " ")
			widths[len(row)] = max(widths[len(row)], width(text))
			row = append(row, text)
			linked = linked || slices.ContainsFunc(cell.spans, func(s Span) bool { return s.Kind == Link })
		}
		rows = append(rows, row)
	}
	total := 2 * (len(widths) - 1)
	for _, n := range widths {
		total += n
	}
	if linked || total > maxTable {
		w.rows(t, rows[0])
		return
	}
	w.margin()
	i := w.begin(Pre, "")
	w.row(rows[0], widths, t.Alignments)
	w.write("\n" + strings.Repeat("─", total))
	for _, row := range rows[1:] {
		w.write("\n")
		w.row(row, widths, t.Alignments)
	}
	w.end(i)
}

// row writes one line of an aligned table.
func (w *writer) row(row []string, widths []int, aligns []extast.Alignment) {
	line := ""
	for i, cell := range row {
		space, left := widths[i]-width(cell), 0
		if aligns[i] == extast.AlignRight {
			left = space
		}
		line += strings.Repeat(" ", left) + cell + strings.Repeat(" ", space-left+2)
	}
	w.write(strings.TrimRight(line, " "))
}

// rows writes a table as a list: of each row the first cell in bold, the others below it, named by the header.
func (w *writer) rows(t *extast.Table, header []string) {
	if t.ChildCount() == 1 {
		w.write(strings.Join(header, " · "))
	}
	for r := t.FirstChild().NextSibling(); r != nil; r = r.NextSibling() {
		if r.PreviousSibling() != t.FirstChild() {
			w.newline()
			w.newline()
		}
		w.within(Bold, r.FirstChild(), w.inlines)
		for i, c := 1, r.FirstChild().NextSibling(); c != nil; i, c = i+1, c.NextSibling() {
			if !c.HasChildren() {
				continue
			}
			w.newline()
			if header[i] != "" {
				w.write(header[i] + ": ")
			}
			w.inlines(c)
		}
	}
}

// width is how many columns s takes on a screen, more or less.
func width(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana),
			0x3000 <= r && r <= 0x303f, 0xff01 <= r && r <= 0xff60, 0x1f300 <= r && r <= 0x1faff:
			n += 2
		default:
			n++
		}
	}
	return n
}
