package shell

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"parley/chat"
	"parley/lazyregexp"
	"parley/tools"
	"parley/tools/sandbox"
	"parley/workspace"
)

// maxHidden is how many files can be hidden from a command.
const maxHidden = 100

// A foreign is a file or folder with untrusted content, which a command may see.
type foreign struct {
	name  string // canonical
	isDir bool
	below bool // everything in the folder is untrusted, not just its name
}

// taintByFiles marks r as untrusted if the command may read untrusted content: if it names a file that
// holds some, or a folder with such a file in it, or is in one. Unless it names all that it reads, the
// folder in which it runs counts as named, and all of work does if the command runs anything but programs
// that only read what they are told to. If r stays trusted, p then hides the rest of such content, so that
// no program finds it by itself (R-S12).
func (e executor) taintByFiles(c tools.Call, in execArgs, p *spot, r *tools.Result) {
	e.taintBy(c, e.namedBy(c, in, *p), p, r)
}

// taintBy is taintByFiles for a program that reads the files and folders that are named.
func (e executor) taintBy(c tools.Call, named []string, p *spot, r *tools.Result) {
	all, err := p.foreigners(c)
	if err != nil {
		e.shell.cfg.Log.Error("a command counts as untrusted", "session", c.Session, "err", err)
		r.Tainted = true
		r.Sources = chat.JoinSources(r.Sources, "the workspace, of which it cannot be read whose files are")
		return
	}
	for _, at := range named {
		for _, f := range all {
			if at == "." || workspace.Within(f.name, at) || f.below && workspace.Within(at, f.name) {
				r.Tainted = true
				r.Sources = chat.JoinSources(r.Sources, "the file "+f.name)
			}
		}
	}
	if c.Tainted || r.Tainted {
		return
	}
	if p.hide(all, named); len(p.hidden) > maxHidden {
		r.Tainted = true
		r.Sources = chat.JoinSources(r.Sources, "more files of the workspace than can be hidden")
	}
}

// foreigners returns what of the workspace holds untrusted content for c, and can be seen by programs.
func (p spot) foreigners(c tools.Call) (all []foreign, err error) {
	add := func(name string, below bool) {
		at := filepath.Join(p.whole, name)
		info, err := os.Lstat(at)
		if err != nil || p.hides(at) {
			return
		}
		all = append(all, foreign{name, info.IsDir(), below})
	}
	origins, err := workspace.OriginsOf(c.Workspace).All()
	if err != nil {
		return nil, err
	}
	for _, o := range origins {
		if chat.Person(o.Author) != c.Whose() {
			add(o.Name, o.Below)
		}
	}
	// What tools.Untrusted says of names. Folders are made before anything is in them.
	inbox := c.Whose().InboxFolder()
	sent, _ := os.ReadDir(filepath.Join(p.whole, inbox)) // mostly there is none
	isSeen := func(d fs.DirEntry) bool { return !p.hides(filepath.Join(p.whole, inbox, d.Name())) }
	if slices.ContainsFunc(sent, isSeen) {
		add(inbox, true)
	}
	for _, folder := range []string{"memory", c.Whose().Folder()} {
		for _, name := range []string{"history.jsonl", "HEARD.md"} {
			add(path.Join(folder, name), false)
		}
	}
	return all, nil
}

