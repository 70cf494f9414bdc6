package skills

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"parley/texts"
	"parley/workspace"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func all(string) bool  { return true }
func none(string) bool { return false }

// desk is a workspace of its own.
type desk struct {
	workspace.Names
	w *workspace.Workspace
	t testing.TB
}

func open(t testing.TB) *desk {
	t.Helper()
	w, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return &desk{w.Names(), w, t}
}

// write writes a file an hour ago.
func (d *desk) write(name, text string) {
	d.t.Helper()
	path, old := filepath.Join(d.w.Dir(), name), time.Now().Add(-time.Hour)
	d.must(os.MkdirAll(filepath.Dir(path), 0o700))
	d.must(os.WriteFile(path, []byte(text), 0o600))
	d.must(os.Chtimes(path, old, old))
}

func (d *desk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// skill is a page with a head and a line below it.
func skill(head string) string { return "---\n" + head + "\n---\nDo it.\n" }

func TestPages(t *testing.T) {
	head := "description: Does it.\n"
	for name, c := range map[string]struct{ path, text, fault string }{
		"least":          {"skills/a/SKILL.md", skill("description: Does it."), ""},
		"all of it":      {"skills/a-1/SKILL.md", skill(head + "name: a-1\nalways: true\nrequires: {bins: [b], env: [E], tools: [t]}"), ""},
		"a profile":      {"agents/a.md", skill(head + "name: a\nmodel: m\ntools: [t]\nrounds: 100\nstrict: true"), ""},
		"BOM, CRLF":      {"skills/a/SKILL.md", "\ufeff---\r\ndescription: Does it.\r\n---\r\nDo it.\r\n", ""},
		"comment":        {"skills/a/SKILL.md", skill("# mine\n" + head), ""},
		"no values":      {"skills/a/SKILL.md", skill(head + "always:\nrequires: {bins: , env: []}"), ""},
		"long name":      {"skills/" + strings.Repeat("a", 64) + "/SKILL.md", skill(head), ""},
		"another line":   {"skills/a/SKILL.md", "---\n" + head + "---\nOne.\n\n---\n\nTwo.", ""},
		"a number":       {"skills/a/SKILL.md", skill("description: 2026"), ""},
		"full":           {"skills/a/SKILL.md", skill(head) + strings.Repeat("x", maxPage-len(skill(head))), ""},
		"too big":        {"skills/a/SKILL.md", skill(head) + strings.Repeat("x", maxPage-len(skill(head))+1), "it is bigger than 64 KiB"},
		"longer name":    {"skills/" + strings.Repeat("a", 65) + "/SKILL.md", skill(head), "its name must be of lower case letters, digits and dashes, at most 64"},
		"capital":        {"skills/A/SKILL.md", skill(head), "its name must be of lower case letters, digits and dashes, at most 64"},
		"space":          {"agents/a b.md", skill(head), "its name must be of lower case letters, digits and dashes, at most 64"},
		"other name":     {"skills/a/SKILL.md", skill(head + "name: b"), `its name is "b", but it lies at "a"`},
		"no description": {"skills/a/SKILL.md", skill("name: a"), "there is no description"},
		"only markup":    {"skills/a/SKILL.md", skill(`description: "**[]**"`), "there is no description"},
		"empty head":     {"skills/a/SKILL.md", skill(""), "there is no description"},
		"no text":        {"skills/a/SKILL.md", "---\n" + head + "---\n \n", "there is nothing below the head"},
		"no head":        {"skills/a/SKILL.md", "# How to do it\n", "it must be text in UTF-8 and begin with a head between two lines ---"},
		"empty":          {"skills/a/SKILL.md", "", "it must be text in UTF-8 and begin with a head between two lines ---"},
		"no end":         {"skills/a/SKILL.md", "---\n" + head + "Do it.\n", "it must be text in UTF-8 and begin with a head between two lines ---"},
		"latin-1":        {"skills/a/SKILL.md", skill(head) + "caf\xe9", "it must be text in UTF-8 and begin with a head between two lines ---"},
		"NUL":            {"skills/a/SKILL.md", skill(head) + "\x00", "it must be text in UTF-8 and begin with a head between two lines ---"},
		"unknown":        {"skills/a/SKILL.md", skill(head + "allways: true"), `line 3: "allways" is not a known key, or occurs twice`},
		"unknown inside": {"skills/a/SKILL.md", skill(head + "requires:\n  bin: [a]"), `line 4: "requires.bin" is not a known key, or occurs twice`},
		"twice":          {"skills/a/SKILL.md", skill(head + "always: true\nalways: false"), `line 4: "always" is not a known key, or occurs twice`},
		"of the other":   {"agents/a.md", skill(head + "always: true"), `line 3: "always" is not a known key, or occurs twice`},
		"another's":      {"skills/a/SKILL.md", skill(head + "rounds: 3"), `line 3: "rounds" is not a known key, or occurs twice`},
		"no bool":        {"skills/a/SKILL.md", skill(head + "always: maybe"), "line 3: always must be true or false"},
		"no text value":  {"skills/a/SKILL.md", skill("name: a\ndescription: [a]"), "line 3: description must be text"},
		"no list":        {"skills/a/SKILL.md", skill(head + "requires:\n  bins: ffmpeg"), "line 4: requires.bins must be a list of names"},
		"no list below":  {"skills/a/SKILL.md", skill(head + "requires: {env: [[a]]}"), "line 3: requires.env must be a list of names"},
		"no keys":        {"skills/a/SKILL.md", skill(head + "requires: ffmpeg"), "line 3: there must be lines of key: value"},
		"a list":         {"skills/a/SKILL.md", skill("- description"), "line 2: there must be lines of key: value"},
		"no number":      {"agents/a.md", skill(head + "rounds: many"), "line 3: rounds must be a number"},
		"too many":       {"agents/a.md", skill(head + "rounds: 101"), "rounds must be from 1 to 100"},
		"too few":        {"agents/a.md", skill(head + "rounds: -1"), "rounds must be from 1 to 100"},
		"a path":         {"skills/a/SKILL.md", skill(head + "requires: {bins: [/etc/shadow]}"), "requires.bins must be names, not paths"},
		"colon":          {"skills/a/SKILL.md", skill("description: Use it: now"), "line 2: mapping values are not allowed in this context"},
		"tab":            {"skills/a/SKILL.md", skill(head + "\talways: true"), "line 2: found a tab character that violates indentation"},
		"alias":          {"skills/a/SKILL.md", skill("name: &n a\ndescription: *n"), "line 3: description must be text"},
		"alias in list":  {"agents/a.md", skill("description: &n a\ntools: [*n]"), "line 3: tools must be a list of names"},
		"merge":          {"agents/a.md", skill("<<: {description: a}"), "line 2: \" \" is not a known key, or occurs twice"},
	} {
		d := open(t)
		d.write(c.path, c.text)
		s := New(d, all, all)
		pages := append(s.Skills(all), s.Profiles()...)
		if len(pages) != 1 || pages[0].Fault != c.fault || pages[0].Path != c.path {
			t.Errorf("%s: got %+v, want %q", name, pages, c.fault)
		} else if c.fault == "" && (pages[0].Description == "" || !strings.HasPrefix(pages[0].Text, "Do it.") && name != "another line") {
			t.Errorf("%s: got %+v", name, pages[0])
		}
	}
}

// What is no page of the workspace is not read, whatever lies in its place.
func TestOddFiles(t *testing.T) {
	d := open(t)
	at := func(name string) string { return filepath.Join(d.w.Dir(), name) }
	outside := filepath.Join(t.TempDir(), "SKILL.md")
	d.must(os.WriteFile(outside, []byte(skill("description: secret")), 0o600))
	for _, dir := range []string{"a", "b", "c", "d", "e", ".git"} {
		d.must(os.MkdirAll(at("skills/"+dir), 0o700))
	}
	d.must(os.Symlink(outside, at("skills/a/SKILL.md")))
	d.must(syscall.Mkfifo(at("skills/b/SKILL.md"), 0o600))
	d.must(os.Mkdir(at("skills/c/SKILL.md"), 0o700))
	d.must(os.Link(outside, at("skills/d/SKILL.md")))
	d.must(os.Symlink(filepath.Dir(outside), at("skills/f")))
	d.must(os.Symlink("../pages/g", at("skills/g")))
	d.write("pages/g/SKILL.md", skill("description: Lies elsewhere."))
	d.write("skills/big/SKILL.md", "")
	d.must(os.Truncate(at("skills/big/SKILL.md"), 1<<40))
	d.write("skills/README.md", "no skill")
	d.write("agents/notes.txt", "no profile")
	d.must(os.Mkdir(at("agents/a.md"), 0o700))
	d.must(d.w.Protect(outside))
	s := New(d, all, all)
	want := []string{
		"a: Path skills/a/SKILL.md is outside allowed directory " + d.w.Dir(),
		"b: skills/b/SKILL.md: not a plain file",
		"big: skills/big/SKILL.md: file too big",
		"c: skills/c/SKILL.md: not a plain file",
		"d: skills/d/SKILL.md: protected file",
		"e: skills/e/SKILL.md: no such file or directory",
		"f: Path skills/f/SKILL.md is outside allowed directory " + d.w.Dir(),
		"g: ",
	}
	for range 2 {
		var got []string
		for _, p := range s.Skills(all) {
			got = append(got, p.Name+": "+p.Fault)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %s\nwant %s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if got := s.Profiles(); len(got) != 0 {
		t.Errorf("profiles: %+v", got)
	}
	if got := s.Prompt(all); strings.Contains(got, "secret") || !strings.Contains(got, "- g: Lies elsewhere.") {
		t.Errorf("prompt: %s", got)
	}

	d = open(t)
	d.must(os.Symlink("/etc", filepath.Join(d.w.Dir(), "skills")))
	if got := New(d, all, all).List(all, all); !strings.Contains(got, "- skills: ⚠️ broken: the folder cannot be read\n") {
		t.Errorf("list: %s", got)
	}
}

// Heads that would grow without end, or take long, are refused in no time.
func TestBombs(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := range 30 {
		fmt.Fprintf(&laughs, "a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), ", "))
	}
	d := open(t)
	bombs := map[string]string{
		"laughs": laughs.String(), "tools": "description: &a x\ntools: [" + strings.Repeat("*a,", 20_000) + "]", "self": "tools: &a [*a]",
		"keys": strings.Repeat("a:\n", 20_000), "nested-keys": "tools: [{" + strings.Repeat("a: , ", 12_000) + "}]",
		"brackets": strings.Repeat("[", 60_000), "braces": strings.Repeat("{", 60_000), "dashes": strings.Repeat("- ", 30_000), "questions": strings.Repeat("? ", 30_000),
		"anchors": "tools: [" + strings.Repeat("&a x,", 12_000) + "]", "tags": "description: !!binary " + strings.Repeat("A", 60_000),
		"number": "rounds: 1" + strings.Repeat("0", 60_000), "float": "rounds: 1e999999999", "megabyte": strings.Repeat("a: b\n", 200_000),
	}
	for name, head := range bombs {
		d.write("agents/"+name+".md", skill(head))
	}
	began := time.Now()
	for _, p := range New(d, all, all).Profiles() {
		if p.Fault == "" || utf8.RuneCountInString(p.Fault) > maxLine {
			t.Errorf("%s: fault %q", p.Name, p.Fault)
		}
		delete(bombs, p.Name)
	}
	if took := time.Since(began); took > 30*time.Second || len(bombs) > 0 {
		t.Errorf("it took %v; left %v", took, len(bombs))
	}
}

// shelf is one with a page of every sort.
func shelf(t testing.TB) (*desk, *Library) {
	d := open(t)
	d.write("skills/whole/SKILL.md", skill("description: Always holds.\nalways: true"))
	d.write("skills/zebra/SKILL.md", "---\ndescription: Draws a zebra.\n---\n# Draw\n\n1. Lines.\n")
	d.write("skills/apple/SKILL.md", skill("description: >\n  Two lines\n  and <b>markup</b>, [brackets](http://x), `code` and *stars*."))
	d.write("skills/film/SKILL.md", skill("description: Cuts films.\nrequires: {bins: [ffmpeg, sh], env: [FILM_KEY], tools: [cron, exec]}"))
	d.write("skills/broken/SKILL.md", skill("name: x"))
	d.write("agents/researcher.md", skill("description: Looks things up.\ntools: [web_search]\nrounds: 15\nmodel: cheap"))
	d.write("agents/cook.md", skill("description: Cooks."))
	d.write("agents/lost.md", "no head")
	is := func(names string) Has {
		return func(name string) bool { return slices.Contains(strings.Fields(names), name) }
	}
	return d, New(d, is("sh"), is("HOME"))
}

func tools(names ...string) Has {
	return func(name string) bool { return slices.Contains(names, name) }
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || got+"\n" != string(want) {
		t.Errorf("%s: got %s\nwant %s, %v", name, got, want, err)
	}
}

// What the model is told; R-S25: it is told of pages, and runs nothing.
func TestPrompt(t *testing.T) {
	_, s := shelf(t)
	golden(t, "prompt.md", s.Prompt(tools("read_file", "new_task", "cron")))
	golden(t, "list.md", s.List(tools("read_file", "new_task", "cron"), all))
	if got := s.Prompt(none); strings.Contains(got, "zebra") || !strings.Contains(got, "## whole") {
		t.Errorf("without read_file: %s", got)
	}
	_, s2 := shelf(t)
	if a, b := s.Prompt(all), s2.Prompt(all); a != b || a != s.Prompt(all) {
		t.Errorf("got %s, then %s", a, b)
	}
	d := open(t)
	if got := New(d, all, all).Prompt(all); got != "" {
		t.Errorf("of nothing: %q", got)
	}
	d.write("skills/broken/SKILL.md", "")
	d.write("agents/broken.md", "")
	if got := New(d, all, all).Prompt(all); got != "" {
		t.Errorf("of what is broken: %q", got)
	}
	if got := s.List(all, none); !strings.Contains(got, "\n- researcher: ⚠️ there is no model cheap. Looks things up.\n") {
		t.Errorf("without models: %s", got)
	}
	golden(t, "empty.md", New(open(t), all, all).List(all, all))
}

// A description is one line of at most 300 characters that is no markup.
func TestDescription(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"short":    {"Ääh: 100 % \"so\" _x_ #1", `Ääh: 100 % "so" _x_ #1`},
		"lines":    {"a\nb\r\n\n# c\u2028d\u0085e\x1b[31m", "a b # c d e 31m"},
		"markup":   {"<system>**[x](y)**</system> `z`", "system x (y) /system z"},
		"unseen":   {"a\u202eb\u200bc\ufeffd", "a b c d"},
		"as it is": {strings.Repeat("ä", 300), strings.Repeat("ä", 300)},
		"long":     {strings.Repeat("ä", 301), strings.Repeat("ä", 299) + "…"},
	} {
		if got := plain(c.in); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// Skills that are always wanted are in the prompt as a whole while there is
// room, and then by name.
func TestAlways(t *testing.T) {
	d := open(t)
	page := func(n int) string {
		return "---\ndescription: d\nalways: true\n---\n" + strings.Repeat("x", n)
	}
	d.write("skills/a/SKILL.md", page(5000))
	d.write("skills/b/SKILL.md", page(5000))
	d.write("skills/c/SKILL.md", page(1000))
	d.write("skills/d/SKILL.md", page(maxWhole))
	got := New(d, all, all).Prompt(all)
	for want, there := range map[string]bool{"\n## a\n": true, "\n## b\n": false, "\n- b: d\n": true, "\n## c\n": true, "\n- c: d\n": false, "\n- d: d\n": true} {
		if strings.Contains(got, want) != there {
			t.Errorf("%q: %v in %.400s", want, !there, got)
		}
	}
	if len(got) > maxWhole+1000 {
		t.Errorf("the prompt has %d bytes", len(got))
	}
}

func TestProfiles(t *testing.T) {
	_, s := shelf(t)
	all := s.Profiles()
	if len(all) != 3 {
		t.Fatalf("got %+v", all)
	}
	if p := all[0]; p.Name != "cook" || p.Tools != nil || p.Rounds != 0 || p.Strict {
		t.Errorf("got %+v", p)
	}
	if p := all[2]; p.Description != "Looks things up." || p.Text != "Do it." || p.Model != "cheap" || p.Rounds != 15 || !slices.Equal(p.Tools, []string{"web_search"}) {
		t.Errorf("got %+v", p)
	}
	d := open(t)
	d.write("agents/a.md", skill("description: Uses no tool.\ntools: []\nstrict: true"))
	if p := New(d, none, none).Profiles()[0]; p.Fault != "" || p.Tools == nil || len(p.Tools) != 0 || !p.Strict {
		t.Errorf("no tools: %#v", p)
	}
}

// An edit counts at once, and so does a program that is installed.
func TestEdits(t *testing.T) {
	d := open(t)
	has := false
	s := New(d, func(string) bool { return has }, all)
	want := func(want string) {
		t.Helper()
		var got []string
		for _, p := range append(s.Skills(all), s.Profiles()...) {
			got = append(got, p.Name+"="+p.Description+p.Fault+p.Missing)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	want("")
	d.write("skills/a/SKILL.md", skill("description: 1"))
	d.write("agents/b.md", skill("description: 1"))
	want("a=1 b=1")
	want("a=1 b=1")
	d.write("skills/a/SKILL.md", skill("description: 12"))
	want("a=12 b=1")
	d.write("skills/a/SKILL.md", skill("description: 12\nrequires: {bins: [x]}"))
	want("a=12needs x b=1")
	has = true
	want("a=12 b=1")
	d.write("skills/a/SKILL.md", skill(""))
	want("a=there is no description b=1")
	d.must(os.WriteFile(filepath.Join(d.w.Dir(), "skills/a/SKILL.md"), []byte(skill("description: 3")), 0o600))
	want("a=3 b=1")
	d.must(os.WriteFile(filepath.Join(d.w.Dir(), "skills/a/SKILL.md"), []byte(skill("description: 4")), 0o600)) // the same size, at once
	want("a=4 b=1")
	d.must(os.RemoveAll(filepath.Join(d.w.Dir(), "skills")))
	want("b=1")
}

// A page that is written while others read is the old one or the new one.
func TestManyAtOnce(t *testing.T) {
	d, s := shelf(t)
	want := s.Prompt(all)
	zebra, err := d.ReadFile("skills/zebra/SKILL.md")
	d.must(err)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 20 {
				if i == 0 {
					if err := d.WriteFile("skills/zebra/SKILL.md", zebra); err != nil {
						t.Error(err)
					}
				} else if got := s.Prompt(all); got != want {
					t.Errorf("got %s", got)
				}
			}
		})
	}
	wg.Wait()
}

// Every page that a workspace begins with can be used, and asks for nothing
// that Parley does not bring.
func TestShipped(t *testing.T) {
	d := open(t)
	if _, err := d.w.Seed(); err != nil {
		t.Fatal(err)
	}
	s := New(d, none, none)
	brought := tools("ask_user", "cron", "edit_file", "glob", "grep", "memory_search", "message", "multi_agent", "new_task", "read_file", "spawn", "web_fetch", "web_search", "write_file")
	var names []string
	for _, p := range append(s.Skills(brought), s.Profiles()...) {
		names = append(names, p.Name)
		if p.Fault != "" || p.Missing != "" || p.Always {
			t.Errorf("%s: %q, %q, always %v", p.Name, p.Fault, p.Missing, p.Always)
		}
		if n := strings.Count(p.Text, "\n"); strings.HasPrefix(p.Path, "skills/") && (n < 20 || n > 40) {
			t.Errorf("%s has %d lines", p.Name, n)
		}
	}
	if got := strings.Join(names, " "); got != "plan-a-day research-a-topic watch-a-page write-a-skill researcher" {
		t.Errorf("there are %s", got)
	}
	if p := s.Profiles()[0]; p.Rounds != 15 || len(p.Tools) != 4 {
		t.Errorf("researcher: %+v", p)
	}
	if got := s.Prompt(brought); len(got) > 1300 {
		t.Errorf("they take %d bytes of every prompt", len(got))
	}
	// The page that the first skill shows is one.
	p, err := d.ReadFile("skills/write-a-skill/SKILL.md")
	d.must(err)
	_, example, _ := strings.Cut(string(p), "        ---\n")
	example, _, _ = strings.Cut(example, "\n\n5. ")
	d.write("skills/sort-receipts/SKILL.md", strings.ReplaceAll("---\n"+example, "        ", ""))
	if p := s.Skills(brought)[2]; p.Name != "sort-receipts" || p.Fault != "" {
		t.Errorf("the example: %+v", p)
	}
}

// Whatever a page holds, it is a page or has a fault, and what is shown of it
// is one line.
func FuzzParse(f *testing.F) {
	for _, head := range []string{"description: a", "name: a\nalways: true\nrequires: {bins: [b]}", "description: &a b\ntools: [*a]", "<<: {}", "? a\n: b", "rounds: 0x10", "description: |\n  a\n  b", "!!x y", "...", "a: !!float b"} {
		f.Add(skill(head), true)
		f.Add(skill(head), false)
	}
	f.Fuzz(func(t *testing.T, text string, isSkill bool) {
		path := "agents/a.md"
		if isSkill {
			path = "skills/a/SKILL.md"
		}
		p := parse(texts.English().Memory.Skills.Faults, "a", path, []byte(text), nil)
		shown := p.Fault + p.Description
		if p.Name != "a" || shown == "" || strings.ContainsAny(shown, "\n\r[]<>`*") || !utf8.ValidString(p.Text+shown) || utf8.RuneCountInString(shown) > maxLine {
			t.Errorf("%q: %+v", text, p)
		}
		if p.Fault == "" && (p.Text == "" || p.Rounds < 0 || p.Rounds > 100) {
			t.Errorf("%q: %+v", text, p)
		}
	})
}

// BenchmarkPrompt is the cost, for each request, of 50 skills that nobody edits.
func BenchmarkPrompt(b *testing.B) {
	d := open(b)
	for i := range 50 {
		d.write(fmt.Sprintf("skills/skill-%d/SKILL.md", i), skill("description: Does it.\nrequires: {tools: [x]}")+strings.Repeat("Do this.\n", 200))
	}
	s := New(d, all, all)
	s.Prompt(all)
	for b.Loop() {
		s.Prompt(all)
	}
}

// R-S15: however many skills there are, requests stay small.
func TestMany(t *testing.T) {
	d := open(t)
	for i := range 2 * maxPages {
		d.write(fmt.Sprintf("skills/s%04d/SKILL.md", i), skill("description: "+strings.Repeat("x", 200)))
	}
	s := New(d, all, all)
	if got := s.Prompt(all); len(got) > maxList+1000 || !strings.HasSuffix(got, " more, in the folder skills.") {
		t.Errorf("%d bytes, that end with %q", len(got), got[max(0, len(got)-100):])
	}
	if got := s.List(all, all); !strings.Contains(got, "- more: ⚠️ broken: there are more than 500, and no more are read\n") {
		t.Errorf("people are shown %d bytes", len(got))
	}
}
