package markdown

import (
	"bytes"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// maxTable is the width in columns up to which a table fits on a phone.
const maxTable = 42

// A tableTransformer makes tables of paragraphs as GitHub does, except that a row may
// have more cells than the header.
type tableTransformer struct{}

// Transform implements [parser.ParagraphTransformer].
func (tableTransformer) Transform(p *ast.Paragraph, reader text.Reader, pc parser.Context) {
	before, parent := p.PreviousSibling(), p.Parent()
	extension.NewTableParagraphTransformer().Transform(p, reader, pc)
	made := parent.FirstChild()
	switch {
	case p.Parent() != nil:
		made = p.NextSibling()
	case before != nil:
		made = before.NextSibling()
	}
	t, ok := made.(*extast.Table)
	if !ok {
		return
	}
	for row := t.FirstChild().NextSibling(); row != nil; row = row.NextSibling() {
		addCells(row, reader.Source())
	}
}

// addCells gives row the cells that follow its last one in the source.
func addCells(row ast.Node, src []byte) {
	last := row.LastChild()
	if last == nil || last.Lines().Len() == 0 {
		return
	}
	from := last.Lines().At(0).Stop
	line, _, _ := bytes.Cut(src[from:], []byte("\n"))
	from += len(line) - len(bytes.TrimLeft(line, " \t"))
	line = bytes.TrimRight(bytes.TrimLeft(line, " \t"), " \t\r")
	if len(line) > 1 && bytes.HasSuffix(line, []byte("|")) && !bytes.HasSuffix(line, []byte(`\|`)) {
		line = line[:len(line)-1]
	}
	if len(line) == 0 || line[0] != '|' || !visible(string(line[1:])) {
		return
	}
	for at := 1; at <= len(line); {
		end := at
		for end < len(line) && (line[end] != '|' || line[end-1] == '\\') {
			end++
		}
		cell := extast.NewTableCell()
		cell.SetPos(from + at)
		segment := text.NewSegment(from+at, from+end)
		segment = segment.TrimLeftSpace(src)
		cell.Lines().Append(segment.TrimRightSpace(src))
		row.AppendChild(row, cell)
		at = end + 1
	}
}

// table writes a table with aligned columns, as Pre. A table that is wider than the screen,
// or has links, is written row by row instead.
func (w *writer) table(t *extast.Table) {
	var rows [][]string
	var widths []int
	linked := false
	for r := t.FirstChild(); r != nil; r = r.NextSibling() {
		var row []string
		for c := r.FirstChild(); c != nil; c = c.NextSibling() {
			cell := writer{src: w.src, opens: w.opens}
			cell.inlines(c)
			text := strings.ReplaceAll(strings.TrimSpace(string(cell.out)), "\n", " ")
			if len(row) == len(widths) {
				widths = append(widths, 0)
			}
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
	if linked || total > w.columns {
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
		space := widths[i] - width(cell)
		left := 0
		if i < len(aligns) && aligns[i] == extast.AlignRight {
			left = space
		}
		line += strings.Repeat(" ", left) + cell + strings.Repeat(" ", space-left+2)
	}
	w.write(strings.TrimRight(line, " "))
}

// rows writes a table as a list: the header, then for each row its first cell in bold,
// and the others below it with the names that the header gives them.
func (w *writer) rows(t *extast.Table, header []string) {
	for c := t.FirstChild().FirstChild(); c != nil; c = c.NextSibling() {
		if c.PreviousSibling() != nil {
			w.write(" · ")
		}
		w.inlines(c)
	}
	for r := t.FirstChild().NextSibling(); r != nil; r = r.NextSibling() {
		w.newline()
		for i, c := 0, r.FirstChild(); c != nil; i, c = i+1, c.NextSibling() {
			if !c.HasChildren() {
				continue
			}
			w.newline()
			if i == 0 {
				w.within(Bold, c, w.inlines)
				continue
			}
			if i < len(header) && header[i] != "" {
				w.write(header[i] + ": ")
			}
			w.inlines(c)
		}
	}
}

// width returns roughly how many columns s takes on a screen.
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
