package telegram

import (
	"cmp"
	"net/http"
	"net/url"

	"parley/channels"
)

// CheckID implements [channels.Driver].
func (c *Config) CheckID(id string) error { return channels.CheckNumericID(id) }

// Check reports the values that the tags let pass and that make no sense.
func (c *Config) Check(report func(key, problem string)) {
	if !tokenForm.MatchString(c.Token) {
		report("token", "is no bot token; @BotFather gives one such as 123456:ABC-def")
	}
	if c.Rate <= 0 && c.Rate != -1 {
		report("rate", "must be messages per second above 0, or -1 for no limit")
	}
}

// Check reports a secret that lets strangers speak as Telegram (R-S4, R-S9).
func (w *Webhook) Check(report func(key, problem string)) {
	if w.Secret == "" {
		report("secret", "is missing: without it anybody could speak as Telegram; make one with: openssl rand -hex 16")
	} else if len(w.Secret) < 22 || !secretForm.MatchString(w.Secret) {
		report("secret", "must be 22 to 256 letters, digits, - and _; make one with: openssl rand -hex 16")
	}
}

// Build implements [channels.Driver].
func (c *Config) Build(h channels.Host) (channels.Channel, error) {
	cfg := *c
	cfg.Name = h.Name
	cfg.Dead = h.Dead
	cfg.Alias = h.Store.Bucket("alias/" + h.Name)
	cfg.Open = h.Open
	cfg.Texts = h.Texts
	cfg.Log = h.Log
	return New(cfg)
}

// Webhook implements [channels.WebhookReceiver].
func (c *Channel) Webhook() (listen, path string, handler http.Handler) {
	w := c.cfg.Webhook
	if w == nil {
		return "", "", nil
	}
	path = "/"
	if u, err := url.Parse(w.URL); err == nil && u.Path != "" {
		path = u.Path
	}
	return cmp.Or(w.Listen, "127.0.0.1:8081"), path, c.Handler()
}
