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
	maxChars   = 128_000                // characters of one answer (D-054)
	maxLine    = maxChars * utf8.UTFMax // bytes
	sniffBytes = 4096                   // of a file, from which its type is guessed
)

type readArgs struct {
	Path   string `json:"path"`
	Offset int    `json:"offset,omitempty" jsonschema:"first line" limit:"min=1 default=1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"lines" limit:"min=1 default=2000"`
	Pages  string `json:"pages,omitempty" jsonschema:"of a PDF, such as 1-5, at most 20"`
	Force  bool   `json:"force,omitempty" jsonschema:"also if unchanged since you read it"`
}

// A reader implements read_file.
type reader struct {
	known *readStates
	pdf   []string // command that runs PDFText
}

func (r reader) tool() tools.Tool {
	t := newTool(
		"read_file",
		"Read a text, a picture or a PDF of the workspace. Lines of text begin with LINE_NUMBER|. The last one says "+
			"how to continue with a long file.",
		tools.Resolve,
		tainting(r.read),
	)
	t.Use = tools.Basic
	t.ReadOnly = true
	t.MaxText = -1
	t.Aliases = aliases("start_line", "offset", "max_lines", "limit", "page", "pages")
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
	now := readState{
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
	if err != nil {
		return result, err
	}
	if old.encoding != nil {
		result.Text += fmt.Sprintf("\n(The file is not UTF-8: it was read as %s.)", old.name)
	}
	r.known.note(c, at, now)
	return result, nil
}

// shows reports whether the model still sees what this call would read again (D-056).
func (r reader) shows(c tools.Call, at workspace.Path, now readState) bool {
	last, ok := r.known.last(c, at)
	return ok && last.mtime == now.mtime && last.hash == now.hash && last.part == now.part && c.Shown != nil &&
		c.Shown(last.key)
}

// picture returns the answer for an image, which models with vision are shown (D-052).
func picture(path string, at workspace.Path, kind string, r io.Reader, size int64) (tools.Result, error) {
	data, err := io.ReadAll(io.LimitReader(r, llm.MaxImage+1))
	if err != nil {
		return tools.Result{}, err
	}
	what := fmt.Sprintf("Image file: %s, %s, %d KB%s", path, kind, (size+1023)/1024, dimensions(data))
	if _, err := llm.NewImage(data); err != nil {
		return tools.Result{Text: fmt.Sprintf("(%s. It cannot be shown: %v)", what, err)}, nil
	}
	return tools.Result{Text: "(" + what + ")", Pictures: []string{at.String()}}, nil
}

// dimensions returns the size of an image such as ", 640x480", or "" if it is unknown.
func dimensions(data []byte) string {
	side, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(", %dx%d", side.Width, side.Height)
}

// whole returns head without an incomplete character at its end.
func whole(head []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(head) && len(head) == sniffBytes; i++ {
		if last := head[len(head)-i:]; utf8.RuneStart(last[0]) && !utf8.FullRune(last) {
			return head[:len(head)-i]
		}
	}
	return head
}

// A page is the requested part of a file.
type page struct {
	first, limit int // line numbers

	lines []string
	chars int // characters in lines
	total int // lines of the file
}

// fill reads r to its end, because the lines after the page are counted.
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
			p.lines = append(p.lines, line)
			p.chars += utf8.RuneCountInString(line)
		}
	}
	return ctx.Err()
}

// shown returns the page, and says how to continue.
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

// fitting joins as many parts as fit into one answer, and returns how many. If even
// the first does not fit, it is cut, with a note that this what ("line") is longer.
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

// readLine returns the next line without its line end, cut to about maxLine bytes.
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
