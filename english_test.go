package parley_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// understands names the files that hold words of other scripts because they
// recognise what people, models or pages write in them. They say nothing in them.
var understands = map[string]string{
	"agent/titles/titles.go":              "quotes and full stops of Chinese and Japanese titles",
	"channels/markdown/text.go":           "full stops of Chinese and Japanese",
	"channels/web/libraries/temml.min.js": "letters that may stand in a formula",
	"tools/data/data.go":                  "Chinese names of cities",
}

// foreign reports whether English is not written with r: a letter that is
// neither Latin nor Greek nor common to all scripts (µ), or Chinese or full-width
// punctuation.
func foreign(r rune) bool {
	return unicode.IsLetter(r) && !unicode.In(r, unicode.Latin, unicode.Greek, unicode.Common) ||
		'\u3000' <= r && r <= '\u303f' || '\uff00' <= r && r <= '\uffef'
}

// TestEnglish checks that Parley speaks English: no literal of the product and
// none of its pages holds Chinese, or words of another script.
func TestEnglish(t *testing.T) {
	found := map[string]bool{}
	check := func(file, where, text string) {
		if i := strings.IndexFunc(text, foreign); i >= 0 {
			found[file] = true
			if understands[file] == "" {
				t.Errorf("%s: %.60q is not English", where, text[i:])
			}
		}
	}
	files := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if strings.HasSuffix(d.Name(), "test") || d.Name() == "testdata" || path != "." && strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
			return nil
		}
		file := filepath.ToSlash(path)
		switch filepath.Ext(path) {
		case ".html", ".js", ".css", ".md", ".json":
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			check(file, file, string(text))
		case ".go":
			if strings.HasSuffix(path, "_test.go") {
				return nil
			}
			parsed, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && (lit.Kind == token.STRING || lit.Kind == token.CHAR) {
					text, err := strconv.Unquote(lit.Value)
					if err != nil {
						t.Errorf("%s: %v", files.Position(lit.Pos()), err)
					}
					check(file, files.Position(lit.Pos()).String(), text)
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for file := range understands {
		if !found[file] {
			t.Errorf("%s holds no word of another script, and needs no exception", file)
		}
	}
}
