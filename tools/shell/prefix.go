package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// subcommands lists programs whose first argument says what they do.
const subcommands = "git go npm pnpm yarn cargo pip pip3 uv poetry apt apt-get dnf brew gh kubectl helm rustup gem " +
	"bundle composer dotnet terraform conda"

// runsAnything lists programs that do whatever their arguments say: approving them would approve
// everything. So do shells, interpreters and wrappers. Some set variables, which the next commands have.
const runsAnything = "eval source . find awk gawk mawk sed make just task ssh scp rsync docker podman npx pnpx uvx " +
	"bunx vim vi ed emacs gdb expect script screen tmux at batch crontab su pkexec tclsh alias trap " +
	"printf read mapfile readarray getopts unset set shopt enable hash bind complete compgen fc " +
	"tar zip split sort less more man m4 dc sqlite3 psql mysql csh tcsh fish rbash mksh pwsh nu elvish nodejs " +
	"ipython tsx ts-node java jshell groovy scala kotlin julia octave R ocaml racket sbcl erl elixir mix swift dart " +
	"runghc tcc zig cmake ninja gradle mvn ant tox nox pytest rake meson bazel scons entr watchexec hyperfine " +
	"direnv systemd-run start-stop-daemon run-parts setpriv taskset chrt numactl prlimit setarch linux32 linux64 " +
	"firejail bwrap fakeroot proot xvfb-run dbus-run-session unbuffer valgrind ltrace perf logsave nsenter pipx"

// anySubcommand lists what programs with subcommands run anything by.
const anySubcommand = "go run|go tool|go generate|go test|npm run|npm exec|npm x|npm start|npm test|pnpm run|" +
	"pnpm exec|pnpm dlx|yarn run|yarn exec|yarn dlx|cargo run|cargo test|cargo build|uv run|uv tool|poetry run|" +
	"conda run|bundle exec|dotnet run|git bisect|git rebase|git filter-branch|git config|git submodule|" +
	"git difftool|git mergetool|go build|go vet|go env|kubectl exec|gh extension|gh alias"

// programOptions are what the names of options contain whose value is a program that is run, such as
// git clone --upload-pack, go install -toolexec and wget --use-askpass.
const programOptions = "exec command pager program askpass --upl --rece --ex --op --conf ext-diff textconv vettool"

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
	const expanded = "/\\*?[{~!" // by the shell, into what the text does not say
	if !plain || len(args) == 0 || strings.ContainsAny(args[0], expanded) || namesProgram(args) {
		return ""
	}
	name := args[0]
	_, isWrapper := wrappers[name]
	switch {
	case isWrapper, isShell(args), isInterpreter(name), slices.Contains(strings.Fields(runsAnything), name):
		return ""
	case !slices.Contains(strings.Fields(subcommands), name):
		return name
	case len(args) < 2 || strings.HasPrefix(args[1], "-"), // such as git -c alias.x=!sh
		strings.ContainsAny(args[1], expanded):
		return ""
	}
	prefix := name + " " + args[1]
	if slices.Contains(strings.Split(anySubcommand, "|"), prefix) {
		return ""
	}
	return prefix
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
