package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"parley/agent"
	"parley/audit"
	"parley/backup"
	"parley/channels"
	"parley/channels/api"
	"parley/channels/attachments"
	"parley/channels/console"
	webchat "parley/channels/web"
	"parley/chat"
	"parley/cmd/gateway/control"
	"parley/cmd/gateway/endpoints"
	"parley/cmd/gateway/mcpservers"
	"parley/cmd/gateway/programs"
	"parley/cmd/gateway/sandboxes"
	"parley/cmd/gateway/stores"
	"parley/cmd/gateway/upkeep"
	"parley/config"
	"parley/host"
	"parley/memory"
	"parley/redact"
	"parley/retention"
	"parley/scheduler"
	"parley/scheduler/jobs"
	"parley/sizes"
	"parley/store"
	"parley/texts"
	"parley/tools"
	"parley/tools/custom"
	"parley/tools/files"
	"parley/tools/oversight"
	"parley/tools/policy"
	"parley/tools/sandbox"
	"parley/tools/shell"
	"parley/web"
	"parley/web/observe"
	"parley/workspace"
)

// options is what a gateway is built of.
type options struct {
	Config   *config.Config
	Chat     bool // only the terminal receives
	Terminal console.Terminal
	Stderr   io.Writer
	Log      *slog.Logger
	Recent   *redact.Recent   // the latest warnings and errors of Log
	Redact   *redact.Redactor // as Log uses it
	Brief    bool             // this is a command that soon ends
	Anew     bool             // an empty store or workspace may replace one that is gone
	Service  bool             // each working config is kept, in case a later one is faulty
	// Watch calls apply with each new config until ctx ends.
	Watch func(ctx context.Context, apply func(*config.Config) error)
}

// A gateway is the running program: everything that build opened. Its parts
// ownerAPI, jobHost, toolbox and knowledge are what other packages call back.
type gateway struct {
	options
	began     time.Time
	gcPercent int                           // see host.CollectLater
	now       atomic.Pointer[config.Config] // as it was reloaded last
	texts     *texts.Catalogue              // what people are told in chats
	notes     []string                      // what owners are told after the start

	// What is kept on disk.
	store         store.Store
	unlockData    func() error // nil if the store has locked the data folder
	verifier      *backup.Verifier
	auditLog      *audit.Log
	files         *workspace.Workspace
	workspaceLock *os.File // nil if another gateway has it
	space         host.Space
	full          atomic.Bool      // the last message did not fit on the disk (P19)
	faults        retention.Faults // what of the archive could not be written

	// What receives, answers and wakes.
	hub         *channels.Hub
	attachments *attachments.Inbox
	browser     *webchat.Channel // nil if it is off
	api         *api.Channel
	mcpServer   *programs.Server
	pool        *agent.Pool
	knowledge   knowledge
	scheduler   *scheduler.Scheduler
	jobs        *jobs.Manager

	// Tools.
	kit         atomic.Pointer[kitMaker]  // as the pool has it
	offered     atomic.Pointer[tools.Kit] // those that an owner may use
	customTools *custom.Library
	ownTools    atomic.Pointer[ownTools] // made of customTools, as the config says
	fileTools   []tools.Tool             // they remember what each session has read
	strays      tools.Strays
	stats       *tools.Stats
	policy      *policy.Book
	cache       *tools.Cache
	sandbox     *sandbox.Auto // runs the programs that tools start
	shell       *shell.Shell  // runs the agent's commands
	mcp         *mcpservers.Parts

	// HTTP.
	observer  *observe.Observer
	web       *web.Server
	servers   *endpoints.Servers
	waiting   endpoints.Waiting // connections from when this gateway stood by
	otherPort string            // why the web page is not at http.listen; "" if it is
}

// redact returns text without secrets.
func (g *gateway) redact(text string) string { return g.Redact.String(text) }

var errLeft = errors.New("the person left")

// serve runs a gateway until ctx ends, the person at the terminal leaves, or a
// part fails for good.
func serve(ctx context.Context, o options) error {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	g := &gateway{options: o, began: time.Now(), gcPercent: host.CollectLater()}
	switch err := g.build(ctx, func(err error) { leave(cmp.Or(err, errLeft)) }); {
	case errors.Is(err, context.Canceled) && why(ctx) == nil && !g.Chat: // it was told to end while it waited
		return g.close()
	case err != nil:
		return errors.Join(cmp.Or(why(ctx), err), g.close())
	}
	g.claimWorkspace()
	g.printBanner()
	g.printWebLink(ctx)
	g.tellOwners(ctx)
	g.keepGoodConfig(g.Config)
	err := g.run(ctx, leave)
	return errors.Join(err, g.close())
}

