package shell

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"parley/tools"
	"parley/tools/sandbox"
	"parley/workspace"
)

// maxLooked is how many files below a folder that a command names are looked at.
const maxLooked = 5000

// taintByFiles marks r as untrusted if the command names a file that holds untrusted content, or a
// folder with such a file in it. The folder in which it runs counts as named.
func (e executor) taintByFiles(c tools.Call, in execArgs, p spot, r *tools.Result) {
	reader := reader{place: place{work: p.work, dir: p.dir, env: p.state.Env}}
	names := append(reader.wordsOf(in.Command), in.WorkingDir, ".")
	looked := 0
	seen := map[string]bool{}
	for _, name := range names {
		if _, value, isOption := strings.Cut(name, "="); isOption {
			name = value
		}
		if i := strings.IndexAny(name, "*?[{"); i >= 0 { // what matches is in the folder before
			name = name[:strings.LastIndexByte(name[:i], '/')+1]
		}
		at, _ := reader.resolve(name)
		if name == "" || seen[at] {
			continue
		}
		seen[at] = true
		path, err := c.Workspace.Resolve(at)
		if err != nil {
			continue
		}
		e.taintBelow(c, p, path, &looked, r)
	}
}

// errEnough ends a walk.
var errEnough = errors.New("there are more files than are looked at")

// taintBelow marks r if path, or a file below it, holds untrusted content.
func (e executor) taintBelow(c tools.Call, where spot, at workspace.Path, looked *int, r *tools.Result) {
	_ = c.Workspace.Walk(at, func(p workspace.Path, d fs.DirEntry, err error) error {
		if *looked++; r.Tainted || *looked > maxLooked {
			return errEnough
		}
		switch {
		case err != nil:
			return nil
		case where.hides(filepath.Join(where.whole, p.String())):
			return skip(d)
		case !d.IsDir():
			r.TaintBy(c.Scope, p)
		}
		return nil
	})
}

// skip leaves out what is in d, if it is a folder.
func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
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

// maxMarked is how many files one command can mark as untrusted.
const maxMarked = 300

// markWritten records that the files which a command has changed since it began may hold untrusted
// content: it ran after such content was read, or reached the network (R-S12).
func (s *Shell) markWritten(c tools.Call, since time.Time) {
	work, err := inWork(c.Workspace, "")
	if err != nil {
		return
	}
	marked, looked := 0, 0
	err = c.Workspace.Walk(work, func(p workspace.Path, d fs.DirEntry, err error) error {
		if looked++; marked > maxMarked || looked > 20*maxLooked {
			return errEnough
		}
		if err != nil || !d.Type().IsRegular() || !isChangedSince(d, since) {
			return nil
		}
		marked++
		return c.Workspace.SetOrigin(p, "")
	})
	if err != nil {
		const text = "not all files that a command wrote are marked as untrusted"
		s.cfg.Log.Warn(text, "session", c.Session, "err", err)
	}
}

// clockTick is how far the times of files may be behind the clock.
const clockTick = 20 * time.Millisecond

// isChangedSince reports whether a file was written, or its times were set, since then.
func isChangedSince(d fs.DirEntry, since time.Time) bool {
	info, err := d.Info()
	if err != nil {
		return false
	}
	changed := info.ModTime()
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		changed = time.Unix(stat.Ctim.Unix())
	}
	return !changed.Before(since.Add(-clockTick))
}
