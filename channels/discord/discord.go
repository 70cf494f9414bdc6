// Package discord is the channel to Discord: a bot that people write to in
// private, in the channels of servers and in their threads.
//
// Discord tells of events by a connection, the gateway, and has no
// acknowledgement. So a session is resumed from the last event that was handled,
// also after a restart. Where Discord has forgotten the session, each chat is
// read back from the last message that Deliver took (P3). What is sent
// carries a nonce, so that what is sent again is not said twice (P9).
package discord

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"parley/channels/network"
	"parley/chat"
	"parley/store"
	"parley/texts"
)

// A Config says which bot to be, and how. The fields with tags are keys of its
// entry in config.json (see package config).
type Config struct {
	Name string // of the channel in config.json, such as "discord:work"
	// Token is from https://discord.com/developers/applications, under Bot.
	Token  string `json:"token" secret:"yes" unique:"one bot can have one reader"`
	APIURL string `json:"apiUrl" default:"https://discord.com/api/v9" url:"https http"`
	// GatewayURL is where events come from: as the API says when empty.
	GatewayURL string `json:"gatewayUrl" url:"wss ws" optional:"yes"`
	// Groups is what to hear in servers: "" is "mention".
	Groups string `json:"groups" default:"mention" allowed:"mention, all, none"`
	// Reactions show how far the agent is with a message.
	Reactions bool `json:"reactions" default:"true"`

	Seen  store.Bucket                        // remembers how far each chat was read, and the session
	Dead  store.Log                           // gets the events that cannot be understood, as they came (P4); the last 1000 are kept
	Open  func(path string) (*os.File, error) // opens a file of the workspace (R-S18)
	Texts *texts.Channels                     // what people are told; nil: in English
	Log   *slog.Logger                        // nil for slog.Default
}

// A Channel is one Discord bot. It is a channels.Channel, Splitter, Editor,
// Typer, CommandMenu, Fetcher, Asker, Reactor and DirectMessenger.
type Channel struct {
	network.HealthState
	cfg    Config
	http   *http.Client
	server *network.ServerClock // learns from what http gets
	pace   *rate.Limiter        // of requests to the API
	log    *slog.Logger
	seen   store.Table[seen]      // by chat
	me     user                   // set by Run before anything is heard
	in     atomic.Pointer[intake] // of Run

	patience     time.Duration // with a connection, until it is ready
	haste        time.Duration // least wait before another attempt
	calm         time.Duration // before a session that replaces one which Discord forgot
	saveInterval time.Duration // between two writes of the position in Discord's events

	mu      sync.Mutex
	parents map[string]string // by channel or thread: of a thread, where it is
	roles   map[string]string // by server: our own
	direct  map[string]string // by person: the private chat
}

// New returns the bot that cfg describes. It does not call Discord.
func New(cfg Config) (*Channel, error) {
	if cfg.APIURL = strings.TrimRight(cfg.APIURL, "/"); cfg.APIURL == "" {
		cfg.APIURL = "https://discord.com/api/v9"
	}
	if cfg.Texts == nil {
		cfg.Texts = &texts.English().Channels
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Token = strings.TrimPrefix(cfg.Token, "Bot "); cfg.Token == "" || strings.ContainsAny(cfg.Token, " \t\r\n") { // which is not told (R-S26)
		return nil, errors.New("token: not a bot token: copy it from https://discord.com/developers/applications, under Bot")
	}
	c := &Channel{
		seen: store.NewTable(cfg.Seen, store.Report[seen]),
		cfg:  cfg, pace: rate.NewLimiter(45, 20), log: cfg.Log.With("channel", cfg.Name),
		http: network.NewClient(), server: &network.ServerClock{},
		patience: 30 * time.Second, haste: time.Second, calm: 2500 * time.Millisecond, saveInterval: 20 * time.Second,
		parents: map[string]string{}, roles: map[string]string{}, direct: map[string]string{},
	}
	c.server.Watch(c.http)
	return c, nil
}

// Run hears until ctx ends. An error says that Discord refuses the bot for good.
func (c *Channel) Run(ctx context.Context, deliver chat.Deliver) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, err := c.newIntake(ctx, deliver)
	if err != nil && ctx.Err() == nil {
		return err
	}
	defer in.end()
	defer cancel() // before the end is waited for
	in.live.Go(func() {
		in.tracker.keep(ctx, c.saveInterval, func(err error) { c.log.Warn("position not stored yet", "err", err) })
	})
	return c.stay(ctx, in)
}

// Check asks Discord who the bot is, and whether it may read what people write.
func (c *Channel) Check(ctx context.Context) (string, error) {
	var me user
	var app struct {
		Flags int `json:"flags"`
	}
	err := c.call(ctx, "GET", "/users/@me", nil, &me)
	if err == nil {
		err = c.call(ctx, "GET", "/applications/@me", nil, &app)
	}
	if err != nil {
		return "", c.advice(err)
	}
	const mayRead = 1<<18 | 1<<19 // of big bots and of small ones
	if app.Flags&mayRead == 0 {
		return "", c.closedEyes()
	}
	return "@" + me.Name, nil
}

// Direct returns the private chat with that person.
func (c *Channel) Direct(id string) chat.Address {
	if !snowflake.MatchString(id) {
		return chat.Address{Channel: c.cfg.Name}
	}
	return chat.Address{Channel: c.cfg.Name, Chat: "@" + id}
}

// known returns the value of key in cache, which ask finds out.
func (c *Channel) known(cache map[string]string, key string, ask func() (string, error)) (string, error) {
	c.mu.Lock()
	val, ok := cache[key]
	c.mu.Unlock()
	if ok {
		return val, nil
	}
	val, err := ask()
	if err == nil {
		c.mu.Lock()
		cache[key] = val
		c.mu.Unlock()
	}
	return val, err
}

// EditEvery keeps to what Discord allows: five edits in five seconds.
func (c *Channel) EditEvery(chat.Address) time.Duration { return 1200 * time.Millisecond }
