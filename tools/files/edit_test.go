package files

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"parley/chat"
	"parley/tools"
)

const (
	notRead  = "Warning: file has not been read yet. Read it first to verify content before editing."
	modified = "Warning: file has been modified since last read. Re-read to verify content before editing."
)

// writer is a desk where an owner agrees to everything.
func writer(t testing.TB, standing func(string) bool) desk {
	t.Helper()
	d := newDesk(t)
	yes := func(context.Context, tools.Call, string) (bool, string, error) { return true, "owner", nil }
	kit, err := tools.NewKit(t.Context(), tools.Scope{}, []tools.Source{tools.Fixed(New(Rules{Standing: standing}))}, tools.Standard(tools.StandardConfig{Approve: yes})...)
	if err != nil {
		t.Fatal(err)
	}
	d.kit = kit
	return d
}

// holds checks what a file holds; "-" means that there is none.
func (d desk) holds(name, want string) {
	d.t.Helper()
	got, err := os.ReadFile(filepath.Join(d.w.Dir(), name))
	if os.IsNotExist(err) {
		got, err = []byte("-"), nil
	}
	if string(got) != want || err != nil {
		d.t.Errorf("%s holds %q, %v; want %q", name, got, err, want)
	}
}

func (d desk) edit(s chat.SessionID, path, old, new string, more ...string) tools.Result {
	return d.call(s, "edit_file", fmt.Sprintf(`{"path":%q,"old_text":%q,"new_text":%q%s}`, path, old, new, strings.Join(more, "")))
}