// claimWorkspace notes if another gateway uses the workspace, too.
func (g *gateway) claimWorkspace() {
	if g.Chat || !stores.IsFile(g.Config.Store.Driver) { // other gateways that share the store stand by
		return
	}
	sole, err := g.files.Claim()
	if err != nil {
		g.Log.Warn("the workspace is not this gateway's alone", "folder", g.files.Dir(), "err", err)
	}
	if errors.Is(err, workspace.ErrInUse) {
		g.notes = append(g.notes, g.texts.Gateway.Owners.WorkspaceShared.With(g.files.Dir()))
	}
	g.workspaceLock = sole
}

// keepGoodConfig notes that c works.
func (g *gateway) keepGoodConfig(c *config.Config) {
	if !g.Service {
		return
	}
	if err := c.KeepGood(); err != nil {
		g.Log.Warn("config not kept as the last good one", "err", err)
	}
}

// build opens everything, from what is kept to what is served, and starts nothing.
func (g *gateway) build(ctx context.Context, leave func(error)) error {
	g.now.Store(g.Config)
	g.texts = texts.English()
	g.sandbox = sandboxes.New(sandboxes.Config{
		Log:    g.Log,
		Folder: filepath.Join(g.Config.DataDir, "sandbox"),
		Image:  func() string { return g.now.Load().Tools.Exec.Image },
		Owner:  g.Config.DataDir,
		Hide:   []string{g.Config.DataDir, g.Config.File},
	})
	g.observer = observe.New(observe.Config{Build: host.Version()})
	if err := g.openData(ctx, leave); err != nil {
		return err
	}
	if err := g.openFileTools(); err != nil {
		return err
	}
	g.openKnowledge()
	g.openHub()
	g.openPool()
	webhooks, err := g.addChannels(leave)
	if err != nil {
		return err
	}
	settings, err := g.settings(ctx, g.Config)
	if err != nil {
		return err
	}
	g.pool.Set(settings)
	jobHostOf(g).openScheduler()
	jobHostOf(g).openManager()
	access, err := g.Config.Rules()
	if err != nil {
		return err
	}
	g.hub.Access().SetRules(access)
	g.observer.Queues(control.Watch{Hub: g.hub, Pool: g.pool}.Queues)
	g.mcpServer = programs.New(g.api, programs.Config{
		Version: host.Version(), Store: g.store, Texts: g.texts.Gateway.Coding, OwnerAt: jobHostOf(g).ownerAt,
		Log: g.Log, PrivateChat: g.hub.PrivateChat, Sees: toolboxOf(g).workspaceOf, Search: g.pool.Sessions().Search,
		Kit: func(ctx context.Context, s tools.Scope) (*tools.Kit, error) { return (*g.kit.Load())(ctx, s) },
	})
	return g.openHTTP(ctx, webhooks)
}

// openData opens the store, what is kept in it, and the workspace.
func (g *gateway) openData(ctx context.Context, leave func(error)) error {
	g.space = host.Space{
		Folders: []string{g.Config.DataDir, g.Config.Workspace},
		Measure: host.FreeSpace,
	}
	if err := g.openStore(ctx, leave); err != nil {
		return err
	}
	g.verifier = backup.NewVerifier(g.store, g.Log)
	g.auditLog = audit.New(g.store, g.redact, g.Log)
	var err error
	if g.servers, err = endpoints.NewServers(endpointsOf(g.Config), g.waiting, g.store, g.Brief); err != nil {
		return err
	}
	if g.stats, err = tools.OpenStats(ctx, g.store.Bucket(store.BucketToolStats), g.Log); err != nil {
		return err
	}
	if g.cache, err = tools.OpenCache(ctx, g.store.Bucket(store.BucketToolCache), g.Log); err != nil {
		return err
	}
	g.policy = policy.NewBook(g.store, g.Log)
	g.shell = shell.New(shell.Config{
		Store:     g.store,
		Files:     func() *workspace.Workspace { return g.files },
		MaxStored: g.maxStored,
		Runner:    g.sandbox,
		Deliver:   func(ctx context.Context, m chat.Message) error { return g.pool.Deliver(ctx, m) },
		Log:       g.Log,
	})
	if g.customTools, err = custom.Open(filepath.Join(g.Config.DataDir, custom.Folder), g.Log); err != nil {
		return err
	}
	g.mcp = mcpservers.New(mcpservers.Config{
		Log:       g.Log,
		Store:     g.store,
		Sandbox:   g.sandbox,
		DataDir:   g.Config.DataDir,
		File:      g.Config.File,
		Version:   host.Version(),
		MaxStored: g.maxStored,
		Secrets:   g.Redact,
		SignInKey: func() string { return string(g.now.Load().Tools.MCPSignInKey) },
		Texts:     g.texts,
		Audit:     g.auditLog.Add,
		Zone:      g.Config.Zone(),
		Hub:       func() *channels.Hub { return g.hub },
		Home:      func() string { return g.web.Home() },
		Patience:  func() time.Duration { return g.now.Load().Tools.ApprovalTimeout },
		Brief:     g.Brief,
	})
	return g.openWorkspace(ctx)
}

