package files

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/llm"
	"parley/requiretest"
	"parley/tools"
)

// TestMain makes the test binary the program that reads PDFs, too.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "pdf-text" {
		syscall.Exit(PDFText(os.Stdin, os.Stdout, os.Args[2], os.Args[3])) // the race detector makes os.Exit wait for a second
	}
	os.Exit(m.Run())
}

// pdfOf returns a PDF of objects, the first of which is number 1 and the root.
func pdfOf(trailer string, objects ...string) string {
	var b strings.Builder
	b.WriteString("%PDF-1.4\n")
	table := "0000000000 65535 f \n"
	for i, o := range objects {
		table += fmt.Sprintf("%010d 00000 n \n", b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	at := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n%strailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, table, len(objects)+1, trailer, at)
	return b.String()
}

// pagesOf returns a PDF whose pages are drawn by contents.
func pagesOf(contents ...string) string {
	kids := ""
	objects := []string{"<< /Type /Catalog /Pages 2 0 R >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"}
	for _, c := range contents {
		n := len(objects) + 1
		kids += fmt.Sprintf("%d 0 R ", n)
		objects = append(objects,
			fmt.Sprintf("<< /Type /Page /Parent 2 0 R /Contents %d 0 R /Resources << /Font << /F1 3 0 R >> >> >>", n+1),
			fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(c), c))
	}
	objects[1] = fmt.Sprintf("<< /Type /Pages /Count %d /Kids [%s] >>", len(contents), kids)
	return pdfOf("", objects...)
}

func draw(text string) string { return "BT /F1 12 Tf 72 720 Td (" + text + ") Tj ET" }

// evilPDF has a table that says of an object that it is in a stream which is
// itself: whoever looks it up never comes to an end.
func evilPDF() string {
	var table bytes.Buffer
	z := zlib.NewWriter(&table)
	fmt.Fprint(z, "\x00\x00\x00"+"\x02\x01\x00")
	z.Close()
	xref := fmt.Sprintf("<< /Type /XRef /Size 2 /W [1 1 1] /Root 1 0 R /Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream", table.Len(), table.String())
	return fmt.Sprintf("%%PDF-1.5\n2 0 obj\n%s\nendobj\nstartxref\n9\n%%%%EOF\n%s", xref, strings.Repeat(" ", 1))
}

