package files

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"parley/chat"
	"parley/llm"
	"parley/requiretest"
	"parley/texts"
	"parley/tools"
)

// age makes the files as old as their place in names says, the first the newest.
func (d desk) age(names ...string) {
	d.t.Helper()
	now := time.Now()
	for i, name := range names {
		at := now.Add(-time.Duration(i) * time.Hour)
		if err := os.Chtimes(filepath.Join(d.w.Dir(), name), at, at); err != nil {
			d.t.Fatal(err)
		}
	}
}

func TestGlob(t *testing.T) {
	d := newDesk(t)
	for _, name := range []string{"a.go", "src/b.go", "src/deep/c.go", "src/deep/c_test.go", "d.txt", ".env", "node_modules/x.go", "src/.venv/y.go", ".parley/z.go"} {
		d.put(name, "")
	}
	d.put("odd/two\nlines.md", "")
	d.age("src/b.go", "d.txt", "a.go", "src/deep/c_test.go", "src/deep/c.go", "src", "src/deep", ".env")
	if err := os.Symlink("/etc", filepath.Join(d.w.Dir(), "etc")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ id, args, want string }{
		{"D-069", `{"pattern":"*.go"}`, "src/b.go\na.go\nsrc/deep/c_test.go\nsrc/deep/c.go"},
		{"D-069", `{"pattern":"c*.go"}`, "src/deep/c_test.go\nsrc/deep/c.go"},
		{"D-069", `{"pattern":"src/*.go"}`, "src/b.go"},
		{"D-069", `{"pattern":"./src/**/*.go"}`, "src/b.go\nsrc/deep/c_test.go\nsrc/deep/c.go"},
		{"D-069", `{"pattern":"**/*_test.{go,py}"}`, "src/deep/c_test.go"},
		{"D-069", `{"pattern":"deep/*.go","path":"src"}`, "src/deep/c_test.go\nsrc/deep/c.go"},
		{"D-069", `{"pattern":"*.go","head_limit":2}`, "src/b.go\na.go\n\n(pagination: limit=2, offset=0)"},
		{"D-069", `{"pattern":"*.go","max_results":1,"offset":1}`, "a.go\n\n(pagination: limit=1, offset=1)"},
		{"D-069", `{"pattern":"*.go","head_limit":2,"offset":2}`, "src/deep/c_test.go\nsrc/deep/c.go\n\n(pagination: offset=2)"},
		{"D-069", `{"pattern":"*.go","offset":9}`, "(pagination: offset=9)"},
		{"D-069", `{"pattern":"*.go","head_limit":0}`, "src/b.go\na.go\nsrc/deep/c_test.go\nsrc/deep/c.go"},
		{"D-069", `{"pattern":"*.go","head_limit":1001}`, "Error: Invalid parameters for tool 'glob': head_limit must be <= 1000" + hint},
		{"D-069", `{"pattern":"*e*","entry_type":"dirs"}`, "src/deep/"},
		{"D-069", `{"pattern":"*d*","entry_type":"both","path":"src"}`, "src/deep/"},
		{"D-069", `{"pattern":"*.rb"}`, "No paths matched pattern '*.rb' in ."},
		{"D-069", `{"pattern":"*.rb","directory":"src"}`, "No paths matched pattern '*.rb' in src"},
		{"D-071", `{"pattern":".env"}`, ".env"},
		{"D-071", `{"pattern":"[xyz].go"}`, "No paths matched pattern '[xyz].go' in ."},
		{"R-S11", `{"pattern":"*.md"}`, `"odd/two\nlines.md"`},
		{"R-S18", `{"pattern":"etc/*"}`, "No paths matched pattern 'etc/*' in ."},
		{"R-S18", `{"pattern":"*","path":"etc"}`, "Error: Path etc is outside allowed directory " + d.w.Dir() + hint},
		{"R-S18", `{"pattern":"../**"}`, "No paths matched pattern '../**' in ."},
		{"R-S18", `{"pattern":"*","path":".parley"}`, "Error: .parley is not for this conversation" + hint},
		{"D-069", `{"pattern":"*","path":"nope"}`, "Error: Path not found: nope" + hint},
		{"D-069", `{"pattern":"*","path":"a.go"}`, "Error: Not a directory: a.go" + hint},
		{"D-069", `{"pattern":"{a"}`, "Error: invalid glob pattern: {a" + hint},
	} {
		for _, name := range []string{"glob", "find_files"} {
			want := strings.ReplaceAll(c.want, "tool 'glob'", "tool '"+name+"'")
			if r := d.call("s", name, c.args); r.Text != want {
				t.Errorf("%s: %s(%s) = %q\nwant %q", c.id, name, c.args, r.Text, want)
			}
		}
	}
}

