package imports

import (
	"net/url"
	"strings"

	"parley/lazyregexp"
)

var (
	// givesSecret matches an option whose value is the next argument, and may be a secret.
	givesSecret = lazyregexp.New(`(?i)^-{1,2}[a-z0-9_-]*(key|token|secret|pass|pwd|auth|bearer|credential|cookie)` +
		`[a-z0-9_-]*$`)
	// givesPair matches an option whose value is a variable or a header with what it holds.
	givesPair = lazyregexp.New(`^(-e|--env|--env-var|-H|--header|--headers)$`)
	// knownPrefix matches how keys of well-known services begin.
	knownPrefix = lazyregexp.New(`^(sk-|pk-|rk_|gh[pos]_|github_pat|glpat|xox[a-z]-|AKIA|AIza|hf_|tvly|ntn_|eyJ)`)
	// isWord matches a part of a path that a person would read: words, a version, a number of few digits.
	isWord = lazyregexp.New(`^(@?[a-z]+([._-][a-z]+)*[0-9]{0,2}|[A-Z][a-z]+|[A-Z]{1,8}|` +
		`v[0-9]+([a-z]+[0-9]*)?|[0-9.]{1,5}|)$`)
)

const longestWord = 24 // characters of a part of a path

// secretArgs reports which of the arguments of a program may have a secret in them. An argument that is none and is
// taken for one costs its owner a variable to set; the reverse would copy a secret.
func secretArgs(args []string) []bool {
	secret := make([]bool, len(args))
	option := ""
	for i, arg := range args {
		switch {
		case givesPair.MatchString(option), givesSecret.MatchString(option) && !strings.HasPrefix(arg, "-"):
			secret[i] = true
		case givesSecret.MatchString(arg):
			// the next one is
		default:
			_, given, _ := strings.Cut(arg, "=")
			secret[i] = looksSecret.MatchString(arg) || isRandom(arg) || isRandom(given) ||
				strings.Contains(arg, "://") && inAddress(arg)
		}
		option = arg
	}
	return secret
}

// isRandom reports whether text may be a key that was made at random.
func isRandom(text string) bool {
	if strings.ContainsAny(text, "/ ") {
		return false
	}
	if len(text) >= 32 || len(text) >= 10 && knownPrefix.MatchString(text) {
		return true
	}
	digits := strings.ContainsAny(text, "0123456789")
	lower := strings.ToLower(text)
	mixed := lower != text && strings.ToUpper(text) != text
	plain := !strings.ContainsAny(text, "@.=")
	return plain && digits && lower != strings.ToUpper(text) && (len(text) >= 16 || mixed && len(text) >= 10)
}

// inAddress reports whether an address may have a secret in it: a login, a query, or a part of its path that is no
// word.
func inAddress(address string) bool {
	if at := strings.Index(address, "http"); at > 0 { // of an option
		address = address[at:]
	}
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return true
	}
	for part := range strings.SplitSeq(u.EscapedPath(), "/") {
		if !isWord.MatchString(part) || len(part) > longestWord {
			return true
		}
	}
	return false
}
