package shell

import (
	"path"
	"slices"
	"strings"

	"parley/workspace"
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

// afterOptions returns args from the first that is neither an option nor the value of one.
func afterOptions(args, withValue []string) []string {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-" {
		if args[0] == "--" {
			return args[1:]
		}
		n := 1
		if slices.Contains(withValue, args[0]) {
			n = min(2, len(args))
		}
		args = args[n:]
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

// isCluster reports whether a is letters after one "-".
func isCluster(a string) bool { return len(a) > 1 && a[0] == '-' && a[1] != '-' }

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
	to := r.place.work
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

// optionValue returns the value of an option that is one of names.
func optionValue(args []string, names ...string) (value string, found bool) {
	for i, a := range args {
		for _, name := range names {
			switch {
			case a == name && i+1 < len(args):
				return args[i+1], true
			case strings.HasPrefix(name, "--") && strings.HasPrefix(a, name+"="):
				return a[len(name)+1:], true
			case !strings.HasPrefix(name, "--") && strings.HasPrefix(a, name) && len(a) > len(name):
				return a[len(name):], true
			}
		}
	}
	return "", false
}

// operands returns the arguments that are no options, and all behind "--".
func operands(args []string) (all []string) {
	for i, a := range args {
		if a == "--" {
			return append(all, args[i+1:]...)
		}
		if a == "-" || !strings.HasPrefix(a, "-") {
			all = append(all, a)
		}
	}
	return all
}

// hasFlag reports whether args have an option: a letter of a cluster, or a long one.
func hasFlag(args []string, letters string, long ...string) bool {
	for _, a := range args {
		if a == "--" {
			return false
		}
		if slices.Contains(long, a) || isCluster(a) && strings.ContainsAny(a[1:], letters) {
			return true
		}
	}
	return false
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

// effects judges a program by what it does with its arguments.
func (r *reader) effects(name string, args []string) {
	files := operands(args)
	switch name {
	case "rm", "rmdir", "unlink", "shred", "srm":
		r.deletes(files, name == "rm" && hasFlag(args, "rR", "--recursive"))
	case "mv":
		r.writeAll(files)
	case "cp", "install", "ln", "rsync", "scp":
		r.copies(args, files)
	case "tee", "truncate", "touch", "mkdir", "chattr", "mkfifo", "mknod":
		r.writeAll(files)
	case "chmod", "chown", "chgrp", "setfacl":
		r.writeAll(files[min(1, len(files)):])
	case "sed", "perl", "ruby":
		if hasFlag(args, "i", "--in-place") && len(files) > 0 {
			r.editsInPlace(files)
		}
	case "dd":
		r.copiesBlocks(args)
	case "tar", "unzip", "git", "make", "curl", "wget":
		r.writesByOption(name, args)
	default:
		r.system(name, args)
	}
}

func (r *reader) writeAll(files []string) {
	for _, name := range files {
		r.writes(name)
	}
}

// copies judges the target of a copy, which is the last argument, or that of an option.
func (r *reader) copies(args, files []string) {
	if target, found := optionValue(args, "-t", "--target-directory"); found {
		r.writes(target)
	} else if len(files) > 1 && !strings.Contains(files[len(files)-1], ":") {
		r.writes(files[len(files)-1])
	}
}

// editsInPlace judges the files that sed -i changes: all arguments but a script.
func (r *reader) editsInPlace(files []string) {
	r.writeAll(files[1:]) // the first is the script, or the value of -e
}

// copiesBlocks judges dd, which writes to what of= names.
func (r *reader) copiesBlocks(args []string) {
	for _, a := range args {
		if to, found := strings.CutPrefix(a, "of="); found {
			r.writes(to)
		}
		if from, found := strings.CutPrefix(a, "if="); found && workspace.Within(from, "/dev") && !isSource(from) {
			r.refuse(refusedDangerous, a)
		}
	}
}

func isSource(device string) bool {
	return slices.Contains([]string{"/dev/zero", "/dev/random", "/dev/urandom", "/dev/stdin", "/dev/null"}, device)
}

// writesByOption judges programs that an option tells where to write, and some that throw away work.
func (r *reader) writesByOption(name string, args []string) {
	switch name {
	case "tar":
		if to, found := optionValue(args, "-C", "--directory"); found {
			r.writes(to)
		}
	case "unzip":
		if to, found := optionValue(args, "-d"); found {
			r.writes(to)
		}
	case "curl":
		r.visits(args)
		if to, found := optionValue(args, "-o", "--output"); found {
			r.writes(to)
		}
	case "wget":
		r.visits(args)
		if to, found := optionValue(args, "-O", "--output-document"); found && to != "-" {
			r.writes(to)
		}
	case "git":
		r.git(args)
	}
}

// git asks before what cannot be restored is thrown away.
func (r *reader) git(args []string) {
	args = afterOptions(args, []string{"-C", "-c", "--git-dir", "--work-tree"})
	if len(args) == 0 {
		return
	}
	rest := args[1:]
	switch args[0] {
	case "push":
		if hasFlag(rest, "f", "--force", "--mirror", "--delete", "--force-with-lease") {
			r.ask(askLoses)
		}
	case "reset":
		if slices.Contains(rest, "--hard") {
			r.ask(askLoses)
		}
	case "clean":
		if hasFlag(rest, "f", "--force") && !hasFlag(rest, "n", "--dry-run") {
			r.ask(askLoses)
		}
	}
}

// system judges programs that change the machine.
func (r *reader) system(name string, args []string) {
	switch {
	case strings.HasPrefix(name, "mkfs"), slices.Contains(strings.Fields(
		"mke2fs diskpart format fdisk sfdisk gdisk parted wipefs blkdiscard mkswap swapoff hdparm cryptsetup"), name):
		r.refuse(refusedDangerous, name)
	case slices.Contains(strings.Fields("shutdown reboot poweroff halt telinit"), name),
		name == "init" && len(args) > 0 && strings.Contains("06", args[0]):
		r.refuse(refusedDangerous, name)
	case name == "systemctl" || name == "service":
		if slices.ContainsFunc(args, func(a string) bool {
			return slices.Contains(strings.Fields("poweroff reboot halt kexec suspend hibernate emergency rescue"), a)
		}) {
			r.refuse(refusedDangerous, name+" "+strings.Join(args, " "))
		}
		r.ask(askSystem)
	case name == "del" && slices.ContainsFunc(args, func(a string) bool { return a == "/f" || a == "/q" || a == "/s" }):
		r.refuse(refusedDangerous, name)
	case name == "kill" && (slices.Contains(operandsOrNegative(args), "-1") || slices.Contains(args, "1")):
		r.refuse(refusedDangerous, name+" "+strings.Join(args, " "))
	case slices.Contains(strings.Fields("mount umount insmod modprobe rmmod iptables nft sysctl crontab at useradd "+
		"usermod userdel passwd visudo docker podman nsenter killall pkill kexec"), name):
		r.ask(askSystem)
	}
}

// operandsOrNegative returns the arguments of kill behind its signal.
func operandsOrNegative(args []string) []string {
	if len(args) > 1 && strings.HasPrefix(args[0], "-") {
		return args[1:]
	}
	return nil
}