// namedBy returns the files and folders of the workspace that a command may read as far as its text says,
// by their canonical names.
func (e executor) namedBy(c tools.Call, in execArgs, p spot) (all []string) {
	reader := reader{place: place{work: p.work, dir: p.dir, env: p.state.Env}}
	names := append(reader.wordsOf(in.Command), in.WorkingDir, p.work+"/.config")
	if len(p.state.Env) > 0 || !namesAll(in.Command) { // PATH may say what a program is
		names = append(names, ".")
		if !onlyReads(in.Command) {
			names = append(names, p.work)
		}
	}
	dotFiles, _ := filepath.Glob(p.work + "/.*") // programs obey those in their home
	for _, name := range dotFiles {
		info, err := os.Lstat(name)
		if err != nil || info.IsDir() {
			continue
		}
		names = append(names, name)
	}
	for _, name := range names {
		if _, value, isOption := strings.Cut(name, "="); isOption {
			name = value
		}
		if i := strings.IndexAny(name, "*?[{"); i >= 0 { // what matches is in the folder before
			name = name[:strings.LastIndexByte(name[:i], '/')+1]
		}
		at, _ := reader.resolve(name)
		path, err := c.Workspace.Resolve(at)
		if name == "" || err != nil || p.hides(filepath.Join(p.whole, path.String())) {
			continue
		}
		all = append(all, path.String())
	}
	if strings.Contains(in.Command, "git") {
		all = append(all, p.repositories(all)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// repositories returns where git may have its records of what is called names.
func (p spot) repositories(names []string) (all []string) {
	work := strings.TrimPrefix(p.work, p.whole+"/")
	for _, name := range names {
		for ; workspace.Within(name, work); name = path.Dir(name) {
			all = append(all, path.Join(name, ".git"))
		}
	}
	return all
}

// plainPrograms are those that open no files but the ones that they are given, and list no folders.
const plainPrograms = "cat head tail cp mv rm rmdir mkdir touch echo printf date pwd true false sleep " +
	"basename dirname uname hostname whoami id"

// namesAll reports whether a command names every file that it reads, as it is: its words stand for
// themselves, and all that it runs are plainPrograms, one after the other.
func namesAll(command string) bool {
	file, err := parse(command)
	if err != nil {
		return false
	}
	isPlain := func(w *syntax.Word) bool {
		text, literal := literalOf(w)
		return literal && !strings.ContainsAny(text, `*?[{\~$`)
	}
	plain := true
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Word:
			plain = plain && isPlain(n)
		case *syntax.Stmt:
			plain = plain && !n.Coprocess
		case *syntax.CallExpr:
			plain = plain && len(n.Assigns) == 0 && len(n.Args) > 0 && isPlainCall(n)
		case syntax.Command:
			_, isBinary := n.(*syntax.BinaryCmd)
			plain = plain && isBinary
		}
		return plain
	})
	return plain
}

// isPlainCall reports whether a call is that of a plainProgram that is given files, and not folders.
func isPlainCall(call *syntax.CallExpr) bool {
	name := call.Args[0].Lit()
	hasOption := slices.ContainsFunc(call.Args, func(w *syntax.Word) bool {
		text, _ := literalOf(w)
		return strings.HasPrefix(text, "-")
	})
	mayHaveOptions := name != "cp" && name != "date" // cp -r, date -fFILE
	return slices.Contains(strings.Fields(plainPrograms), name) && (mayHaveOptions || !hasOption)
}

// onlyReads reports whether a command runs only programs that read what they are told to, and its text says
// what that is: ".." may be any folder after cd, and beside a variable.
func onlyReads(command string) bool {
	file, err := parseReading(command)
	if err != nil {
		return false
	}
	const others = " rm rmdir git cd export exit unset printf sort sed ["
	known := strings.Fields(readOnly + " " + writers + others)
	only := true
	above := false   // a word leads upwards
	expands := false // a word is not known yet
	changes := 0     // of the folder
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if len(n.Args) == 0 {
				break
			}
			name := n.Args[0].Lit()
			only = only && slices.Contains(known, name)
			if name == "cd" { // where it leads counts as named
				changes++
				_, literal := literalOf(n.Args[len(n.Args)-1])
				only = only && len(n.Args) == 2 && literal
				return false
			}
		case *syntax.Lit:
			above = above || parentFolder.MatchString(n.Value)
		case *syntax.SglQuoted:
			above = above || parentFolder.MatchString(n.Value)
		case *syntax.ParamExp, *syntax.CmdSubst:
			expands = true
		}
		return true
	})
	return only && changes <= 1 && !(above && (expands || changes > 0))
}

