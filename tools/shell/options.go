package shell

import (
	"slices"
	"strings"
)

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

// isCluster reports whether a is letters after one "-".
func isCluster(a string) bool { return len(a) > 1 && a[0] == '-' && a[1] != '-' }

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

// operandsOrNegative returns the arguments of kill behind its signal.
func operandsOrNegative(args []string) []string {
	if len(args) > 1 && strings.HasPrefix(args[0], "-") {
		return args[1:]
	}
	return nil
}
