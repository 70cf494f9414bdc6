package moving

import (
	"fmt"

	"github.com/spf13/cobra"

	"parley/admin/commands"
)

// storeCommand returns parley store, with what can be done with the store as a whole.
func storeCommand(c Config) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "copy FILE",
		Short: "Copy the store to where another config keeps it, while no gateway runs",
		Long: "Copy takes all that the store has to the store of the config FILE, in which there must be nothing,\n" +
			"and reads it again to see that it is the same: from the file parley.db to servers of NATS, or back. A\n" +
			"file that was copied is moved to a folder beside it, so that no gateway goes on from it.",
		Args: cobra.ExactArgs(1),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		copied, err := c.Copy(cmd.Context(), args[0])
		for _, damage := range copied.Damaged {
			fmt.Fprintln(c.Out, "left out, because it is damaged:", damage)
		}
		if err != nil {
			return fmt.Errorf("copy the store: %w", err)
		}
		fmt.Fprintf(c.Out, "copied and compared: values %d, records of logs %d, waiting work %d, known ids %d\n",
			copied.Values, copied.Records, copied.Work, copied.Pushes)
		if copied.MovedTo != "" {
			fmt.Fprintln(c.Out, "moved the file that was copied to", copied.MovedTo)
		}
		fmt.Fprintf(c.Out, "Put %s in the place of the config that you used before, and start Parley.\n", args[0])
		return nil
	}
	all := commands.NewGroup("store", "Copy the store to another place")
	all.AddCommand(cmd)
	return all
}
