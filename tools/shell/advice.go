package shell

import (
	"encoding/base64"
	"maps"
	"net/netip"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"parley/workspace"
)

// An advice says what the text of a command shows of its effects, before it runs. It is no boundary:
// the sandbox is (R-S16). It spares people from mistakes, and models from attempts that cannot work.
type advice struct {
	refused string // why it is not run: part of the text of D-073 and D-078; "" if it is
	about   string // what of it is refused
	ask     string // why an owner is asked first; "" if nobody is
	prefix  string // the words under which commands like it can be approved; "" if only it can be
}

// A place is where a command would run.
type place struct {
	work string            // the folder that it may change
	dir  string            // where it starts
	env  map[string]string // its exported variables
}

// Why a command is refused.
const (
	refusedDangerous = "dangerous pattern detected"
	refusedTraversal = "path traversal detected"
	refusedOutside   = "path outside working dir"
	refusedPrivate   = "internal/private URL detected"
	refusedState     = "writes to internal state"
)

// Why an owner is asked.
const (
	askUnreadable = "it cannot be understood beforehand"
	askDynamic    = "what it runs is only known once it runs"
	askOperand    = "what it deletes is only known once it runs"
	askEverything = "it deletes everything in the folder of programs"
	askPiped      = "it runs what another program writes"
	askRights     = "it asks for the rights of another user"
	askSystem     = "it changes the system"
	askLoses      = "it throws away work that cannot be restored"
)

// advise reads a command.
func advise(command string, at place) (a advice) {
	defer func() {
		if recover() != nil { // of the library that reads it
			a = advice{ask: askUnreadable}
		}
	}()
	r := &reader{place: at, vars: map[string]string{}, functions: map[string]bool{}}
	r.text(command)
	if r.found.refused == "" && r.found.ask == "" {
		r.found.prefix = prefixOf(command)
	}
	return r.found
}

const (
	maxNested   = 8    // texts of commands in one another
	maxValue    = 4096 // bytes of a variable that is followed
	maxCommands = 2000 // statements that are looked at
)

// A reader goes through the commands of a text in their order.
type reader struct {
	place     place
	vars      map[string]string // variables whose values the text says
	functions map[string]bool   // that it defines
	lostDir   bool              // it changed to a folder that is not known
	nested    int
	commands  int
	found     advice
}

func (r *reader) refuse(why, about string) {
	if r.found.refused == "" {
		r.found.refused = why
		r.found.about = about
	}
}

func (r *reader) ask(why string) {
	if r.found.ask == "" {
		r.found.ask = why
	}
}

// text reads a text of commands.
func (r *reader) text(command string) {
	if r.nested >= maxNested {
		r.ask(askUnreadable)
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	if err != nil {
		r.ask(askUnreadable)
		return
	}
	r.nested++
	defer func() { r.nested-- }()
	r.statements(file.Stmts)
}

func (r *reader) statements(all []*syntax.Stmt) {
	for _, s := range all {
		r.statement(s)
	}
}

func (r *reader) statement(s *syntax.Stmt) {
	if s == nil {
		return
	}
	if r.commands++; r.commands > maxCommands {
		r.ask(askUnreadable)
		return
	}
	for _, redirect := range s.Redirs {
		r.redirect(redirect)
	}
	switch cmd := s.Cmd.(type) {
	case *syntax.CallExpr:
		r.call(cmd, s.Redirs)
	case *syntax.BinaryCmd:
		r.binary(cmd)
	case *syntax.Subshell:
		r.apart(func() { r.statements(cmd.Stmts) })
	case *syntax.ForClause:
		r.loop(cmd)
	case *syntax.FuncDecl:
		r.function(cmd)
	case *syntax.DeclClause:
		r.assign(cmd.Args)
	case nil:
	default:
		r.inside(cmd)
	}
}

// inside reads the statements and substitutions in a node of any other kind.
func (r *reader) inside(node syntax.Node) {
	syntax.Walk(node, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			r.statement(n)
			return false
		case *syntax.CmdSubst:
			r.apart(func() { r.statements(n.Stmts) })
			return false
		}
		return true
	})
}

