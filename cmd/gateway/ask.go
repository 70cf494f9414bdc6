package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"parley/audit"
	"parley/backup"
	"parley/channels/admission"
	"parley/chat"
	"parley/config"
	"parley/web"
)

// with returns a command that asks the gateway, whether one runs or not.
func (p *program) with(use, short string, args cobra.PositionalArgs, do func(ctx context.Context, a *admin, args []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: args, RunE: func(c *cobra.Command, args []string) (err error) {
		ctx, stop := untilSignal(c.Context(), os.Interrupt)
		defer stop()
		a, err := p.admin(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, a.close()) }()
		return do(ctx, a, args)
	}}
}

// bundle returns a command that only has subcommands.
func bundle(use, short string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
}

// asking returns the commands that ask the gateway.
func (p *program) asking() []*cobra.Command {
	with := p.with
	sessions := bundle("sessions", "List, read, search, export and delete past conversations")
	sessions.AddCommand(
		with("list", "List conversations, the latest first", cobra.NoArgs, p.listSessions),
		with("show SESSION", "Print a conversation with its tool calls", cobra.ExactArgs(1), p.showSession),
		with("search WORDS…", "Search all conversations", cobra.MinimumNArgs(1), p.listSessions),
		with("export SESSION", "Print a conversation as Markdown, for a file", cobra.ExactArgs(1), func(ctx context.Context, a *admin, args []string) error {
			r, err := a.request(ctx, "GET", "/api/sessions/"+url.PathEscape(args[0])+"/export", nil)
			if err != nil {
				return err
			}
			defer r.Close()
			_, err = io.Copy(p.stdout, r)
			return err
		}),
		with("delete SESSION", "Delete a conversation for good", cobra.ExactArgs(1), func(ctx context.Context, a *admin, args []string) error {
			return a.ask(ctx, "DELETE", "/api/sessions/"+url.PathEscape(args[0]), nil, nil)
		}),
	)
	audit := with("audit", "Show the audit log and verify it", cobra.NoArgs, p.printAudit)
	oneCode := func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return errors.New("pair needs one CODE: the one that the bot gave to whoever wants to talk to it")
		}
		return nil
	}
	return []*cobra.Command{
		sessions, audit, p.cron(),
		with("pair CODE", "Approve the person who was given this pairing code", oneCode, p.pair),
		with("status", "Show the gateway's status", cobra.NoArgs, p.printStatus),
		with("backup FILE", "Write a backup of everything to a new file", cobra.ExactArgs(1), p.backup),
		with("link [NAME]", "Create a one-time sign-in link, for the owner or for NAME, who is invited by it", cobra.MaximumNArgs(1), p.link),
		with("key NAME [PREFIX]", "Create an API key for a person; its sessions begin with PREFIX", cobra.RangeArgs(1, 2), p.key),
	}
}

// table prints rows below each other.
func (p *program) table(rows func(line func(cells ...any))) error {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	rows(func(cells ...any) {
		for i, c := range cells {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, c)
		}
		fmt.Fprintln(w)
	})
	return w.Flush()
}

// moment is a time in a list.
func moment(t time.Time, zone *time.Location) string { return t.In(zone).Format("2006-01-02 15:04") }

// listSessions prints all conversations, or where words were said.
func (p *program) listSessions(ctx context.Context, a *admin, words []string) error {
	var all struct {
		Talks []chat.Talk
		Found []chat.Find
	}
	if err := a.ask(ctx, "GET", "/api/sessions?q="+url.QueryEscape(strings.Join(words, " ")), nil, &all); err != nil {
		return err
	}
	return p.table(func(line func(...any)) {
		for _, t := range all.Talks {
			line(t.Session, moment(t.Last, a.zone), chat.OneLine(t.Title))
		}
		for _, f := range all.Found {
			line(f.Session, moment(f.Entry.Time, a.zone), chat.OneLine(f.Entry.Text))
		}
	})
}

func (p *program) showSession(ctx context.Context, a *admin, args []string) error {
	var talk struct{ Entries []chat.Entry }
	if err := a.ask(ctx, "GET", "/api/sessions/"+url.PathEscape(args[0]), nil, &talk); err != nil {
		return err
	}
	for _, e := range talk.Entries {
		text := chat.Printable(e.Text)
		if _, err := fmt.Fprintf(p.stdout, "%s  %s %s\n", moment(e.Time, a.zone), e.Kind, chat.OneLine(e.Who)); err != nil {
			return err
		}
		for line := range strings.Lines(text) {
			fmt.Fprintln(p.stdout, "    "+strings.TrimRight(line, "\n"))
		}
	}
	return nil
}

