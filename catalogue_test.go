package parley_test

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"testing"

	"parley/store"
)

// TestCatalogue checks that every bucket, log and queue has a name of package
// store, and that each such name is described in the catalogue, once.
func TestCatalogue(t *testing.T) {
	set, all := sources(t)
	for _, s := range all {
		if strings.HasPrefix(s.path, "store") { // they implement the methods
			continue
		}
		for _, f := range s.files {
			ast.Inspect(f.tree, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) != 1 {
					return true
				}
				method, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || !slices.Contains([]string{"Bucket", "Log", "Queue"}, method.Sel.Name) {
					return true
				}
				if name := nameOfStore(call.Args[0]); !strings.HasPrefix(name, method.Sel.Name) {
					t.Errorf("%s: %s needs a name from the catalogue of store", set.Position(call.Pos()), method.Sel.Name)
				}
				return true
			})
		}
	}
	described := map[string]int{}
	families := 0
	for _, c := range store.Catalogue() {
		described[c.Kind+" "+c.Name]++
		if strings.Contains(c.Name, "CHANNEL") || strings.Contains(c.Name, "SESSION") {
			families++
		}
		if c.Holds == "" || c.Trims == "" {
			t.Errorf("the catalogue does not say what %s %q holds, or who trims it", c.Kind, c.Name)
		}
	}
	for _, s := range all {
		if s.path != "store" {
			continue
		}
		for _, name := range s.types.Scope().Names() {
			if f, ok := s.types.Scope().Lookup(name).(*types.Func); ok && isNameOf(f) {
				families--
			}
			c, ok := s.types.Scope().Lookup(name).(*types.Const)
			if !ok || c.Type().String() != "untyped string" {
				continue
			}
			for _, kind := range []string{"Bucket", "Log", "Queue"} {
				entry := strings.ToLower(kind) + " " + strings.Trim(c.Val().String(), `"`)
				if strings.HasPrefix(name, kind) && described[entry] != 1 {
					t.Errorf("the catalogue describes %s %d times", entry, described[entry])
				}
			}
		}
	}
	if families != 0 {
		t.Errorf("the catalogue describes %d families more than there are functions of their names", families)
	}
}

// isNameOf reports whether f makes the names of a family of buckets, logs or queues.
func isNameOf(f *types.Func) bool {
	results := f.Signature().Results()
	if results.Len() != 1 || results.At(0).Type().String() != "string" {
		return false
	}
	return slices.ContainsFunc([]string{"Bucket", "Log", "Queue"}, func(kind string) bool { return strings.HasPrefix(f.Name(), kind) })
}

// nameOfStore returns the name that package store gives to what expr is, or "".
func nameOfStore(expr ast.Expr) string {
	if call, ok := expr.(*ast.CallExpr); ok {
		expr = call.Fun
	}
	name, ok := expr.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if of, ok := name.X.(*ast.Ident); !ok || of.Name != "store" {
		return ""
	}
	return name.Sel.Name
}
