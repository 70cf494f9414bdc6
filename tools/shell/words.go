package shell

import (
	"encoding/base64"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"parley/lazyregexp"
)

// parse reads a command as bash would.
func parse(command string) (*syntax.File, error) {
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
}

// isCat reports whether a statement writes a file of the machine as it is.
func isCat(s *syntax.Stmt) bool {
	args, plain := plainArguments(s)
	return plain && len(args) == 2 && args[0] == "cat" && args[1] != "-" && !strings.HasPrefix(args[1], "/dev/")
}

// output returns what a statement writes, if that follows from its text: echo, printf, and base64 of these.
func (r *reader) output(s *syntax.Stmt) (text string, known bool) {
	if s == nil || len(s.Redirs) > 0 {
		return "", false
	}
	if b, ok := s.Cmd.(*syntax.BinaryCmd); ok {
		inner, known := r.output(b.X)
		call, isCall := b.Y.Cmd.(*syntax.CallExpr)
		if !known || !isCall {
			return "", false
		}
		args, static := r.arguments(call.Args)
		if !static || len(args) < 2 || path.Base(args[0]) != "base64" || !strings.HasPrefix(args[1], "-") {
			return "", false
		}
		decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(inner), ""))
		return string(decoded), err == nil
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok {
		return "", false
	}
	args, static := r.arguments(call.Args)
	if !static || len(args) == 0 {
		return "", false
	}
	switch name := path.Base(args[0]); {
	case name == "echo":
		words := slices.DeleteFunc(args[1:], func(a string) bool { return a == "-n" || a == "-e" || a == "-ne" })
		return strings.Join(words, " "), true
	case name == "printf" && len(args) == 2:
		return args[1], true
	case name == "printf" && len(args) > 2:
		return strings.Join(args[2:], " "), true
	}
	return "", false
}

// assign notes the variables whose values the text says.
func (r *reader) assign(all []*syntax.Assign) {
	for _, a := range all {
		if a.Name == nil {
			continue
		}
		delete(r.vars, a.Name.Value)
		if a.Value == nil || a.Append {
			continue
		}
		r.inside(a.Value)
		if fields, static := r.fields(a.Value); static {
			if value := strings.Join(fields, " "); len(value) <= maxValue {
				r.vars[a.Name.Value] = value
			}
		} else if isMktemp(a.Value) {
			r.vars[a.Name.Value] = "/tmp/mktemp"
		}
	}
}

// isMktemp reports whether word is what mktemp makes.
func isMktemp(word *syntax.Word) bool {
	return callsOf(word, "mktemp") == 1
}

// arguments returns the fields of words, and whether the text says all of them. What it does not
// say stands as unknown.
func (r *reader) arguments(words []*syntax.Word) (args []string, static bool) {
	static = true
	for _, word := range words {
		fields, ok := r.fields(word)
		if !ok {
			fields = []string{unknown}
			static = false
		}
		args = append(args, fields...)
	}
	return args, static
}

// unknown stands for a word that is only known when the command runs.
const unknown = "\x00"

// isUnknown reports whether some of a word is only known when the command runs.
func isUnknown(word string) bool { return strings.Contains(word, unknown) }

// fields returns what becomes of a word, and false if that is only known when the command runs.
func (r *reader) fields(word *syntax.Word) (fields []string, known bool) {
	defer func() {
		if recover() != nil { // the library does so for what it has no support for
			known = false
		}
	}()
	lookup := func(name string) string {
		if v, ok := r.lookup(name); ok {
			return v
		}
		panic("unknown variable")
	}
	if isCostly(word) {
		return nil, false
	}
	fields, err := expand.Fields(&expand.Config{Env: expand.FuncEnviron(lookup), CmdSubst: r.writeDir}, word)
	return fields, err == nil
}

// writeDir writes what $(pwd) becomes. Of other commands that is not known beforehand.
func (r *reader) writeDir(to io.Writer, substitution *syntax.CmdSubst) error {
	if len(substitution.Stmts) == 1 && !r.lostDir {
		args, plain := plainArguments(substitution.Stmts[0])
		if plain && len(args) == 1 && args[0] == "pwd" {
			_, err := io.WriteString(to, r.place.dir+"\n")
			return err
		}
	}
	return errDynamic
}

var errDynamic = errors.New(askDynamic)

// numbers matches braces that become a few numbers.
var numbers = lazyregexp.New(`\{[0-9]{1,2}\.\.[0-9]{1,2}\}`)

// isCostly reports whether a short word may become very many or very long ones, as {1..1000000}.
func isCostly(word *syntax.Word) (costly bool) {
	braces := 0
	syntax.Walk(word, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Lit:
			braces += strings.Count(n.Value, "{")
			isRange := strings.Contains(numbers.ReplaceAllString(n.Value, ""), "..")
			costly = costly || braces > 3 || braces > 0 && isRange || braces > 1 && numbers.MatchString(n.Value)
		case *syntax.ParamExp:
			costly = costly || n.Slice != nil || n.Repl != nil || n.Index != nil
		case *syntax.ArithmExp:
			costly = true
		}
		return true
	})
	return costly
}

func (r *reader) lookup(name string) (value string, known bool) {
	switch name {
	case "IFS":
		return " \t\n", true
	case "HOME":
		_, set := r.vars[name]
		if _, exported := r.place.env[name]; !set && !exported {
			return r.place.work, true
		}
	case "PWD":
		if r.lostDir {
			return unknown, true
		}
		return r.place.dir, true
	}
	if value, known = r.vars[name]; known {
		return value, true
	}
	value, known = r.place.env[name]
	return value, known
}
