package parley_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// starters names the functions that start another program. What they start is
// never chosen by a model.
var starters = map[string]string{
	"runPDF":    "this program, to read a PDF that may be hostile",
	"StartUnit": "systemctl, for the operator who runs parley onboard",
}

// byOperator names those of them that an operator runs in a shell, with the
// environment of that shell.
const byOperator = "StartUnit"

// inSandbox is the one that runs in a sandbox, and passes on the environment that programs have there.
const inSandbox = "Relay"

// sandboxes is the folder whose packages start the programs that models, people and config choose.
const sandboxes = "tools/sandbox/"

// TestChildProcesses checks that Parley starts no programs but these, those of a
// sandbox aside, and that what the gateway starts gets an environment of its own
// (R-S17): commands (R-S16), Python (R-S20), custom tools (R-S21) and MCP servers
// (R-S22) have no other way to be started than by a sandbox.
func TestChildProcesses(t *testing.T) {
	starts := map[string]bool{
		"exec.Command": true, "exec.CommandContext": true, "os.StartProcess": true, "plugin.Open": true,
		"syscall.Exec": true, "syscall.ForkExec": true, "syscall.StartProcess": true, "unix.Exec": true,
	}
	found := map[string]bool{}
	files := token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasSuffix(name, "test") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range parsed.Decls {
			within, started, bare := "", false, true
			if f, ok := decl.(*ast.FuncDecl); ok {
				within = f.Name.Name
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				selector, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := selector.X.(*ast.Ident); ok {
					started = started || starts[x.Name+"."+selector.Sel.Name]
				}
				bare = bare && selector.Sel.Name != "Env"
				return true
			})
			if !started {
				continue
			}
			found[within] = true
			if starters[within] == "" && !strings.HasPrefix(filepath.ToSlash(name), sandboxes) {
				t.Errorf("%s: %s starts a program", files.Position(decl.Pos()), within)
			}
			if bare && within != byOperator && within != inSandbox {
				t.Errorf("%s: %s hands down the gateway's environment", files.Position(decl.Pos()), within)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range starters {
		if !found[name] {
			t.Errorf("%s starts nothing any more", name)
		}
	}
}
