package files

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/ledongthuc/pdf"

	"parley/lazyregexp"
)

// Limits on reading a PDF (D-057).
const (
	maxPDF      = 50 << 20 // bytes
	maxPages    = 20       // per call
	maxPDFTime  = 30 * time.Second
	maxPDFMem   = 512 << 20 // bytes
	maxPDFStack = 64 << 20  // bytes
)

// pdfPages is the output of PDFText: the text of some pages.
type pdfPages struct {
	Total   int      `json:"total"`
	Pages   []string `json:"pages"`
	Problem string   `json:"problem,omitempty"`
}

// PDFText prints the text of the pages first to last of the PDF in, for read_file, and
// returns an exit code. Run it in a process of its own: a file can make the parser
// overflow the stack or allocate all memory, and no Go program survives that.
func PDFText(in *os.File, out io.Writer, first, last string) (code int) {
	debug.SetMaxStack(maxPDFStack)
	go func() { // runs until the process exits
		for m := (runtime.MemStats{}); m.Sys < maxPDFMem; time.Sleep(10 * time.Millisecond) {
			runtime.ReadMemStats(&m)
		}
		os.Exit(3)
	}()
	from, _ := strconv.Atoi(first)
	to, _ := strconv.Atoi(last)
	info, err := in.Stat()
	if err != nil || json.NewEncoder(out).Encode(extract(in, info.Size(), from, to)) != nil {
		return 1
	}
	return 0
}

// extract returns the text of some pages. Panics of the parser become problems.
func extract(in io.ReaderAt, size int64, first, last int) (p pdfPages) {
	defer func() {
		if x := recover(); x != nil {
			p = pdfPages{Problem: "it is damaged"}
		}
	}()
	r, err := pdf.NewReader(in, size)
	if err != nil && strings.Contains(err.Error(), "encrypt") {
		return pdfPages{Problem: "it is encrypted"}
	}
	if err != nil {
		return pdfPages{Problem: "it is damaged"}
	}
	p.Total = r.NumPage()
	for n := first; n <= min(last, p.Total); n++ {
		w := pageText{page: r.Page(n), fonts: map[string]*pdf.Font{}}
		w.read()
		p.Pages = append(p.Pages, strings.TrimSpace(w.text.String()))
	}
	return p
}

// A pageText collects the text of a page in the order in which it is drawn.
type pageText struct {
	page  pdf.Page
	fonts map[string]*pdf.Font
	enc   pdf.TextEncoding
	text  strings.Builder
	y     float64 // vertical position of the current line
}

// read collects the text of the page, up to the first damage.
func (w *pageText) read() {
	defer func() { _ = recover() }()
	pdf.Interpret(w.page.V.Key("Contents"), w.do)
}

// do handles one drawing operator of the page.
func (w *pageText) do(stack *pdf.Stack, op string) {
	args := make([]pdf.Value, max(6, stack.Len()))
	for i := stack.Len() - 1; i >= 0; i-- {
		args[i] = stack.Pop()
	}
	switch op {
	case "Tf":
		name := args[0].Name()
		if w.fonts[name] == nil {
			f := w.page.Font(name)
			w.fonts[name] = &f
		}
		w.enc = w.fonts[name].Encoder()
	case "Td", "TD":
		w.move(args[1].Float64() != 0)
	case "Tm":
		w.move(args[5].Float64() != w.y)
		w.y = args[5].Float64()
	case "T*", "BT":
		w.move(true)
	case "'":
		w.move(true)
		w.show(args[0])
	case "\"":
		w.move(true)
		w.show(args[2])
	case "Tj":
		w.show(args[0])
	case "TJ":
		for i := range args[0].Len() {
			if v := args[0].Index(i); v.Kind() == pdf.String {
				w.show(v)
			} else if v.Float64() < -200 { // thousandths of the font size
				w.move(false)
			}
		}
	}
}

func (w *pageText) show(v pdf.Value) {
	if w.enc != nil && w.text.Len() < maxLine {
		w.text.WriteString(w.enc.Decode(v.RawString()))
	}
}

// move starts a new line, or a new word on the same line.
func (w *pageText) move(line bool) {
	switch text := w.text.String(); {
	case text == "" || strings.HasSuffix(text, "\n"):
	case line:
		w.text.WriteByte('\n')
	case !strings.HasSuffix(text, " "):
		w.text.WriteByte(' ')
	}
}

var pageRange = lazyregexp.New(`^\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?$`)

// readPDF returns the text of a PDF. command is the command that runs PDFText.
func readPDF(ctx context.Context, command []string, f *os.File, path, pages string) (string, error) {
	part := pageRange.FindStringSubmatch(cmp.Or(pages, fmt.Sprintf("1-%d", maxPages)))
	if part == nil {
		part = make([]string, 3)
	}
	first, _ := strconv.Atoi(part[1])
	last, _ := strconv.Atoi(cmp.Or(part[2], part[1]))
	if first < 1 || last < first {
		return "", fail("pages must be like \"1-5\" or \"3\", not %q", pages)
	}
	got, problem := runPDF(ctx, command, f, first, min(last, first+maxPages-1))
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case problem != "":
		return "", fail("Cannot read PDF file %s: %s.", path, problem)
	case len(got.Pages) == 0:
		return "", fail("page %d is beyond end of file (%d pages)", first, got.Total)
	case strings.Join(got.Pages, "") == "":
		return "", fail("Cannot read PDF file %s: pages %d-%d have no text, perhaps only pictures.", path, first,
			first+len(got.Pages)-1)
	}
	return got.text(first), nil
}

// runPDF runs PDFText in a process of its own.
func runPDF(ctx context.Context, command []string, f *os.File, first, last int) (got pdfPages, problem string) {
	if len(command) == 0 {
		return got, "not supported"
	}
	if info, err := f.Stat(); err != nil || info.Size() > maxPDF {
		return got, fmt.Sprintf("it is bigger than %d MiB", maxPDF>>20)
	}
	ctx, cancel := context.WithTimeout(ctx, maxPDFTime)
	defer cancel()
	cmd := exec.CommandContext(
		ctx,
		command[0],
		append(command[1:len(command):len(command)], strconv.Itoa(first), strconv.Itoa(last))...)
	cmd.Stdin = f
	cmd.Env = []string{"GOTRACEBACK=none"}
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil || json.Unmarshal(out, &got) != nil {
		return got, "it is damaged, or too much to read"
	}
	return got, got.Problem
}

// text returns as many pages as fit into one answer. first is the number of the first
// page.
func (p pdfPages) text(first int) string {
	pages := make([]string, len(p.Pages))
	for i, text := range p.Pages {
		pages[i] = fmt.Sprintf("--- Page %d ---\n%s", first+i, strings.ToValidUTF8(text, "\ufffd"))
	}
	text, n := fitting(pages, "\n\n", "page")
	last := first + n - 1
	if last == p.Total {
		return text + fmt.Sprintf("\n\n(End of file — %d pages total)", p.Total)
	}
	return text + fmt.Sprintf("\n\n(Showing pages %d-%d of %d. Use pages=\"%d-%d\" to continue.)", first, last, p.Total,
		last+1, min(last+maxPages, p.Total))
}
