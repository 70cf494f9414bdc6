package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
)

// unit is the systemd user unit. Exit code 2 says that trying again cannot help.
var unit = template.Must(template.New("unit").Parse(`# Written by "parley install-service", which writes it anew.
[Unit]
Description=Parley, a chat gateway with a built-in agent
After=network-online.target
Wants=network-online.target

[Service]
ExecStart={{range .Args}}{{.}} {{end}}
EnvironmentFile=-{{.Environment}}
Restart=on-failure
RestartSec=5
RestartPreventExitStatus=2
TimeoutStopSec=30
NoNewPrivileges=yes
UMask=0077

[Install]
WantedBy=default.target
`))

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
		return errors.New("install service: this is the program of \"go run\", which is gone when it ends: first go install ./cmd/gateway or make, and run that")
	}
	home, _ := p.environ.lookup("HOME")
	dir, ok := p.environ.lookup("XDG_CONFIG_HOME")
	if !ok {
		dir = filepath.Join(home, ".config")
	}
	file, secrets := filepath.Join(dir, "systemd", "user", "parley.service"), filepath.Join(c.DataDir, "environment")
	var text strings.Builder
	err = unit.Execute(&text, map[string]any{
		"Args":        unitArgs(self, "--data", c.DataDir, "--config", c.file, "run", "--service"),
		"Environment": strings.ReplaceAll(secrets, "%", "%%"), // % begins a specifier
	})
	if err == nil {
		err = writeFile(file, []byte(text.String()), os.Rename)
	}
	if err == nil {
		_, err = writeNew(secrets, []byte("# The keys and tokens that config.json names, one NAME=value to a line.\n"))
	}
	if err != nil {
		return fmt.Errorf("install service: %w", err)
	}
	fmt.Fprintf(p.stdout, "wrote %s\nkeys and tokens go into %s\n", file, secrets)
	for _, args := range [][]string{{"daemon-reload"}, {"enable", "--now", "parley.service"}} {
		args = append([]string{"--user"}, args...)
		if out, err := exec.CommandContext(ctx, "systemctl", args...).CombinedOutput(); err != nil {
			fmt.Fprintf(p.stdout, "systemctl did not do it (%v); run it where you are logged in: systemctl %s\n%s", err, strings.Join(args, " "), out)
			continue
		}
		fmt.Fprintf(p.stdout, "done: systemctl %s\n", strings.Join(args, " "))
	}
	_, err = fmt.Fprintln(p.stdout, "to have it run while you are logged out: loginctl enable-linger\nits log: journalctl --user -u parley")
	return err
}

// unitArgs returns args as ExecStart takes them.
func unitArgs(args ...string) []string {
	for i, a := range args {
		args[i] = `"` + strings.NewReplacer("%", "%%", "$", "$$", `\`, `\\`, `"`, `\"`).Replace(a) + `"`
	}
	return args
}

// goodFile is where a service keeps the last config that worked, beside the config.
func goodFile(file string) string { return file + ".last-good" }

// keepGood notes that c works.
func (c *Config) keepGood() error {
	if !c.found || c.fellBack != nil {
		return nil
	}
	return writeFile(goodFile(c.file), c.src, os.Rename)
}

// fallBack returns the last config that worked, for a service whose config has
// the fault reason: it must not stop, or start again and again, because of it.
// It returns nil when there is none, or it does not work any more either.
func fallBack(s source, reason error) *Config {
	src, err := os.ReadFile(goodFile(s.File))
	if err != nil {
		return nil
	}
	c, err := parse(s, src)
	if err != nil {
		return nil
	}
	c.fellBack = reason
	c.sum = [len(c.sum)]byte{} // the file itself is read as soon as it is watched
	return c
}
