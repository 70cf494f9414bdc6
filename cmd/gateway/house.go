package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"parley/agent"
	"parley/audit"
	"parley/backup"
	"parley/channels"
	"parley/channels/api"
	"parley/channels/console"
	webchat "parley/channels/web"
	"parley/chat"
	"parley/config"
	"parley/memory"
	"parley/scheduler"
	"parley/scheduler/jobs"
	"parley/store"
	"parley/store/bolt"
	"parley/texts"
	"parley/tools"
	"parley/tools/files"
	"parley/web"
	"parley/web/observe"
	"parley/workspace"
)

// options is what a house is built of.
type options struct {
	Config   *config.Config
	Chat     bool // the terminal is the only channel that receives
	Terminal console.Terminal
	Stderr   io.Writer
	Log      *slog.Logger
	Recent   *recent   // what went wrong lately, by Log
	Redact   *redactor // as Log uses it
	Brief    bool      // this is a command that soon ends
	Anew     bool      // the owner wants to begin with an empty store or workspace where there was one
	Service  bool      // each config that works is kept for the day when one does not
	// Watch calls apply with each new config until ctx ends.
	Watch func(ctx context.Context, apply func(*config.Config) error)
}

// A house is all of Parley, built from the ground floor up.
type house struct {
	options
	now      atomic.Pointer[config.Config] // as it was reloaded last
	began    time.Time
	texts    *texts.Catalogue // what people are told in chats
	store    store.Store
	notes    []string // what the owners are told after the start
	verifier *backup.Verifier
	moved    string // why the web page is not at http.listen; "" if it is
	files    *workspace.Workspace
	sole     *os.File // holds the lock of the workspace; nil if another gateway has it
	observer *observe.Observer
	auditLog *audit.Log
	space    space
	full     atomic.Bool // the last message did not fit on the disk (P19)
	hub      *channels.Hub
	pool     *agent.Pool
	mind     mind
	clock    *scheduler.Scheduler
	jobs     *jobs.Manager
	offered  atomic.Pointer[tools.Kit] // those that an owner may use
	browser  *webchat.Channel          // nil: there is none
	api      *api.Channel
	web      *web.Server
	doors    []net.Listener
	served   []*http.Server // of each of doors
	strays   tools.Strays
	stats    *tools.Stats
	cache    *tools.Cache
	kit      atomic.Pointer[kitMaker] // as the pool has it
	filing   []tools.Tool             // those of files, which remember what each session has read
}

// redact returns text without secrets.
func (h *house) redact(text string) string { return h.Redact.String(text) }

// The time that shutting down may take. With the three seconds that a channel
// has for what is on its way it is less than 20 from the signal to the end (P16).
const (
	turnTime  = 12 * time.Second // for turns to finish
	drainTime = 3 * time.Second  // for their answers to be sent
	strayTime = time.Second      // for tools that were given up on
)

var errLeft = errors.New("the person left")

// serve runs the house until ctx ends, the person at the terminal leaves, or
// nothing works any more.
func serve(ctx context.Context, o options) error {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	h := &house{options: o, began: time.Now()}
	if err := h.build(ctx, func(err error) { leave(cmp.Or(err, errLeft)) }); err != nil {
		return errors.Join(err, h.close())
	}
	h.claimWorkspace()
	h.welcome()
	h.greet(ctx)
	h.tell(ctx)
	h.good(h.Config)
	err := h.live(ctx, leave)
	return errors.Join(err, h.close())
}

// claimWorkspace notes if another gateway uses the workspace, too.
func (h *house) claimWorkspace() {
	if h.Chat {
		return
	}
	sole, err := h.files.Claim()
	if err != nil {
		h.Log.Warn("the workspace is not this gateway's alone", "folder", h.files.Dir(), "err", err)
	}
	if errors.Is(err, workspace.ErrInUse) {
		h.notes = append(h.notes, h.texts.Gateway.Owners.WorkspaceShared.With(h.files.Dir()))
	}
	h.sole = sole
}

// good notes that c works.
func (h *house) good(c *config.Config) {
	if !h.Service {
		return
	}
	if err := c.KeepGood(); err != nil {
		h.Log.Warn("config not kept as the last good one", "err", err)
	}
}

// welcome tells whoever started Parley what it runs with.
func (h *house) welcome() {
	if h.Chat && !h.Terminal.Interactive() {
		return
	}
	for _, line := range banner(h.Config, h.Chat) {
		fmt.Fprintln(h.Stderr, line)
	}
}

