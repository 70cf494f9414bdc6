// Package telegram is the channel to Telegram: a bot that people write to in
// private chats, in groups and in the topics of forums.
//
// An update is confirmed to Telegram only once it is stored: the next
// getUpdates, or the answer to a webhook request, waits for Deliver (P1).
package telegram

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"parley/channels"
	"parley/channels/markdown"
	"parley/channels/network"
	"parley/chat"
	"parley/store"
	"parley/texts"
)

// A Channel is one Telegram bot. It is a channels.Channel, Splitter, Editor,
// Typer, CommandMenu, Fetcher, Asker, Reactor, DirectMessenger, HealthReporter,
// RecoveryNotifier and Tracer.
type Channel struct {
	cfg      Config
	log      *slog.Logger
	api      *botAPI
	health   *network.HealthState
	receiver *receiver
	webhook  *webhookReceiver
	sender   *sender
	tracer   *tracer
}

// New returns the bot that cfg describes. It does not call Telegram.
func New(cfg Config) (*Channel, error) {
	cfg.APIURL = strings.TrimRight(cfg.APIURL, "/")
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Texts == nil {
		cfg.Texts = &texts.English().Channels
	}
	log := cmp.Or(cfg.Log, slog.Default()).With("channel", cfg.Name)
	api, err := newBotAPI(&cfg)
	if err != nil {
		return nil, err
	}
	health := &network.HealthState{}
	moves := store.NewTable(cfg.Alias, store.Forget[int64](log, "note of a group's move")) // P21
	groups := &groupMoves{table: moves, log: log}
	numbers := newNumbers()
	pace := newPace(cfg.Rate)
	receiver := &receiver{
		api:     api,
		reader:  newReader(&cfg, api, groups, log),
		numbers: numbers,
		dead:    cfg.Dead,
		health:  health,
		log:     log,
	}
	return &Channel{
		cfg:      cfg,
		log:      log,
		api:      api,
		health:   health,
		receiver: receiver,
		webhook:  &webhookReceiver{cfg: cfg.Webhook, api: api, receiver: receiver, health: health, log: log},
		sender: &sender{
			api:     api,
			pace:    pace,
			numbers: numbers,
			groups:  groups,
			open:    cfg.Open,
			texts:   cfg.Texts,
			log:     log,
		},
		tracer: &tracer{api: api, pace: pace, numbers: numbers, groups: groups, log: log},
	}, nil
}

// pollBackoff is the pause between attempts to receive.
var pollBackoff = channels.Backoff{Least: time.Second, Most: 30 * time.Second}

// Run receives until ctx ends. An error means that Telegram refuses the token.
func (c *Channel) Run(ctx context.Context, deliver chat.Deliver) error {
	if c.cfg.Webhook == nil {
		poller := newPoller(c.api, c.receiver, deliver)
		return c.receive(ctx, poller.poll)
	}
	ctx, stop := context.WithCancel(ctx)
	var intake sync.WaitGroup
	intake.Go(func() { c.webhook.intake.Open(ctx, deliver) })
	defer intake.Wait()
	defer stop()
	return c.receive(ctx, c.webhook.register)
}

// receive calls listen again and again until ctx ends or Telegram refuses the token.
func (c *Channel) receive(ctx context.Context, listen func(context.Context) error) error {
	backoff := pollBackoff
	for ctx.Err() == nil {
		err := listen(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			backoff = pollBackoff
			c.health.SetHealth(nil)
		case errors.Is(err, bot.ErrorUnauthorized) || errors.Is(err, bot.ErrorNotFound):
			return c.api.adviseOn(err)
		default:
			pause := backoff.Next(c.api.channelError("", err))
			c.recoverFrom(ctx, err, pause)
		}
	}
	return nil
}

// recoverFrom does what can be done about a failed attempt to receive, and waits.
func (c *Channel) recoverFrom(ctx context.Context, err error, pause time.Duration) {
	cause := c.api.adviseOn(err)
	conflict := errors.Is(err, bot.ErrorConflict)
	switch {
	case conflict && strings.Contains(err.Error(), "webhook"):
		cause = errors.New("telegram still sends the updates to a webhook, which is now removed")
		if err := c.api.deleteWebhook(ctx); err != nil {
			cause = err
		}
	case conflict:
		pause = conflictPause
	case errors.Is(err, errTimeout):
		c.api.client.http.CloseIdleConnections()
		cause = errPollTimeout
		pause = 0
	}
	what := "poll failed"
	if c.cfg.Webhook != nil {
		what = "webhook not set"
	}
	c.health.SetHealth(cause)
	c.log.Warn(what, "err", cause, "retryIn", pause)
	channels.Sleep(ctx, pause)
}

