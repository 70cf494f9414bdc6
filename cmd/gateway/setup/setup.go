// Package setup writes what a new installation begins with, and the service that runs it at every start of the machine.
// It never changes a file that is there, but for the service's own.
package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"parley/host"
	"parley/lazyregexp"
	"parley/workspace"
)

// Config writes the first config, and tells out whether it did.
func Config(out io.Writer, file string, text []byte) error {
	wrote, err := host.WriteNewFile(file, text)
	if err != nil {
		return fmt.Errorf("write config: %w", err)
	}
	tell(out, wrote, file)
	return nil
}

// Folders makes the data folder and the workspace, with the agent's first files in it, and tells out what it wrote.
func Folders(out io.Writer, dataDir, workspaceDir string) error {
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	w, err := workspace.Open(workspaceDir)
	if err != nil {
		return err
	}
	defer w.Close()
	wrote, err := w.Seed()
	if err != nil {
		return fmt.Errorf("write first files: %w", err)
	}
	for _, name := range wrote {
		tell(out, true, filepath.Join(workspaceDir, name))
	}
	if len(wrote) == 0 {
		tell(out, false, workspaceDir)
	}
	return nil
}

func tell(out io.Writer, wrote bool, file string) {
	verb := "kept "
	if wrote {
		verb = "wrote"
	}
	fmt.Fprintln(out, verb, file)
}

// Next is what somebody has who is told what is left to do.
type Next struct {
	Config    string // the file
	Flags     string // that find it
	Model     bool   // a model is named that is a real one
	Telegram  bool   // a bot is named
	Commented bool   // an entry for a bot stands in the file as a comment
}

var botComment = lazyregexp.New(`(?m)^\s*//\s*"telegram"\s*:`)

// HasBotComment reports whether an entry for a bot stands in the config file as a comment, as in the first one.
func HasBotComment(file string) bool {
	text, err := os.ReadFile(file)
	return err == nil && botComment.Match(text)
}

// Print tells out what is left to do.
func (n Next) Print(out io.Writer) error {
	var steps []string
	if !n.Model {
		steps = append(steps, fmt.Sprintf(`Name a model: export OPENAI_API_KEY=…, or write "models" in %s.`, n.Config))
	}
	if !n.Telegram {
		how := `    and remove the // before each line of "telegram" in ` + n.Config + "."
		if !n.Commented {
			const entry = `"telegram": { "token": "${TELEGRAM_BOT_TOKEN}", "allow": [] }`
			how = "    and add " + entry + ` to "channels"` + "\n    in " + n.Config + "."
		}
		steps = append(steps, "Connect Telegram: get a token from @BotFather, export TELEGRAM_BOT_TOKEN=…,\n"+how)
	}
	steps = append(steps, fmt.Sprintf("Run: parley doctor%[1]s, then: parley%[1]s", n.Flags))
	text := "\nNext:\n"
	for i, step := range steps {
		text += fmt.Sprintf(" %d. %s\n", i+1, step)
	}
	_, err := io.WriteString(out, text)
	return err
}

// A Service is what systemd is to run for a user, now and at every start.
type Service struct {
	DataDir string
	Config  string // the file that must be there at each start; "" if there is none
	Units   string // the user's folder of settings, $XDG_CONFIG_HOME
}

// Install writes the service and the file of its secrets, starts it, and tells out what it did.
func (s Service) Install(ctx context.Context, out io.Writer) error {
	if err := s.install(ctx, out); err != nil {
		return fmt.Errorf("install service: %w", err)
	}
	return nil
}

func (s Service) install(ctx context.Context, out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if strings.Contains(self, "go-build") {
		return errors.New(`this is the program of "go run", which is gone when it ends: ` +
			"first go install ./cmd/gateway or make, and run that")
	}
	args := []string{self, "--data", s.DataDir}
	if s.Config != "" {
		args = append(args, "--config", s.Config)
	}
	args = append(args, "run", "--service")
	secrets := filepath.Join(s.DataDir, "environment")
	file := host.UnitFile(s.Units)
	if err := host.WriteFile(file, []byte(host.Unit(args, secrets))); err != nil {
		return err
	}
	const heading = "# Keys and tokens that config.json names, one NAME=value a line.\n"
	if _, err := host.WriteNewFile(secrets, []byte(heading)); err != nil {
		return err
	}
	fmt.Fprintf(out, "wrote %s\nkeys and tokens go into %s\n", file, secrets)
	return host.StartUnit(ctx, out, filepath.Base(file))
}