// build makes everything and starts nothing.
func (h *house) build(ctx context.Context, leave func(error)) (err error) {
	c := h.Config
	h.now.Store(c)
	h.texts = texts.English()
	h.space = space{folders: []string{c.DataDir, c.Workspace}, look: freeSpace}
	if err := h.openStore(ctx, leave); err != nil {
		return err
	}
	if err := h.openWorkspace(ctx); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program that reads PDFs: %w", err)
	}
	h.filing = files.New(files.Rules{Standing: memory.Standing, Kept: memory.Kept, MaxStored: h.maxStored}, self, "pdf-text")
	h.openMind()
	h.hub = channels.NewHub(channels.Config{
		Store: h.store, Log: h.Log, Texts: &h.texts.Channels, Commands: h.menu(), Files: h.files, Transcribe: h.transcribe(),
		Sent: h.observer.Sent, Fate: h.fate, Audit: h.auditLog.Add, TakeBytes: h.takeBytes, MaxStored: h.maxStored, Room: h.space.room,
	})
	h.pool = agent.New(agent.Config{
		Store: h.store, Texts: &h.texts.Agent, Send: h.hub.Send, Live: h.hub.Live, Fetch: h.hub.Fetch, Begun: h.observer.Begun, Log: h.Log, Zone: c.Zone(),
		Memory: h.prompt(), Remembered: h.prompt().Remembered, Workspace: h.files, Archive: h.mind,
		Ended: h.ended, Role: h.roleNow, Brief: h.Brief, HasJob: h.hasJob, Commands: h.commands(), Warn: h.hub.TellOwners,
		Turns: c.Agent.MaxConcurrentTurns, Grace: turnTime, Report: h.report, ToolStats: h.toolStats, Undo: h.undo,
	}, agent.Settings{})
	hooks, err := h.addChannels(leave)
	if err != nil {
		return err
	}
	settings, err := h.settings(ctx, c)
	if err != nil {
		return err
	}
	h.pool.Set(settings)
	h.openScheduler()
	h.openJobs()
	h.observer.Queues(h.queues)
	access, err := accessOf(c)
	if err != nil {
		return err
	}
	h.hub.SetAccess(access)
	return h.openFace(ctx, hooks)
}

// openStore opens what everything else is kept in.
func (h *house) openStore(ctx context.Context, leave func(error)) (err error) {
	h.observer = observe.New(observe.Config{Build: version()})
	if _, ok := h.Config.Store.Driver.(*bolt.Config); ok {
		h.store, h.notes, err = h.openBolt(ctx, leave)
	} else {
		h.store, err = h.Config.Store.Driver.(store.Driver).Open(ctx)
	}
	if err != nil {
		return err
	}
	h.verifier = backup.NewVerifier(h.store, h.Log)
	h.auditLog = audit.New(h.store, h.redact, h.Log)
	if h.stats, err = tools.OpenStats(ctx, h.store.Bucket("toolStats"), h.Log); err != nil {
		return err
	}
	h.cache, err = tools.OpenCache(ctx, h.store.Bucket("toolCache"), h.Log)
	return err
}

// forgetSession deletes a conversation and what was looked up in it.
func (h *house) forgetSession(ctx context.Context, id chat.SessionID) error {
	h.cache.Forget(id)
	return h.pool.Forget(ctx, id)
}

// report tells an owner how the channels do.
func (h *house) report(ctx context.Context) (lines []string) {
	say := h.texts.Gateway.Report
	all, err := h.hub.Status(ctx)
	parked, err2 := h.hub.Parked(ctx)
	if err := errors.Join(err, err2); err != nil {
		h.Log.Error("status", "err", err)
		return []string{say.Failed}
	}
	lines = append(lines, h.toTell()...)
	lines = append(lines, damageWarning(say, h.verifier.Damaged())...)
	for _, s := range all {
		state := say.Works
		switch {
		case h.Chat && s.Channel != "console":
			state = say.WaitsForGateway
		case s.Err != nil:
			state = say.NotReceiving
		}
		lines = append(lines, say.Channel.With(s.Channel, state, s.Pending, s.Dropped))
	}
	if n := len(parked); n > 0 {
		last := parked[n-1]
		lines = append(lines, say.Parked.With(n, last.Reply.To.Session(), last.Reason))
	}
	return lines
}

// commands are those that the agent has besides its own.
func (h *house) commands() []agent.Command {
	return append(h.memoryCommands(), agent.Command{Name: "cron", Help: h.texts.Gateway.Commands.Cron, Do: h.cronCommand})
}

