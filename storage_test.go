package parley_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// storedNames returns the names of buckets, logs and queues in the code: the
// beginnings of those that are put together, with "…" behind.
func storedNames(t *testing.T) (names []string) {
	t.Helper()
	files := token.NewFileSet()
	err := filepath.WalkDir(".", func(folder string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if strings.HasSuffix(folder, "test") || folder == "store" || d.Name() == "testdata" {
			return filepath.SkipDir
		}
		sources, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			return err
		}
		constants, calls := map[string]ast.Expr{}, []*ast.CallExpr(nil)
		for _, name := range sources {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.ValueSpec:
					for i, value := range n.Values {
						constants[n.Names[i].Name] = value
					}
				case *ast.CallExpr:
					called, ok := n.Fun.(*ast.SelectorExpr)
					if ok && len(n.Args) == 1 && slices.Contains([]string{"Bucket", "bucket", "Log", "Queue"}, called.Sel.Name) {
						calls = append(calls, n)
					}
				}
				return true
			})
		}
		for _, call := range calls {
			if name := constantText(call.Args[0], constants); name != "" && name != "…" {
				names = append(names, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// constantText returns the text of e, with "…" for what is known only when the
// program runs.
func constantText(e ast.Expr, constants map[string]ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		return constantText(e.X, constants) + constantText(e.Y, constants)
	case *ast.Ident:
		if value := constants[e.Name]; value != nil {
			return constantText(value, nil)
		}
	}
	return "…"
}

// TestStorage checks that docs/internals/storage.md lists the buckets, logs and
// queues of the code, and no others. cmd/gateway.TestStorageIsDocumented knows
// what is in them.
func TestStorage(t *testing.T) {
	const page = "docs/internals/storage.md"
	_, sections, _ := strings.Cut(documents(t)[page], "\n## Buckets\n")
	sections, _, _ = strings.Cut(sections, "\n## Layout")
	placeholder := regexp.MustCompile(`<[^<>]+>`)
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(sections, -1) {
		listed = append(listed, m[1])
	}
	inCode := storedNames(t)
	if len(inCode) < 20 {
		t.Fatalf("the code has only %q", inCode)
	}
	matches := func(listed, inCode string) bool {
		listed = regexp.QuoteMeta(placeholder.ReplaceAllString(listed, "X"))
		inCode = regexp.QuoteMeta(inCode)
		return regexp.MustCompile("^" + strings.ReplaceAll(inCode, "…", ".*") + "$").MatchString(strings.ReplaceAll(listed, `\`, ""))
	}
	for _, name := range inCode {
		if !slices.ContainsFunc(listed, func(l string) bool { return matches(l, name) }) {
			t.Errorf("%s does not list %q", page, name)
		}
	}
	for _, l := range listed {
		known := slices.ContainsFunc(inCode, func(name string) bool { return matches(l, name) })
		if !known && !strings.HasPrefix(l, "session/") { // whose name is put together elsewhere
			t.Errorf("%s lists %q, which the code does not have", page, l)
		}
	}
}
