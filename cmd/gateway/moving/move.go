package moving

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"parley/handover"
)

// moveCommand returns parley move.
func moveCommand(c Config) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "move FOLDER",
		Short: "Move the data to another folder, while no gateway runs",
		Long: "Move copies the whole data folder to a new one, and then has the old one refuse to start, so that\n" +
			"two gateways never answer for one bot. After a crash, move again: until the end, the old folder starts.",
		Args: cobra.ExactArgs(1),
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		t, err := c.Target()
		if err != nil {
			return err
		}
		to, err := filepath.Abs(args[0])
		if err != nil {
			return err
		}
		if err := (handover.Move{From: t.DataDir, To: to}).Do(); err != nil {
			return fmt.Errorf("move %s: %w", t.DataDir, err)
		}
		fmt.Fprintf(c.Out, "moved %s to %s\n", t.DataDir, to)
		start := "parley --data " + quote(to)
		if !isIn(t.Config, t.DataDir) {
			fmt.Fprintf(c.Out, "kept %s, which is in another folder\n", t.Config)
			start += " --config " + quote(t.Config)
		}
		if !isIn(t.Workspace, t.DataDir) {
			fmt.Fprintf(c.Out, "kept the workspace %s, which is in another folder\n", t.Workspace)
		}
		fmt.Fprintf(c.Out, "Start it there: %s, or as a service: %[1]s install-service\n", start)
		fmt.Fprintln(c.Out, "The old folder refuses to start. Delete it once all is well.")
		return nil
	}
	return cmd
}

// isIn reports whether path is below folder.
func isIn(path, folder string) bool { return strings.HasPrefix(path, folder+"/") }