// apart calls read for what runs in a subshell: the folder and the variables that it sets end with it.
func (r *reader) apart(read func()) {
	dir, lost := r.place.dir, r.lostDir
	vars := maps.Clone(r.vars)
	read()
	r.place.dir = dir
	r.lostDir = lost
	r.vars = vars
}

// loop reads the body of a loop, for each of its values if the text says them.
func (r *reader) loop(f *syntax.ForClause) {
	items, ok := f.Loop.(*syntax.WordIter)
	if !ok {
		r.inside(f.Loop)
		r.statements(f.Do)
		return
	}
	var values []string
	known := true
	for _, word := range items.Items {
		r.inside(word)
		fields, static := r.fields(word)
		values = append(values, fields...)
		known = known && static
	}
	name := items.Name.Value
	if !known || len(values) == 0 || len(values) > 20 {
		delete(r.vars, name)
		r.statements(f.Do)
		return
	}
	for _, value := range values {
		r.vars[name] = value
		r.statements(f.Do)
	}
}

// function reads a function. One that starts itself twice at once is a fork bomb.
func (r *reader) function(f *syntax.FuncDecl) {
	if f.Name == nil {
		r.ask(askUnreadable)
		return
	}
	name := f.Name.Value
	r.functions[name] = true
	syntax.Walk(f.Body, func(n syntax.Node) bool {
		pipe, ok := n.(*syntax.BinaryCmd)
		if ok && pipe.Op == syntax.Pipe && callsOf(pipe, name) > 1 {
			r.refuse(refusedDangerous, name+"() that runs itself")
		}
		return true
	})
	r.statement(f.Body)
}

// callsOf counts the calls of a program in node.
func callsOf(node syntax.Node, name string) (n int) {
	syntax.Walk(node, func(node syntax.Node) bool {
		if call, ok := node.(*syntax.CallExpr); ok && len(call.Args) > 0 && call.Args[0].Lit() == name {
			n++
		}
		return true
	})
	return n
}

// binary reads two statements. What the second of a pipe runs may be what the first says.
func (r *reader) binary(b *syntax.BinaryCmd) {
	if b.Op != syntax.Pipe && b.Op != syntax.PipeAll {
		r.statement(b.X)
		r.statement(b.Y)
		return
	}
	r.apart(func() { r.statement(b.X) })
	r.apart(func() { r.statement(b.Y) })
	call, ok := b.Y.Cmd.(*syntax.CallExpr)
	if !ok {
		return
	}
	args, _ := r.arguments(call.Args)
	if !readsCommands(unwrap(args)) {
		return
	}
	if said, known := r.output(b.X); known && isShell(unwrap(args)) {
		r.text(said)
		return
	}
	r.ask(askPiped)
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
	fields, err := expand.Fields(&expand.Config{Env: expand.FuncEnviron(lookup)}, word)
	return fields, err == nil
}

