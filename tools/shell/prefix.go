package shell

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// single lists the programs that can be approved for a while. Each does one thing with the files that it is
// given, and neither runs another program nor what a file says, whatever its arguments are.
const single = "ls cat head tail wc nl tac rev cut tr uniq comm paste fold expand column cmp diff file stat du df " +
	"date cal pwd echo basename dirname realpath readlink sleep true false test tree grep egrep fgrep jq md5sum " +
	"sha1sum sha256sum sha512sum cksum base64 xxd od hexdump strings which whoami id uname nproc free ps mkdir touch " +
	"rm rmdir cp mv gzip gunzip zcat pdftotext pdfinfo curl wget"

// singleGit lists the subcommands of git of which the same holds, but for the repository's own hooks.
const singleGit = "status log diff show add commit branch switch checkout restore stash tag merge fetch pull push " +
	"clone blame rev-parse ls-files remote mv rm cherry-pick revert grep describe shortlog reflog"

// programOptions are what the names of options contain whose value is a program that is run, such as
// git clone --upload-pack and wget --use-askpass.
const programOptions = "exec command pager program askpass --upl --rece --ex --op --conf ext-diff textconv"

// namesProgram reports whether one of args says what other program is to be run.
func namesProgram(args []string) bool {
	short := map[string][]string{"git": {"-c", "-O"}, "wget": {"-e"}}[args[0]]
	return slices.ContainsFunc(args[1:], func(a string) bool {
		contains := func(part string) bool { return strings.Contains(a, part) }
		begins := func(option string) bool { return strings.HasPrefix(a, option) }
		isOption := strings.HasPrefix(a, "-") && slices.ContainsFunc(strings.Fields(programOptions), contains)
		return isOption || slices.ContainsFunc(short, begins) || strings.Contains(a, "ext::")
	})
}

// prefixOf returns the program and the subcommand that a command is, such as "git commit", if to
// approve these is to approve no more than they say. Otherwise it returns "". A command in front
// that only changes the folder does not count.
func prefixOf(command string) string {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	if err != nil || len(file.Stmts) != 1 {
		return ""
	}
	s := file.Stmts[0]
	if both, ok := s.Cmd.(*syntax.BinaryCmd); ok && both.Op == syntax.AndStmt && len(s.Redirs) == 0 && !s.Background {
		if args, plain := plainArguments(both.X); plain && len(args) == 2 && args[0] == "cd" {
			s = both.Y
		}
	}
	args, plain := plainArguments(s)
	if !plain || len(args) == 0 || namesProgram(args) || placesHiddenFiles(args) {
		return ""
	}
	switch {
	case slices.Contains(strings.Fields(single), args[0]):
		return args[0]
	case args[0] != "git" || len(args) < 2 || args[1] == "clone" && !isPlainClone(args[2:]):
		return ""
	case slices.Contains(strings.Fields(singleGit), args[1]):
		return "git " + args[1]
	}
	return ""
}

// isPlainClone reports whether a clone has no options but harmless ones: others bring settings and hooks.
func isPlainClone(args []string) bool {
	return !slices.ContainsFunc(args, func(a string) bool {
		name, _, _ := strings.Cut(a, "=")
		known := strings.Fields("--depth --branch -b --single-branch -q --quiet --no-tags")
		return strings.HasPrefix(a, "-") && !slices.Contains(known, name)
	})
}

// placesHiddenFiles reports whether args may put something in the place of a file that programs obey by
// themselves, such as .git/hooks/pre-commit.
func placesHiddenFiles(args []string) bool {
	if slices.Contains([]string{"cp", "mv"}, args[0]) && hasFlag(args[1:], "rRadu", "--recursive", "--archive") {
		return true
	}
	if !slices.Contains(strings.Fields("cp mv rm touch mkdir gzip gunzip curl wget"), args[0]) {
		return false
	}
	return slices.ContainsFunc(args[1:], func(a string) bool {
		for part := range strings.SplitSeq(a, "/") {
			if strings.HasPrefix(part, ".") && part != "." && part != ".." {
				return true
			}
		}
		return false
	})
}

// maxExact is how long a command may be to be approved for a while as it is, in bytes.
const maxExact = 200

// canBeExact reports whether a command can be approved for a while as it is, and no other with it.
func canBeExact(command string) bool {
	isOdd := func(r rune) bool { return !unicode.IsPrint(r) || r == '`' }
	return len(command) <= maxExact && utf8.ValidString(command) && !strings.ContainsFunc(command, isOdd)
}

// plainArguments returns the words of a simple command, if it has no more than these: no variables,
// substitutions, assignments, pipes or files that it writes.
func plainArguments(s *syntax.Stmt) (args []string, plain bool) {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Background || s.Coprocess || len(call.Assigns) > 0 {
		return nil, false
	}
	for _, redirect := range s.Redirs {
		if redirect.Hdoc != nil || redirect.Word.Lit() != "/dev/null" && !isDuplicate(redirect) {
			return nil, false
		}
	}
	for _, word := range call.Args {
		text, literal := literalOf(word)
		if !literal {
			return nil, false
		}
		args = append(args, text)
	}
	if len(args) > 0 && args[0] != path.Base(args[0]) {
		return nil, false
	}
	return args, true
}

// isDuplicate reports whether a redirect is one like 2>&1. With a name, >& writes to a file.
func isDuplicate(redirect *syntax.Redirect) bool {
	if redirect.Op != syntax.DplOut || redirect.Word == nil {
		return false
	}
	to := redirect.Word.Lit()
	return to != "" && strings.Trim(to, "0123456789-") == ""
}

// literalOf returns the text of a word, if nothing in it is expanded but patterns for files.
func literalOf(word *syntax.Word) (text string, literal bool) {
	for _, part := range word.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			text += part.Value
		case *syntax.SglQuoted:
			text += part.Value
		case *syntax.DblQuoted:
			inner, ok := literalOf(&syntax.Word{Parts: part.Parts})
			if !ok {
				return "", false
			}
			text += inner
		default:
			return "", false
		}
	}
	return text, true
}
