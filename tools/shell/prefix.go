package shell

import (
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"parley/lazyregexp"
	"parley/workspace"
)

// readOnly lists the programs that can be approved for a while and change nothing: whatever their arguments
// are, they neither write a file, nor run another program or what a file says.
const readOnly = "ls cat head tail wc nl tac rev cut tr comm paste fold expand column cmp diff stat du df date " +
	"cal pwd echo basename dirname realpath readlink sleep true false test grep egrep fgrep jq md5sum sha1sum " +
	"sha256sum sha512sum cksum base64 od hexdump strings which whoami id uname nproc free ps zcat pdfinfo"

// writers lists the programs that can be approved for a while and may write the files that they are given.
// Others, rm and rmdir, only remove them.
const writers = "mkdir touch cp mv gzip gunzip tree uniq file curl wget"

// singleGit lists the subcommands of git that can be approved for a while. They run nothing but the
// repository's own hooks and settings, which is why no writer may place any.
const singleGit = "status log diff show add commit branch switch checkout restore stash tag merge fetch pull push " +
	"clone blame rev-parse ls-files remote mv rm cherry-pick revert grep describe shortlog reflog"

// prefixOf returns the program and the subcommand that a command is, such as "git commit", if to
// approve these is to approve no more than they say. Otherwise it returns "". A command in front
// that only changes the folder does not count.
func prefixOf(command string, at place) string {
	file, err := parse(command)
	if err != nil || len(file.Stmts) != 1 || !isAsWritten(file) {
		return ""
	}
	s := file.Stmts[0]
	dir := at.dir
	if both, ok := s.Cmd.(*syntax.BinaryCmd); ok && both.Op == syntax.AndStmt && len(s.Redirs) == 0 && !s.Background {
		if args, plain := plainArguments(both.X); plain && len(args) == 2 && args[0] == "cd" {
			s = both.Y
			dir = joinPath(dir, args[1])
		}
	}
	args, plain := plainArguments(s)
	if !plain || len(args) == 0 {
		return ""
	}
	switch name := args[0]; {
	case slices.Contains(strings.Fields(readOnly), name), name == "rm", name == "rmdir":
		return name
	case slices.Contains(strings.Fields(writers), name):
		if hasPattern(s) || !isPlainWriter(args) || placesObeyed(args[1:], dir, at.work) {
			return ""
		}
		return name
	case name != "git" || len(args) < 2 || hasPattern(s) || !isPlainGit(args[1], args[2:]):
		return ""
	case args[1] == "clone" && placesObeyed(args[2:], dir, at.work):
		return ""
	}
	return "git " + args[1]
}

// isAsWritten reports whether the words of a command reach its program as they are written, but for patterns
// of names of files: {-,}-exec, \-\-exec and $'\x2dexec' are options that do not look like it.
func isAsWritten(command syntax.Node) bool {
	asWritten := true
	syntax.Walk(command, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Lit:
			asWritten = asWritten && !strings.ContainsAny(n.Value, `\{`) && !strings.HasPrefix(n.Value, "~")
		case *syntax.SglQuoted:
			asWritten = asWritten && !n.Dollar
		case *syntax.DblQuoted: // there, braces are braces, and a backslash stays where it hides nothing
			text, literal := literalOf(&syntax.Word{Parts: n.Parts})
			asWritten = asWritten && !n.Dollar && literal && !strings.Contains(text, "\\\n")
			return false
		}
		return true
	})
	return asWritten
}

// hasPattern reports whether words of a command become names of files, which may look like options.
func hasPattern(command syntax.Node) bool {
	found := false
	syntax.Walk(command, func(n syntax.Node) bool {
		if lit, ok := n.(*syntax.Lit); ok {
			found = found || strings.ContainsAny(lit.Value, "*?[")
		}
		_, isQuoted := n.(*syntax.DblQuoted)
		return !isQuoted
	})
	return found
}

// gitPrograms are what the names of options of git contain whose value is a program that is run, such as
// git fetch --upload-pack, or a file that is written.
const gitPrograms = "exec command pager program askpass --upl --rece --ex --op --conf --ou ext-diff textconv"

// gitOptions are the options of the subcommands that take no others: what they could bring are settings,
// hooks, or another repository than the first argument.
var gitOptions = map[string]string{
	"clone":  "--single-branch -q --quiet --no-tags --depth --branch -b",
	"push":   "-u --set-upstream --tags --all -d --delete -n --dry-run -q --quiet -v",
	"remote": "-v --verbose",
}

