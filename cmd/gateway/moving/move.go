package moving

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"parley/cmd/gateway/stores"
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
		m := handover.Move{From: t.DataDir, To: to}
		changes, err := movePaths(t.Config, &m)
		if err != nil {
			return fmt.Errorf("move %s: %w", t.DataDir, err)
		}
		if err := m.Do(); err != nil {
			return fmt.Errorf("move %s: %w", t.DataDir, stores.AdviseStop(err))
		}
		fmt.Fprintf(c.Out, "moved %s to %s\n", t.DataDir, to)
		for _, change := range changes {
			fmt.Fprintf(c.Out, "changed in %s: %s\n", filepath.Join(to, filepath.Base(t.Config)), change)
		}
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

// movePaths has m write the new places of what is moved into the config that moves along, and returns what that
// changes. A config that stays must not name what moves.
func movePaths(config string, m *handover.Move) (changes []string, err error) {
	text, err := os.ReadFile(config)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p, err := newPaths(config, m.From, m.To)
	if err != nil {
		return nil, err
	}
	if !isIn(config, m.From) {
		if all := p.stays(string(text)); len(all) > 0 {
			const why = "%s, which stays, names %s in the folder that would move: it would go on to use the old one\n" +
				"leave that key out if it says the default, or put the file into the folder as config.json, " +
				"then move again"
			return nil, fmt.Errorf(why, config, strings.Join(all, ", "))
		}
		return nil, nil
	}
	changed, changes, err := p.rewrite(string(text))
	if err != nil || len(changes) == 0 {
		return nil, err
	}
	name, err := filepath.Rel(m.From, config)
	m.Instead = map[string][]byte{name: []byte(changed)}
	return changes, err
}

// isIn reports whether path is below folder.
func isIn(path, folder string) bool { return strings.HasPrefix(path, folder+"/") }
