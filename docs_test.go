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
// module, as documents write it: agent.TestHeal, channels/web.TestStep.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			all[path.Dir(filepath.ToSlash(name))+"."+m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var namedTest = regexp.MustCompile("`((?:[a-z]+/)*[a-z]+|\\.)\\.((?:Test|Fuzz|Benchmark|Example)\\w*)`")

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
	bare := regexp.MustCompile("`(Test[A-Z]\\w*)`")
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