func TestReadPDF(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var many []string
	for i := range 45 {
		many = append(many, draw(fmt.Sprintf("number %d", i+1)))
	}
	d.put("two.pdf", pagesOf("BT /F1 12 Tf 72 720 Td (Hello) Tj 0 -14 Td (w\\366rld) Tj T* [(ker) -20 (ned) -300 (words)] TJ ET", draw("second")))
	d.put("many.pdf", pagesOf(many...))
	d.put("torn.pdf", pagesOf(draw("whole")+" end BT (lost) Tj ET", draw("next")))
	d.put("scan.pdf", pagesOf("0 0 m", "q Q"))
	d.put("long.pdf", pagesOf(draw(strings.Repeat("x", 100_000)), draw(strings.Repeat("y", 100_000))))
	d.put("locked.pdf", pdfOf("/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O ("+strings.Repeat("o", 32)+") /U ("+strings.Repeat("u", 32)+") >> /ID [(i) (i)]", "<< /Type /Catalog >>"))
	d.put("cut.pdf", pagesOf(draw("x"))[:200])
	d.put("evil.pdf", evilPDF())
	d.put("huge.pdf", strings.Replace(pagesOf(draw("x")), "xref\n0 6\n", "xref\n9999999999 6\n", 1))
	d.put("big.pdf", "%PDF-1.4\n")
	if err := os.Truncate(filepath.Join(d.w.Dir(), "big.pdf"), maxPDF+1); err != nil {
		t.Fatal(err)
	}
	bad := func(name, why string) string { return "Error: Cannot read PDF file " + name + ": " + why + "." + hint }
	for _, c := range []struct{ args, want string }{
		{`{"path":"two.pdf"}`, "--- Page 1 ---\nHello\nwörld\nkerned words\n\n--- Page 2 ---\nsecond\n\n(End of file — 2 pages total)"},
		{`{"path":"torn.pdf"}`, "--- Page 1 ---\nwhole\n\n--- Page 2 ---\nnext\n\n(End of file — 2 pages total)"},
		{`{"path":"two.pdf","pages":"2"}`, "--- Page 2 ---\nsecond\n\n(End of file — 2 pages total)"},
		{`{"path":"many.pdf","pages":"2-3"}`, "--- Page 2 ---\nnumber 2\n\n--- Page 3 ---\nnumber 3\n\n(Showing pages 2-3 of 45. Use pages=\"4-23\" to continue.)"},
		{`{"path":"many.pdf","pages":"44 - 99"}`, "--- Page 44 ---\nnumber 44\n\n--- Page 45 ---\nnumber 45\n\n(End of file — 45 pages total)"},
		{`{"path":"two.pdf","pages":"3"}`, "Error: page 3 is beyond end of file (2 pages)" + hint},
		{`{"path":"two.pdf","pages":"0-1"}`, `Error: pages must be like "1-5" or "3", not "0-1"` + hint},
		{`{"path":"two.pdf","pages":"2-1"}`, `Error: pages must be like "1-5" or "3", not "2-1"` + hint},
		{`{"path":"two.pdf","pages":"all"}`, `Error: pages must be like "1-5" or "3", not "all"` + hint},
		{`{"path":"scan.pdf"}`, bad("scan.pdf", "pages 1-2 have no text, perhaps only pictures")},
		{`{"path":"locked.pdf"}`, bad("locked.pdf", "it is encrypted")},
		{`{"path":"cut.pdf"}`, bad("cut.pdf", "it is damaged")},
		{`{"path":"evil.pdf"}`, bad("evil.pdf", "it is damaged, or too much to read")},
		{`{"path":"huge.pdf"}`, bad("huge.pdf", "it is damaged, or too much to read")},
		{`{"path":"big.pdf"}`, bad("big.pdf", "it is bigger than 50 MiB")},
	} {
		if r := d.call("s", "read_file", c.args); r.Text != c.want {
			t.Errorf("D-057: read_file(%s) = %.400q\nwant %.400q", c.args, r.Text, c.want)
		}
	}
	for _, c := range []struct{ args, end string }{
		{`{"path":"many.pdf"}`, "--- Page 20 ---\nnumber 20\n\n(Showing pages 1-20 of 45. Use pages=\"21-40\" to continue.)"},
		{`{"path":"long.pdf"}`, "xx\n\n(Showing pages 1-1 of 2. Use pages=\"2-2\" to continue.)"},
	} {
		if r := d.call("s", "read_file", c.args); !strings.HasSuffix(r.Text, c.end) {
			t.Errorf("D-057: read_file(%s) ends with %q", c.args, r.Text[max(0, len(r.Text)-200):])
		}
	}
}

// D-057: without the program, and when the time is up.
func TestReadPDFNot(t *testing.T) {
	d := newDesk(t)
	d.put("a.pdf", pagesOf(draw("x")))
	call := tools.Call{ToolCall: llm.ToolCall{ID: "1", Name: "read_file"}, Scope: tools.Scope{Session: "s", Workspace: d.w}}
	at, err := d.w.Resolve("a.pdf")
	if err != nil {
		t.Fatal(err)
	}
	r, err := reader{&readStates{}, nil}.read(t.Context(), call, at, readArgs{Path: "a.pdf"})
	if err == nil || err.Error() != "Cannot read PDF file a.pdf: not supported." {
		t.Errorf("%q, %v", r.Text, err)
	}
	sleep := requiretest.Program(t, "sleep")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	r, err = reader{&readStates{}, []string{sleep, "60"}}.read(ctx, call, at, readArgs{Path: "a.pdf"})
	if took := time.Since(begin); took > 30*time.Second || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%q, %v after %v", r.Text, err, took)
	}
}

// Whatever a PDF holds, there is an answer.
func FuzzPDF(f *testing.F) {
	f.Add(pagesOf(draw("x"), "BT /F1 1 Tf [(a) -9 2] TJ (b) ' 1 2 (c) \" ET"))
	f.Add(pdfOf("/Encrypt << >>", "<< >>"))
	f.Add(evilPDF())
	f.Add("%PDF-1.4\n")
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "x.pdf")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		text, err = readPDF(ctx, []string{os.Args[0], "pdf-text"}, file, "x.pdf", "1-2")
		if text == "" && err == nil {
			t.Error("no answer")
		}
	})
}
