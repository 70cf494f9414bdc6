package shell

import (
	"maps"
	"net/netip"
	"net/url"
	"strings"

	"mvdan.cc/sh/v3/syntax"
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
		r.found.prefix = prefixOf(command, at)
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
	file, err := parse(command)
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

// apart calls read for what runs in a subshell: the folder, the variables and the functions that it sets
// end with it.
func (r *reader) apart(read func()) {
	dir, lost := r.place.dir, r.lostDir
	vars := maps.Clone(r.vars)
	functions := maps.Clone(r.functions)
	read()
	r.place.dir = dir
	r.lostDir = lost
	r.vars = vars
	r.functions = functions
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
	if isCat(b.X) { // it runs a file, as its name as an argument would
		return
	}
	r.ask(askPiped)
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
