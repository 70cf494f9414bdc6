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
// holds some, or a folder with such a file in it, or is in one. The folder in which it runs counts as
// named, and all of work does if the command runs anything but programs that only read what they are told
// to. If r stays trusted, p then hides the rest of such content, so that no program finds it by itself
// (R-S12).
func (e executor) taintByFiles(c tools.Call, in execArgs, p *spot, r *tools.Result) {
	all, err := p.foreigners(c)
	if err != nil {
		e.shell.cfg.Log.Error("a command counts as untrusted", "session", c.Session, "err", err)
		r.Tainted = true
		r.Sources = chat.JoinSources(r.Sources, "the workspace, of which it cannot be read whose files are")
		return
	}
	for _, at := range e.namedBy(c, in, *p) {
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
	if p.hide(all); len(p.hidden) > maxHidden {
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
	names := append(reader.wordsOf(in.Command), in.WorkingDir, ".", p.work+"/.config")
	if !onlyReads(in.Command) {
		names = append(names, p.work)
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
	slices.Sort(all)
	return slices.Compact(all)
}

// onlyReads reports whether a command runs only programs that read what they are told to.
func onlyReads(command string) bool {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	if err != nil {
		return false
	}
	known := append(strings.Fields(single), "git", "cd", "export", "exit", "unset", "printf", "sort", "sed", "[")
	only := true
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			only = only && slices.Contains(known, call.Args[0].Lit())
		}
		return true
	})
	return only
}

// hide keeps from the programs of p all that is outside of work. What is in it they may change, so that it
// cannot be hidden, and it counts as named.
func (p *spot) hide(all []foreign) {
	for _, f := range all {
		at := filepath.Join(p.whole, f.name)
		if workspace.Within(at, p.work) || f.isDir && !f.below { // of that only the name is untrusted
			continue
		}
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

// hiddenNote tells the model what a command did not see, if its output speaks of that.
func hiddenNote(hidden []string, output string) string {
	for _, name := range hidden {
		if strings.Contains(output, path.Base(name)) {
			const text = "%s holds untrusted content, and is hidden from commands that do not name it. To have it " +
				"read, name it in the command."
			return fmt.Sprintf(text, name)
		}
	}
	return ""
}

// wordsOf returns the words of a command whose text is known, at any depth.
func (r *reader) wordsOf(command string) (words []string) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
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
