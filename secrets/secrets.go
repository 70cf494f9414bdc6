// Package secrets decides what may be a secret: by the name of a member or a variable, by the option before an
// argument, by its place in an address, and by how it looks. What is none and is taken for one costs its owner a
// moment; the reverse would show a secret.
package secrets

import (
	"net/url"
	"strings"

	"parley/lazyregexp"
)

// surely is part of the names of what is secret, whoever says so.
const surely = `passw|passphrase|secret|token|credential`

var (
	name   = lazyregexp.New(`(?i)` + surely + `|key|auth|cookie|bearer|pass|pwd`)
	asked  = lazyregexp.New(`(?i)` + surely + `|api.?key|\bpin\b|cvv|cvc|card.?number`)
	option = lazyregexp.New(`^-{1,2}[A-Za-z][A-Za-z0-9_-]*$`)
	// inAnyName matches what is in no other names than those of secrets.
	inAnyName = lazyregexp.New(`(?i)` + surely + `|api.?key|cookie|bearer|passcode`)
	// hump matches where a word of a name in camel case begins.
	hump = lazyregexp.New(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)
	// harmless matches words that only end as the names of secrets do.
	harmless = lazyregexp.New(`(com|by|tres|sur|over|under)pass|(mon|tur|don|hoc|joc)key`)
	// secretName matches a name in lower case, of which a word names a secret.
	secretName = lazyregexp.New(`(^|[^a-z])([a-z]*(auth|key|pass|pwd)s?|` +
		`auth(orization|entication|n|z|code|header|string|data))([^a-z]|$)`)
	// optionName matches the same of an option of one dash, to which no value is glued.
	optionName = lazyregexp.New(`[^a-z]((api|access|auth|db|private|secret|user)?` +
		`(auth|key|pass|passwd|password|passphrase|pwd|secret|token|credential)s?)([^a-z]|$)`)
	// glued matches an option of one letter with its value, which looks like no name of an option.
	glued = lazyregexp.New(`^-[a-z][A-Z]`)
	// given matches an option with its value.
	given = lazyregexp.New(`^-{1,2}[A-Za-z][A-Za-z0-9_-]*=`)
	// pair matches an option whose value is a variable or a header with what it holds.
	pair = lazyregexp.New(`^(-e|--env|--env-var|-H|--header|--headers)$`)
	// givenPair matches one with that value.
	givenPair = lazyregexp.New(`^(--env|--env-var|--header|--headers|-e|-H)=|` +
		`^-e[A-Z_][A-Z0-9_]*=|^-H[A-Za-z][A-Za-z0-9-]*:`)
	// address matches where an address begins.
	address = lazyregexp.New(`[A-Za-z][A-Za-z0-9+.-]*://`)
	// login matches a user name or a password in an address.
	login = lazyregexp.New(`://[^/?#\s]+@`)
	// emptyLogin matches one of which nothing is left without references to variables.
	emptyLogin = lazyregexp.New(`://:?@`)
	// parameter matches a parameter of an address, such as "?apiKey=1".
	parameter = lazyregexp.New(`[?&#;]([^=?&#;\s]+)=([^&#;\s]+)`)
	// knownPrefix matches how keys of well-known services begin.
	knownPrefix = lazyregexp.New(`^(sk-|pk-|rk_|gh[pos]_|github_pat|glpat|xox[a-z]-|AKIA|AIza|hf_|tvly|ntn_|eyJ)`)
	// isWord matches a part of a path that a person would read: words, a version, a number of few digits.
	isWord = lazyregexp.New(`^(@?[a-z]+([._-][a-z]+)*[0-9]{0,2}|[A-Z][a-z]+|[A-Z]{1,8}|` +
		`v[0-9]+([a-z]+[0-9]*)?|[0-9.]{1,5}|)$`)
)

const longestWord = 24 // characters of a part of a path

// IsName reports whether a member, a variable, an option or a parameter of that name may hold a secret.
func IsName(text string) bool { return name.MatchString(text) }

// IsSecretName reports whether what a variable of that name holds is a secret, which no log may show. It is narrower
// than [IsName]: GIT_AUTHOR_NAME is none.
func IsSecretName(text string) bool {
	return inAnyName.MatchString(text) || secretName.MatchString(harmless.ReplaceAllString(inWords(text), "-"))
}