// What an edit makes of a file.
func TestEdit(t *testing.T) {
	t.Parallel()
	const all = `,"replace_all":true`
	d := writer(t, nil)
	for i, c := range []struct{ id, path, text, old, new, more, want string }{
		{"D-059", "a.txt", "one two three", "two", "2", "", "one 2 three"},
		{"D-059", "a.txt", "a b a b", "a", "x", all, "x b x b"},
		{"D-059", "a.txt", "aaaaa", "aa", "b", all, "bba"},
		{"D-059 as text", "a.txt", "a.c abc", "a.c", "$1 ${x} \\1", "", "$1 ${x} \\1 abc"},
		{"D-061 exact before trimmed", "a.txt", "x\n  x\n", "  x", "y", "", "x\ny\n"},
		{"D-061 trimmed", "a.go", "func f() {\n\tif a {\n\t\tb()\n\t}\n}\n", "if a {\n    b()\n}", "if a {\n\tc()\n}", "", "func f() {\n\tif a {\n\t\tc()\n\t}\n}\n"},
		{"D-061 trimmed", "a.txt", "  a  \n  b\nc\n", "a\nb\n", "A\nB\n", "", "  A\n  B\nc\n"},
		{"D-061 less indented", "a.txt", "a\n b\n", "    a\n     b", "    c\n     d", "", "c\n d\n"},
		{"D-061 old text without indentation", "a.py", "def f(x):\n    if y:\n        a = 3\n        b = 2\n", "if y:\na = 3\nb = 2", "if z:\na = 4\nb = 2", "", "def f(x):\n    if z:\n        a = 4\n        b = 2\n"},
		{"D-061 the same, CRLF", "a.py", "if y:\r\n    a = 3\r\n    b = 2\r\n", "if y:\na = 3\nb = 2\n", "if z:\na = 4\nb = 2", "", "if z:\r\n    a = 4\r\n    b = 2"},
		{"D-061 all moved alike, one dedented by intent", "a.py", "  if y:\n    a\n    b\n", "if y:\n  a\n  b", "if y:\n  a\nb", "", "  if y:\n    a\n  b\n"},
		{"D-061 a line around", "a.py", "def f():\n        a\n        b\n", "    a\n    b\n", "if y:\n    a\n    b\n", "", "def f():\n    if y:\n        a\n        b\n"},
		{"D-061 blank lines have none", "a.py", "  a\n\n    b\n", "a\n  \nb", "c\n \nd", "", "  c\n\n    d\n"},
		{"D-061 quotes", "a.md", "She said “hello” and it’s done.", `said "hello" and it's`, `cried "hello, 'you'" and it's`, "", "She cried “hello, ‘you’” and it’s done."},
		{"D-061 quotes of one kind", "a.md", `print("it’s")`, `print("it's")`, `print("it's 'ok'")`, "", `print("it’s ‘ok’")`},
		{"D-061 straight in the file", "a.txt", `say "hi"`, "“hi”", "“ho”", "", `say "ho"`},
		{"D-061 trimmed and quotes", "a.txt", "  a “b”\n  c\n", "a \"b\"\nc", "a \"d\"\nc", "", "  a “d”\n  c\n"},
		{"D-061 curly by intent", "a.md", "a “b” c", "a “b” c", `a "b" c`, "", `a "b" c`},
		{"D-065 CRLF", "a.txt", "a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "", "x\r\ny\r\nz\r\nc\r\n"},
		{"D-065 CRLF", "a.txt", "a\r\nb\r\n", "b\r\n", "c\r\n", "", "a\r\nc\r\n"},
		{"D-065 CRLF, trimmed", "a.txt", "  a\r\n  b\r\nc\r\n", "a\nb", "x\ny", "", "  x\r\n  y\r\nc\r\n"},
		{"D-065 mixed ends stay", "a.txt", "a\r\nb\nc\r\nd\r\n", "b\nc", "B\nC", "", "a\r\nB\r\nC\r\nd\r\n"},
		{"D-065 LF stays", "a.txt", "a\nb\n", "b", "c\nd", "", "a\nc\nd\n"},
		{"D-065 BOM stays", "a.txt", "\ufeffone\ntwo\n", "one", "", "", "\ufefftwo\n"},
		{"D-065 blanks", "a.go", "a\nb\n", "a", "x  \ny\t ", "", "x\ny\nb\n"},
		{"D-065 blanks", "a.go", "a", "a", "x ", "", "x"},
		{"D-065 blanks in a line", "a.go", "xfoobar", "foo", "foo ", "", "xfoo bar"},
		{"D-065 blanks and CRLF", "a.go", "a\r\nb\r\n", "a", "x \ny ", "", "x\r\ny\r\nb\r\n"},
		{"D-065 Markdown", "a.md", "a\n", "a", "x  \ny  ", "", "x  \ny  \n"},
		{"D-065 Markdown", "a.MDX", "a\n", "a", "x  ", "", "x  \n"},
		{"D-065 Markdown", "a.markdown", "a\n", "a", "x  ", "", "x  \n"},
		{"D-065 deleting a line", "a.txt", "a\nb\nc\n", "b", "", "", "a\nc\n"},
		{"D-065 deleting a line", "a.txt", "a\r\nb\r\nc\r\n", "b", "", "", "a\r\nc\r\n"},
		{"D-065 deleting a line", "a.txt", "a\nb\nc\n", "b\n", "", "", "a\nc\n"},
		{"D-065 deleting the end of a line", "a.txt", "a b\nc\n", " b", "", "", "a\nc\n"},
		{"D-065 deleting all", "a.txt", "x\nx\ny\nx", "x", "", all, "y\n"},
		{"D-063 create", "new/a.txt", "-", "", "text ", "", "text "},
		{"D-064 empty file", "a.txt", "", "", "text", "", "text"},
		{"D-064 blank file", "a.txt", " \n", "", "text", "", "text"},
	} {
		c.path = fmt.Sprintf("%d/%s", i, c.path)
		if c.text != "-" {
			d.put(c.path, c.text)
		}
		if r := d.edit("s", c.path, c.old, c.new, c.more); r.Failed {
			t.Errorf("%s: %s", c.id, r.Text)
		}
		if got, _ := os.ReadFile(filepath.Join(d.w.Dir(), c.path)); string(got) != c.want {
			t.Errorf("%s: %q, %q -> %q makes %q, want %q", c.id, c.text, c.old, c.new, got, c.want)
		}
	}
}

// What the model is told when nothing is changed.
func TestEditRefused(t *testing.T) {
	t.Parallel()
	d := writer(t, nil)
	d.put("many.txt", "x\ny\nx\nx x\n")
	d.put("two.txt", "a\n  a\n")
	d.put("code.go", "package a\n\nfunc greet(name string) string {\n\treturn \"Hello, \" + name\n}\n")
	d.put("code.py", "def f(x):\n    if y:\n        a = 3\n        b = 2\n")
	d.put("pass.py", "if y:\n  pass\npass\n")
	d.put("gap.py", "  a\n\n    b\n")
	d.put("flat.py", "a\nb\n")
	d.put("blanks.txt", "a  \n")
	d.put("deep.py", "a\n\t  b\n\tc\n")
	const misindented = "old_text not found in code.py. Possible cause: the indentation of old_text does not match the file, so it is not clear how to indent new_text. " +
		"Copy the lines exactly as they are in the file.\nBest match (100% similar) at line "
	d.put("case.txt", "one\nHELLO World\n")
	d.put("notes.md", "n")
	d.put("notes2.md", "n")
	d.put("other.txt", "")
	d.put("bin", "a\x00b")
	d.put("latin1.txt", "caf\xe9")
	d.put("replaced.txt", "caf\ufffd")
	d.put("book.ipynb", "{}")
	d.put("ro.txt", "old")
	d.put("dir/x", "x")
	if err := os.Chmod(filepath.Join(d.w.Dir(), "ro.txt"), 0o444); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(d.w.Dir(), "etc")); err != nil {
		t.Fatal(err)
	}
	outside := " is outside allowed directory " + d.w.Dir()
	for _, c := range []struct{ id, path, old, new, want string }{
		{"D-060", "many.txt", "x", "z", "Warning: old_text appears 4 times at line 1, line 3, line 4, .... Provide more context to make it unique, or set replace_all=true."},
		{"D-060", "two.txt", "a", "z", "Warning: old_text appears 2 times at line 1, line 2. Provide more context to make it unique, or set replace_all=true."},
		{"D-062", "code.go", "func greet(name string) string {\n\treturn \"Hullo, \" + name\n}", "x", "old_text not found in code.go. Possible cause: old_text is not what the file holds now.\n" +
			"Best match (95% similar) at line 3:\n--- old_text\n+++ code.go (line 3)\n@@ -1,3 +1,3 @@\n func greet(name string) string {\n-\treturn \"Hullo, \" + name\n+\treturn \"Hello, \" + name\n }"},
		{"D-062", "case.txt", "hello World", "x", "old_text not found in case.txt. Possible cause: letter case differs.\n" +
			"Best match (100% similar) at line 2:\n--- old_text\n+++ case.txt (line 2)\n@@ -1 +1 @@\n-hello World\n+HELLO World"},
		{"D-062", "case.txt", "HELLO  World", "x", "old_text not found in case.txt. Possible cause: whitespace differs.\n" +
			"Best match (87% similar) at line 2:\n--- old_text\n+++ case.txt (line 2)\n@@ -1 +1 @@\n-HELLO  World\n+HELLO World"},
		{"D-062", "code.go", "something else entirely", "x", "old_text not found in code.go. No similar text found. Verify the file content."},
		{"D-062", "other.txt", "a", "x", "old_text not found in other.txt. No similar text found. Verify the file content."},
		{"D-061 one line more", "code.py", "if y:\na = 3\nb = 2", "if y:\na = 3\nb = 2\nc = 1", misindented + "2:\n--- old_text\n+++ code.py (line 2)\n" +
			"@@ -1,3 +1,3 @@\n-if y:\n-a = 3\n-b = 2\n+    if y:\n+        a = 3\n+        b = 2"},
		{"D-061 a known line elsewhere", "code.py", "if y:\na = 3\nb = 2", "a = 3\nb = 2\nc = 1", misindented + "2:\n--- old_text\n+++ code.py (line 2)\n" +
			"@@ -1,3 +1,3 @@\n-if y:\n-a = 3\n-b = 2\n+    if y:\n+        a = 3\n+        b = 2"},
		{"D-061 which of two lines", "pass.py", "if y:\npass\npass", "pass", strings.ReplaceAll(misindented, "code", "pass") + "1:\n--- old_text\n+++ pass.py (line 1)\n" +
			"@@ -1,3 +1,3 @@\n if y:\n-pass\n+  pass\n pass"},
		{"D-061 outside of the old lines", "deep.py", "    b\n  c", "  d\ne\n  c", strings.ReplaceAll(misindented, "code", "deep") + "2:\n--- old_text\n+++ deep.py (line 2)\n" +
			"@@ -1,2 +1,2 @@\n-    b\n-  c\n+\t  b\n+\tc"},
		{"D-059", "code.py", "if y:\na = 3", "if y:\na = 3", "The edit changes nothing: code.py already has the new text."},
		{"D-061 a line where none was", "gap.py", "a\n\nb", "c\nd\ne", strings.ReplaceAll(misindented, "code", "gap") + "1:\n--- old_text\n+++ gap.py (line 1)\n" +
			"@@ -1,3 +1,3 @@\n-a\n+  a\n \n-b\n+    b"},
		{"D-061 only the first is moved", "flat.py", "  a\nb", "  a\n  c\n  b", strings.ReplaceAll(misindented, "code", "flat") + "1:\n--- old_text\n+++ flat.py (line 1)\n" +
			"@@ -1,2 +1,2 @@\n-  a\n+a\n b"},
		{"D-059 blanks stay", "blanks.txt", "a  ", "a  ", "The edit changes nothing: blanks.txt already has the new text."},
		{"D-063", "note.md", "a", "x", "File not found: note.md\nDid you mean: notes.md, notes2.md?"},
		{"D-063", "./notse.md", "a", "x", "File not found: ./notse.md\nDid you mean: ./notes.md, ./notes2.md?"},
		{"D-063", "zzz.bin", "a", "x", "File not found: zzz.bin"},
		{"D-063", "nowhere/a.md", "a", "x", "File not found: nowhere/a.md"},
		{"D-064", "notes.md", "", "x", "Cannot create file: notes.md already exists and is not empty. Give the text to replace as old_text."},
		{"D-065", "book.ipynb", "{", "x", "book.ipynb is a notebook: use notebook_edit instead."},
		{"D-059", "notes.md", "n", "n", "The edit changes nothing: notes.md already has the new text."},
		{"D-055", "bin", "a", "x", "Cannot edit binary file bin. Only UTF-8 text is supported."},
		{"D-055", "latin1.txt", "caf", "x", "Cannot edit binary file latin1.txt. Only UTF-8 text is supported."},
		{"D-055", "dir", "x", "y", "Not a file: dir"},
		{"R-S18", "ro.txt", "old", "new", "ro.txt: permission denied"},
		{"D-049", "../x", "a", "b", "Path ../x" + outside},
		{"D-049", "etc/passwd", "root", "b", "Path etc/passwd" + outside},
		{"D-053", "/dev/zero", "root", "b", "Reading /dev/zero is blocked (device path that could hang or produce infinite output)."},
		{"R-S18", ".parley/undo/x", "", "b", ".parley/undo/x is kept by Parley itself and cannot be changed. /undo takes back changes of files; other results need no change."},
		{"D-015", "", "a", "b", "Invalid parameters for tool 'edit_file': path must be at least 1 chars"},
	} {
		before, _ := os.ReadFile(filepath.Join(d.w.Dir(), c.path))
		if r := d.edit("s", c.path, c.old, c.new); r.Text != "Error: "+c.want+hint || !r.Failed {
			t.Errorf("%s: edit of %s: %q\nwant %q", c.id, c.path, r.Text, c.want)
		}
		if after, _ := os.ReadFile(filepath.Join(d.w.Dir(), c.path)); string(after) != string(before) {
			t.Errorf("%s: %s was changed to %q", c.id, c.path, after)
		}
	}
	// Bytes that are no text come as the character that stands for them.
	if r := d.call("s", "edit_file", "{\"path\":\"latin1.txt\",\"old_text\":\"caf\xe9\",\"new_text\":\"x\"}"); !r.Failed {
		t.Errorf("invalid UTF-8: %q", r.Text)
	}
	d.holds("latin1.txt", "caf\xe9")
}

