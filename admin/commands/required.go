package commands

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"
)

// RequiredVar adds a flag whose value, if it is given, goes to p, and is an error if it is blank. Otherwise the
// program would do as if there were no flag: as an unset variable of a script has it say --listen="$ADDRESS".
func RequiredVar(flags *pflag.FlagSet, p *string, name, shorthand, usage string) {
	flags.VarP((*required)(p), name, shorthand, usage)
}

// required is the value of such a flag.
type required string

func (r *required) String() string { return string(*r) }
func (r *required) Type() string   { return "string" }
func (r *required) Set(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("it needs a value")
	}
	*r = required(s)
	return nil
}