// inWords returns a name in lower case, with "_" between the words of camel case.
func inWords(name string) string {
	return strings.ToLower(hump.ReplaceAllString(name, "${1}${3}_${2}${4}"))
}

// IsAsked reports whether a person who fills in a field of that name would give away a secret. It is narrower than
// [IsName]: a question about a keyboard or an author is none.
func IsAsked(text string) bool { return asked.MatchString(text) }

// InArguments reports which of the arguments of a program may have a secret in them.
func InArguments(args []string) []bool {
	secret := make([]bool, len(args))
	before := ""
	for i, arg := range args {
		isOption := option.MatchString(arg)
		switch {
		case pair.MatchString(before), givenPair.MatchString(arg):
			secret[i] = true
		case option.MatchString(before) && IsName(before) && !isOption && !given.MatchString(arg):
			secret[i] = true
		case isOption && IsName(arg):
			// The next one is, unless the value is in this one. Where it is cannot always be told.
			isLong := strings.HasPrefix(arg, "--")
			secret[i] = !isLong && (glued.MatchString(arg) || !optionName.MatchString(inWords(arg)))
			if secret[i] && glued.MatchString(arg) && isRandom(arg[2:]) {
				arg = ""
			}
		default:
			_, value, _ := strings.Cut(arg, "=")
			secret[i] = IsName(arg) || isRandom(arg) || isRandom(value) ||
				strings.Contains(arg, "://") && InAddress(arg)
		}
		before = arg
	}
	return secret
}

// CutPair returns the variable or the header with what it holds that an option has in the same argument.
func CutPair(arg string) (pair string, is bool) {
	m := givenPair.FindStringSubmatch(arg)
	switch {
	case m == nil:
		return "", false
	case m[1] != "": // an option that ends with "="
		return arg[len(m[0]):], true
	}
	return arg[len("-e"):], true
}

// Values returns the secrets that the arguments of a program certainly hold: values of options, variables, headers and
// parameters of addresses with names for which [IsSecretName] is true, and keys of well-known services. It is narrower
// than [InArguments]: what it takes for a secret is removed from all logs, wherever it stands there.
func Values(args []string) (values []string) {
	var before string
	for _, arg := range args {
		values = append(values, Parameters(arg)...)
		named, isPair := CutPair(arg)
		switch {
		case isPair:
		case pair.MatchString(before), given.MatchString(arg):
			named = arg
		case arg != "" && option.MatchString(before) && IsSecretName(before) && !option.MatchString(arg):
			values = append(values, arg)
		case knownPrefix.MatchString(arg) && isRandom(arg):
			values = append(values, arg)
		}
		at := strings.IndexAny(named, "=:")
		if at >= 0 && at+1 < len(named) && IsSecretName(named[:at]) {
			value := strings.TrimSpace(named[at+1:])
			values = append(values, value)
			if words := strings.Fields(value); len(words) == 2 { // "Authorization: Bearer KEY"
				values = append(values, words[1])
			}
		}
		before = arg
	}
	return values
}

// InText reports whether there is an address in text that certainly has a secret in it: a login, or a parameter with
// the name of a secret.
func InText(text string) bool {
	return login.MatchString(text) && !emptyLogin.MatchString(text) || len(parameters(text, IsName)) > 0
}

// Parameters returns the values of parameters of addresses in text which no log may show, by [IsSecretName].
func Parameters(text string) []string { return parameters(text, IsSecretName) }

// parameters returns the values of parameters of addresses in text whose names are those of secrets.
func parameters(text string, isSecret func(name string) bool) (values []string) {
	if !strings.Contains(text, "://") {
		return nil
	}
	for _, p := range parameter.FindAllStringSubmatch(text, -1) {
		if isSecret(p[1]) {
			values = append(values, p[2])
		}
	}
	return values
}

// InAddress reports whether an address may have a secret in it: a login, a query, or a part of its path that is no
// word.
func InAddress(text string) bool {
	if InText(text) {
		return true
	}
	if at := address.FindStringIndex(text); at != nil { // it may be that of an option
		text = text[at[0]:]
	}
	u, err := url.Parse(text)
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