// isCostly reports whether a short word may become very many or very long ones, as {1..1000000}.
func isCostly(word *syntax.Word) (costly bool) {
	braces := 0
	syntax.Walk(word, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Lit:
			braces += strings.Count(n.Value, "{")
			costly = costly || braces > 3 || braces > 0 && strings.Contains(n.Value, "..")
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
		if _, set := r.vars[name]; !set {
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

// call reads a simple command.
func (r *reader) call(c *syntax.CallExpr, redirects []*syntax.Redirect) {
	for _, word := range c.Args {
		r.inside(word)
	}
	if len(c.Args) == 0 {
		r.assign(c.Assigns)
		return
	}
	for _, a := range c.Assigns {
		if a.Value != nil {
			r.inside(a.Value)
		}
	}
	args, _ := r.arguments(c.Args)
	r.run(args)
	if isShell(unwrap(args)) && readsCommands(unwrap(args)) {
		for _, redirect := range redirects {
			r.standardInput(redirect)
		}
	}
}

// standardInput reads the text that a shell is given.
func (r *reader) standardInput(redirect *syntax.Redirect) {
	word := redirect.Hdoc
	if redirect.Op == syntax.WordHdoc {
		word = redirect.Word
	}
	if word == nil {
		return
	}
	if fields, known := r.fields(&syntax.Word{Parts: []syntax.WordPart{
		&syntax.DblQuoted{Parts: word.Parts},
	}}); known {
		r.text(strings.Join(fields, " "))
		return
	}
	r.ask(askDynamic)
}

// redirect reads where something is written.
func (r *reader) redirect(redirect *syntax.Redirect) {
	if redirect.Word == nil {
		return
	}
	r.inside(redirect.Word)
	switch redirect.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrInOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
	case syntax.DplOut:
		if isDuplicate(redirect) {
			return
		}
	default:
		return
	}
	if fields, known := r.fields(redirect.Word); known {
		for _, name := range fields {
			r.writes(name)
		}
	}
}

// writes judges a file that a command writes to or removes.
func (r *reader) writes(name string) {
	if isUnknown(name) || name == "" || isHarmlessDevice(name) {
		return
	}
	at, known := r.resolve(name)
	switch {
	case !known:
	case workspace.Within(at, "/dev"):
		r.refuse(refusedDangerous, name)
	case workspace.Within(at, r.place.work),
		isTemporary(at) && !workspace.Within(at, r.workspace()) && !workspace.Within(r.place.work, at):
	case isState(at, r.workspace()):
		r.refuse(refusedState, name)
	case strings.Contains("/"+name+"/", "/../"):
		r.refuse(refusedTraversal, name)
	default:
		r.refuse(refusedOutside, name)
	}
}

func isHarmlessDevice(name string) bool {
	return slices.Contains([]string{"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero"}, name) ||
		workspace.Within(name, "/dev/fd") || workspace.Within(name, "/dev/shm")
}

func isTemporary(at string) bool {
	return workspace.Within(at, "/tmp") || workspace.Within(at, "/var/tmp")
}

func (r *reader) workspace() string { return filepath.Dir(r.place.work) }

// isState reports whether a file is one of those that Parley goes by or keeps itself (D-074).
func isState(at, root string) bool {
	if !workspace.Within(at, root) {
		return false
	}
	name, _ := filepath.Rel(root, at)
	first, _, _ := strings.Cut(filepath.ToSlash(name), "/")
	switch strings.ToLower(first) {
	case ".parley", "memory", "skills", "agents", "custom_tools", "history.jsonl", ".dream_cursor":
		return true
	}
	return strings.HasSuffix(strings.ToLower(first), ".md") && first == name
}

// resolve returns the path that name means.
func (r *reader) resolve(name string) (at string, known bool) {
	if !filepath.IsAbs(name) {
		if r.lostDir {
			return "", false
		}
		name = filepath.Join(r.place.dir, name)
	}
	return filepath.Clean(name), true
}

// deletes judges what a command removes, with everything below it.
func (r *reader) deletes(operands []string, recursive bool) {
	for _, name := range operands {
		if isUnknown(name) {
			if recursive {
				r.ask(askOperand)
			}
			continue
		}
		at, known := r.resolve(name)
		switch {
		case !known && recursive:
			r.ask(askOperand)
		case !known:
		case recursive && (at == r.place.work || filepath.Dir(at) == r.place.work && isWild(filepath.Base(at))):
			r.ask(askEverything)
		default:
			r.writes(name)
		}
	}
}

// isWild reports whether a pattern matches every name.
func isWild(pattern string) bool {
	return strings.Trim(pattern, "*?.[]!{},") == "" && strings.Contains(pattern, "*")
}

// visits judges the addresses in the arguments of a program that fetches them (D-079). What is local
// to the sandbox is not private.
func (r *reader) visits(args []string) {
	for _, arg := range args {
		u, err := url.Parse(arg)
		if err != nil || u.Hostname() == "" {
			continue
		}
		ip, err := netip.ParseAddr(u.Hostname())
		if err != nil || ip.IsLoopback() {
			continue
		}
		if ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() {
			r.refuse(refusedPrivate, arg)
		}
	}
}
