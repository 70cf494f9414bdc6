// Package upkeep says what is removed when it is old: it gives the parts of the store
// and the periods of the config to package retention.
package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"parley/agent"
	"parley/audit"
	"parley/channels"
	"parley/channels/attachments"
	"parley/channels/web"
	"parley/chat"
	"parley/retention"
	"parley/scheduler/jobs"
	"parley/sizes"
	"parley/store"
	"parley/texts"
	"parley/tools"
	"parley/tools/files"
	"parley/workspace"
)

// Periods are how long things stay, with the fields of config.Retention.
type Periods struct {
	Conversations time.Duration
	Files         time.Duration
	Results       time.Duration
	Audit         time.Duration
	Usage         time.Duration
	DeadLetters   time.Duration
	Keep          string
}

// Upkeep is what old things are removed from.
type Upkeep struct {
	Periods func() Periods
	DataDir string
	Zone    *time.Location
	Log     *slog.Logger
	Removed func(part string, entries int)
	Faults  *retention.Faults // what of the archive could not be written

	// What takes how much of the disk is told after old things were removed.
	Sizes sizes.Keeper

	Pool  *agent.Pool
	Hub   *channels.Hub
	Audit *audit.Log
	Page  *web.Channel // nil: there is none
	Files *attachments.Inbox

	Workspace *workspace.Workspace // in which results are

	// HasJob reports whether the scheduled job of that ID exists.
	HasJob func(ctx context.Context, id string) bool
	// Forget deletes a conversation.
	Forget func(context.Context, chat.SessionID) error
}

// Run removes what is old until ctx ends.
func (u Upkeep) Run(ctx context.Context) {
	retention.Keeper{
		Parts:   u.Parts(),
		Zone:    u.Zone,
		Archive: retention.Archive{Dir: filepath.Join(u.DataDir, retention.Folder), Wanted: u.archives},
		Log:     u.Log,
		Removed: u.Removed,
		Faults:  u.Faults,
		After:   u.measure,
	}.Run(ctx)
}

// measure measures what takes how much, and gives back what is free.
func (u Upkeep) measure(ctx context.Context, now time.Time) {
	if err := u.Sizes.Pass(ctx, now); err != nil && ctx.Err() == nil {
		u.Log.Warn("sizes not measured", "err", err)
	}
}

// Sizes tells what takes how much of the disk, as far as that is known.
func Sizes(ctx context.Context, s store.Store, zone *time.Location, say texts.Report) string {
	samples, err := sizes.Samples(ctx, s)
	if err != nil {
		samples = nil // as if nothing had been measured: the next sample takes its place
	}
	return sizes.Line(samples, zone, say)
}

// Warnings tells owners that old things stay because they cannot be archived.
func Warnings(f *retention.Faults, say texts.Report) []string {
	part, err := f.First()
	if err != nil {
		return []string{say.NotArchived.With(part, err)}
	}
	return nil
}

func (u Upkeep) archives() bool { return u.Periods().Keep == "archive" }

// Parts lists what is trimmed. Those that grow most come first.
func (u Upkeep) Parts() []retention.Part {
	return []retention.Part{
		{
			Name:   "conversations",
			Period: func() time.Duration { return u.Periods().Conversations },
			Trim:   u.Pool.TrimConversations,
		},
		{
			Name:   "web-conversations", // after the sessions
			Period: func() time.Duration { return u.Periods().Conversations },
			Trim:   u.trimPage,
		},
		{
			Name:   "files",
			Period: func() time.Duration { return u.Periods().Files },
			Trim:   u.Files.Trim,
		},
		{
			Name:   "results",
			Period: func() time.Duration { return u.Periods().Results },
			Trim: func(_ context.Context, t store.Trimming) error {
				return errors.Join(tools.TrimResults(u.Workspace, t), files.TrimUndo(u.Workspace, t))
			},
		},
		{
			Name:   "audit",
			Period: func() time.Duration { return u.Periods().Audit },
			Trim:   u.Audit.Chain().TrimBefore,
			Limit:  u.Audit.Limit,
		},
		{
			Name:   "dead-letters",
			Period: func() time.Duration { return u.Periods().DeadLetters },
			Trim: func(ctx context.Context, t store.Trimming) error {
				return errors.Join(u.Pool.DeadLetters().Trim(ctx, t), u.Hub.DeadLetters().Trim(ctx, t))
			},
		},
		{
			Name:   "usage",
			Period: func() time.Duration { return u.Periods().Usage },
			Trim:   u.Pool.Budget().Trim,
		},
	}
}

// trimPage removes what is old from the chat in the browser.
func (u Upkeep) trimPage(ctx context.Context, t store.Trimming) error {
	if u.Page == nil {
		return nil
	}
	return web.Trim(ctx, u.Page, t, func(ctx context.Context, id chat.SessionID) (bool, error) {
		_, rev, err := u.Pool.Sessions().Lookup(ctx, id)
		return rev > 0, err
	})
}

// ForgetJobs deletes the conversations of scheduled jobs that no longer exist.
func (u Upkeep) ForgetJobs(ctx context.Context) {
	err := jobs.Sessions{
		List:   u.Pool.Sessions().Talks,
		Exists: u.HasJob,
		Idle:   u.Pool.Resting,
		Forget: u.Forget,
	}.Sweep(ctx)
	if err != nil {
		u.Log.Error("sessions of jobs that are gone could not be deleted", "err", err)
	}
}
