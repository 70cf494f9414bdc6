package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"parley/admin"
	"parley/admin/commands"
	"parley/channels/console"
	"parley/chat"
	"parley/cmd/gateway/endpoints"
	"parley/cmd/gateway/stores"
	"parley/config"
	"parley/host"
	"parley/redact"
	"parley/tools/files"
)

// A program is one run of parley: what the system gave it, and its flags.
type program struct {
	stdin          *os.File
	stdout, stderr io.Writer
	environ        config.Environ
	drivers        config.Drivers
	file, data     string // flags
	listen         string // likewise
	text           string // to say in a chat, and leave
	redact         redact.Redactor
	level          slog.LevelVar
	begun          bool // the command line was understood
	service        bool // see --service
	anew           bool // see --begin-anew
}

func (p *program) commands() *cobra.Command {
	root := &cobra.Command{
		Use:   "parley",
		Short: "A chat gateway with a built-in agent",
		Long: "Parley answers on Telegram, Discord, a web page and in the terminal, with an agent that uses tools.\n" +
			"Without a command it runs the gateway: parley is parley run.",
		Args:             cobra.NoArgs,
		SilenceErrors:    true,
		SilenceUsage:     true,
		Version:          host.Version(),
		PersistentPreRun: func(*cobra.Command, []string) { p.begun = true },
		RunE:             func(c *cobra.Command, _ []string) error { return p.serve(c.Context(), false) },
	}
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	all := root.PersistentFlags()
	commands.RequiredVar(all, &p.file, "config", "", "the config `file` (default config.json in --data)")
	commands.RequiredVar(all, &p.data, "data", "",
		"the `folder` of config.json, the store and the workspace (default ~/.parley)")

	add := func(use, short string, do func(context.Context) error) *cobra.Command {
		c := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs}
		c.RunE = func(c *cobra.Command, _ []string) error { return do(c.Context()) }
		root.AddCommand(c)
		return c
	}
	run := add("run", "Run the gateway", func(ctx context.Context) error { return p.serve(ctx, false) })
	run.Flags().BoolVar(&p.service, "service", false, "use the last working config if the file is faulty: for services")
	for _, c := range []*cobra.Command{root, run} {
		c.Flags().BoolVar(&p.anew, "begin-anew", false, "start with an empty store or workspace if the last is gone")
		commands.RequiredVar(c.Flags(), &p.listen, "listen", "",
			"serve HTTP at this `address`, not at http.listen of the config")
	}
	chat := add("chat", "Chat in the terminal, through the running gateway if there is one", p.chat)
	commands.RequiredVar(chat.Flags(), &p.text, "message", "m", "send this `text`, print the answer and exit")
	root.AddCommand(&cobra.Command{
		Use:    "pdf-text FIRST LAST",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			p.begun = true
			if code := files.PDFText(os.Stdin, p.stdout, args[0], args[1]); code != 0 {
				return exit{code: code}
			}
			return nil
		},
	})
	root.AddCommand(p.adminCommands()...)
	root.AddCommand(p.movingCommands()...)
	add("onboard", "Write a config.json and the agent's first files; existing files are kept", p.onboard)
	add("doctor", "Check config, store, tokens, models and ports, and suggest fixes", p.doctor)
	add("install-service", "Install a systemd user service that runs the gateway", p.installService)
	add("health", "Succeed if the gateway runs: for service managers and containers", p.health)
	commands.AddStandard(root)
	return root
}

