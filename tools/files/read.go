package files

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"parley/tools"
)

const (
	maxChars   = 128_000 // of one answer (D-054)
	maxLine    = maxChars * utf8.UTFMax
	sniffBytes = 4096
)

type readArgs struct {
	Path   string `json:"path" jsonschema:"the file, relative to the workspace"`
	Offset int    `json:"offset,omitempty" jsonschema:"number of the first line to read" limit:"min=1 default=1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many lines to read at most" limit:"min=1 default=2000"`
}

func read(s *seen) tools.Tool {
	t := tools.New("read_file", "Read a text file of the workspace. Returns its lines as `LINE_NUMBER| TEXT`. "+
		"A long file is read in parts: the last line of the answer says how to go on.", s.readFile)
	t.ReadOnly, t.Category, t.MaxText = true, "files", -1
	t.Aliases = map[string]string{"file_path": "path", "filepath": "path", "filename": "path", "file": "path", "start_line": "offset", "max_lines": "limit"}
	return t
}

func (s *seen) readFile(ctx context.Context, c tools.Call, in readArgs) (tools.Result, error) {
	if _, refusal := locate(c, in.Path); refusal != nil {
		return *refusal, nil
	}
	f, err := c.Workspace.Open(in.Path)
	if err != nil {
		return *explain(in.Path, err), nil
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 64<<10)
	head, err := r.Peek(sniffBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return tools.Result{}, err
	}
	if answer := notText(in.Path, head); answer != nil {
		return *answer, nil
	}
	p := page{first: cmp.Or(in.Offset, 1), limit: cmp.Or(in.Limit, 2000)}
	if err := p.fill(ctx, r); err != nil {
		return tools.Result{}, err
	}
	return p.result(in.Path), nil
}

// notText answers for a file that begins with head and is no text, or nil.
func notText(path string, head []byte) *tools.Result {
	kind := http.DetectContentType(head)
	switch {
	case len(head) == 0:
		return &tools.Result{Text: fmt.Sprintf("(Empty file: %s)", path)}
	case kind == "application/pdf":
		return fail("Cannot read PDF file %s: not supported.", path)
	case bytes.IndexByte(head, 0) < 0 && utf8.Valid(whole(head)):
		return nil
	case strings.HasPrefix(kind, "image/"):
		return &tools.Result{Text: fmt.Sprintf("(Image file: %s, %s. Its content cannot be shown as text.)", path, kind)}
	}
	return fail("Cannot read binary file %s (MIME: %s). Only UTF-8 text and images are supported.", path, kind)
}

// whole returns head without the character that its end cut in two.
func whole(head []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(head) && len(head) == sniffBytes; i++ {
		if last := head[len(head)-i:]; utf8.RuneStart(last[0]) && !utf8.FullRune(last) {
			return head[:len(head)-i]
		}
	}
	return head
}

// A page is the part of a file that is asked for.
type page struct {
	first, limit int

	text  strings.Builder
	chars int
	last  int  // number of the last line in text
	full  bool // no more fits
	total int  // lines of the file
}

// fill reads all of r: the lines after the page are counted.
func (p *page) fill(ctx context.Context, r *bufio.Reader) error {
	for ctx.Err() == nil {
		line, err := readLine(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		p.total++
		if p.total == 1 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		if p.total >= p.first && p.total < p.first+p.limit && !p.full {
			p.add(line)
		}
	}
	return ctx.Err()
}

// add adds a line, unless it does not fit. The first one is cut to fit.
func (p *page) add(line string) {
	line = fmt.Sprintf("%d| %s", p.total, strings.ToValidUTF8(line, "\ufffd"))
	n := utf8.RuneCountInString(line) + 1
	if p.chars+n > maxChars {
		p.full = true
		if p.last > 0 {
			return
		}
		line = string([]rune(line)[:maxChars]) + "… (the line is longer)"
	}
	if p.last > 0 {
		p.text.WriteByte('\n')
	}
	p.text.WriteString(line)
	p.chars += n
	p.last = p.total
}

func (p *page) result(path string) tools.Result {
	switch {
	case p.first > p.total:
		return *fail("offset %d is beyond end of file (%d lines)", p.first, p.total)
	case p.last < p.total:
		fmt.Fprintf(&p.text, "\n\n(Showing lines %d-%d of %d. Use offset=%d to continue.)", p.first, p.last, p.total, p.last+1)
	default:
		fmt.Fprintf(&p.text, "\n\n(End of file — %d lines total)", p.total)
	}
	return tools.Result{Text: p.text.String()}
}

// readLine returns the next line without its end, cut to about maxLine bytes.
func readLine(r *bufio.Reader) (string, error) {
	part, more, err := r.ReadLine()
	line := string(part)
	for more && err == nil {
		part, more, err = r.ReadLine()
		if len(line) < maxLine {
			line += string(part)
		}
	}
	return line, err
}
