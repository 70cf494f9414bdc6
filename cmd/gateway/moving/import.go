// Package moving has the commands that bring people to Parley from another gateway, and a Parley
// from one folder to another.
package moving

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/admin/commands"
	"parley/backup"
	"parley/cmd/gateway/stores"
	"parley/handover"
	"parley/imports"
	"parley/lazyregexp"
	"parley/store"
	"parley/store/bolt"
)

// Config says what the commands work on.
type Config struct {
	In  io.Reader // a person at a terminal, who can be asked
	Out io.Writer
	// Target returns the Parley that something is imported into.
	Target  func() (imports.Target, error)
	Restore Restore
	// Copy copies the store to where the config in the file to keeps it.
	Copy func(ctx context.Context, to string) (stores.CopyResult, error)
	// Flags are those that find this Parley, such as " --data FOLDER".
	Flags func() string
}

// Restore puts a backup in the place of the data. It returns the config file if that stays as it is.
type Restore func(
	ctx context.Context, file string, force bool,
) (report backup.Report, zone *time.Location, kept string, err error)

// Commands returns the commands.
func Commands(c Config) []*cobra.Command {
	return []*cobra.Command{importCommand(c), moveCommand(c), restoreCommand(c), storeCommand(c)}
}

// Settler returns what Settle does, for channels of those names.
func Settler(networks []string) func(context.Context, *bolt.Store) (backup.Waiting, error) {
	return func(ctx context.Context, s *bolt.Store) (backup.Waiting, error) { return Settle(ctx, networks, s) }
}

// restoreCommand returns parley restore.
func restoreCommand(c Config) *cobra.Command {
	var force, sure bool
	const short = "Restore a backup, while no gateway runs"
	cmd := &cobra.Command{Use: "restore FILE", Short: short, Args: cobra.ExactArgs(1)}
	cmd.Flags().BoolVar(&force, "force", false, "move existing data to another folder first")
	cmd.Flags().BoolVarP(&sure, "yes", "y", false, "do not ask first")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if force && !sure {
			const question = "Put %s in the place of the data that is there? That is moved to a folder beside it."
			if err := commands.Confirm(c.In, c.Out, fmt.Sprintf(question, args[0])); err != nil {
				return err
			}
		}
		report, zone, kept, err := c.Restore(cmd.Context(), args[0], force)
		if err != nil {
			return stores.AdviseStop(err)
		}
		report.Print(c.Out, zone)
		if kept != "" {
			fmt.Fprintln(c.Out, "kept "+kept+"; the config of the backup is not put in its place")
		}
		return nil
	}
	return cmd
}

// Opener returns what opens the store in dir for an import, and locks it, unless it is refused for that error. It waits
// for as long as patience for a command that soon ends. explain adds to an error what to do about it.
func Opener(
	dir string, refused error, patience time.Duration, explain func(error) error,
) func(context.Context) (store.Store, func() error, error) {
	return func(ctx context.Context) (store.Store, func() error, error) {
		if refused != nil {
			return nil, nil, refused
		}
		s, err := bolt.Open(ctx, bolt.Config{Dir: dir, Brief: true, Patience: patience})
		if err != nil {
			return nil, nil, explain(err)
		}
		if err := handover.Check(dir); err != nil {
			return nil, nil, errors.Join(err, s.Close())
		}
		return s, s.Close, nil
	}
}

// importCommand returns parley import.
func importCommand(c Config) *cobra.Command {
	var asJSON, yes bool
	var files string
	var owners []string
	systems := strings.Join(imports.Systems(), "|")
	usage := "import needs the name of a system, " + strings.Join(imports.Systems(), ", ") + ", and its folder"
	cmd := &cobra.Command{
		Use:   "import " + systems + " FOLDER",
		Short: "Take over config, memory, skills, jobs and conversations from another gateway",
		Long: "Import reads the folder of another gateway, such as ~/.openclaw, and says what it would take over,\n" +
			"in what form, and what it would leave, and why. With --yes it does that. The folder is only read.\n" +
			"Nothing of Parley's is overwritten, secrets are not copied, and a second import does nothing twice.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 || !slices.Contains(imports.Systems(), args[0]) {
				return errors.New(usage)
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do it")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	flags := cmd.Flags()
	commands.RequiredVar(flags, &files, "workspace", "",
		"the `folder` of its agent's files, if the config names one elsewhere")
	flags.StringSliceVar(&owners, "owner", nil, "who, of those who may talk there, becomes an owner: `telegram:42`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		t, err := c.Target()
		if err != nil {
			return err
		}
		o := imports.Options{System: args[0], Path: args[1], Workspace: files, Owners: owners, Now: time.Now()}
		found, err := imports.Read(o)
		if err != nil {
			return err
		}
		plan, err := imports.Compare(cmd.Context(), found, t)
		if err != nil {
			return err
		}
		if yes && !plan.Nothing() {
			if err := plan.Apply(cmd.Context(), t); err != nil {
				return errors.Join(errors.New("nothing was imported"), stores.AdviseStop(err))
			}
		}
		if asJSON {
			e := json.NewEncoder(c.Out)
			e.SetEscapeHTML(false)
			e.SetIndent("", "  ")
			return e.Encode(plan)
		}
		repeat := "parley import " + quote(args[0]) + " " + quote(args[1]) + " --yes" + c.Flags()
		if files != "" {
			repeat += " --workspace " + quote(files)
		}
		for _, owner := range owners {
			repeat += " --owner " + quote(owner)
		}
		plan.Print(c.Out, repeat)
		return nil
	}
	return cmd
}

// quote returns text as a word of a shell.
func quote(text string) string {
	if text != "" && !strings.ContainsAny(text, " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

var isReference = lazyregexp.New(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// Environ returns environ with a value for each variable that a config names and that is not set, so
// that the rest of the config can be read: the secrets of an import are brought by its owner later.
func Environ(environ map[string]string, config []byte) map[string]string {
	all := maps.Clone(environ)
	for _, m := range isReference.FindAllStringSubmatch(string(config), -1) {
		name := m[1]
		switch {
		case all[name] != "":
		case strings.HasSuffix(name, "_URL"):
			all[name] = "http://127.0.0.1/" + name
		case strings.Contains(name, "SECRET"):
			all[name] = "not-set-0123456789abcdef-" + name
		default:
			all[name] = "1:not-set-0123456789abcdef-" + name
		}
	}
	return all
}
