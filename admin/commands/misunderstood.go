package commands

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Misunderstood adds to err, with which c refused its arguments, how c is used. For a
// command that there is not it names those with similar names.
func Misunderstood(c *cobra.Command, err error) error {
	hint := ""
	if strings.HasPrefix(err.Error(), "unknown command ") && c.Flags().NArg() > 0 {
		hint = similar(c, c.Flags().Arg(0))
	}
	return fmt.Errorf("%w%s\nusage: %s\n%s --help tells more", err, hint, c.UseLine(), c.CommandPath())
}

// similar asks whether one of the commands of c was meant by word; "" if none is like it.
func similar(c *cobra.Command, word string) string {
	c.SuggestionsMinimumDistance = 2
	if len(word) < len("pairs") {
		c.SuggestionsMinimumDistance = 1 // most short words are two letters away from another one
	}
	var names []string
	alike := c.SuggestionsFor(word)
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && (slices.Contains(alike, sub.Name()) || letters(sub.Name()) == letters(word)) {
			names = append(names, sub.CommandPath())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(names, " or ") + "?"
}

// letters returns the letters of word in order: it is the same for words with letters
// that changed places.
func letters(word string) string {
	all := []rune(word)
	slices.Sort(all)
	return string(all)
}