// isPlainGit reports whether a subcommand of git with args does what it says, and runs nothing but the hooks
// of the repository that it is about.
func isPlainGit(subcommand string, args []string) bool {
	if !slices.Contains(strings.Fields(singleGit), subcommand) {
		return false
	}
	known, isLimited := gitOptions[subcommand]
	names := []string{""}
	for i, a := range args {
		option, _, _ := strings.Cut(a, "=")
		isOption := strings.HasPrefix(a, "-")
		isIn := func(part string) bool { return isOption && strings.Contains(option, part) }
		isValue := subcommand == "clone" && i > 0 && slices.Contains([]string{"--depth", "--branch", "-b"}, args[i-1])
		switch {
		case strings.Contains(a, "ext::"), slices.ContainsFunc(strings.Fields(gitPrograms), isIn):
			return false
		case subcommand == "grep" && isCluster(a) && strings.Contains(a, "O"): // the program that shows what is found
			return false
		case isOption && isLimited && !slices.Contains(strings.Fields(known), option):
			return false
		case !isOption && !isValue:
			names = append(names, a)
		}
	}
	first := names[min(1, len(names)-1)]
	switch subcommand {
	case "clone": // a folder would be what is pushed to later, and pushing to one runs its hooks
		return strings.HasPrefix(first, "https://") || strings.HasPrefix(first, "http://")
	case "push":
		return slices.Contains([]string{"", "origin", "upstream"}, first)
	case "remote":
		return slices.Contains([]string{"", "show", "get-url"}, first)
	}
	return true
}

// fetchOptions match the options of curl and wget that only say what is fetched, and what file it becomes.
var fetchOptions = map[string]*lazyregexp.Regexp{
	"curl": lazyregexp.New(`^-[sSLfkiIvgGO46]*[oHXdAm]?$|^--(silent|show-error|location|fail|head|include|` +
		`compressed|insecure|get|remote-name|verbose|output|header|request|data|data-raw|data-urlencode|json|` +
		`user-agent|max-time|connect-timeout|retry|url)(=|$)`),
	"wget": lazyregexp.New(`^-[qSncv46]*[OTtU]?$|^--(quiet|no-verbose|no-clobber|continue|spider|timeout|` +
		`tries|header|user-agent|output-document|post-data)(=|$)`),
}

// otherNames are the letters of options with which a writer makes links, copies folders with all that is in
// them, or takes names from elsewhere than its arguments.
var otherNames = map[string]string{"cp": "rRadutls", "mv": "tu", "gzip": "N", "gunzip": "N", "tree": "R"}

// isPlainWriter reports whether a writer only writes files that args name.
func isPlainWriter(args []string) bool {
	program := args[0]
	return !slices.ContainsFunc(args[1:], func(a string) bool {
		switch known := fetchOptions[program]; {
		case program == "wget" && strings.Contains(a, "%"): // it takes %2e for a dot
			return true
		case !strings.HasPrefix(a, "-"):
			return false
		case known != nil:
			return !known.MatchString(a)
		}
		return strings.HasPrefix(a, "--") || strings.ContainsAny(a, otherNames[program])
	})
}

// hiddenName matches a name that begins with a dot, also behind -o or --output=.
var hiddenName = lazyregexp.New(`(^|[^\pL\pN_)*?\]])\.[^./]|^-[^-].*\.`)

// placesObeyed reports whether a writer with args, which runs in dir, may put something in the place of a file
// that programs obey by themselves, such as .git/hooks/pre-commit, be it by a link that leads there.
func placesObeyed(args []string, dir, work string) bool {
	folders := []string{dir} // in which it may write
	for _, a := range args {
		if at := joinPath(dir, a); isFolder(at) {
			folders = append(folders, at)
		}
	}
	return slices.ContainsFunc(args, func(a string) bool {
		if hiddenName.MatchString(a) {
			return true
		}
		if _, value, found := strings.Cut(a, "="); found {
			a = value
		}
		a, _, _ = strings.Cut(a, "?") // of a URL
		return slices.ContainsFunc(folders, func(folder string) bool {
			return isObeyed(joinPath(folder, a), work) || isObeyed(joinPath(folder, path.Base(a)), work)
		})
	})
}

// joinPath returns the path of what is called name in the folder dir.
func joinPath(dir, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}

// isObeyed reports whether a name on the way to a file begins with a dot, or is a link, which may lead to such.
func isObeyed(at, work string) bool {
	base := path.Dir(work)
	if !workspace.Within(at, base) {
		base = "/"
	}
	for at != base && at != "/" && at != "." {
		info, err := os.Lstat(at)
		if strings.HasPrefix(path.Base(at), ".") || err == nil && info.Mode()&os.ModeSymlink != 0 {
			return true
		}
		at = path.Dir(at)
	}
	return false
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
