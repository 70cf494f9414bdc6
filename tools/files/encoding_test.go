package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Text in an encoding of old is read and searched, with a word on which it was; what is no text is refused.
func TestOldEncodings(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct{ name, data, want, encoding string }{
		{"latin1.csv", "name;price\r\nM\xfcller;5\r\n", "1| name;price\n2| Müller;5", "Windows-1252 (Latin-1)"},
		{"windows.txt", "\x935 \x80\x94 caf\xe9", "1| “5 €” café", "Windows-1252 (Latin-1)"},
		{"utf16le.txt", "\xff\xfeM\x00\xfc\x00\n\x00x\x00", "1| Mü\n2| x", "UTF-16"},
		{"utf16be.txt", "\xfe\xff\x00M\x00\xfc\x00\n\x00x", "1| Mü\n2| x", "UTF-16"},
		{"unmarked.txt", "M\x00a\x00\r\x00\n\x00x\x00y\x00", "1| Ma\n2| xy", "UTF-16"},
		{"gbk.txt", "\xc4\xe3\xba\xc3, \xca\xc0\xbd\xe7", "1| 你好, 世界", "GBK"},
		{"long.csv", strings.Repeat("abc,def\n", 1000) + "caf\xe9\n", "1| abc,def", ""},
	} {
		d.put(c.name, c.data)
		want := fmt.Sprintf("%s\n\n(End of file — %d lines total)\n(The file is not UTF-8: it was read as %s.)", c.want, 1+strings.Count(c.want, "\n"), c.encoding)
		r := d.call("s", "read_file", `{"path":"`+c.name+`"}`)
		if c.encoding != "" && r.Text != want || !strings.HasPrefix(r.Text, c.want) {
			t.Errorf("%s: %q, want %q", c.name, r.Text, want)
		}
	}
	for pattern, name := range map[string]string{"Müller;5$": "latin1.csv", "5 €” café": "windows.txt", "^Ma$": "unmarked.txt", "你好": "gbk.txt"} {
		if r := d.call("s", "grep", `{"pattern":"`+pattern+`"}`); !strings.Contains(r.Text, name) {
			t.Errorf("%s: %q", pattern, r.Text)
		}
	}
	for _, data := range []string{"\x00", "a\x00b\x01\xff\xfe\x02", "\x1f\x8b\x08\x01\x02\xe9", "\x7fELF\x02\x01\x01\x00\x00\x00"} {
		d.put("data", data)
		if r := d.call("s", "read_file", `{"path":"data"}`); !r.Failed || !strings.Contains(r.Text, "Cannot read binary file") {
			t.Errorf("%q is read as %q", data, r.Text)
		}
	}
}

// A file that is named is searched though it is large, or refused with words.
func TestGrepLargeFile(t *testing.T) {
	d := newDesk(t)
	d.put("large.log", strings.Repeat("nothing here\n", 1_000_000)+"the needle\n")
	if r := d.call("s", "grep", `{"pattern":"needle","path":"large.log","output_mode":"content"}`); r.Text != "large.log:1000001\n> 1000001| the needle" {
		t.Errorf("%.200q", r.Text)
	}
	if r := d.call("s", "grep", `{"pattern":"needle"}`); !strings.Contains(r.Text, "(skipped 1 large files)") {
		t.Errorf("%.200q", r.Text)
	}
	if err := os.Truncate(filepath.Join(d.w.Dir(), "large.log"), maxNamed+1_000_000); err != nil {
		t.Fatal(err)
	}
	want := "Error: large.log has 65 MB, and files of up to 64 MB can be searched. Read parts of it with read_file, or split it." + hint
	if r := d.call("s", "grep", `{"pattern":"needle","path":"large.log"}`); r.Text != want {
		t.Errorf("%.300q", r.Text)
	}
}
