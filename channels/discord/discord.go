// Package discord is the channel to Discord: a bot that people write to in
// private, in the channels of servers and in their threads.
//
// Discord sends events over a connection, the gateway, and has no
// acknowledgement. So a session is resumed from the last event that was handled,
// also after a restart. If Discord has forgotten the session, each chat is read
// back from the last message that Deliver took (P3). Messages are sent with a
// nonce, so that one that is sent again does not appear twice (P9).
package discord

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"parley/channels"
	"parley/channels/network"
	"parley/chat"
	"parley/store"
	"parley/texts"
)

// A Channel is one Discord bot. It is a channels.Channel, Splitter, Editor,
// Typer, CommandMenu, Fetcher, Asker, Reactor, DirectMessenger, HealthReporter
// and RecoveryNotifier.
type Channel struct {
	cfg       Config
	log       *slog.Logger
	api       *botAPI
	directory *directory
	reader    *reader
	sender    *sender
	health    *network.HealthState
	timing    timing
	intake    atomic.Pointer[intake] // of Run
}

// timing holds the durations that tests shorten.
type timing struct {
	handshake    time.Duration // until a connection must be ready
	leastBackoff time.Duration // before another connection
	newSession   time.Duration // before a session that replaces one which Discord forgot
	saveInterval time.Duration // between two writes of the position in Discord's events
}

// New returns the bot that cfg describes. It does not call Discord.
func New(cfg Config) (*Channel, error) {
	cfg.APIURL = strings.TrimRight(cfg.APIURL, "/")
	if cfg.APIURL == "" {
		cfg.APIURL = defaultAPIURL
	}
	if cfg.Texts == nil {
		cfg.Texts = &texts.English().Channels
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	cfg.Token = strings.TrimPrefix(cfg.Token, "Bot ")
	if !isToken(cfg.Token) {
		return nil, errToken
	}
	c := &Channel{
		cfg:    cfg,
		log:    cfg.Log.With("channel", cfg.Name),
		api:    newBotAPI(&cfg),
		health: &network.HealthState{},
		timing: timing{
			handshake:    30 * time.Second,
			leastBackoff: time.Second,
			newSession:   2500 * time.Millisecond,
			saveInterval: 20 * time.Second,
		},
	}
	c.directory = newDirectory(cfg.Name, c.api)
	c.directory.onPrivateChat = func(ctx context.Context, id string) {
		if in := c.intake.Load(); in != nil {
			in.notePrivateChat(ctx, id)
		}
	}
	c.reader = &reader{mode: cfg.Groups, directory: c.directory, clock: c.api.clock}
	c.sender = &sender{api: c.api, directory: c.directory, open: cfg.Open, texts: cfg.Texts, log: c.log}
	return c, nil
}

// Run receives until ctx ends. An error means that Discord refuses the bot for good.
func (c *Channel) Run(ctx context.Context, deliver chat.Deliver) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, err := c.newIntake(ctx, deliver)
	if err != nil && ctx.Err() == nil {
		return err
	}
	defer in.close()
	defer cancel() // before close waits
	in.queues.live.Go(func() {
		in.tracker.saveRegularly(ctx, c.timing.saveInterval, func(err error) {
			c.log.Warn("position not stored yet", "err", err)
		})
	})
	return newGateway(c, in).run(ctx)
}

// newIntake returns the intake of Run, which knows what was read before.
func (c *Channel) newIntake(ctx context.Context, deliver chat.Deliver) (*intake, error) {
	tracker, known, err := newTracker(ctx, c.cfg.Seen)
	state := newReadState(store.NewTable(c.cfg.Seen, store.Report[chatPosition]), tracker, c.cfg.Groups, c.log)
	in := &intake{
		ctx:     ctx,
		api:     c.api,
		reader:  c.reader,
		deliver: deliver,
		tracker: tracker,
		state:   state,
		queues:  newJobQueues(ctx, c.api, tracker, c.backoff, c.log),
		dead:    c.cfg.Dead,
		texts:   c.cfg.Texts,
		log:     c.log,
		lookups: make(chan struct{}, maxLookups),
	}
	if err != nil {
		return in, err
	}
	if err := state.load(ctx, known); err != nil {
		return in, err
	}
	c.intake.Store(in)
	return in, nil
}

