package commands

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"parley/host"
)

// confirmed returns c, which destroys what its question names: it asks first, and has a flag for whoever knows.
func (s commands) confirmed(c *cobra.Command, question string) *cobra.Command {
	sure := c.Flags().BoolP("yes", "y", false, "do not ask first")
	do := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if !*sure {
			if err := Confirm(s.config.In, s.config.Out, fmt.Sprintf(question, args[0])); err != nil {
				return err
			}
		}
		return do(c, args)
	}
	return c
}

// Confirm returns nil if the person at the terminal says yes.
func Confirm(from io.Reader, out io.Writer, question string) error {
	in, isFile := from.(*os.File)
	if !isFile || !host.IsTerminal(in) {
		return errors.New("nothing was changed: nobody can be asked here, so say --yes if you are sure")
	}
	fmt.Fprint(out, question+" [y/N] ")
	answer, _ := bufio.NewReader(in).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
		return nil
	}
	return errors.New("nothing was changed")
}
