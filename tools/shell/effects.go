package shell

import (
	"slices"
	"strings"

	"parley/workspace"
)

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