// menu is what the channels show people of all commands.
func (h *house) menu() (cs []channels.Command) {
	for _, c := range append(agent.Commands(h.texts.Agent.Help), h.commands()...) {
		cs = append(cs, channels.Command{Name: c.Name, Help: c.Help})
	}
	return cs
}

// live runs the house until ctx ends, and then lets it come to rest: nothing
// more comes in, turns finish, their answers are sent (P16).
func (h *house) live(ctx context.Context, leave context.CancelCauseFunc) error {
	work, rest := context.WithCancel(context.WithoutCancel(ctx))
	defer rest()
	var outbox, doors sync.WaitGroup
	run := func(wg *sync.WaitGroup, part func() error) {
		wg.Go(func() {
			if err := part(); err != nil {
				leave(err)
			}
		})
	}
	run(&outbox, func() error { return h.hub.Work(work) })
	outbox.Go(func() { h.auditLog.Run(work) })
	outbox.Go(func() { h.cache.Run(work) })
	outbox.Go(func() { h.stats.Run(work) })
	run(&doors, func() error { return h.pool.Run(ctx) })
	run(&doors, func() error { return h.receive(ctx) })
	run(&doors, func() error { return h.clock.Run(ctx) })
	doors.Go(func() { h.Watch(ctx, h.apply) })
	doors.Go(func() { h.copies().Run(ctx) })
	doors.Go(func() { h.verifier.Run(ctx, h.tellDamage) })
	for i, s := range h.served {
		run(&doors, func() error { return closed(s.Serve(h.doors[i])) })
	}
	<-ctx.Done()
	h.Log.Debug("closing", "why", context.Cause(ctx))
	defer time.AfterFunc(time.Second, h.excuse).Stop()
	var calls sync.WaitGroup // whoever waits for an answer still gets it
	for _, s := range h.served {
		calls.Go(func() { _ = s.Shutdown(work) }) // what is cut off comes again
	}
	doors.Wait()
	draining, stop := context.WithTimeout(work, drainTime)
	h.hub.Drain(draining)
	stop()
	rest()
	outbox.Wait()
	for _, s := range h.served {
		_ = s.Close()
	}
	calls.Wait()
	return why(ctx)
}

// excuse tells whoever waits for the end why it takes time.
func (h *house) excuse() {
	fmt.Fprintln(h.Stderr, "finishing what is under way, for 20 seconds at most; Ctrl-C twice ends it at once and loses nothing")
}

// receive lets people in. At a chat of this process the other networks wait.
func (h *house) receive(ctx context.Context) error {
	deliver := h.observer.Deliver(func(ctx context.Context, m chat.Message) error {
		if err := h.admit(ctx, m); err != nil {
			return err
		}
		err := h.pool.Deliver(ctx, m)
		h.full.Store(errors.Is(err, store.ErrFull))
		return err
	})
	if h.Chat {
		return h.hub.Receive(ctx, deliver, "console")
	}
	return h.hub.Receive(ctx, deliver)
}

// why returns the error that ended ctx, nil if it was meant to end.
func why(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, errLeft) && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// closed returns err unless it says that a server was closed on purpose.
func closed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// apply goes on with what c says and could not be told before.
func (h *house) apply(c *config.Config) error {
	access, err := accessOf(c)
	if err != nil {
		return err
	}
	settings, err := h.settings(context.Background(), c)
	if err != nil {
		return err
	}
	h.hub.SetAccess(access)
	h.pool.Set(settings)
	h.now.Store(c)
	h.auditLog.Add("config", "config.json", "reloaded")
	for _, w := range warningsOf(c) {
		h.Log.Warn(w)
	}
	h.good(c)
	return nil
}

// close ends what build made. Everything that uses it has ended.
func (h *house) close() error {
	ctx, stop := context.WithTimeout(context.Background(), strayTime)
	defer stop()
	if err := h.strays.Wait(ctx); err != nil {
		h.Log.Warn("tools still at work", "err", err)
	}
	var errs []error
	for _, l := range h.doors {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if h.auditLog != nil {
		h.auditLog.Flush()
	}
	if h.files != nil {
		errs = append(errs, h.files.Close())
	}
	if h.sole != nil {
		errs = append(errs, h.sole.Close())
	}
	if h.store != nil {
		errs = append(errs, h.store.Close())
	}
	return errors.Join(errs...)
}
