package telegramtest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// A webhook is where updates are sent to.
type webhook struct {
	url, secret string
	stop        context.CancelFunc
}

func (s *Server) setWebhook(p params) (any, *apiError) {
	if strings.Trim(p["secret_token"], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		return nil, bad("secret token contains unallowed characters")
	}
	if s.hook.stop != nil {
		s.hook.stop()
	}
	s.hook = webhook{url: p["url"], secret: p["secret_token"]}
	if kinds := p["allowed_updates"]; kinds != "" {
		s.allowed = nil
		_ = json.Unmarshal([]byte(kinds), &s.allowed)
	}
	if s.hook.url != "" {
		ctx, stop := context.WithCancel(s.closed)
		s.hook.stop = stop
		hook := s.hook
		s.deliverers.Go(func() { s.deliverUpdates(ctx, hook) })
	}
	s.notify()
	return true, nil
}

func (s *Server) deleteWebhook(params) (any, *apiError) {
	return s.setWebhook(params{})
}

// deliverUpdates sends updates to hook one after the other, each until it is accepted.
func (s *Server) deliverUpdates(ctx context.Context, hook webhook) {
	for ctx.Err() == nil {
		s.mu.Lock()
		changed := s.changed
		var next []Update
		if len(s.pending) > 0 {
			next = s.pending[:1]
		}
		s.mu.Unlock()
		wait := time.NewTimer(time.Hour)
		switch {
		case len(next) == 0:
		case s.bring(ctx, hook, next[0].Raw):
			s.mu.Lock()
			s.confirm(next[0].ID + 1)
			s.mu.Unlock()
			wait.Stop()
			continue
		default:
			wait.Reset(10 * time.Millisecond)
		}
		select {
		case <-changed:
		case <-wait.C:
		case <-ctx.Done():
		}
		wait.Stop()
	}
}

func (s *Server) bring(ctx context.Context, hook webhook, raw []byte) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.url, bytes.NewReader(raw))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	if hook.secret != "" {
		req.Header.Set("X-Telegram-Bot-Api-Secret-Token", hook.secret)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode/100 == 2
}
