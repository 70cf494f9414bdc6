package parley_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// The whole program passes the type checker for each platform that "make release" makes archives for. To build it for
// all of them would take minutes.
func TestPlatforms(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^PLATFORMS = (.+)$`).FindSubmatch(makefile)
	if line == nil {
		t.Fatal("the Makefile names no platforms")
	}
	known := parsedFiles{files: token.NewFileSet(), parsed: map[string]*ast.File{}}
	for platform := range strings.FieldsSeq(string(line[1])) {
		system, machine, _ := strings.Cut(platform, "-")
		if strings.HasPrefix(machine, "armv") {
			machine = "arm"
		}
		if system == runtime.GOOS && machine == runtime.GOARCH {
			continue // this test is built for it
		}
		t.Run(platform, func(t *testing.T) { known.check(t, system, machine) })
	}
}

// A listed package is what "go list" tells of one.
type listedPackage struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	ImportMap  map[string]string
	Module     *struct{ Path string }
}

// isOwn reports whether p is of this repository.
func (p listedPackage) isOwn() bool {
	return p.Module != nil && (p.Module.Path == "parley" || p.Module.Path == "early.parley")
}

// parsedFiles are what was parsed. Platforms have most of them in common.
type parsedFiles struct {
	files  *token.FileSet
	parsed map[string]*ast.File
}

// check has the type checker look at the program for a platform; of packages of others only at what they offer.
func (f *parsedFiles) check(t *testing.T, system, machine string) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", "./cmd/gateway")
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+machine)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]*types.Package{"unsafe": types.Unsafe}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if p.ImportPath == "unsafe" {
			continue
		}
		config := types.Config{
			IgnoreFuncBodies: !p.isOwn(),
			Sizes:            types.SizesFor("gc", machine),
			FakeImportC:      true,
			Error: func(err error) {
				if p.isOwn() {
					t.Error(err)
				}
			},
			Importer: importerFunc(func(path string) (*types.Package, error) {
				if mapped, ok := p.ImportMap[path]; ok {
					path = mapped
				}
				if found := known[path]; found != nil {
					return found, nil
				}
				return nil, errors.New("not listed")
			}),
		}
		known[p.ImportPath], _ = config.Check(p.ImportPath, f.files, f.parse(t, p), nil) // errors were reported
	}
}

// parse returns the files of p.
func (f *parsedFiles) parse(t *testing.T, p listedPackage) []*ast.File {
	t.Helper()
	files := make([]*ast.File, len(p.GoFiles))
	for i, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		if f.parsed[path] == nil {
			file, err := parser.ParseFile(f.files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			f.parsed[path] = file
		}
		files[i] = f.parsed[path]
	}
	return files
}

type importerFunc func(path string) (*types.Package, error)

func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }
