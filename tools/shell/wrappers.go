package shell

import (
	"path"
	"slices"
	"strings"
)

// wrappers are programs that run the program that their arguments name, by the options of theirs
// that take a value.
var wrappers = map[string]string{
	"command": "", "builtin": "", "exec": "-a", "nohup": "", "setsid": "", "time": "-f -o",
	"nice": "-n --adjustment", "ionice": "-c -n -p", "stdbuf": "-i -o -e", "busybox": "", "toybox": "",
	"timeout": "-s -k --signal --kill-after", "env": "-u -C --unset --chdir", "xargs": xargsOptions,
	"sudo": "-u -g -h -p -C -T -U -r -t", "doas": "-u -C", "chroot": "", "unshare": "", "watch": "-n --interval",
	"strace": "-e -o -p -s", "flock": "-w -E", "runuser": "-u -g", "chpst": "-u", "parallel": "-j -I -a",
}

const xargsOptions = "-I -i -n -P -d -a -E -L -s --max-args --max-procs --delimiter --arg-file --replace"

// operandsFirst are the wrappers that have so many arguments before the program.
var operandsFirst = map[string]int{"timeout": 1, "chroot": 1, "flock": 1}

// unwrap returns the command that args come down to: what env, nohup, busybox and the like run.
func unwrap(args []string) []string {
	for range maxNested {
		if len(args) == 0 {
			return args
		}
		name := path.Base(args[0])
		options, isWrapper := wrappers[name]
		if !isWrapper {
			return args
		}
		rest := afterOptions(args[1:], strings.Fields(options))
		if name == "env" || name == "sudo" || name == "doas" {
			rest = dropAssignments(rest)
		}
		rest = rest[min(operandsFirst[name], len(rest)):]
		if len(rest) == 0 {
			return args
		}
		args = rest
	}
	return args
}

func dropAssignments(args []string) []string {
	for len(args) > 0 && strings.Contains(args[0], "=") && !strings.HasPrefix(args[0], "=") {
		args = args[1:]
	}
	return args
}

// isShell reports whether args run a shell.
func isShell(args []string) bool {
	return len(args) > 0 && slices.Contains([]string{"sh", "bash", "dash", "ash", "zsh", "ksh"}, path.Base(args[0]))
}

// isInterpreter reports whether a program runs texts that it is given, in a language.
func isInterpreter(name string) bool {
	for _, known := range strings.Fields("python perl ruby node php lua tclsh deno bun osascript guile Rscript pypy") {
		if name == known || strings.HasPrefix(name, known) && strings.Trim(name[len(known):], "0123456789.") == "" {
			return true
		}
	}
	return false
}

// readsCommands reports whether args run what their standard input says.
func readsCommands(args []string) bool {
	if len(args) == 0 || !isShell(args) && !isInterpreter(path.Base(args[0])) {
		return false
	}
	for _, a := range args[1:] {
		switch {
		case a == "-" || a == "-s" || a == "/dev/stdin":
			return true
		case !strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "+"), a == "-c", a == "-m", a == "-e":
			return false // a file, a text or a module
		case isShell(args) && isCluster(a) && strings.Contains(a, "c"):
			return false
		case a == "--version" || a == "-V" || a == "--help":
			return false
		}
	}
	return true
}