func TestGrep(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put("a.go", "package a\n\nfunc One() {}\nfunc Two() {}\n")
	d.put("b/b.py", "def one():\r\n    pass\r\n# One.two\r\n")
	d.put("b/c.md", "one\n\n\ntwo\n")
	d.put("bom.txt", "\ufefffirst\nlast")
	d.put("bin", "one\x00")
	d.put("big.log", strings.Repeat("one\n", maxGrep/4+1))
	d.put("node_modules/one.go", "one")
	d.put(".parley/one.go", "one")
	d.put("min.js", strings.Repeat("x", 50_000)+"needle\nsmall\n")
	d.age("b/c.md", "a.go", "b/b.py", "bom.txt", "min.js")
	store := filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(store, []byte("one secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.w.Protect(store); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.Link(store, filepath.Join(d.w.Dir(), "hard")), os.Symlink(store, filepath.Join(d.w.Dir(), "soft")),
		os.Symlink("/", filepath.Join(d.w.Dir(), "slash")), syscall.Mkfifo(filepath.Join(d.w.Dir(), "pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const left = "\n\n(skipped 1 binary/unreadable files)\n(skipped 1 large files)"
	none := func(p, in string) string { return "No matches found for pattern '" + p + "' in " + in }
	const re2 = ". The syntax is RE2: look-around ((?=, (?!, (?<=, (?<!) and backreferences (\\1) are not supported."
	for _, c := range []struct{ id, args, want string }{
		{"D-070", `{"pattern":"one"}`, "b/c.md\nb/b.py" + left},
		{"D-070", `{"pattern":"one","case_insensitive":true}`, "b/c.md\na.go\nb/b.py" + left},
		{"D-070", `{"pattern":"one|Two","glob":"*.{go,md}"}`, "b/c.md\na.go"},
		{"D-070", `{"pattern":"one","glob":"b/*"}`, "b/c.md\nb/b.py"},
		{"D-070", `{"pattern":"one","type":"py"}`, "b/b.py"},
		{"D-070", `{"pattern":"O","type":"go","output_mode":"count"}`, "a.go: 1\n\n(total matches: 1 in 1 files)"},
		{"D-070", `{"pattern":"o","path":"b","output_mode":"count"}`, "b/c.md: 2\nb/b.py: 2\n\n(total matches: 4 in 2 files)"},
		{"D-070", `{"pattern":"o","path":"b","output_mode":"count","head_limit":1,"offset":1}`, "b/b.py: 2\n\n(pagination: offset=1)\n(total matches: 4 in 2 files)"},
		{"D-070", `{"pattern":"o","path":"b","head_limit":1}`, "b/c.md\n\n(pagination: limit=1, offset=0)"},
		{"D-070", `{"pattern":"Two","path":"a.go","output_mode":"content"}`, "a.go:4\n> 4| func Two() {}"},
		{"D-070", `{"pattern":"One","path":"a.go","output_mode":"content","context_before":1,"context_after":9}`, "a.go:3\n  2| \n> 3| func One() {}\n  4| func Two() {}"},
		{"D-070", `{"pattern":"t","path":"b","output_mode":"content","context_before":20}`, "b/b.py:3\n  1| def one():\n  2|     pass\n> 3| # One.two\n\nb/c.md:4\n  1| one\n  2| \n  3| \n> 4| two"},
		{"D-070", `{"pattern":"o","path":"b","output_mode":"content","head_limit":2,"offset":1}`, "b/b.py:3\n> 3| # One.two\n\nb/c.md:1\n> 1| one\n\n(pagination: limit=2, offset=1)"},
		{"D-070", `{"pattern":"o","path":"b","output_mode":"content","offset":3}`, "b/c.md:4\n> 4| two\n\n(pagination: offset=3)"},
		{"D-070", `{"pattern":"e.t","path":"b","output_mode":"content","fixed_strings":true}`, "b/b.py:3\n> 3| # One.two"},
		{"D-070", `{"pattern":"E.T","path":"b","fixed_strings":true,"case_insensitive":true}`, "b/b.py"},
		{"D-070", `{"pattern":"(","path":"a.go","fixed_strings":true,"output_mode":"count"}`, "a.go: 2\n\n(total matches: 2 in 1 files)"},
		{"D-070", `{"pattern":"^$","path":"b/c.md","output_mode":"content"}`, "b/c.md:2\n> 2| \n\nb/c.md:3\n> 3| "},
		{"D-070", `{"pattern":"^first$","path":"bom.txt"}`, "bom.txt"},
		{"D-070", `{"pattern":"\\Alast\\z","path":"bom.txt"}`, "bom.txt"},
		{"D-070", `{"pattern":"pass$","path":"b"}`, "b/b.py"},
		{"D-070", `{"pattern":"one[^x]*two","path":"b"}`, none("one[^x]*two", "b")},
		{"D-070", `{"pattern":"one\\n","path":"b"}`, none(`one\n`, "b")},
		{"D-070", `{"pattern":"nowhere"}`, none("nowhere", ".") + left},
		{"D-070", `{"pattern":"needle$","path":"min.js","output_mode":"count"}`, "min.js: 1\n\n(total matches: 1 in 1 files)"},
		{"D-070", `{"pattern":"needle","path":"min.js","output_mode":"content"}`, "min.js:1\n> 1| (the line begins before) …" + strings.Repeat("x", maxShown/4) + "needle"},
		{"D-070", `{"pattern":"small","path":"min.js","output_mode":"content"}`, "min.js:2\n> 2| small"},
		{"D-070", `{"pattern":"a(b"}`, "Error: invalid regex pattern: missing closing ): `a(b`" + hint},
		{"D-070", `{"pattern":"a(?=b)"}`, "Error: invalid regex pattern: invalid or unsupported Perl syntax: `(?=`" + re2 + hint},
		{"D-070", `{"pattern":"a(?<!b)"}`, "Error: invalid regex pattern: invalid named capture: `(?<!b)`" + re2 + hint},
		{"D-070", `{"pattern":"(a)\\1"}`, "Error: invalid regex pattern: invalid escape sequence: `\\1`" + re2 + hint},
		{"D-070", `{"pattern":"x","path":"nope"}`, "Error: Path not found: nope" + hint},
		{"D-070", `{"pattern":"x","context_after":21}`, "Error: Invalid parameters for tool 'grep': context_after must be <= 20" + hint},
		{"D-071", `{"pattern":"one","path":"big.log"}`, "big.log"},
		{"D-071", `{"pattern":"one","path":"bin"}`, "Error: bin is a binary file: there are no lines to search" + hint},
		{"E-005", `{"query":"one","directory":"b","include":"*.md"}`, "b/c.md"},
		{"R-S18", `{"pattern":"secret"}`, none("secret", ".") + left},
		{"R-S18", `{"pattern":"secret","path":"hard","output_mode":"content"}`, "Error: hard is protected" + hint},
		{"R-S18", `{"pattern":"secret","path":"soft"}`, "Error: Path soft is outside allowed directory " + d.w.Dir() + hint},
		{"R-S18", `{"pattern":"root","path":"slash/etc"}`, "Error: Path slash/etc is outside allowed directory " + d.w.Dir() + hint},
		{"R-S18", `{"pattern":"one","path":".parley"}`, "Error: .parley is not for this conversation" + hint},
		{"D-053", `{"pattern":"x","path":"pipe"}`, "Error: Reading pipe is blocked (device path that could hang or produce infinite output)." + hint},
	} {
		if r := d.call("s", "grep", c.args); r.Text != c.want {
			t.Errorf("%s: grep(%s) = %.600q\nwant %.600q", c.id, c.args, r.Text, c.want)
		}
	}
}

// R-S14: what looks through folders does not enter those of other people, and
// shows everybody their own.
func TestOthersAreNotFound(t *testing.T) {
	d := newDesk(t)
	const anna, bert, group chat.Person = "telegram:7", "telegram:8", "telegram:-100"
	for _, name := range []string{"MEMORY.md", "USER.md", "memory/history.jsonl", "notes/MEMORY.md", anna.Folder() + "/MEMORY.md", bert.Folder() + "/MEMORY.md", group.Folder() + "/MEMORY.md"} {
		d.put(name, "a fact\n")
	}
	all := strings.Fields("MEMORY.md USER.md memory memory/history.jsonl memory/people notes notes/MEMORY.md")
	for _, c := range []struct {
		who  chat.Person
		from chat.Sender
		want []string
	}{
		{chat.TheOwner, chat.Sender{ID: "1", Role: chat.Owner}, slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == "memory/people" })},
		{anna, chat.Sender{ID: "7", Role: chat.User}, []string{anna.Folder(), anna.Folder() + "/MEMORY.md", "notes", "notes/MEMORY.md"}},
		{"telegram:9", chat.Sender{ID: "9"}, []string{"notes", "notes/MEMORY.md"}},
		{group, chat.Sender{ID: "1", Role: chat.Owner}, []string{group.Folder(), group.Folder() + "/MEMORY.md", "notes", "notes/MEMORY.md"}},
	} {
		scope := tools.Scope{Session: "s", Workspace: d.w, Turn: "turn", From: c.from, At: chat.Address{Channel: "telegram", Chat: "5"}}
		if c.who == group {
			scope.At.Chat, scope.Group = "-100", true
		}
		for _, call := range []struct{ name, args string }{
			{"glob", `{"pattern":"**","entry_type":"both"}`}, {"grep", `{"pattern":"fact"}`}, {"list_dir", `{"recursive":true}`}, {"find_files", `{"pattern":"**/*.{md,jsonl}"}`},
		} {
			r := d.kit.Call(t.Context(), tools.Call{ToolCall: llm.ToolCall{ID: call.name, Name: call.name, Args: call.args}, Scope: scope})
			var got, want []string
			for line := range strings.Lines(r.Text) {
				got = append(got, strings.Trim(line, "/\n"))
			}
			for _, name := range c.want {
				if call.name == "glob" || call.name == "list_dir" || strings.Contains(name, ".") {
					want = append(want, name)
				}
			}
			if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
				t.Errorf("%s: %s finds %q, want %q", c.who, call.name, got, want)
			}
		}
		for _, name := range []string{bert.Folder() + "/MEMORY.md", bert.Folder(), "memory/people"} {
			for _, tool := range []string{"glob", "grep", "list_dir"} {
				r := d.kit.Call(t.Context(), tools.Call{ToolCall: llm.ToolCall{ID: tool + name, Name: tool, Args: fmt.Sprintf(`{"pattern":"fact","path":%q}`, name)}, Scope: scope})
				if r.Code != tools.CodeDenied {
					t.Errorf("%s: %s in %s: %q", c.who, tool, name, r.Text)
				}
			}
		}
	}
}

// C-015: what a call is about, of arguments of which some may be missing.
func TestPreviews(t *testing.T) {
	for _, tool := range New(Rules{}) {
		if !strings.Contains(" read_file list_dir glob find_files grep notebook_edit ", " "+tool.Name+" ") {
			continue
		}
		got := tool.Preview(texts.English().Agent.Steps, map[string]any{}) + "|" + tool.Preview(texts.English().Agent.Steps, map[string]any{"path": 1, "pattern": true}) + "|" + tool.Preview(texts.English().Agent.Steps, map[string]any{"path": "a\nb", "pattern": "a\nb"})
		if !strings.HasPrefix(got, "||") || !strings.HasSuffix(got, `"a\nb"`) {
			t.Errorf("C-015: %s: %q", tool.Name, got)
		}
	}
}

// D-070: a result is capped.
func TestGrepCap(t *testing.T) {
	d := newDesk(t)
	for i := range 4 {
		d.put(fmt.Sprintf("%d.txt", i), strings.Repeat(strings.Repeat("ä", 999)+"\n", 100))
	}
	call := tools.Call{ToolCall: llm.ToolCall{ID: "1", Name: "grep"}, Scope: tools.Scope{Session: "s", Workspace: d.w}}
	r, err := grep(t.Context(), call, d.at("."), grepArgs{Pattern: "ä", OutputMode: "content"})
	if n := len([]rune(r.Text)); n > maxChars+100 || n < maxChars-2000 || !strings.HasSuffix(r.Text, "\n\n(output truncated due to size)") || err != nil {
		t.Errorf("%d characters, %v: … %q", n, err, r.Text[max(0, len(r.Text)-100):])
	}
}

// D-070: a search ends when it is told to, whatever it is at.
func TestGrepStops(t *testing.T) {
	d := newDesk(t)
	for i := range 4 {
		d.put(fmt.Sprintf("%d.txt", i), strings.Repeat("ab", maxGrep/2-1))
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	call := tools.Call{ToolCall: llm.ToolCall{ID: "1", Name: "grep"}, Scope: tools.Scope{Session: "s", Workspace: d.w}}
	if _, err := grep(ctx, call, d.at("."), grepArgs{Pattern: "(?i)(a|b|ab)*(x+x+)+y", OutputMode: "count"}); err == nil {
		t.Error("it went on to the end")
	}
}

// The fast search finds what a look at each line does.
func FuzzGrepPattern(f *testing.F) {
	for _, p := range []string{"a", "^a$", `\Aa`, `a\z`, `(?m:^)b`, `(?s).`, `[^a]b`, `a\s*b`, "a\nb", `\bb`, `(?i)A|^$`, `a{2,3}?`, `\p{Greek}`, `[[:space:]]$`, `(?U)a+`, `(a|\n)+`, `\x{a}`, `\C`, "(?i)ſ"} {
		f.Add(p, "a\nb\n\naab b\r\nxα", false, false)
	}
	f.Add("ask", "AſK\nx", true, false)
	f.Add("a.k", "A.\u212a\nx", true, true)
	f.Fuzz(func(t *testing.T, pattern, text string, fold, fixed bool) {
		if len(pattern) > 100 || len(text) > 1000 || strings.Contains(strings.ReplaceAll(text, "\r\n", ""), "\r") {
			return
		}
		s, problem := newSearch(grepArgs{Pattern: pattern, CaseInsensitive: fold, FixedStrings: fixed})
		plain := pattern
		if fixed {
			plain = regexp.QuoteMeta(pattern)
		}
		if fold {
			plain = "(?i)" + plain
		}
		each, err := regexp.Compile(plain)
		if (err == nil) != (problem == nil) {
			t.Fatalf("%q: %v, but %v", plain, err, problem)
		}
		if err != nil {
			return
		}
		data := bytes.ReplaceAll([]byte(text), []byte("\r\n"), []byte("\n"))
		var want, got []string
		if len(data) > 0 {
			for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
				if each.MatchString(line) {
					want = append(want, fmt.Sprint(i, line))
				}
			}
		}
		s.lines(t.Context(), data, func(number, start, end int) bool {
			got = append(got, fmt.Sprint(number-1, string(data[start:end])))
			return true
		})
		if strings.Join(got, "\x00") != strings.Join(want, "\x00") {
			t.Errorf("%q (as %s) in %q: %q, want %q", plain, s.block, data, got, want)
		}
	})
}

// Blocks and long lines make no difference.
func TestGrepBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{1, 100, blockSize - 2, blockSize - 1, blockSize, blockSize + 1, 3 * blockSize} {
		var text []byte
		var want []int
		for n := 0; len(text) < 4*blockSize; n++ {
			line := strings.Repeat("x", rng.IntN(size))
			if rng.IntN(3) == 0 {
				line += "hit"
				want = append(want, n)
			}
			text = append(text, line+"\n"...)
		}
		s := search{line: regexp.MustCompile("hit$"), block: regexp.MustCompile("(?m:hit$)")}
		var got []int
		s.lines(t.Context(), text, func(number, start, _ int) bool {
			if bytes.Count(text[:start], []byte("\n")) != number-1 {
				t.Fatalf("line %d begins at %d", number, start)
			}
			got = append(got, number-1)
			return true
		})
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("lines of up to %d: %d hits, want %d", size, len(got), len(want))
		}
	}
}

