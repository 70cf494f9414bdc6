package telegram

import (
	"cmp"
	"net/http"
	"net/url"

	"parley/channels"
	"parley/channels/network"
	"parley/store"
)

// CheckID implements [network.Driver].
func (c *Config) CheckID(id string) error { return network.CheckNumericID(id) }

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

// Build implements [network.Driver].
func (c *Config) Build(h network.Host) (channels.Channel, error) {
	cfg := *c
	cfg.Name = h.Name
	cfg.Dead = h.Dead
	cfg.Alias = h.Store.Bucket(store.BucketAliases(h.Name))
	cfg.Open = h.Open
	cfg.Texts = h.Texts
	cfg.Log = h.Log
	return New(cfg)
}

// Webhook implements [network.WebhookReceiver]. The handler answers 200 only when the
// update cannot be lost (P1), and reads nothing from anyone who does not know the
// secret (R-S9).
func (c *Channel) Webhook() (listen, path string, handler http.Handler) {
	handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if code := c.receive(w, r); code != http.StatusOK {
			http.Error(w, http.StatusText(code), code)
		}
	})
	w := c.cfg.Webhook
	if w == nil {
		return "", "/", handler
	}
	path = "/"
	if u, err := url.Parse(w.URL); err == nil && u.Path != "" {
		path = u.Path
	}
	return cmp.Or(w.Listen, "127.0.0.1:8081"), path, handler
}
