package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
)

// unit is the systemd user unit, without its command line and the name of its
// environment file. Exit code 2 says that trying again cannot help. Programs get cgroups
// of their own (Delegate), so that one without memory is ended, and not the service.
const unit = `# Written by "parley install-service", which writes it anew.
[Unit]
Description=Parley, a chat gateway with a built-in agent
After=network-online.target
Wants=network-online.target
StartLimitIntervalSec=0

[Service]
ExecStart=%s
EnvironmentFile=-%s
Restart=on-failure
RestartSec=5
RestartPreventExitStatus=2
TimeoutStopSec=30
NoNewPrivileges=yes
UMask=0077
Delegate=yes
DelegateSubgroup=gateway
OOMPolicy=continue

[Install]
WantedBy=default.target
`

// UnitFile returns where systemd looks for the unit of a user with that folder of settings.
func UnitFile(settings string) string {
	return filepath.Join(settings, "systemd", "user", "parley.service")
}

// Unit returns the systemd user unit that runs the command args with the variables in
// the file environment, if there is one.
func Unit(args []string, environment string) string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = quoteArg(arg)
	}
	file := strings.ReplaceAll(environment, "%", "%%") // % begins a specifier
	return fmt.Sprintf(unit, strings.Join(quoted, " "), file)
}

// quoteArg returns arg as ExecStart takes it.
func quoteArg(arg string) string {
	escape := strings.NewReplacer("%", "%%", "$", "$$", `\`, `\\`, `"`, `\"`)
	return `"` + escape.Replace(arg) + `"`
}

// StartUnit has systemd start the user unit of that name, now and whenever the user
// logs in. It tells on out what was done, and what else the operator can do.
func StartUnit(ctx context.Context, out io.Writer, name string) error {
	var failed error
	for _, args := range [][]string{{"--user", "daemon-reload"}, {"--user", "enable", "--now", name}} {
		command := "systemctl " + strings.Join(args, " ")
		answer, err := exec.CommandContext(ctx, "systemctl", args...).CombinedOutput()
		if err != nil {
			fmt.Fprintf(out, "systemctl failed (%v); run it where you are logged in: %s\n%s", err, command, answer)
			failed = errors.New("the unit is written, but systemd did not start it")
			continue
		}
		fmt.Fprintf(out, "done: %s\n", command)
	}
	fmt.Fprintln(out, "to have it run while you are logged out: loginctl enable-linger")
	fmt.Fprintln(out, "its log: journalctl --user -u parley")
	return failed
}
