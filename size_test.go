package parley_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// What the code is to look like. Each test below has a list of what does not
// yet, with how far it is off today. An entry may only become smaller: a
// package that grew beyond it fails the test, and so does an entry that is no
// longer needed.
const (
	maxPackageLines = 3500
	maxMethods      = 40  // of one type, promoted ones included
	maxColumns      = 120 // with a tab counted as four
	maxAssigned     = 2   // values in one assignment, unless a call returns them

	// Of tokens on a line with code, on average. Known good code bases have 5.9 to 6.7.
	maxTokensPerLine = 7.45
)

// source is one package of the module, without its tests.
type source struct {
	path  string // relative to the module: "channels/telegram"
	files []sourceFile
	types *types.Package
	info  *types.Info // of which Types is known
}

type sourceFile struct {
	name string // relative to the module
	text string
	tree *ast.File
}

// sources parses and checks all packages of the module but those of fakes and
// conformance tests.
func sources(t *testing.T) (*token.FileSet, []source) {
	t.Helper()
	type listed struct {
		ImportPath, Dir, Export string
		GoFiles                 []string
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles", "./...", early)
	out, err := list.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	list.Stderr = os.Stderr
	if err := list.Start(); err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	var ours []listed
	for dec := json.NewDecoder(out); ; {
		var p listed
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		isOurs := strings.HasPrefix(p.ImportPath, module) || p.ImportPath == early
		if isOurs && !strings.HasSuffix(p.ImportPath, "test") {
			ours = append(ours, p)
		}
	}
	if err := list.Wait(); err != nil {
		t.Fatal(err)
	}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	compiled := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	all := make([]source, 0, len(ours))
	for _, p := range ours {
		s := source{path: strings.TrimPrefix(p.ImportPath, module)}
		var trees []*ast.File
		for _, name := range p.GoFiles {
			path := filepath.Join(p.Dir, name)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			tree, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			relative, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			s.files = append(s.files, sourceFile{filepath.ToSlash(relative), string(text), tree})
			trees = append(trees, tree)
		}
		check := types.Config{Importer: compiled}
		s.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
		if s.types, err = check.Check(p.ImportPath, set, trees, s.info); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return set, all
}

// ratchet compares what was found beyond a limit with what is allowed for now.
func ratchet(t *testing.T, what string, allowed, found map[string]int) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if found[name] > allowed[name] {
			t.Errorf("%s: %d %s, where %d are allowed", name, found[name], what, allowed[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(allowed)) {
		if found[name] == 0 {
			t.Errorf("%s needs no exception any more: take it out of the list", name)
		}
	}
}

// packageLimits has packages with a limit of their own. The program is commands
// and wiring; whatever grows there belongs in a room.
var packageLimits = map[string]int{"cmd/gateway": 2800}

// largePackages are not yet cut into rooms of a size that one can know.
var largePackages = map[string]int{}

// TestPackageSizes checks that no package is longer than somebody can know.
func TestPackageSizes(t *testing.T) {
	found := map[string]int{}
	_, all := sources(t)
	for _, s := range all {
		lines := 0
		for _, f := range s.files {
			lines += strings.Count(f.text, "\n")
		}
		limit := maxPackageLines
		if own, has := packageLimits[s.path]; has {
			limit = own
		}
		if lines > limit {
			found[s.path] = lines
		}
	}
	ratchet(t, "lines", largePackages, found)
}

// largeTypes are types on which too much hangs still.
var largeTypes = map[string]int{}

// TestMethods checks that no type has more methods than a reader can hold in
// mind, those of embedded types included.
func TestMethods(t *testing.T) {
	found := map[string]int{}
	_, all := sources(t)
	for _, s := range all {
		scope := s.types.Scope()
		for _, name := range scope.Names() {
			object, ok := scope.Lookup(name).(*types.TypeName)
			if !ok || object.IsAlias() {
				continue
			}
			methods := types.NewMethodSet(object.Type())
			if !types.IsInterface(object.Type()) {
				methods = types.NewMethodSet(types.NewPointer(object.Type()))
			}
			if methods.Len() > maxMethods {
				found[s.path+"."+name] = methods.Len()
			}
		}
	}
	ratchet(t, "methods", largeTypes, found)
}

// wideFolders have lines, of code or comments, that are too long to read.
var wideFolders = map[string]int{}

// TestColumns checks that lines fit on a screen beside another file.
func TestColumns(t *testing.T) {
	found := map[string]int{}
	_, all := sources(t)
	for _, s := range all {
		for _, f := range s.files {
			for line := range strings.Lines(f.text) {
				line = strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "    ")
				if utf8.RuneCountInString(line) > maxColumns {
					found[s.path]++
				}
			}
		}
	}
	ratchet(t, "lines that are too long", wideFolders, found)
}

// packedFolders have assignments that say several things at once.
var packedFolders = map[string]int{}

// TestAssignments checks that a statement assigns at most two values, unless a
// call returns them.
func TestAssignments(t *testing.T) {
	found := map[string]int{}
	_, all := sources(t)
	for _, s := range all {
		for _, f := range s.files {
			ast.Inspect(f.tree, func(n ast.Node) bool {
				if a, ok := n.(*ast.AssignStmt); ok && len(a.Rhs) > maxAssigned {
					found[s.path]++
				}
				return true
			})
		}
	}
	ratchet(t, "packed assignments", packedFolders, found)
}

// dialect lists words that an identifier must not have, because the field has
// another one. What is not yet renamed is in dialectLeft.
var dialect = []string{"house", "kin", "kid", "errand", "lane", "shelf", "mind", "door", "aside", "parked", "bury", "patient", "stranger", "scroll", "clerk", "scribe", "stubs", "tally", "payer"}

// dialectLeft counts the identifiers that have such words, by word.
var dialectLeft = map[string]int{}

// TestWords checks that identifiers use the field's terms.
func TestWords(t *testing.T) {
	found := map[string]int{}
	_, all := sources(t)
	for _, s := range all {
		for _, f := range s.files {
			ast.Inspect(f.tree, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if !ok || id.Name == "_" {
					return true
				}
				for _, w := range wordsOf(id.Name) {
					if slices.Contains(dialect, strings.TrimSuffix(w, "s")) {
						found[strings.TrimSuffix(w, "s")]++
					}
				}
				return true
			})
		}
	}
	ratchet(t, "identifiers with this word", dialectLeft, found)
}

// dialectInTexts finds words in what people and models read for which the field
// has others. The names of commands, routes and keys stay as they are.
var dialectInTexts = regexp.MustCompile(`(?i)\b(house|kin|kids?|errands?|lanes?|shelf|strangers?|clerk|scribe|` +
	`(on|at) the clock|(put|puts|putting) \S* ?aside|let in at the door)\b`)

// TestWordsOfTexts checks that documents, pages, first files and the texts in code
// use the field's terms.
func TestWordsOfTexts(t *testing.T) {
	check := func(where, text string) {
		for _, word := range dialectInTexts.FindAllString(text, -1) {
			t.Errorf("%s says %q", where, word)
		}
	}
	for _, pattern := range []string{
		"*.md", "docs/*.md", "config.json", "workspace/first/*", "workspace/first/skills/*/*", "memory/prompts/*",
		"web/assets/*.js", "channels/web/page/*.js",
	} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: no files (%v)", pattern, err)
		}
		for _, name := range names {
			if info, err := os.Stat(name); err != nil || info.IsDir() || name == "CHANGELOG.md" {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			check(name, string(text))
		}
	}
	set, all := sources(t)
	for _, s := range all {
		for _, f := range s.files {
			ast.Inspect(f.tree, func(n ast.Node) bool {
				if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && strings.Contains(text.Value, " ") {
					check(set.Position(text.Pos()).String(), text.Value)
				}
				return true
			})
		}
	}
}

