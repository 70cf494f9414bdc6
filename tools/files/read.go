package files

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"image"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"parley/chat"
	"parley/llm"
	"parley/tools"
	"parley/workspace"
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
	Pages  string `json:"pages,omitempty" jsonschema:"of a PDF: which pages to read, such as 1-5, at most 20"`
	Force  bool   `json:"force,omitempty" jsonschema:"read it again even if it has not changed since"`
}

// A reader is read_file.
type reader struct {
	*seen
	pdf []string // how to run PDFText
}

func (r reader) tool() tools.Tool {
	t := tool(
		"read_file",
		stepRead,
		"Read a file of the workspace: text, a picture or the text of a PDF. Returns the lines of a text as `LINE_NUMBER| TEXT`. "+
			"A long file is read in parts: the last line of the answer says how to go on.",
		tools.Resolve,
		reading(r.read),
	)
	t.ReadOnly, t.MaxText = true, -1
	t.Aliases = named("start_line", "offset", "max_lines", "limit", "page", "pages")
	return t
}

func (r reader) read(
	ctx context.Context,
	c tools.Call,
	at workspace.Path,
	in readArgs,
) (result tools.Result, err error) {
	f, err := c.Workspace.Open(at)
	if err != nil {
		return result, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return result, err
	}
	hash := sha256.New()
	text := bufio.NewReaderSize(io.TeeReader(f, hash), 64<<10)
	head, err := text.Peek(sniffBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return result, err
	}
	p := page{first: in.Offset, limit: in.Limit}
	kind := http.DetectContentType(head)
	old := legacyOf(head, kind)
	switch {
	case len(head) == 0:
		return tools.Result{Text: fmt.Sprintf("(Empty file: %s)", in.Path)}, nil
	case kind == "application/pdf":
		_, err = io.Copy(io.Discard, text)
	case bytes.IndexByte(head, 0) < 0 && utf8.Valid(whole(head)):
		err = p.fill(ctx, text)
	case old.encoding != nil:
		err = p.fill(ctx, bufio.NewReaderSize(old.encoding.NewDecoder().Reader(text), 64<<10))
	case strings.HasPrefix(kind, "image/"):
		return picture(in.Path, at, kind, text, info.Size())
	default:
		return result, fail("Cannot read binary file %s (MIME: %s). Only UTF-8 text and images are supported.", in.Path,
			kind)
	}
	if err != nil {
		return result, err
	}
	now := look{
		info.ModTime().UnixNano(),
		[sha256.Size]byte(hash.Sum(nil)),
		c.Key(),
		fmt.Sprint(p.first, p.limit, in.Pages),
	}
	if !in.Force && r.shows(c, at, now) {
		return tools.Result{Text: fmt.Sprintf("[File unchanged since last read: %s]", in.Path)}, nil
	}
	if kind == "application/pdf" {
		result.Text, err = readPDF(ctx, r.pdf, f, in.Path, in.Pages)
	} else {
		result.Text, err = p.shown()
	}
	if err == nil && old.encoding != nil {
		result.Text += fmt.Sprintf("\n(The file is not UTF-8: it was read as %s.)", old.name)
	}
	if err == nil {
		r.note(c, at, now)
	}
	return result, err
}

// shows reports whether the model still sees what it would read (D-056).
func (r reader) shows(c tools.Call, at workspace.Path, now look) bool {
	last, ok := r.last(c, at)
	return ok && last.mtime == now.mtime && last.hash == now.hash && last.part == now.part && c.Shown != nil &&
		c.Shown(last.key)
}

// picture answers for an image: a model with eyes is shown it (D-052).
func picture(path string, at workspace.Path, kind string, r io.Reader, size int64) (tools.Result, error) {
	data, err := io.ReadAll(io.LimitReader(r, llm.MaxImage+1))
	if err != nil {
		return tools.Result{}, err
	}
	what := fmt.Sprintf("Image file: %s, %s, %d KB", path, kind, (size+1023)/1024)
	if side, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil {
		what += fmt.Sprintf(", %dx%d", side.Width, side.Height)
	}
	if _, err := llm.NewImage(data); err != nil {
		return tools.Result{Text: fmt.Sprintf("(%s. It cannot be shown: %v)", what, err)}, nil
	}
	return tools.Result{Text: "(" + what + ")", Pictures: []string{at.String()}}, nil
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

	lines []string
	chars int // of the lines
	total int // lines of the file
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
		if p.total++; p.total == 1 {
			line = strings.TrimPrefix(line, bom)
		}
		if n := p.total - p.first; n >= 0 && n < p.limit && p.chars <= maxChars {
			line = fmt.Sprintf("%d| %s", p.total, strings.ToValidUTF8(line, "\ufffd"))
			p.lines, p.chars = append(p.lines, line), p.chars+utf8.RuneCountInString(line)
		}
	}
	return ctx.Err()
}

// shown returns the page, and how to go on.
func (p *page) shown() (string, error) {
	text, n := fitting(p.lines, "\n", "line")
	switch last := p.first + n - 1; {
	case n == 0:
		return "", fail("offset %d is beyond end of file (%d lines)", p.first, p.total)
	case last < p.total:
		return fmt.Sprintf("%s\n\n(Showing lines %d-%d of %d. Use offset=%d to continue.)", text, p.first, last,
			p.total, last+1), nil
	}
	return fmt.Sprintf("%s\n\n(End of file — %d lines total)", text, p.total), nil
}

// fitting joins the first n parts, which fit into one answer. The first is cut
// to fit: of a part that is too long it says what is longer.
func fitting(parts []string, sep, what string) (text string, n int) {
	chars := 0
	for ; n < len(parts); n++ {
		chars += utf8.RuneCountInString(parts[n]) + len(sep)
		switch {
		case chars <= maxChars:
		case n > 0:
			return strings.Join(parts[:n], sep), n
		default:
			return chat.Clip(parts[0], maxChars, "… (the "+what+" is longer)"), 1
		}
	}
	return strings.Join(parts, sep), n
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