// D-065: a file too big to be held in memory is refused.
func TestEditTooBig(t *testing.T) {
	d := writer(t, nil)
	d.put("sparse", "")
	if err := os.Truncate(filepath.Join(d.w.Dir(), "sparse"), 1<<30+1); err != nil {
		t.Fatal(err)
	}
	if r := d.edit("s", "sparse", "a", "b"); r.Text != "Error: File too big: sparse (more than 100 MiB)"+hint {
		t.Errorf("got %.200q", r.Text)
	}
}

// D-066: the model sees what was changed, in brief, and both hashes.
func TestEditResult(t *testing.T) {
	d := writer(t, nil)
	d.put("a.txt", lines(10))
	d.call("s", "read_file", `{"path":"a.txt"}`)
	want := "Successfully edited a.txt\n--- a.txt\n+++ a.txt\n@@ -2,7 +2,7 @@\n line 2\n line 3\n line 4\n-line 5\n+line V\n line 6\n line 7\n line 8\n" +
		"sha256 " + digest([]byte(lines(10)))[:12] + " → " + digest([]byte(strings.Replace(lines(10), "line 5", "line V", 1)))[:12]
	if r := d.edit("s", "a.txt", "line 5", "line V"); r.Text != want {
		t.Errorf("got %q\nwant %q", r.Text, want)
	}
	d.put("long.txt", lines(500)+strings.Repeat("wide", 1000))
	d.call("s", "read_file", `{"path":"long.txt"}`)
	r := d.edit("s", "long.txt", "e", "E", `,"replace_all":true`)
	diff := strings.Split(r.Text, "\n")
	if len(diff) != 42 || diff[40] != "... (968 more lines)" {
		t.Errorf("%d lines: %q", len(diff), diff[len(diff)-2:])
	}
	if r := d.edit("s", "long.txt", "widE", "", `,"replace_all":true`); len(r.Text) > 1500 || !strings.Contains(r.Text, "…\n") {
		t.Errorf("a wide line: %d bytes", len(r.Text))
	}
}