// maxBackoff is the longest pause between attempts.
const maxBackoff = 30 * time.Second

// backoff is the pause between attempts.
func (c *Channel) backoff() channels.Backoff {
	return channels.Backoff{Least: c.timing.leastBackoff, Most: maxBackoff}
}

// Health implements [channels.HealthReporter].
func (c *Channel) Health() error { return c.health.Health() }

// OnRecovery implements [channels.RecoveryNotifier].
func (c *Channel) OnRecovery(f func()) { c.health.OnRecovery(f) }

// Check asks Discord who the bot is, and whether it may read what people write.
func (c *Channel) Check(ctx context.Context) (string, error) {
	var me user
	if err := c.api.call(ctx, "GET", "/users/@me", nil, &me); err != nil {
		return "", c.api.adviseOn(err)
	}
	var app struct {
		Flags int `json:"flags"`
	}
	if err := c.api.call(ctx, "GET", "/applications/@me", nil, &app); err != nil {
		return "", c.api.adviseOn(err)
	}
	const messageContentFlags = 1<<18 | 1<<19 // of large bots and of small ones
	if app.Flags&messageContentFlags == 0 {
		return "", c.api.intentError()
	}
	return "@" + me.Name, nil
}

// SetCommands sets the menu of commands.
func (c *Channel) SetCommands(ctx context.Context, commands []channels.Command) error {
	const textOption = 3
	const maxDescription = 100 // runes
	menu := []any{}
	for _, command := range commands {
		option := map[string]any{"type": textOption, "name": "text", "description": c.cfg.Texts.MoreText}
		menu = append(menu, map[string]any{
			"name":        command.Name,
			"description": chat.Shorten(command.Help, maxDescription),
			"options":     []any{option},
		})
	}
	var app struct {
		ID string `json:"id"`
	}
	if err := c.api.call(ctx, "GET", "/applications/@me", nil, &app); err != nil {
		return c.api.channelError("set commands", err)
	}
	err := c.api.call(ctx, "PUT", "/applications/"+app.ID+"/commands", menu, nil)
	return c.api.channelError("set commands", err)
}

// Direct implements [channels.DirectMessenger]. It returns the private chat with
// that person.
func (c *Channel) Direct(id string) chat.Address { return c.directory.privateAddress(id) }

// Split returns text as messages that Discord accepts. Models write Markdown and
// Discord reads it, with these exceptions: what only looks like markup is escaped,
// tables become code, and code that is split goes on as code.
func (c *Channel) Split(text string) []string { return splitText(text) }

// Group puts as many files together as one message can have.
func (c *Channel) Group(files []chat.File) [][]chat.File {
	return slices.Collect(slices.Chunk(files, maxFiles))
}

// MaxChoices implements [channels.Asker]: five rows of five.
func (c *Channel) MaxChoices() int { return maxChoices }

// Send implements [channels.Channel].
func (c *Channel) Send(ctx context.Context, r chat.Reply) (channels.Receipt, error) {
	return c.sender.send(ctx, r)
}

// Edit makes the message of rc say r.
func (c *Channel) Edit(ctx context.Context, rc channels.Receipt, r chat.Reply) error {
	return c.api.channelError("edit", c.sender.edit(ctx, rc, r))
}

// EditEvery keeps to what Discord allows: five edits in five seconds.
func (c *Channel) EditEvery(chat.Address) time.Duration { return 1200 * time.Millisecond }

// Delete deletes the message of rc.
func (c *Channel) Delete(ctx context.Context, _ chat.Address, rc channels.Receipt) error {
	return c.sender.deleteMessage(ctx, rc)
}

// Typing shows "typing" for ten seconds.
func (c *Channel) Typing(ctx context.Context, at chat.Address) error {
	return c.sender.showTyping(ctx, at)
}

// React implements [channels.Reactor].
func (c *Channel) React(ctx context.Context, at chat.Address, message string, m channels.Mark) error {
	if !c.cfg.Reactions {
		return nil
	}
	return c.sender.react(ctx, at, message, m)
}

// Fetch implements [channels.Fetcher]. The message is requested again, because the
// addresses of its files expire after a day.
func (c *Channel) Fetch(ctx context.Context, _ chat.Message, f chat.File) (io.ReadCloser, error) {
	return c.api.download(ctx, f)
}
