package markdown

import (
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// maxTable is the width in columns up to which a table fits on a phone.
const maxTable = 42

// table writes a table with its columns aligned, as Pre. One that is wider
// than a phone, or that has links, is written row by row instead.
func (w *writer) table(t *extast.Table) {
	var rows [][]string
	linked := false
	for r := t.FirstChild(); r != nil; r = r.NextSibling() {
		var row []string
		for c := r.FirstChild(); c != nil; c = c.NextSibling() {
			cell := writer{src: w.src}
			cell.inlines(c)
			row = append(row, strings.ReplaceAll(strings.TrimSpace(string(cell.out)), "\n", " "))
			linked = linked || len(cell.spans) > 0 && hasLink(cell.spans)
		}
		rows = append(rows, row)
	}
	widths := columns(rows)
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
	for n, row := range rows {
		if n > 0 {
			w.out = append(w.out, '\n')
		}
		w.row(row, widths, t.Alignments)
		if n == 0 {
			w.out = append(w.out, "\n"+strings.Repeat("─", total)...)
		}
	}
	w.end(i)
}

func hasLink(spans []Span) bool {
	for _, s := range spans {
		if s.Kind == Link {
			return true
		}
	}
	return false
}

// columns returns the width of each column.
func columns(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], width(cell))
		}
	}
	return widths
}

// row writes one line of an aligned table.
func (w *writer) row(row []string, widths []int, aligns []extast.Alignment) {
	line := ""
	for i, cell := range row {
		space := widths[i] - width(cell)
		left := 0
		if i < len(aligns) && aligns[i] == extast.AlignRight {
			left = space
		} else if i < len(aligns) && aligns[i] == extast.AlignCenter {
			left = space / 2
		}
		line += strings.Repeat(" ", left) + cell + strings.Repeat(" ", space-left+2)
	}
	w.out = append(w.out, strings.TrimRight(line, " ")...)
}

// rows writes a table as a list: of each row the first cell in bold, the others below it, named by the header.
func (w *writer) rows(t *extast.Table, header []string) {
	if t.ChildCount() == 1 {
		w.out = append(w.out, strings.Join(header, " · ")...)
	}
	for r := t.FirstChild().NextSibling(); r != nil; r = r.NextSibling() {
		if r.PreviousSibling() != t.FirstChild() {
			w.out = append(w.out, '\n')
			w.newline()
		}
		w.within(Bold, r.FirstChild())
		for i, c := 1, r.FirstChild().NextSibling(); c != nil; i, c = i+1, c.NextSibling() {
			if !c.HasChildren() {
				continue
			}
			w.newline()
			if i < len(header) && header[i] != "" {
				w.out = append(w.out, header[i]+": "...)
			}
			w.cell(c)
		}
	}
}

func (w *writer) cell(c ast.Node) {
	outer := w.indent
	w.indent += "  "
	w.inlines(c)
	w.indent = outer
}

// width is how many columns s takes on a screen, more or less.
func width(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case 0x1100 <= r && r <= 0x115f, 0x2e80 <= r && r <= 0xa4cf, 0xac00 <= r && r <= 0xd7a3, 0xf900 <= r && r <= 0xfaff,
			0xfe30 <= r && r <= 0xfe6f, 0xff00 <= r && r <= 0xff60, 0xffe0 <= r && r <= 0xffe6, 0x1f300 <= r && r <= 0x1faff,
			0x20000 <= r && r <= 0x3fffd:
			n += 2
		default:
			n++
		}
	}
	return n
}