// D-067: who has not read what a file holds now is told, and the edit is made.
func TestEditWarns(t *testing.T) {
	d := writer(t, nil)
	d.put("a.txt", "abcdefg")
	check := func(s chat.SessionID, warning string) {
		t.Helper()
		now, _ := os.ReadFile(filepath.Join(d.w.Dir(), "a.txt"))
		r := d.edit(s, "a.txt", string(now[:1]), "")
		if got, _, _ := strings.Cut(r.Text, "Successfully edited a.txt\n"); got != warning || r.Failed {
			t.Errorf("edit by %s begins with %q, want %q: %q", s, got, warning, r.Text)
		}
	}
	check("s", notRead+"\n")
	check("s", "") // it has seen the diff
	check("t", notRead+"\n")
	check("s", modified+"\n")
	d.call("t", "file_read", `{"path":"a.txt"}`)
	check("t", "")
	d.call("s", "read_file", `{"path":"a.txt"}`)
	check("s", "")
	d.put("a.txt", "hijk") // somebody else
	check("s", modified+"\n")
}

// E-005: the names that models give the arguments.
func TestEditAliases(t *testing.T) {
	d := writer(t, nil)
	for _, args := range []string{
		`{"file_path":"a","old_string":"x","new_string":"y"}`, `{"filename":"a","search":"x","replace":"y"}`, `{"file":"a","old_text":"x","new_text":"y"}`,
	} {
		d.put("a", "x")
		if r := d.call("s", "edit_file", args); r.Failed {
			t.Errorf("%s: %s", args, r.Text)
		}
		d.holds("a", "y")
	}
}