func (g *gateway) openFileTools() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program that reads PDFs: %w", err)
	}
	rules := files.Rules{Standing: memory.Standing, Kept: memory.Kept, MaxStored: g.maxStored}
	g.fileTools = files.New(rules, self, "pdf-text")
	return nil
}

func (g *gateway) openHub() {
	g.hub = channels.NewHub(channels.Config{
		Store:    g.store,
		Log:      g.Log,
		Texts:    &g.texts.Channels,
		Commands: g.menu(),
		Files:    g.files,
		Sent:     g.observer.Sent,
		Fate:     jobHostOf(g).noteDelivery,
		Audit:    g.auditLog.Add,
	})
	g.attachments = attachments.New(attachments.Config{
		Files:      g.files,
		Store:      g.store,
		Log:        g.Log,
		Texts:      &g.texts.Channels,
		Channel:    g.hub.Channel,
		RoleOf:     g.hub.Access().RoleOf,
		Transcribe: transcriber(g.Config),
		TakeBytes:  g.takeBytes,
		MaxStored:  g.maxStored,
		CheckSpace: g.space.Check,
	})
}

func (g *gateway) openPool() {
	prompt := g.knowledge.prompt()
	g.pool = agent.New(agent.Config{
		Store:      g.store,
		Texts:      &g.texts.Agent,
		Send:       g.hub.Send,
		Live:       g.hub.Live,
		Fetch:      g.attachments.Fetch,
		Begun:      g.observer.Begun,
		Log:        g.Log,
		Zone:       g.Config.Zone(),
		Memory:     prompt,
		Explain:    g.knowledge.notes.WhyCommand,
		Remembered: prompt.Remembered,
		Workspace:  g.files,
		Sees:       toolboxOf(g).workspaceOf,
		Archive:    g.knowledge,
		Ended:      jobHostOf(g).noteEnd,
		RunUsage: func(ctx context.Context, run string, tokens int, cost float64) error {
			return g.scheduler.NoteUsage(ctx, run, tokens, cost)
		},
		Role:       jobHostOf(g).roleNow,
		Brief:      g.Brief,
		HasJob:     jobHostOf(g).exists,
		Commands:   g.commands(),
		Warn:       g.hub.TellOwners,
		Turns:      g.Config.Agent.MaxConcurrentTurns,
		Grace:      turnTime,
		Report:     ownerAPI{g}.report,
		ToolStats:  func() string { return oversight.Statistics(g.stats, g.texts.Gateway.Tools) },
		Undo:       toolboxOf(g).undo,
		Left:       g.shell.EndConversation,
		Background: programs.Background(g.shell),
	}, agent.Settings{})
}

// forgetSession deletes a conversation and what was looked up in it.
func (g *gateway) forgetSession(ctx context.Context, id chat.SessionID) error {
	g.cache.Forget(id)
	return errors.Join(g.shell.ForgetSession(ctx, id), g.pool.Forget(ctx, id))
}

// upkeepOf returns what removes what is old.
func upkeepOf(g *gateway) upkeep.Upkeep {
	return upkeep.Upkeep{
		Periods: func() upkeep.Periods { return upkeep.Periods(g.now.Load().Retention) },
		DataDir: g.Config.DataDir, Zone: g.Config.Zone(), Log: g.Log, Removed: g.observer.Removed,
		Faults: &g.faults,
		Pool:   g.pool, Hub: g.hub, Audit: g.auditLog, Page: g.browser, Files: g.attachments, Workspace: g.files,
		HasJob: jobHostOf(g).exists, Forget: g.forgetSession,
		Sizes: sizes.Keeper{
			Store: g.store, DataDir: g.Config.DataDir, Workspace: g.Config.Workspace,
			Room: g.space.CheckFor, Log: g.Log, Measured: g.observer.Measured,
		},
	}
}

// commands are those that the agent has besides its own.
func (g *gateway) commands() []agent.Command {
	cron := agent.Command{Name: "cron", Help: g.texts.Gateway.Commands.Cron, Do: jobHostOf(g).command}
	groups := agent.Command{Name: "groups", Help: g.texts.Gateway.Commands.Groups, Do: toolboxOf(g).groups}
	servers := agent.Command{Name: "mcp", Help: g.texts.Gateway.Commands.MCP, Do: g.mcp.Manager.Command}
	tell := func(ctx context.Context, m chat.Message) (string, error) { return g.mcpServer.Command(ctx, m) }
	code := agent.Command{Name: "code", Help: g.texts.Gateway.Commands.Code, Do: tell}
	return append(g.knowledge.commands(), cron, groups, servers, code)
}

// menu is what the channels show people of all commands.
func (g *gateway) menu() (cs []channels.Command) {
	for _, c := range append(agent.Commands(g.texts.Agent.Help), g.commands()...) {
		cs = append(cs, channels.Command{Name: c.Name, Help: c.Help})
	}
	return cs
}