// wordsOf returns the words of an identifier in lower case: "newLaneID" is new, lane, id.
func wordsOf(name string) (words []string) {
	start := 0
	runes := []rune(name)
	for i := 1; i <= len(runes); i++ {
		if i == len(runes) || runes[i] == '_' || unicode.IsUpper(runes[i]) && unicode.IsLower(runes[i-1]) {
			words = append(words, strings.ToLower(strings.Trim(string(runes[start:i]), "_")))
			start = i
		}
	}
	return words
}

// TestWordsOf checks how identifiers are taken apart.
func TestWordsOf(t *testing.T) {
	for name, want := range map[string]string{"newLaneID": "[new lane id]", "house": "[house]", "a_b": "[a b]", "HTTPDoor": "[httpdoor]"} {
		if got := fmt.Sprint(wordsOf(name)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// invertedFolders have checks of errors in which the failure comes last.
var invertedFolders = map[string]int{}

// TestErrorsFirst checks that errors are handled where they occur, and that what
// follows is not indented: no "if err == nil" whose body does not leave, and no
// else after "if err != nil".
func TestErrorsFirst(t *testing.T) {
	found := map[string]int{}
	set, all := sources(t)
	for _, s := range all {
		for _, f := range s.files {
			ast.Inspect(f.tree, func(n ast.Node) bool {
				if check, ok := n.(*ast.IfStmt); ok && isInverted(s.info, check) {
					found[s.path]++
					if testing.Verbose() {
						t.Log(set.Position(check.Pos()))
					}
				}
				return true
			})
		}
	}
	ratchet(t, "inverted checks of errors", invertedFolders, found)
}

func isInverted(info *types.Info, check *ast.IfStmt) bool {
	if comparesError(info, check.Cond, token.NEQ) {
		return check.Else != nil
	}
	return comparesError(info, check.Cond, token.EQL) && !leaves(check.Body)
}

// comparesError reports whether cond, or a part of it that must hold, compares an
// error with nil.
func comparesError(info *types.Info, cond ast.Expr, op token.Token) bool {
	b, ok := cond.(*ast.BinaryExpr)
	if !ok {
		return false
	}
	if b.Op == token.LAND {
		return comparesError(info, b.X, op) || comparesError(info, b.Y, op)
	}
	isNil := info.Types[b.Y].IsNil()
	return b.Op == op && isNil && types.Identical(info.Types[b.X].Type, types.Universe.Lookup("error").Type())
}

// leaves reports whether body ends by leaving its function or loop.
func leaves(body *ast.BlockStmt) bool {
	if len(body.List) == 0 {
		return false
	}
	switch body.List[len(body.List)-1].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	}
	return false
}

// TestTokensPerLine checks that lines say little at once.
func TestTokensPerLine(t *testing.T) {
	set, all := sources(t)
	tokens := 0
	lines := 0
	for _, s := range all {
		for _, f := range s.files {
			inFile, onLines := countTokens(set, f.text)
			tokens += inFile
			lines += onLines
		}
	}
	if mean := float64(tokens) / float64(lines); mean > maxTokensPerLine {
		t.Errorf("%d tokens on %d lines: %.3f a line, where %.2f are allowed", tokens, lines, mean, maxTokensPerLine)
	} else {
		t.Logf("%d tokens on %d lines: %.3f a line", tokens, lines, mean)
	}
}

// countTokens returns how many tokens text has, and on how many lines they are.
func countTokens(set *token.FileSet, text string) (tokens, lines int) {
	file := set.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, 0)
	last := 0
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return tokens, lines
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue
		}
		tokens++
		if line := file.Line(pos); line != last {
			lines++
			last = line
		}
	}
}
