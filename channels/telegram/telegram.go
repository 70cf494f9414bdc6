// Package telegram is the channel to Telegram: a bot that people write to in
// private chats, in groups and in the topics of forums.
//
// Updates are confirmed to Telegram only when they cannot be lost any more:
// the next getUpdates, or the answer to a webhook, waits for Deliver (P1).
package telegram

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"parley/channels"
	"parley/channels/network"
	"parley/chat"
	"parley/store"
	"parley/texts"
)

// A Config says which bot to be, and how. The fields with tags are keys of its
// entry in config.json (see package config).
type Config struct {
	Name string // of the channel in config.json, such as "telegram:work"
	// Token is from @BotFather: the bot's id, a colon, a secret.
	Token  string `json:"token" secret:"yes" unique:"one bot can have one reader"`
	APIURL string `json:"apiUrl" default:"https://api.telegram.org" url:"https http"`
	// Groups is what to hear in groups: "" is "mention".
	Groups  string   `json:"groups" default:"mention" allowed:"mention, all, none"`
	Webhook *Webhook `json:"webhook"` // nil to poll
	// Rate is the most messages per second in all: 30 if it is 0; below 0 there is no limit.
	Rate float64 `json:"rate" default:"30"`
	// Reactions show how far the agent is with a message.
	Reactions bool `json:"reactions" default:"true"`

	Dead   store.Log                           // gets the last 1000 updates that cannot be understood, as they came (P4)
	Alias  store.Bucket                        // remembers the groups that became supergroups
	Open   func(path string) (*os.File, error) // opens the files of replies (R-S18)
	Client *http.Client                        // nil for one of its own
	Texts  *texts.Channels                     // what people are told; nil: in English
	Log    *slog.Logger                        // nil for slog.Default
}

// A Webhook is where Telegram is to bring the updates.
type Webhook struct {
	URL string `json:"url" url:"https http"` // public address
	// Secret is by which Telegram proves itself: 1 to 256 of A-Z a-z 0-9 _ - (R-S9).
	Secret string `json:"secret" secret:"yes"`
	// Listen is the address on this machine; "": 127.0.0.1:8081.
	Listen string `json:"listen" listen:"yes" optional:"yes"`
}

// A Channel is one Telegram bot. It is a channels.Channel, Splitter, Editor,
// Typer, CommandMenu, Fetcher, Asker, Reactor, DirectMessenger and Tracer.
type Channel struct {
	network.HealthState
	cfg  Config
	id   string // the bot's
	api  *bot.Bot
	http client
	pace *pace
	log  *slog.Logger

	numbers *numbers
	aliases store.Table[int64] // other ids of groups that have moved

	naming   sync.Mutex // held while username is asked for
	username string     // empty until it is needed

	gate   network.Intake // of webhook requests
	albums sync.Map       // id of a group -> the album that was said to us there last
}

var (
	tokenForm  = regexp.MustCompile(`^[0-9]+:[A-Za-z0-9_-]+$`)
	secretForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)
)

// New returns the bot that cfg describes. It does not call Telegram.
func New(cfg Config) (*Channel, error) {
	cfg.APIURL = strings.TrimRight(cfg.APIURL, "/")
	if !tokenForm.MatchString(cfg.Token) { // which is not told, nor is the secret (R-S26)
		return nil, errors.New("token: not a bot token: copy it from @BotFather, it looks like 123456:ABC-DEF")
	}
	if w := cfg.Webhook; w != nil && !secretForm.MatchString(w.Secret) { // R-S9
		return nil, errors.New("webhook.secret: must be 1 to 256 of A-Z a-z 0-9 _ -, such as openssl rand -hex 32 prints")
	}
	if cfg.Texts == nil {
		cfg.Texts = &texts.English().Channels
	}
	log := cmp.Or(cfg.Log, slog.Default()).With("channel", cfg.Name)
	c := &Channel{cfg: cfg, http: newClient(cfg.Client), pace: newPace(cfg.Rate), log: log}
	c.id, _, _ = strings.Cut(cfg.Token, ":")
	c.numbers = newNumbers()
	c.aliases = store.NewTable(cfg.Alias, store.Forget[int64](c.log, "note of a group's move")) // P21
	var err error
	c.api, err = bot.New(cfg.Token, bot.WithSkipGetMe(), bot.WithServerURL(cfg.APIURL),
		bot.WithHTTPClient(sendTimeout, c.http), bot.WithErrorsHandler(func(error) {}))
	return c, err
}

