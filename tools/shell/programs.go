package shell

import (
	"path"
	"slices"
	"strings"

	"parley/workspace"
)

// run judges a simple command.
func (r *reader) run(args []string) {
	if len(args) == 0 {
		return
	}
	if names := []string{"sudo", "doas", "su", "runuser", "pkexec"}; slices.Contains(names, path.Base(args[0])) {
		r.ask(askRights)
	}
	if base := path.Base(args[0]); base == "env" {
		if text, found := optionValue(args, "-S", "--split-string"); found {
			r.text(text)
			return
		}
	}
	if path.Base(args[0]) == "xargs" {
		args = append(slices.Clone(args), unknown) // what it reads
	}
	args = unwrap(args)
	if isUnknown(args[0]) {
		r.ask(askDynamic)
		return
	}
	if at, known := r.resolve(args[0]); known && strings.Contains(args[0], "/") && workspace.Within(at, r.place.work) {
		return // a program of its own
	}
	name := path.Base(args[0])
	if r.functions[name] {
		return
	}
	args = args[1:]
	switch name {
	case "cd", "pushd":
		r.changeDir(args)
	case "eval":
		r.evaluate(strings.Join(args, " "))
	case "trap", "alias":
		r.quoted(name, args)
	case "su", "script", "ssh":
		if text, found := optionValue(append([]string{name}, args...), "-c", "--command"); found {
			r.evaluate(text)
		}
	case "find":
		r.find(args)
	case "export", "declare", "local", "readonly", "typeset": // as a word, not as a keyword
	default:
		if isShell([]string{name}) {
			r.shell(args)
			return
		}
		r.effects(name, args)
	}
}

// evaluate reads a text that a command runs as commands.
func (r *reader) evaluate(text string) {
	if isUnknown(text) {
		r.ask(askDynamic)
		return
	}
	r.text(text)
}

// quoted reads the commands that trap and alias keep for later.
func (r *reader) quoted(name string, args []string) {
	for _, arg := range args {
		if name == "alias" {
			_, arg, _ = strings.Cut(arg, "=")
		}
		if strings.ContainsAny(arg, " ;|&") {
			r.evaluate(arg)
		}
	}
}

// changeDir follows cd.
func (r *reader) changeDir(args []string) {
	args = afterOptions(args, nil)
	to, _ := r.lookup("HOME")
	if len(args) > 0 {
		to = args[0]
	}
	if isUnknown(to) || to == "-" {
		r.lostDir = true
		return
	}
	at, known := r.resolve(to)
	if known {
		r.place.dir = at
		r.lostDir = false
	}
}

// shell reads what sh -c runs, in any form that the option has: -c, -lc, -xc.
func (r *reader) shell(args []string) {
	for i, a := range args {
		if !strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "+") {
			return // a file
		}
		if !isCluster(a) || !strings.Contains(a, "c") {
			continue
		}
		rest := args[i+1:]
		for len(rest) > 0 && (strings.HasPrefix(rest[0], "-") || strings.HasPrefix(rest[0], "+")) {
			rest = rest[1:]
		}
		if len(rest) > 0 {
			r.evaluate(rest[0])
		}
		return
	}
}

// find judges what find does with what it finds, which is somewhere below where it looks.
func (r *reader) find(args []string) {
	var roots []string
	for _, a := range args {
		if strings.HasPrefix(a, "-") || a == "(" || a == "!" {
			break
		}
		roots = append(roots, a)
	}
	if len(roots) == 0 {
		roots = []string{"."}
	}
	for i := len(roots); i < len(args); i++ {
		switch args[i] {
		case "-delete":
			for _, root := range roots {
				r.writes(root)
			}
		case "-fprint", "-fprintf", "-fls":
			if i+1 < len(args) {
				r.writes(args[i+1])
			}
		case "-exec", "-execdir", "-ok", "-okdir":
			end := i + 1
			for end < len(args) && args[end] != ";" && args[end] != "+" {
				end++
			}
			r.foundRun(args[i+1:end], roots)
			i = end
		}
	}
}

// foundRun judges a command that find runs for what is below roots.
func (r *reader) foundRun(command, roots []string) {
	for _, root := range roots {
		args := slices.Clone(command)
		for i, a := range args {
			if a == "{}" {
				args[i] = path.Join(root, "found")
			}
		}
		r.run(args)
	}
}