// An edit of 20,000 lines that are almost what is looked for ends in time.
func TestEditBig(t *testing.T) {
	t.Parallel()
	d := writer(t, nil)
	d.put("a.txt", lines(20_000))
	if r := d.edit("s", "a.txt", lines(50)+"line fifty-one\nline 52\n", ""); !strings.Contains(r.Text, "similar) at line 1:") {
		t.Errorf("got %.200q", r.Text)
	}
}

// An old text that is there once is replaced there and nowhere else; whatever
// is looked for, text stays text.
func FuzzEdit(f *testing.F) {
	f.Add("one\ntwo\nthree\n", "two", "2", false)
	f.Add("a\r\nb\r\n", "a\nb", "", true)
	f.Add("“it’s”", `"it's"`, `"x"`, false)
	f.Add("\tif a {\n\t\tb\n\t}\n", "if a {\n  b\n}", "if c {\n  d\n}", false)
	f.Add("def f(x):\n    if y:\n        a\n        b\n", "if y:\na\nb", "if z:\nb", false)
	f.Add("  a\n\t\tb\n", " a  \n\n b", "b\n a", false)
	f.Add("\xff“\xe2\x80", "\"", "'", true)
	f.Fuzz(func(t *testing.T, text, old, new string, blanks bool) {
		s := replacement{old, new, blanks}
		edits, _ := s.edits(text)
		got, err := udiff.Apply(text, edits)
		if err != nil {
			t.Fatalf("%+v of %q: %v", edits, text, err)
		}
		if utf8.ValidString(text+old+new) && utf8.ValidString(old) && utf8.ValidString(new) && !utf8.ValidString(got) {
			t.Errorf("%q is no text", got)
		}
		at := strings.Index(text, old)
		if old != "" && at >= 0 && strings.LastIndex(text, old) == at {
			rest := text[at+len(old):]
			want := s.trimLineEnds(new, rest)
			if 2*strings.Count(text, "\r\n") > strings.Count(text, "\n") {
				want = crlf(want)
			}
			if new == "" && (at == 0 || text[at-1] == '\n') && !strings.HasSuffix(old, "\n") {
				rest = rest[newline(rest):]
			}
			if got != text[:at]+want+rest {
				t.Errorf("%q, %q -> %q: %q, want %q", text, old, new, got, text[:at]+want+rest)
			}
		}
		same, _ := replacement{old, old, blanks}.edits(text)
		if got, err := udiff.Apply(text, same); got != text || err != nil {
			t.Errorf("%q, %q for itself makes %q, %v", text, old, got, err)
		}
		for _, at := range byLines(text, old) {
			found := text[at[0]:at[1]]
			got, ok := reindent(old, old, found)
			is := strings.Split(found, "\n")
			for i, line := range strings.Split(got, "\n") {
				if strings.TrimSpace(line) != "" && indent(line) != indent(is[i]) || !ok {
					t.Errorf("%q indented as %q: %q, %v", old, found, got, ok)
				}
			}
			reindent(new, old, found)
		}
		closest(old, text)
		adaptQuotes(new, old, text)
	})
}