// Health implements [channels.HealthReporter].
func (c *Channel) Health() error { return c.health.Health() }

// OnRecovery implements [channels.RecoveryNotifier].
func (c *Channel) OnRecovery(f func()) { c.health.OnRecovery(f) }

// Webhook implements [network.WebhookReceiver]. The handler answers 200 only once
// the update is stored (P1), and reads nothing from a caller that does not know
// the secret (R-S9).
func (c *Channel) Webhook() (path string, handler http.Handler) { return c.webhook.path(), c.webhook }

// Check asks Telegram who the bot is and returns its user name, such as "@parleybot".
func (c *Channel) Check(ctx context.Context) (string, error) {
	me, err := c.api.bot.GetMe(ctx)
	if err != nil {
		return "", c.api.adviseOn(err)
	}
	return "@" + me.Username, nil
}

// SetCommands sets the menu of commands unless it is set already: Telegram
// rate-limits bots that set it at every start.
func (c *Channel) SetCommands(ctx context.Context, commands []channels.Command) error {
	var menu []models.BotCommand
	for _, command := range commands {
		menu = append(menu, models.BotCommand{Command: command.Name, Description: command.Help})
	}
	current, err := c.api.bot.GetMyCommands(ctx, &bot.GetMyCommandsParams{})
	if err == nil && slices.Equal(current, menu) {
		return nil
	}
	_, err = c.api.bot.SetMyCommands(ctx, &bot.SetMyCommandsParams{Commands: menu})
	return c.api.channelError("set commands", err)
}

// Direct implements [channels.DirectMessenger]. A person and the private chat
// with them have the same id. Negative ids are those of groups and channels.
func (c *Channel) Direct(id string) chat.Address {
	if n, err := strconv.ParseInt(id, 10, 64); err != nil || n <= 0 {
		return chat.Address{}
	}
	return chat.Address{Channel: c.cfg.Name, Chat: id}
}

// Split returns text as messages in Telegram's HTML, of at most 4096 UTF-16 units each.
func (c *Channel) Split(text string) []string {
	return render(nil, markdown.Parse(text, isLinkable), maxText)
}

// Group puts consecutive files that can share an album together.
func (c *Channel) Group(files []chat.File) [][]chat.File { return groupAlbums(files) }

// MaxChoices implements [channels.Asker].
func (c *Channel) MaxChoices() int { return maxChoices }

// Send implements [channels.Channel]. It follows a group that has become a supergroup.
func (c *Channel) Send(ctx context.Context, r chat.Reply) (channels.Receipt, error) {
	return c.sender.send(ctx, r)
}

// Edit makes the message of rc say r. Its buttons are removed unless r asks a question.
func (c *Channel) Edit(ctx context.Context, rc channels.Receipt, r chat.Reply) error {
	return c.sender.edit(ctx, rc, r)
}

// EditEvery is one second, and three where Telegram allows 20 messages a minute.
func (c *Channel) EditEvery(to chat.Address) time.Duration {
	if strings.HasPrefix(to.Chat, "-") {
		return 3 * time.Second
	}
	return time.Second
}

// Delete deletes the message of rc. Telegram lets a bot do that for 48 hours.
func (c *Channel) Delete(ctx context.Context, _ chat.Address, rc channels.Receipt) error {
	return c.sender.deleteMessage(ctx, rc)
}

// Typing shows "typing" for five seconds, unless messages need the capacity.
func (c *Channel) Typing(ctx context.Context, at chat.Address) error {
	return c.sender.showTyping(ctx, at)
}

// React implements [channels.Reactor]. A mark is not set when messages need the
// capacity, but one that was set is always removed.
func (c *Channel) React(ctx context.Context, at chat.Address, message string, m channels.Mark) error {
	if !c.cfg.Reactions {
		return nil
	}
	return c.sender.react(ctx, at, message, m)
}

// Fetch implements [channels.Fetcher]. Telegram's link to a file holds the token
// and expires after an hour, so it is requested each time.
func (c *Channel) Fetch(ctx context.Context, _ chat.Message, f chat.File) (io.ReadCloser, error) {
	return c.api.download(ctx, f)
}

// Position implements [channels.Tracer].
func (c *Channel) Position(ctx context.Context, r chat.Reply) (channels.Position, error) {
	return c.tracer.position(ctx, r)
}

// Recall implements [channels.Tracer].
func (c *Channel) Recall(ctx context.Context, to chat.Address, p channels.Position) error {
	return c.tracer.recall(ctx, to, p)
}

// Trace implements [channels.Tracer].
func (c *Channel) Trace(ctx context.Context, r chat.Reply, after channels.Position) (channels.Receipt, error) {
	return c.tracer.trace(ctx, r, after)
}