// Run hears until ctx ends. An error says that Telegram refuses the token.
func (c *Channel) Run(ctx context.Context, deliver chat.Deliver) error {
	hear := c.poll(deliver)
	if c.cfg.Webhook != nil {
		hear = c.listen
		var open sync.WaitGroup
		defer open.Wait()
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		defer stop()
		open.Go(func() { c.gate.Open(ctx, deliver) })
	}
	wait := pauses
	for ctx.Err() == nil {
		err := hear(ctx)
		switch {
		case ctx.Err() != nil:
		case err == nil:
			wait = pauses
			c.SetHealth(nil)
		case errors.Is(err, bot.ErrorUnauthorized) || errors.Is(err, bot.ErrorNotFound):
			return c.advice(err)
		default:
			c.mend(ctx, err, wait.Next(c.refused("", err)))
		}
	}
	return nil
}

// pauses are those between attempts to hear.
var pauses = channels.Backoff{Least: time.Second, Most: 30 * time.Second}

// Check asks Telegram who the bot is and returns its user name, such as "@parleybot".
func (c *Channel) Check(ctx context.Context) (string, error) {
	me, err := c.api.GetMe(ctx)
	if err != nil {
		return "", c.advice(err)
	}
	return "@" + me.Username, nil
}

// name returns the bot's user name, which is needed in groups only: the first
// poll and private chats do not wait for it.
func (c *Channel) name(ctx context.Context) (string, error) {
	c.naming.Lock()
	defer c.naming.Unlock()
	if c.username != "" {
		return c.username, nil
	}
	me, err := c.api.GetMe(ctx)
	if err != nil {
		return "", c.plainly("ask for the bot's name", err)
	}
	if c.username = me.Username; c.cfg.Groups == "all" && !me.CanReadAllGroupMessages {
		c.log.Warn("telegram shows the bot only some messages of groups: to have all, send /setprivacy to @BotFather and add the bot to the group anew")
	}
	return c.username, nil
}

// SetCommands sets the menu of commands, unless it is so already: Telegram
// locks out bots that set it at every start.
func (c *Channel) SetCommands(ctx context.Context, cs []channels.Command) error {
	var menu []models.BotCommand
	for _, cmd := range cs {
		menu = append(menu, models.BotCommand{Command: cmd.Name, Description: cmd.Help})
	}
	now, err := c.api.GetMyCommands(ctx, &bot.GetMyCommandsParams{})
	if err == nil && slices.Equal(now, menu) {
		return nil
	}
	_, err = c.api.SetMyCommands(ctx, &bot.SetMyCommandsParams{Commands: menu})
	return c.refused("set commands", err)
}

// Direct implements [channels.DirectMessenger]. A person and the private chat with them
// have the same id; groups and channels, whose ids are negative, are no persons.
func (c *Channel) Direct(id string) chat.Address {
	if n, err := strconv.ParseInt(id, 10, 64); err != nil || n <= 0 {
		return chat.Address{}
	}
	return chat.Address{Channel: c.cfg.Name, Chat: id}
}

// EditEvery is one second, and three where Telegram allows 20 messages a minute.
func (c *Channel) EditEvery(to chat.Address) time.Duration {
	if strings.HasPrefix(to.Chat, "-") {
		return 3 * time.Second
	}
	return time.Second
}