// parentFolder matches paths that lead upwards.
var parentFolder = lazyregexp.New(`(^|[/=])\.\.(/|$)`)

// hide keeps from the programs of p all that is outside of work. What is in it they may change, so that it
// cannot be hidden, and it counts as named. Where that is too much, it hides the folders that it is in, but
// for those in which the command names something.
func (p *spot) hide(all []foreign, named []string) {
	all = slices.DeleteFunc(all, func(f foreign) bool {
		isName := f.isDir && !f.below // only the name is untrusted
		return isName || workspace.Within(filepath.Join(p.whole, f.name), p.work)
	})
	if len(all) > maxHidden {
		for i, f := range all {
			folder := path.Dir(f.name)
			isNeeded := func(name string) bool { return workspace.Within(name, folder) }
			if !workspace.Within(p.work, filepath.Join(p.whole, folder)) && !slices.ContainsFunc(named, isNeeded) {
				all[i].name = folder
			}
		}
	}
	for _, f := range all {
		if slices.Contains(p.hidden, f.name) {
			continue
		}
		at := filepath.Join(p.whole, f.name)
		p.hidden = append(p.hidden, f.name)
		p.folders = slices.DeleteFunc(slices.Clone(p.folders), func(other sandbox.Folder) bool {
			return workspace.Within(other.Path, at) && other.Path != p.work
		})
		p.folders = append(p.folders, sandbox.Folder{Path: at, Access: sandbox.Hidden})
	}
}

// hides reports whether programs do not see a file: of the folders that it is in, the innermost counts.
func (p spot) hides(at string) bool {
	innermost := sandbox.Folder{}
	for _, f := range p.folders {
		if workspace.Within(at, f.Path) && len(f.Path) > len(innermost.Path) {
			innermost = f
		}
	}
	return innermost.Access == sandbox.Hidden
}

// hiddenNote tells the model what a command did not see, if its output speaks of that or, because some
// sandboxes list no folder of which they hide a part, of the folder that it is in.
func hiddenNote(hidden []string, output string) string {
	for _, name := range hidden {
		folder := path.Base(path.Dir(name))
		if strings.Contains(output, path.Base(name)) || strings.Contains(output, folder+"'") && folder != "." {
			const text = "%s holds untrusted content, and is hidden from commands that do not name it. To have it " +
				"read, name it in the command."
			return fmt.Sprintf(text, name)
		}
	}
	return ""
}

// parseReading parses a command without a change of the folder at its end, after which nothing is read.
func parseReading(command string) (*syntax.File, error) {
	file, err := parse(command)
	if err != nil || len(file.Stmts) == 0 {
		return file, err
	}
	isChange := func(s *syntax.Stmt) bool {
		args, plain := plainArguments(s)
		return plain && len(args) > 0 && args[0] == "cd"
	}
	end := len(file.Stmts) - 1
	both, isBoth := file.Stmts[end].Cmd.(*syntax.BinaryCmd)
	switch {
	case isChange(file.Stmts[end]):
		file.Stmts = file.Stmts[:end]
	case isBoth && both.Op == syntax.AndStmt && isChange(both.Y):
		file.Stmts[end] = both.X
	}
	return file, nil
}

// wordsOf returns the words of a command whose text is known, at any depth.
func (r *reader) wordsOf(command string) (words []string) {
	file, err := parseReading(command)
	if err != nil {
		return nil
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok {
			text := ""
			for _, part := range w.Parts {
				inner, literal := literalOf(&syntax.Word{Parts: []syntax.WordPart{part}})
				if !literal {
					break
				}
				text += inner
			}
			expanded, _ := r.fields(w) // such as "$HOME/../inbox"
			words = append(append(words, expanded...), strings.Fields(text)...)
			words = append(words, text)
		}
		return true
	})
	return words
}