func FuzzGlob(f *testing.F) {
	for _, p := range []string{"*", "**", "a/**/b", "{a,b}/*", "[!a]?", "./x", "/", "../..", "[", "{", "\\", "a//b", "**/**/**/a"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		if len(pattern) > 100 {
			return
		}
		refused := !doublestar.ValidatePattern(pattern)
		for _, name := range []string{"a", "a/b", "x/y/z.go", ".hidden", "odd\nname", "\xff"} {
			if matches(pattern, name) && refused {
				t.Errorf("%q is refused and matches %q", pattern, name)
			}
		}
	})
}

// BenchmarkGrep searches 10,000 files of some 4 KB, of which every hundredth
// has what is looked for; beside it the same with rg, where there is one.
func BenchmarkGrep(b *testing.B) {
	d := newDesk(b)
	text := strings.Repeat("func (s *server) handle(w http.ResponseWriter, r *http.Request) {\n\treturn\n}\n", 50)
	for i := range 10_000 {
		more := ""
		if i%100 == 0 {
			more = "a needle in it\n"
		}
		d.put(fmt.Sprintf("pkg%d/sub%d/file%d.go", i%10, i/10%10, i), text+more)
	}
	for _, c := range []struct{ name, args, flag, pattern string }{
		{"literal", `{"pattern":"needle"}`, "-e", "needle"},
		{"regexp", `{"pattern":"n[aeiou]+dle\\b"}`, "-e", `n[aeiou]+dle\b`},
		{"fold", `{"pattern":"NEEDLE","case_insensitive":true}`, "-ie", "NEEDLE"},
		{"count", `{"pattern":"handle","output_mode":"count"}`, "-ce", "handle"},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if r := d.call("s", "grep", c.args); r.Failed || !strings.Contains(r.Text, "file") {
					b.Fatal(r.Text)
				}
			}
		})
		b.Run(c.name+"/rg", func(b *testing.B) {
			rg := requiretest.Program(b, "rg")
			for b.Loop() {
				if out, err := exec.CommandContext(b.Context(), rg, c.flag, c.pattern, d.w.Dir()).Output(); err != nil || len(out) == 0 {
					b.Fatal(err)
				}
			}
		})
	}
}
