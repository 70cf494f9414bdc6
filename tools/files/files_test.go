package files

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"parley/chat"
	"parley/llm"
	"parley/tools"
	"parley/workspace"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const hint = "\n\n[Analyze the error above and try a different approach.]"

// A desk is a workspace and the tools to work in it.
type desk struct {
	t   testing.TB
	w   *workspace.Workspace
	kit *tools.Kit
}

func newDesk(t testing.TB) desk {
	t.Helper()
	w, err := workspace.Open(filepath.Join(t.TempDir(), "work"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	long := tools.New("long", "Says much.", func(_ context.Context, c tools.Call, _ struct{}) (tools.Result, error) {
		return tools.Result{Text: strings.Repeat("much ", 10_000)}, nil
	})
	kit, err := tools.NewKit(t.Context(), tools.Scope{}, []tools.Source{tools.Fixed(append(New(Rules{}, os.Args[0], "pdf-text"), long))}, tools.Standard(tools.StandardConfig{})...)
	if err != nil {
		t.Fatal(err)
	}
	return desk{t, w, kit}
}

func (d desk) call(session chat.SessionID, name, args string) tools.Result {
	return d.kit.Call(d.t.Context(), tools.Call{
		ToolCall: llm.ToolCall{ID: "call_1", Name: name, Args: args},
		Scope:    tools.Scope{Session: session, Workspace: d.w, Turn: "turn"},
	})
}

// at returns the file that text means.
func (d desk) at(text string) workspace.Path {
	d.t.Helper()
	p, err := d.w.Resolve(text)
	if err != nil {
		d.t.Fatal(err)
	}
	return p
}

func (d desk) put(name, text string) {
	d.t.Helper()
	path := filepath.Join(d.w.Dir(), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

// D-003, D-025: what the model is told, byte for byte.
func TestSchemas(t *testing.T) {
	for _, tool := range New(Rules{}) {
		path := filepath.Join("testdata", tool.Name+".json")
		got := fmt.Sprintf("%s\n%s\n", tool.Description, tool.Schema)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); string(want) != got || err != nil {
			t.Errorf("%s: %v; go test -update makes it\n%s", path, err, got)
		}
	}
}

// D-002, D-039: reads run side by side, writes alone.
func TestHints(t *testing.T) {
	for _, tool := range New(Rules{}) {
		if want := slices.Contains(strings.Fields("read_file file_read list_dir file_list glob find_files grep file_exists"), tool.Name); tool.Parallel() != want {
			t.Errorf("%s.Parallel() = %v, want %v", tool.Name, !want, want)
		}
	}
}

func TestRead(t *testing.T) {
	d := newDesk(t)
	d.put("short.txt", "one\r\ntwo\n\nfour")
	d.put("bom.txt", "\ufeffone\n")
	d.put("empty", "")
	d.put("long.txt", lines(2001))
	d.put("dir/x", "x")
	d.put("wide.txt", strings.Repeat(strings.Repeat("ä", 999)+"\n", 200))
	d.put("endless.txt", strings.Repeat("ö", 300_000)+"\nnext\n")
	d.put("split.txt", strings.Repeat("x", 4095)+"é")
	d.put("error.txt", "Error: not one")
	d.put("bmw.txt", "BMW is a maker of cars")
	d.put("latin1.txt", "caf\xe9")
	d.put("a.bin", "\x7fELF\x00\x01")
	d.put("a.pdf", "%PDF-1.7\n")
	d.put("a.png", "\x89PNG\r\n\x1a\n\x00\x00")
	if err := syscall.Mkfifo(filepath.Join(d.w.Dir(), "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"zero": "/dev/zero", "passwd": "/etc/passwd"} {
		if err := os.Symlink(to, filepath.Join(d.w.Dir(), link)); err != nil {
			t.Fatal(err)
		}
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(d.w.Dir(), "sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()

	for _, c := range []struct{ id, args, want string }{
		{"D-050", `{"path":"short.txt"}`, "1| one\n2| two\n3| \n4| four\n\n(End of file — 4 lines total)"},
		{"D-050", `{"path":"bom.txt"}`, "1| one\n\n(End of file — 1 lines total)"},
		{"D-051", `{"path":"short.txt","offset":2,"limit":1}`, "2| two\n\n(Showing lines 2-2 of 4. Use offset=3 to continue.)"},
		{"D-051 all of it", `{"path":"short.txt","offset":4,"limit":9223372036854775807}`, "4| four\n\n(End of file — 4 lines total)"},
		{"D-051", `{"path":"short.txt","offset":"4"}`, "4| four\n\n(End of file — 4 lines total)"},
		{"D-051", `{"path":"short.txt","offset":5}`, "Error: offset 5 is beyond end of file (4 lines)" + hint},
		{"D-014", `{"path":"short.txt","offset":0}`, "Error: Invalid parameters for tool 'read_file': offset must be >= 1" + hint},
		{"D-015", `{}`, "Error: Invalid parameters for tool 'read_file': path is required" + hint},
		{"alias", `{"file_path":"bom.txt"}`, "1| one\n\n(End of file — 1 lines total)"},
		{"D-040", `{"path":"error.txt"}`, "1| Error: not one\n\n(End of file — 1 lines total)"},
		{"D-055", `{"path":"bmw.txt"}`, "1| BMW is a maker of cars\n\n(End of file — 1 lines total)"},
		{"D-055", `{"path":"split.txt"}`, "1| " + strings.Repeat("x", 4095) + "é\n\n(End of file — 1 lines total)"},
		{"D-055", `{"path":"empty"}`, "(Empty file: empty)"},
		{"D-055", `{"path":"nope"}`, "Error: File not found: nope" + hint},
		{"D-055", `{"path":"dir"}`, "Error: Not a file: dir" + hint},
		{"D-055", `{"path":"latin1.txt"}`, "1| café\n\n(End of file — 1 lines total)\n(The file is not UTF-8: it was read as Windows-1252 (Latin-1).)"},
		{"D-055", `{"path":"a.bin"}`, "Error: Cannot read binary file a.bin (MIME: application/octet-stream). Only UTF-8 text and images are supported." + hint},
		{"D-057", `{"path":"a.pdf"}`, "Error: Cannot read PDF file a.pdf: it is damaged." + hint},
		{"D-053", `{"path":"/dev/zero"}`, "Error: Reading /dev/zero is blocked (device path that could hang or produce infinite output)." + hint},
		{"D-053", `{"path":"/proc/self/fd/0"}`, "Error: Reading /proc/self/fd/0 is blocked (device path that could hang or produce infinite output)." + hint},
		{"D-053", `{"path":"pipe"}`, "Error: Reading pipe is blocked (device path that could hang or produce infinite output)." + hint},
		{"D-053", `{"path":"sock"}`, "Error: Reading sock is blocked (device path that could hang or produce infinite output)." + hint},
		{"D-053", `{"path":"zero"}`, "Error: Reading zero is blocked (device path that could hang or produce infinite output)." + hint},
		{"D-049", `{"path":"passwd"}`, "Error: Path passwd is outside allowed directory " + d.w.Dir() + hint},
		{"D-049", `{"path":"../x"}`, "Error: Path ../x is outside allowed directory " + d.w.Dir() + hint},
		{"D-049", `{"path":"/etc/passwd"}`, "Error: Path /etc/passwd is outside allowed directory " + d.w.Dir() + hint},
	} {
		r := d.call("s", "read_file", c.args)
		if r.Text != c.want || r.Failed != strings.HasPrefix(c.want, "Error: ") {
			t.Errorf("%s: read_file(%s) = %.300q, failed %v\nwant %.300q", c.id, c.args, r.Text, r.Failed, c.want)
		}
	}

	for _, c := range []struct{ id, args, start, end string }{
		{"D-051", `{"path":"long.txt"}`, "1| line 1\n", "2000| line 2000\n\n(Showing lines 1-2000 of 2001. Use offset=2001 to continue.)"},
		{"D-054", `{"path":"wide.txt"}`, "1| ää", "ä\n\n(Showing lines 1-127 of 200. Use offset=128 to continue.)"},
		{"D-054", `{"path":"endless.txt"}`, "1| öö", "ö… (the line is longer)\n\n(Showing lines 1-1 of 2. Use offset=2 to continue.)"},
	} {
		r := d.call("s", "read_file", c.args)
		if !strings.HasPrefix(r.Text, c.start) || !strings.HasSuffix(r.Text, c.end) || r.Failed {
			t.Errorf("%s: read_file(%s) = %.100q … %q", c.id, c.args, r.Text, r.Text[max(0, len(r.Text)-100):])
		}
		if n := len([]rune(r.Text)); n > maxChars+100 {
			t.Errorf("%s: read_file(%s) gives %d characters", c.id, c.args, n)
		}
	}
}

// A file of one line costs no more than what is shown of it.
func TestReadLine(t *testing.T) {
	r := bufio.NewReaderSize(strings.NewReader(strings.Repeat("x", 4*maxLine)+"\r\nnext"), 64<<10)
	if line, err := readLine(r); len(line) < maxLine || len(line) > 2*maxLine || err != nil {
		t.Errorf("got %d bytes, %v", len(line), err)
	}
	if line, err := readLine(r); line != "next" || err != nil {
		t.Errorf("got %q, %v", line, err)
	}
}

// D-055: what is too big is refused, however little of it is on the disk.
func TestReadTooBig(t *testing.T) {
	d := newDesk(t)
	d.put("sparse", "")
	if err := os.Truncate(filepath.Join(d.w.Dir(), "sparse"), 1<<40); err != nil {
		t.Fatal(err)
	}
	if r := d.call("s", "read_file", `{"path":"sparse"}`); r.Text != "Error: File too big: sparse (more than 100 MiB)"+hint {
		t.Errorf("got %.200q", r.Text)
	}
}

func TestWrite(t *testing.T) {
	d := newDesk(t)
	d.put("old.txt", "old")
	d.put("dir/x", "x")
	for _, c := range []struct{ id, args, want string }{
		{"D-058", `{"path":"a/b/new.txt","content":"grüß"}`, "Successfully wrote 4 characters to a/b/new.txt"},
		{"D-058", `{"path":"old.txt","content":""}`, "Successfully wrote 0 characters to old.txt"},
		{"D-011", `{"path":"json.txt","content":{"a":[1]}}`, "Successfully wrote 9 characters to json.txt"},
		{"D-058", `{"path":"dir","content":""}`, "Error: Not a file: dir" + hint},
		{"D-058", `{"path":"old.txt/below","content":""}`, "Error: Not a directory on the way to old.txt/below" + hint},
		{"D-049", `{"path":"../x","content":""}`, "Error: Path ../x is outside allowed directory " + d.w.Dir() + hint},
		{"D-015", `{"path":"x"}`, "Error: Invalid parameters for tool 'write_file': content is required" + hint},
	} {
		if r := d.call("s", "write_file", c.args); r.Text != c.want {
			t.Errorf("%s: write_file(%s) = %q\nwant %q", c.id, c.args, r.Text, c.want)
		}
	}
	for name, want := range map[string]string{"a/b/new.txt": "grüß", "old.txt": "", "json.txt": `{"a":[1]}`} {
		if got, err := os.ReadFile(filepath.Join(d.w.Dir(), name)); string(got) != want || err != nil {
			t.Errorf("%s holds %q, %v; want %q", name, got, err, want)
		}
	}
}

// R-S18: a protected file is refused under any name.
func TestProtected(t *testing.T) {
	d := newDesk(t)
	store := filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(store, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.w.Protect(store); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(store, filepath.Join(d.w.Dir(), "hard")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, args string }{{"read_file", `{"path":"hard"}`}, {"write_file", `{"path":"hard","content":""}`}} {
		if r := d.call("s", c.name, c.args); r.Text != "Error: hard is protected"+hint || r.Code != tools.CodeDenied {
			t.Errorf("%s: %q, %s", c.name, r.Text, r.Code)
		}
	}
}

func TestList(t *testing.T) {
	d := newDesk(t)
	for _, name := range []string{"b.txt", "a/deep/x", "a/y", "node_modules/m", ".git/config", "a/__pycache__/p", "c.txt"} {
		d.put(name, "")
	}
	for _, name := range []string{"bare", "a/void"} {
		if err := os.Mkdir(filepath.Join(d.w.Dir(), name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d.put("a/void/two\n📄 lines", "")
	d.put("a/void/latin\xe9", "")
	if err := os.Symlink("/", filepath.Join(d.w.Dir(), "slash")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ id, args, want string }{
		{"D-068", `{"path":"."}`, "📁 a\n📄 b.txt\n📁 bare\n📄 c.txt\n📄 slash"},
		{"D-068", ``, "📁 a\n📄 b.txt\n📁 bare\n📄 c.txt\n📄 slash"},
		{"D-068", `{"path":"~/a/"}`, "📁 deep\n📁 void\n📄 y"},
		{"D-068", `{"path":".","recursive":true}`, "a/\na/deep/\na/deep/x\na/void/\na/void/latin\ufffd\n\"a/void/two\\n📄 lines\"\na/y\nb.txt\nbare/\nc.txt\nslash"},
		{"D-068", `{"path":"a","recursive":"true"}`, "deep/\ndeep/x\nvoid/\nvoid/latin\ufffd\n\"void/two\\n📄 lines\"\ny"},
		{"R-S11", `{"path":"a/void"}`, "📄 latin\ufffd\n📄 \"two\\n📄 lines\""},
		{"D-068", `{"path":"bare"}`, "Directory bare is empty"},
		{"D-068", `{"max_entries":2}`, "📁 a\n📄 b.txt\n\n(truncated, showing first 2 of 5 entries)"},
		{"D-068", `{"pattern":"*.txt"}`, "📄 b.txt\n📄 c.txt"},
		{"D-068", `{"pattern":"y","recursive":true}`, "a/y"},
		{"D-068", `{"pattern":"a/*","recursive":true,"max_entries":2}`, "a/deep/\na/void/\n\n(truncated, showing first 2 of 3 entries)"},
		{"D-068", `{"pattern":"*.go"}`, "No entries of . match '*.go'"},
		{"D-068", `{"pattern":"[a"}`, "Error: invalid glob pattern: [a" + hint},
		{"E-005", `{"file_path":"a","limit":1}`, "📁 deep\n\n(truncated, showing first 1 of 3 entries)"},
		{"E-005", `{"directory":"a","limit":1}`, "📁 deep\n\n(truncated, showing first 1 of 3 entries)"},
		{"D-068", `{"path":"nope"}`, "Error: Directory not found: nope" + hint},
		{"D-068", `{"path":"b.txt"}`, "Error: Not a directory: b.txt" + hint},
		{"D-049", `{"path":"slash"}`, "Error: Path slash is outside allowed directory " + d.w.Dir() + hint},
		{"D-049", `{"path":".."}`, "Error: Path .. is outside allowed directory " + d.w.Dir() + hint},
	} {
		if r := d.call("s", "list_dir", c.args); r.Text != c.want {
			t.Errorf("%s: list_dir(%s) = %q\nwant %q", c.id, c.args, r.Text, c.want)
		}
	}
}

// D-042: a long result is kept in a file for its own session and nobody else.
func TestKeptResults(t *testing.T) {
	d := newDesk(t)
	r := d.call("telegram:1", "long", "")
	_, rest, _ := strings.Cut(r.Text, "saved to: ")
	path, _, _ := strings.Cut(rest, "\n")
	args := fmt.Sprintf(`{"path":%q}`, path)
	if r := d.call("telegram:1", "read_file", args); r.Failed || !strings.HasPrefix(r.Text, "1| much much") || len(r.Text) < 50_000 {
		t.Errorf("its own session reads %.100q", r.Text)
	}
	if err := os.Symlink(path, filepath.Join(d.w.Dir(), "link")); err != nil {
		t.Fatal(err)
	}
	if r := d.call("telegram:2", "read_file", fmt.Sprintf(`{"path":"./~/%s"}`, path)); !strings.HasPrefix(r.Text, "Error: File not found") {
		t.Errorf("through a folder called ~: %.100q", r.Text)
	}
	for _, c := range []struct{ name, args string }{
		{"read_file", args}, {"read_file", fmt.Sprintf(`{"path":"~/%s"}`, path)}, {"read_file", `{"path":"link"}`}, {"read_file", fmt.Sprintf(`{"path":%q}`, d.w.Dir()+"/"+path)},
		{"write_file", fmt.Sprintf(`{"path":%q,"content":""}`, path)},
		{"list_dir", fmt.Sprintf(`{"path":%q}`, filepath.Dir(path))}, {"list_dir", `{"path":".parley/tool-results"}`}, {"list_dir", `{"path":".parley","recursive":true}`},
	} {
		if r := d.call("telegram:2", c.name, c.args); r.Code != tools.CodeDenied {
			t.Errorf("%s(%s) in another session = %.100q, want a refusal", c.name, c.args, r.Text)
		}
	}
	if r := d.call("telegram:1", "list_dir", fmt.Sprintf(`{"path":%q}`, filepath.Dir(path))); r.Text != "📄 "+filepath.Base(path) {
		t.Errorf("its own session sees %q", r.Text)
	}
}

// R-S12, R-S14: who reads what strangers wrote lets them into the turn, also a
// turn later and by another way.
func TestStrangeFiles(t *testing.T) {
	d := newDesk(t)
	d.put("memory/people/x/HEARD.md", "a word")
	d.put("memory/people/x/MEMORY.md", "a word")
	d.put("notes/history.jsonl", "a word")
	for _, name := range []string{"memory/HEARD.md", "memory/history.jsonl", "a word"} {
		d.put(name, "a word")
	}
	path := func(r tools.Result) string {
		_, rest, _ := strings.Cut(r.Text, "saved to: ")
		path, _, _ := strings.Cut(rest, "\n")
		return path
	}
	web := tools.New("web", "Says much.", func(context.Context, tools.Call, struct{}) (tools.Result, error) {
		return tools.Result{Text: strings.Repeat("a word ", 10_000)}, nil
	})
	web.Untrusted = true
	kit, err := tools.NewKit(t.Context(), tools.Scope{}, []tools.Source{tools.Fixed{web}}, tools.Standard(tools.StandardConfig{})...)
	if err != nil {
		t.Fatal(err)
	}
	owner := tools.Scope{Session: "s", Workspace: d.w, Turn: "t", At: chat.Address{Channel: "c", Chat: "1"}, From: chat.Sender{ID: "1", Role: chat.Owner}}
	page := path(kit.Call(t.Context(), tools.Call{ToolCall: llm.ToolCall{ID: "c", Name: "web"}, Scope: owner}))
	plain := path(d.call("s", "long", ""))
	for _, c := range []struct {
		name, args string
		want       bool
	}{
		{"read_file", page, true}, {"file_read", page, true}, {"grep", page, true}, {"read_file", plain, false},
		{"read_file", "memory/HEARD.md", true}, {"file_read", "memory/history.jsonl", true}, {"read_file", "./notes/../memory/history.jsonl", true},
		{"grep", "memory", true}, {"grep", ".", true}, {"grep", "notes", false}, {"read_file", "notes/history.jsonl", false},
	} {
		args := fmt.Sprintf(`{"path":%q}`, c.args)
		if c.name == "grep" {
			args = fmt.Sprintf(`{"path":%q,"pattern":"a word"}`, c.args)
		}
		r := d.kit.Call(t.Context(), tools.Call{ToolCall: llm.ToolCall{ID: "call_1", Name: c.name, Args: args}, Scope: owner})
		if r.Tainted != c.want || c.want && r.Failed {
			t.Errorf("%s(%s): tainted %v, want %v: %.100q", c.name, c.args, r.Tainted, c.want, r.Text)
		}
	}
}

// A path that is too long is refused, and of others errors are not much longer, whichever tool it is given to.
func TestLongPath(t *testing.T) {
	t.Parallel()
	d := writer(t, nil)
	if err := os.Symlink("/etc", filepath.Join(d.w.Dir(), "etc")); err != nil {
		t.Fatal(err)
	}
	args := map[string]string{"glob": `,"pattern":"*"`, "find_files": `,"pattern":"*"`, "grep": `,"pattern":"x"`, "edit_file": `,"old_text":"x","new_text":"y"`,
		"write_file": `,"content":"x"`, "file_write": `,"content":"x"`, "notebook_edit": `,"cell_index":0`}
	d.put(strings.Repeat("d/", 200)+"x", "x")
	for _, path := range []string{
		strings.Repeat("p", 5000), strings.Repeat("p/", 400), "etc/" + strings.Repeat("p ", 2500), d.w.Dir() + "/" + strings.Repeat("pp/", 150) + "../" + strings.Repeat("q", 256),
		strings.Repeat("d/", 200) + "x/y", strings.Repeat("d/", 200) + "y.ipynb",
	} {
		for _, tool := range New(Rules{}) {
			r := d.call("s", tool.Name, fmt.Sprintf(`{"path":%q%s}`, path, args[tool.Name]))
			if r.Failed && len(r.Text) > 3*maxPath+200 { // some name it three times
				t.Errorf("%s of %.20s…: %d bytes: %.400s", tool.Name, path, len(r.Text), r.Text)
			}
		}
	}
	if r := d.call("s", "list_dir", fmt.Sprintf(`{"path":%q}`, strings.Repeat("ä", 5000))); r.Text != "Error: the path is longer than 1000 bytes"+hint {
		t.Errorf("got %q", r.Text)
	}
}
