package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// An environ is the environment as the process found it. It is kept, so that
// a reload can read the variables that keep has taken out of the process.
type environ map[string]string

func newEnviron(vars []string) environ {
	e := environ{}
	for _, v := range vars {
		if name, val, ok := strings.Cut(v, "="); ok {
			e[name] = val
		}
	}
	return e
}

// lookup returns a variable. An empty one counts as unset.
func (e environ) lookup(name string) (string, bool) {
	v := e[name]
	return v, v != ""
}

var placeholder = regexp.MustCompile(`\$?\$\{[^}]*\}?`)
var variable = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)

// expand puts the value of the environment variable NAME for each ${NAME} in s,
// and returns the names used. $${ stands for ${ itself.
func expand(s string, lookup func(string) (string, bool)) (out string, vars []string, err error) {
	var errs []error
	out = placeholder.ReplaceAllStringFunc(s, func(p string) string {
		if strings.HasPrefix(p, "$$") {
			return p[1:]
		}
		m := variable.FindStringSubmatch(p)
		if m == nil {
			errs = append(errs, errors.New("has a ${ that is not ${NAME}; write $${ for a plain ${"))
			return p
		}
		v, ok := lookup(m[1])
		if !ok {
			errs = append(errs, fmt.Errorf("the environment variable %s is not set", m[1]))
			return p
		}
		vars = append(vars, m[1])
		return v
	})
	return out, vars, errors.Join(errs...)
}
