package parley_test

import (
	"go/ast"
	"go/constant"
	"regexp"
	"testing"
)

// TestPatterns checks that no regular expression is compiled when the program is loaded,
// which each of its starts would take time for, and that those which package lazyregexp
// compiles later are none that it would panic at.
func TestPatterns(t *testing.T) {
	set, all := sources(t)
	lazy := 0
	for _, s := range all {
		for _, f := range s.files {
			for _, d := range f.tree.Decls {
				_, isFunc := d.(*ast.FuncDecl)
				ast.Inspect(d, func(n ast.Node) bool {
					call, ok := n.(*ast.CallExpr)
					switch {
					case !ok || s.path == "lazyregexp":
					case !isFunc && isCallOf(call, "regexp", "MustCompile"):
						t.Errorf("%s: compiled at each start; make it a lazyregexp.New", set.Position(call.Pos()))
					case isCallOf(call, "lazyregexp", "New"):
						lazy++
						value := s.info.Types[call.Args[0]].Value
						if value == nil {
							t.Errorf("%s: not a constant, so that nothing has tried it", set.Position(call.Pos()))
						} else if _, err := regexp.Compile(constant.StringVal(value)); err != nil {
							t.Errorf("%s: %v", set.Position(call.Pos()), err)
						}
					}
					return true
				})
			}
		}
	}
	if lazy < 50 {
		t.Errorf("%d calls of lazyregexp.New were found: the test is of no use", lazy)
	}
}
