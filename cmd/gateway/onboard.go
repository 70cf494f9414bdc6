package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"parley/config"
	"parley/host"
	"parley/workspace"
)

// firstConfig is the config.json that onboard writes. The one at the root of
// the repository is the same.
//
//go:embed config.json
var firstConfig []byte

// onboard writes what a new installation begins with. It never changes a file that is there.
func (p *program) onboard(context.Context) error {
	s, err := p.source()
	if err != nil {
		return exit{exitUsage, err}
	}
	if err := host.ActAsOwner(s.Data); err != nil {
		return err
	}
	wrote, err := host.WriteNewFile(s.File, firstConfig)
	if err != nil {
		return fmt.Errorf("write config: %w", err)
	}
	p.told(wrote, s.File)
	c, err := config.Load(s)
	if err != nil {
		return exit{exitUsage, fmt.Errorf("the config cannot be used\n%w", err)}
	}
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	if err := p.seed(c.Workspace); err != nil {
		return err
	}
	return p.nextSteps(c)
}

// seed writes the agent's first files.
func (p *program) seed(dir string) error {
	w, err := workspace.Open(dir)
	if err != nil {
		return err
	}
	defer w.Close()
	wrote, err := w.Seed()
	if err != nil {
		return fmt.Errorf("write first files: %w", err)
	}
	for _, name := range wrote {
		p.told(true, filepath.Join(dir, name))
	}
	if len(wrote) == 0 {
		p.told(false, dir)
	}
	return nil
}

func (p *program) told(wrote bool, file string) {
	verb := "kept "
	if wrote {
		verb = "wrote"
	}
	fmt.Fprintln(p.stdout, verb, file)
}

func (p *program) nextSteps(c *config.Config) error {
	with := ""
	if p.data != "" {
		with += " --data " + p.data
	}
	if p.file != "" {
		with += " --config " + p.file
	}
	_, err := fmt.Fprintf(p.stdout, `
Next:
 1. Name a model: export OPENAI_API_KEY=…, or write "models" in %[1]s.
 2. Connect Telegram: get a token from @BotFather, export TELEGRAM_BOT_TOKEN=…,
    and remove the // before each line of "telegram" in the same file.
 3. Run: parley doctor%[2]s, then: parley%[2]s
`, c.File, with)
	return err
}

// installService has systemd run Parley for this user, now and at every start.
func (p *program) installService(ctx context.Context) error {
	c, err := p.load()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("install service: %w", err)
	}
	if strings.Contains(self, "go-build") {
		return errors.New(`install service: this is the program of "go run", which is gone when it ends: ` +
			"first go install ./cmd/gateway or make, and run that")
	}
	home, _ := p.environ.Lookup("HOME")
	settings, _ := p.environ.Lookup("XDG_CONFIG_HOME")
	file := host.UnitFile(cmp.Or(settings, filepath.Join(home, ".config")))
	secrets := filepath.Join(c.DataDir, "environment")
	args := []string{self, "--data", c.DataDir}
	if c.Found { // what is named must be there at each start
		args = append(args, "--config", c.File)
	}
	args = append(args, "run", "--service")
	err = host.WriteFile(file, []byte(host.Unit(args, secrets)))
	if err != nil {
		return fmt.Errorf("install service: %w", err)
	}
	const heading = "# Keys and tokens that config.json names, one NAME=value a line.\n"
	if _, err := host.WriteNewFile(secrets, []byte(heading)); err != nil {
		return fmt.Errorf("install service: %w", err)
	}
	fmt.Fprintf(p.stdout, "wrote %s\nkeys and tokens go into %s\n", file, secrets)
	if err := host.StartUnit(ctx, p.stdout, filepath.Base(file)); err != nil {
		return fmt.Errorf("install service: %w", err)
	}
	return nil
}