func (p *program) printStatus(ctx context.Context, a *admin, _ []string) error {
	var r web.Overview
	if err := a.ask(ctx, "GET", "/api/status", nil, &r); err != nil {
		return err
	}
	return p.table(func(line func(...any)) {
		if !a.running {
			line("no gateway runs")
		} else {
			line("up since", moment(r.Began, a.zone))
		}
		line("version", r.Version)
		line("model", r.Model)
		for _, c := range r.Channels {
			state := "works"
			if !a.running {
				state = "waits for a gateway"
			}
			line(c.Name, cmp.Or(c.Trouble, state), fmt.Sprintf("waiting: %d", c.Pending), fmt.Sprintf("unknown senders: %d", c.Dropped))
		}
		line("dead letters", fmt.Sprintf("%d replies, %d messages", len(r.Parked), len(r.Aside)))
		for _, q := range r.Pairings {
			line("pairing", chat.OneLine(q.Name), q.At.Channel, "parley pair "+q.Code)
		}
		for _, w := range append(r.Reasons, r.Warnings...) {
			line("warning", chat.OneLine(w))
		}
	})
}

func (p *program) printAudit(ctx context.Context, a *admin, _ []string) error {
	var log struct {
		Events  []audit.Event
		Verdict struct {
			Whole bool
			Why   string
		}
	}
	if err := a.ask(ctx, "GET", "/api/audit?verify=yes", nil, &log); err != nil {
		return err
	}
	err := p.table(func(line func(...any)) {
		for _, e := range log.Events {
			line(e.Time.In(a.zone).Format(time.DateTime), e.Kind, chat.OneLine(e.Who), chat.OneLine(e.What))
		}
	})
	switch {
	case err != nil:
		return err
	case !log.Verdict.Whole:
		return errors.New("the audit log is not as it was written: " + log.Verdict.Why)
	}
	_, err = fmt.Fprintln(p.stdout, "The audit log is as it was written.")
	return err
}

// pair lets somebody in and says who that is.
func (p *program) pair(ctx context.Context, a *admin, args []string) error {
	var who admission.Pairing
	err := a.ask(ctx, "POST", "/api/pairings/"+url.PathEscape(args[0])+"/approve", nil, &who)
	if errors.Is(err, errNone) {
		return errors.New("nobody has that code, or it is older than an hour: parley status shows who asks")
	}
	if err == nil {
		_, err = fmt.Fprintf(p.stdout, "%s (%s:%s) may talk to me now.\n", cmp.Or(chat.OneLine(who.Name), "Somebody without a name"), who.At.Channel, who.Sender)
	}
	return err
}

// backup writes an archive to a new file: all of it, or none.
func (p *program) backup(ctx context.Context, a *admin, args []string) error {
	err := backup.WriteFile(ctx, args[0], func(w io.Writer) error {
		r, err := a.request(ctx, "GET", "/api/backup", nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(w, r)
		return errors.Join(err, r.Close())
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "wrote %s. It holds all that was said, and may hold secrets of the config: "+
		"keep it as you keep the data folder.\n", args[0])
	return err
}

func (p *program) link(ctx context.Context, a *admin, args []string) error {
	name := webOwner
	if len(args) > 0 {
		name = args[0]
	}
	var made struct {
		Link    string
		Expires time.Time
	}
	if err := a.ask(ctx, "POST", "/api/people", map[string]string{"Name": name}, &made); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.stdout, "%s\nIt works once, until %s.\n", made.Link, moment(made.Expires, a.zone))
	return err
}

func (p *program) key(ctx context.Context, a *admin, args []string) error {
	say := map[string]string{"Person": args[0]}
	if len(args) > 1 {
		say["Prefix"] = args[1]
	}
	var made struct{ Secret string }
	if err := a.ask(ctx, "POST", "/api/keys", say, &made); errors.Is(err, errNone) {
		return fmt.Errorf("nobody has the name %s: parley link %[1]s lets them in", args[0])
	} else if err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.stdout, "%s\nIt is shown only this once; the owner's page revokes it.\n", made.Secret)
	return err
}

// restoreCommand puts a backup in the place of the data.
func (p *program) restoreCommand() *cobra.Command {
	var force bool
	c := &cobra.Command{Use: "restore FILE", Short: "Restore a backup, while no gateway runs", Args: cobra.ExactArgs(1)}
	c.Flags().BoolVar(&force, "force", false, "move existing data to another folder first")
	c.RunE = func(c *cobra.Command, args []string) error {
		cfg, err := p.load()
		if err != nil {
			return err
		}
		log := newLog(p.stderr, &p.level, &p.redact, new(recent))
		report, err := restorer(cfg, log).Restore(c.Context(), args[0], force)
		if err != nil {
			return err
		}
		printRestored(p.stdout, cfg, report)
		return nil
	}
	return c
}

func printRestored(w io.Writer, c *config.Config, r backup.Report) {
	fmt.Fprintln(w, "backup of "+r.Made.In(c.Zone()).Format(time.DateTime))
	for _, path := range r.Moved {
		fmt.Fprintln(w, "moved "+path+" to "+r.MovedTo)
	}
	if c.Found {
		fmt.Fprintln(w, "kept "+c.File+"; the config of the backup is not put in its place")
	}
	if n := r.Waiting; n.Messages+n.Replies > 0 {
		fmt.Fprintf(w, "what waited when the backup was made is now in the dead letters: messages %d, replies %d\n", n.Messages, n.Replies)
	}
}
