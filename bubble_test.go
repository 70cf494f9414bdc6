package parley_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A bubbleCheck looks in the tests of one folder for what runs on the goroutine of a
// test inside a bubble of testing/synctest. Functions are known by their names only.
type bubbleCheck struct {
	declared map[string][]*ast.FuncDecl
	local    map[string][]*ast.FuncLit // closures, by the variable that holds them
	wrappers []string                  // functions that run a function they are given in a bubble
	seen     map[ast.Node]bool
	sleeps   []token.Pos // calls of time.Sleep
	bare     []token.Pos // calls of synctest.Test
}

// TestSleepInBubbles checks that no test in a bubble calls time.Sleep on its own
// goroutine: what it reads then was not made before in the eyes of the race detector,
// which reports that now and then. timetest.Sleep says more.
func TestSleepInBubbles(t *testing.T) {
	set := token.NewFileSet()
	folders := map[string]*bubbleCheck{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		folder := filepath.Dir(path)
		if err != nil || !strings.HasSuffix(path, ".go") || !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(folder, "test") {
			return err
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil || folder == "timetest" {
			return err
		}
		if folders[folder] == nil {
			folders[folder] = &bubbleCheck{map[string][]*ast.FuncDecl{}, map[string][]*ast.FuncLit{}, nil, map[ast.Node]bool{}, nil, nil}
		}
		folders[folder].add(file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	bubbles := 0
	for _, c := range folders {
		c.findWrappers()
		for _, all := range c.declared {
			for _, decl := range all {
				bubbles += c.enterBubbles(decl)
			}
		}
		for _, pos := range c.sleeps {
			t.Errorf("%s: a test in a bubble calls timetest.Sleep, not time.Sleep", set.Position(pos))
		}
	}
	for _, c := range folders {
		for _, pos := range c.bare {
			t.Errorf("%s: a bubble is begun by timetest.Test, not synctest.Test, which crashes under the race detector", set.Position(pos))
		}
	}
	if bubbles < 400 {
		t.Errorf("only %d bubbles were found", bubbles)
	}
}

func (c *bubbleCheck) add(file *ast.File) {
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok {
			c.declared[f.Name.Name] = append(c.declared[f.Name.Name], f)
		}
	}
}

// findWrappers finds the functions that hand a parameter to a bubble, and those that
// hand one to such a function.
func (c *bubbleCheck) findWrappers() {
	for found := true; found; {
		found = false
		for name, all := range c.declared {
			if slices.Contains(c.wrappers, name) || !slices.ContainsFunc(all, c.wraps) {
				continue
			}
			c.wrappers = append(c.wrappers, name)
			found = true
		}
	}
}

func (c *bubbleCheck) wraps(f *ast.FuncDecl) bool {
	var params []string
	for _, field := range f.Type.Params.List {
		if _, ok := field.Type.(*ast.FuncType); !ok {
			continue
		}
		for _, name := range field.Names {
			params = append(params, name.Name)
		}
	}
	wraps := false
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !c.beginsBubble(call) {
			return true
		}
		for _, arg := range call.Args {
			ast.Inspect(arg, func(n ast.Node) bool {
				name, ok := n.(*ast.Ident)
				wraps = wraps || ok && slices.Contains(params, name.Name)
				return true
			})
		}
		return true
	})
	return wraps
}

func (c *bubbleCheck) beginsBubble(call *ast.CallExpr) bool {
	if isCallOf(call, "synctest", "Test") {
		c.bare = append(c.bare, call.Pos())
	}
	if isCallOf(call, "timetest", "Test") || isCallOf(call, "timetest", "TestWithOthers") {
		return true
	}
	_, name := calledName(call.Fun)
	return slices.Contains(c.wrappers, name)
}

// calledName returns the name of a function or method, and whether a dot precedes it.
func calledName(function ast.Expr) (selected bool, name string) {
	switch f := function.(type) {
	case *ast.Ident:
		return false, f.Name
	case *ast.SelectorExpr:
		return true, f.Sel.Name
	}
	return false, ""
}

// enterBubbles follows what f runs in bubbles, and returns how many there are.
func (c *bubbleCheck) enterBubbles(f *ast.FuncDecl) (bubbles int) {
	c.local = map[string][]*ast.FuncLit{}
	ast.Inspect(f, func(n ast.Node) bool {
		assigned, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for i, value := range assigned.Rhs {
			closure, isClosure := value.(*ast.FuncLit)
			if name, ok := assigned.Lhs[i].(*ast.Ident); ok && isClosure {
				c.local[name.Name] = append(c.local[name.Name], closure)
			}
		}
		return true
	})
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !c.beginsBubble(call) {
			return true
		}
		bubbles++
		for _, arg := range call.Args {
			if closure, ok := arg.(*ast.FuncLit); ok {
				c.follow(closure)
			}
			c.followName(arg)
		}
		return true
	})
	return bubbles
}

// follow notes the calls of time.Sleep in a function and in those of the folder that
// it calls. Closures that it only hands on, and goroutines that it starts, run elsewhere.
func (c *bubbleCheck) follow(function ast.Node) {
	if c.seen[function] {
		return
	}
	c.seen[function] = true
	ast.Inspect(function, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			return false
		case *ast.FuncLit:
			return n == function
		case *ast.CallExpr:
			if isCallOf(n, "time", "Sleep") {
				c.sleeps = append(c.sleeps, n.Pos())
			}
			if closure, ok := n.Fun.(*ast.FuncLit); ok {
				c.follow(closure)
			}
			c.followName(n.Fun)
		}
		return true
	})
}

func (c *bubbleCheck) followName(function ast.Expr) {
	selected, name := calledName(function)
	for _, f := range c.declared[name] {
		if selected == (f.Recv != nil) {
			c.follow(f)
		}
	}
	if !selected {
		for _, closure := range c.local[name] {
			c.follow(closure)
		}
	}
}
