package telegram

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strconv"

	"parley/channels"
	"parley/channels/network"
	"parley/chat"
	"parley/lazyregexp"
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
	// Groups is what to read in groups: "" is "mention".
	Groups  string   `json:"groups" default:"mention" allowed:"mention, all, none"`
	Webhook *Webhook `json:"webhook"` // nil to poll
	// Rate is the most messages per second in all: 0 is 30, and below 0 there is no limit.
	Rate float64 `json:"rate" default:"30"`
	// Reactions show how far the agent is with a message.
	Reactions bool `json:"reactions" default:"true"`

	Dead   store.Log                           // gets the last 1000 updates that cannot be understood, verbatim (P4)
	Alias  store.Bucket                        // holds the ids of groups that became supergroups
	Open   func(path string) (*os.File, error) // opens the files of replies (R-S18)
	Client *http.Client                        // nil for one of its own
	Texts  *texts.Channels                     // what people read; nil: in English
	Log    *slog.Logger                        // nil for slog.Default
}

// A Webhook says where Telegram sends the updates.
type Webhook struct {
	URL string `json:"url" url:"https http"` // public address
	// Secret authenticates Telegram: 1 to 256 of A-Z a-z 0-9 _ - (R-S9).
	Secret string `json:"secret" secret:"yes"`
	// Listen is the address on this machine; "": 127.0.0.1:8081.
	Listen string `json:"listen" listen:"yes" optional:"yes"`
}

var (
	tokenForm  = lazyregexp.New(`^[0-9]+:[A-Za-z0-9_-]+$`)
	secretForm = lazyregexp.New(`^[A-Za-z0-9_-]{1,256}$`)
)

// minSecretLen is the least length of a webhook secret that cannot be guessed.
const minSecretLen = 22

// validate returns why the token or the secret cannot be used. The error holds
// neither (R-S26).
func (c *Config) validate() error {
	if !tokenForm.MatchString(c.Token) {
		return errors.New("token: not a bot token: copy it from @BotFather, it looks like 123456:ABC-DEF")
	}
	if c.Webhook != nil && !secretForm.MatchString(c.Webhook.Secret) { // R-S9
		return errors.New("webhook.secret: must be 1 to 256 of A-Z a-z 0-9 _ -, such as openssl rand -hex 32 prints")
	}
	return nil
}

// CheckID implements [network.Driver].
func (c *Config) CheckID(id string) error { return network.CheckNumericID(id) }

// CheckChat implements [network.ChatChecker].
func (c *Config) CheckChat(a chat.Address) error {
	thread, err := strconv.Atoi(cmp.Or(a.Thread, generalTopic))
	if network.CheckNumericID(a.Chat) != nil || err != nil || thread <= 0 {
		return errors.New("on Telegram it is a number, such as 123456 for a person or -100987654 for a group, " +
			"and /7 after it for a topic")
	}
	return nil
}

// Check reports values that have the right type but cannot work.
func (c *Config) Check(report func(key, problem string)) {
	if !tokenForm.MatchString(c.Token) {
		report("token", "is no bot token; @BotFather gives one such as 123456:ABC-def")
	}
	if c.Rate <= 0 && c.Rate != -1 {
		report("rate", "must be messages per second above 0, or -1 for no limit")
	}
}

// WebhookAddress implements [network.WebhookDriver].
func (c *Config) WebhookAddress() string {
	if c.Webhook == nil {
		return ""
	}
	return cmp.Or(c.Webhook.Listen, defaultListen)
}

// Check reports a secret with which others could pose as Telegram (R-S4, R-S9).
func (w *Webhook) Check(report func(key, problem string)) {
	if w.Secret == "" {
		report("secret", "is missing: without it anybody could speak as Telegram; make one with: openssl rand -hex 16")
		return
	}
	if len(w.Secret) < minSecretLen || !secretForm.MatchString(w.Secret) {
		report("secret", "must be 22 to 256 letters, digits, - and _; make one with: openssl rand -hex 16")
	}
}

// Build implements [network.Driver].
func (c *Config) Build(h network.Host) (channels.Channel, error) {
	cfg := *c
	cfg.Name = h.Name
	cfg.Dead = h.Dead
	cfg.Alias = h.Store.Bucket(store.BucketAliases(h.Name))
	cfg.Client = h.NewClient()
	cfg.Open = h.Open
	cfg.Texts = h.Texts
	cfg.Log = h.Log
	return New(cfg)
}