// chat talks to the gateway that runs, here or on another machine, or else to one of its own.
func (p *program) chat(ctx context.Context) error {
	c, err := p.load()
	running := c != nil && console.Running(ctx, console.Socket(c.DataDir))
	if err != nil && !running {
		return err
	}
	if !running {
		if found, err := endpoints.ChatElsewhere(ctx, c.Store.Driver, p.terminal(c)); found || err != nil {
			return err
		}
		err := p.serve(ctx, true)
		if !admin.GatewayStarts(ctx, err, console.Socket(c.DataDir)) {
			return err
		}
	}
	ctx, stop := host.UntilSignal(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return console.Chat(ctx, console.Socket(c.DataDir), p.terminal(c))
}

// health fails unless a gateway says that it is well. It asks nothing of model
// or network. What else is wrong with a gateway that runs it prints.
func (p *program) health(ctx context.Context) error {
	c, err := p.load()
	if c == nil {
		return err
	}
	err = endpoints.CheckHealth(ctx, c.DataDir)
	if err != nil || stores.StandsBy(c.DataDir, p.stdout) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	o, err := statusOf(ctx, c)
	if err != nil {
		return nil // it may be about to end
	}
	for _, w := range append(o.Reasons, o.Warnings...) {
		fmt.Fprintln(p.stdout, "warning:", p.redact.String(chat.OneLine(w)))
	}
	return nil
}

// terminal returns the terminal of this process.
func (p *program) terminal(c *config.Config) console.Terminal {
	history := filepath.Join(c.DataDir, "history")
	without, _ := p.environ.Lookup("NO_COLOR")
	return console.Terminal{
		In: p.stdin, Text: p.text, Out: p.stdout, Notes: p.stderr, History: history, Plain: without != "",
	}
}

// serve loads the config, hides its secrets and runs the gateway, or what a chat
// in this terminal needs of it.
func (p *program) serve(ctx context.Context, chat bool) error {
	c, err := p.load()
	if err != nil {
		return err
	}
	ctx, stop := host.UntilSignal(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	o := options{Config: c, Chat: chat, Anew: p.anew, Service: p.service, Stderr: p.stderr,
		Recent: &redact.Recent{}, Redact: &p.redact}
	if chat || c.Channels["console"] != nil {
		o.Terminal = p.terminal(c)
	}
	o.Brief = chat && !o.Terminal.Interactive()
	if o.Brief && p.level.Level() == slog.LevelInfo { // whoever waits for one answer does not want to know
		p.level.Set(slog.LevelWarn)
	}
	out := p.stderr
	if o.Terminal.Interactive() { // which a log would disturb
		f, err := host.OpenLog(c.DataDir)
		if err != nil {
			return err
		}
		defer f.Close()
		out = f
	}
	o.Log = redact.NewLog(out, &p.level, &p.redact, o.Recent)
	slog.SetDefault(o.Log) // libraries write to the log of the standard library
	o.Watch = func(ctx context.Context, apply func(*config.Config) error) { p.watch(ctx, c, o.Log, apply) }
	if err := host.Harden(); err != nil {
		o.Log.Debug("could not harden the process", "err", err)
	}
	return serve(ctx, o)
}

// watch calls apply with each new config until ctx ends.
func (p *program) watch(ctx context.Context, c *config.Config, log *slog.Logger, apply func(*config.Config) error) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	w := config.Watcher{File: c.File, Hup: hup, Settle: 200 * time.Millisecond, Log: log}
	w.Parse = func(src []byte) (*config.Config, error) {
		s, err := p.source()
		if err != nil {
			return nil, err
		}
		next, err := config.Parse(s, src)
		if err != nil {
			return next, err
		}
		return next, p.keep(next)
	}
	w.Run(ctx, c, func(next *config.Config) error {
		if err := apply(next); err != nil {
			return err
		}
		p.level.Set(next.Log.Least())
		return nil
	})
}

// load reads the config. From then on its secrets are neither shown nor in the
// environment. With an error there may still be a Config: it says where the
// gateway is, which whoever talks to that needs to know and no secret else.
func (p *program) load() (*config.Config, error) {
	s, err := p.source()
	if err != nil {
		return nil, exit{exitUsage, err}
	}
	c, err := config.Load(s)
	if err != nil && p.service {
		if good := config.FallBack(s, err); good != nil {
			c, err = good, nil
		}
	}
	if err != nil {
		err = exit{exitUsage, fmt.Errorf("the config cannot be used; nothing was started or changed\n%w", err)}
	}
	if c != nil {
		p.level.Set(c.Log.Least())
		err = cmp.Or(err, p.keep(c), host.ActAsOwner(c.DataDir))
	}
	return c, err
}

// keep keeps the secrets of c from being shown (R-S26), and takes the variables
// that held them out of the process: nothing it starts can show them (R-S17).
func (p *program) keep(c *config.Config) (err error) {
	p.redact.Add(c.Secrets...)
	for _, name := range c.Vars {
		err = errors.Join(err, os.Unsetenv(name))
	}
	return err
}

// source says where the config is.
func (p *program) source() (config.Source, error) {
	s := config.Source{
		File: p.file, Must: p.file != "", Data: p.data, Fixed: p.data != "", Environ: p.environ, Drivers: p.drivers,
		Listen: p.listen,
	}
	if s.Data == "" {
		home, ok := p.environ.Lookup("HOME")
		if !ok {
			return s, errors.New("there is no home folder: say where the data is with --data FOLDER")
		}
		s.Data = filepath.Join(home, ".parley")
	}
	var err, err2 error
	s.Data, err = filepath.Abs(s.Data)
	s.File, err2 = filepath.Abs(cmp.Or(s.File, filepath.Join(s.Data, "config.json")))
	return s, errors.Join(err, err2)
}
