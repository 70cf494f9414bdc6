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
// everything. So do shells, interpreters and wrappers.
const runsAnything = "eval source . find awk gawk mawk sed make just task ssh scp rsync docker podman npx pnpx uvx " +
	"bunx vim vi ed emacs gdb expect script screen tmux at batch crontab su pkexec tclsh alias trap"

// anySubcommand lists what programs with subcommands run anything by.
const anySubcommand = "go run|go tool|go generate|go test|npm run|npm exec|npm x|npm start|npm test|pnpm run|" +
	"pnpm exec|pnpm dlx|yarn run|yarn exec|yarn dlx|cargo run|cargo test|cargo build|uv run|uv tool|poetry run|" +
	"conda run|bundle exec|dotnet run|git bisect|git rebase|git filter-branch|git config|git submodule|" +
	"kubectl exec|gh extension"

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
	if !plain || len(args) == 0 || strings.ContainsAny(args[0], "/\\") {
		return ""
	}
	name := args[0]
	_, isWrapper := wrappers[name]
	switch {
	case isWrapper, isShell(args), isInterpreter(name), slices.Contains(strings.Fields(runsAnything), name):
		return ""
	case !slices.Contains(strings.Fields(subcommands), name):
		return name
	case len(args) < 2 || strings.HasPrefix(args[1], "-"): // such as git -c alias.x=!sh
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
		if word := redirect.Word.Lit(); redirect.Hdoc != nil || word != "/dev/null" && redirect.Op != syntax.DplOut {
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
