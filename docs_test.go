package parley_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents returns the Markdown files that people read, by their paths.
func documents(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/internals/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.ToSlash(name)] = string(text)
		}
	}
	return all
}

// tests returns the name of every test, fuzz test, benchmark and example of the
// module, as documents write it: agent/conversation.TestHeal, channels/web.TestStep,
// parley.TestPromises of this package, and cmd/gateway.TestScripts/pairing of
// the script pairing.txtar.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if script, found := strings.CutSuffix(filepath.ToSlash(name), ".txtar"); found {
			folder, script, _ := strings.Cut(script, "/testdata/script/")
			all[folder+".TestScripts/"+script] = true
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		folder := path.Dir(filepath.ToSlash(name))
		if folder == "." {
			folder = strings.TrimSuffix(module, "/")
		}
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			all[folder+"."+m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var namedTest = regexp.MustCompile("`((?:[a-z]+/)*[a-z]+)\\.((?:Test|Fuzz|Benchmark|Example)\\w*(?:/\\w+)?)`")

// checkNamedTests wants every test that text names to exist, and returns how many it names.
func checkNamedTests(t *testing.T, where, text string, there map[string]bool) int {
	t.Helper()
	named := namedTest.FindAllStringSubmatch(text, -1)
	for _, m := range named {
		if !there[m[1]+"."+m[2]] {
			t.Errorf("%s: there is no %s", where, m[0])
		}
	}
	return len(named)
}

// TestDocumentedTests checks that the tests which documents name as proof exist.
func TestDocumentedTests(t *testing.T) {
	there := tests(t)
	names := map[string]bool{}
	for name := range there {
		names[name[strings.LastIndex(name, ".")+1:]] = true
	}
	bare := regexp.MustCompile("`(Test[A-Z]\\w*(?:/\\w+)?)`")
	for page, text := range documents(t) {
		checkNamedTests(t, page, text, there)
		for _, m := range bare.FindAllStringSubmatch(text, -1) {
			if !names[m[1]] {
				t.Errorf("%s: there is no %s", page, m[1])
			}
		}
	}
}

// TestRequirements checks that docs/internals/requirements.md has every
// requirement, in order, each with tests or a reason why there is none.
func TestRequirements(t *testing.T) {
	const page = "docs/internals/requirements.md"
	var want, got []string
	for _, system := range []struct {
		name string
		n    int
	}{{"A", 92}, {"B", 78}, {"C", 55}, {"D", 120}, {"E", 42}} {
		for i := range system.n {
			want = append(want, fmt.Sprintf("%s-%03d", system.name, i+1))
		}
	}
	there := tests(t)
	row := regexp.MustCompile(`(?m)^\| ([A-E]-\d{3}) \| (.+) \| (.*) \|$`)
	reason := regexp.MustCompile("^(no|not yet|decided): .")
	for _, m := range row.FindAllStringSubmatch(documents(t)[page], -1) {
		got = append(got, m[1])
		if checkNamedTests(t, m[1], m[3], there) == 0 && !reason.MatchString(m[3]) {
			t.Errorf("%s has neither a test nor a reason: %s", m[1], m[3])
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the rows are %s", got)
	}
}

// TestPromises checks that docs/promises.md has every promise, each with the
// tests that prove it, and that every id in code, comments, names of tests and
// documents is one of them.
func TestPromises(t *testing.T) {
	const page = "docs/promises.md"
	promised, there := map[string]bool{}, tests(t)
	var want, got []string
	for i := range 28 {
		want = append(want, fmt.Sprintf("P%d", i+1))
	}
	for i := range 27 {
		want = append(want, fmt.Sprintf("R-S%d", i+1))
	}
	row := regexp.MustCompile(`(?m)^\| ((?:P|R-S)\d+) \| (.+) \| (.*) \|$`)
	for _, m := range row.FindAllStringSubmatch(documents(t)[page], -1) {
		got, promised[m[1]] = append(got, m[1]), true
		if checkNamedTests(t, m[1], m[3], there) == 0 {
			t.Errorf("%s names no test: %s", m[1], m[3])
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the rows are %s", got)
	}
	id, inName := regexp.MustCompile(`\b(?:P|R-S)\d{1,2}\b`), regexp.MustCompile(`\b(?:Test|Fuzz)((?:P|RS)\d{1,2})[A-Z]`)
	read := []string{".go", ".md", ".txtar", ".html", ".js", ".css", ".json"}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains(read, filepath.Ext(name)) {
			return err
		}
		text, err := os.ReadFile(name)
		for _, m := range id.FindAllString(string(text), -1) {
			if !promised[m] {
				t.Errorf("%s: %s has no %s", name, page, m)
			}
		}
		for _, m := range inName.FindAllStringSubmatch(string(text), -1) {
			if !promised[strings.Replace(m[1], "RS", "R-S", 1)] {
				t.Errorf("%s: %s has no promise for %s", name, page, m[0])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestExamples checks that each contract has an example that go test runs: a
// whole driver or tool, in 25 lines of code at most.
func TestExamples(t *testing.T) {
	for _, seam := range []string{"channels", "llm", "store", "tools", "memory", "scheduler"} {
		text, err := os.ReadFile(filepath.Join(seam, "example_test.go"))
		if err != nil {
			t.Error(err)
			continue
		}
		_, body, _ := strings.Cut(string(text), "\n)\n") // behind the imports
		lines := 0
		for line := range strings.Lines(body) {
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "//") {
				lines++
			}
		}
		if !strings.Contains(body, "\nfunc Example") || !strings.Contains(body, "\n\t// Output:") || lines > 25 {
			t.Errorf("%s: the example has %d lines: want one that runs, of 25 lines at most", seam, lines)
		}
	}
}

// TestDocumentedLinks checks that links between documents lead somewhere.
func TestDocumentedLinks(t *testing.T) {
	link, code := regexp.MustCompile(`\]\(([^):#]+)\)`), regexp.MustCompile("`[^`\n]*`")
	for page, text := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
}

// TestLogLines checks that the lines of the log which docs/operations.md explains
// are logged. "…" stands for what a line says besides.
func TestLogLines(t *testing.T) {
	page, err := os.ReadFile("docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| Line | Means | Do |\n|---|---|---|\n")
	table, _, ends := strings.Cut(table, "\n\n")
	if !found || !ends {
		t.Fatal("the table of log lines is gone")
	}
	var code strings.Builder
	_, all := sources(t)
	for _, s := range all {
		for _, f := range s.files {
			code.WriteString(f.text)
		}
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	for row := range strings.Lines(table) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
		for _, line := range quoted.FindAllStringSubmatch(cell, -1) {
			for part := range strings.SplitSeq(line[1], "…") {
				if !strings.Contains(code.String(), strings.TrimSpace(part)) {
					t.Errorf("nothing logs %q", line[1])
				}
			}
		}
	}
}

// TestTroubleshooting checks that the program still says what docs/troubleshooting.md quotes in the first column
// of its tables. "…" stands for what differs.
func TestTroubleshooting(t *testing.T) {
	code := literals(t)
	quoted, n := regexp.MustCompile("`([^`]+)`"), 0
	for line := range strings.Lines(documents(t)["docs/troubleshooting.md"]) {
		cell, isRow := strings.CutPrefix(line, "| ")
		cell, _, _ = strings.Cut(cell, " | ")
		if !isRow {
			continue
		}
		for _, text := range quoted.FindAllStringSubmatch(cell, -1) {
			n++
			for part := range strings.SplitSeq(text[1], "…") {
				if !strings.Contains(code, strings.TrimSpace(part)) {
					t.Errorf("nothing says %q, which docs/troubleshooting.md quotes", text[1])
				}
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d texts are quoted", n)
	}
}

// literals returns the text literals of the product, one to a line; those that are added up are one.
func literals(t *testing.T) string {
	t.Helper()
	var code strings.Builder
	_, all := sources(t)
	for _, s := range all {
		for _, f := range s.files {
			code.WriteString(regexp.MustCompile("[\"`] \\+\n\\s*[\"`]").ReplaceAllString(f.text, ""))
		}
	}
	return code.String()
}

// TestFigures checks that what the tables in the README and in docs/performance.md tell of Parley beside its
// relatives stands where docs/performance.md says how it was measured.
func TestFigures(t *testing.T) {
	all := documents(t)
	_, table, _ := strings.Cut(all["README.md"], "\n## Beside its relatives\n")
	table, _, _ = strings.Cut(table, "\n## ")
	before, measured, _ := strings.Cut(all["docs/performance.md"], "\n### Beside its relatives\n")
	whole, measured, _ := strings.Cut(measured, "\nMeasured once")
	measured, table = before+measured, table+whole
	n := 0
	for _, row := range regexp.MustCompile(`(?m)^\|[^|]+\|([^|]+)\|`).FindAllStringSubmatch(table, -1) {
		for _, figure := range regexp.MustCompile(`\d+\.\d+`).FindAllString(row[1], -1) {
			n++
			if !regexp.MustCompile(`\b` + regexp.QuoteMeta(figure) + `\b`).MatchString(measured) {
				t.Errorf("docs/performance.md does not say how %s was measured, which a table tells", figure)
			}
		}
	}
	if n < 7 {
		t.Errorf("the tables tell %d figures", n)
	}
}

// TestIndex checks that the README leads to every document.
func TestIndex(t *testing.T) {
	all := documents(t)
	for name := range all {
		if !strings.HasPrefix(name, "docs/internals/") && name != "README.md" && !strings.Contains(all["README.md"], "("+name+")") {
			t.Errorf("the README does not lead to %s", name)
		}
	}
}
