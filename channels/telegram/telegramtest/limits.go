package telegramtest

import (
	"fmt"
	"math"
	"net/http"
	"time"
)

// limits remembers when messages were sent to each chat, and to all under 0.
type limits struct {
	sent map[int64][]time.Time
}

// limit refuses a message to chat if Telegram would: more than 30 in a second
// to all, 20 in a minute to a group, or 8 in 5 seconds to a person. Chat 0 stands
// for a request that shows nothing and counts for all only. s.mu is held.
func (s *Server) limit(chat int64) *apiError {
	if !s.cfg.Limits {
		return nil
	}
	n, window := 8, 5*time.Second
	switch {
	case chat == 0:
		n, window = 30, time.Second
	case chat < 0:
		n, window = 20, time.Minute
	}
	wait := max(s.limits.wait(0, 30, time.Second), s.limits.wait(chat, n, window))
	if wait > 0 {
		secs := int(math.Ceil(wait.Seconds()))
		return &apiError{
			Code: http.StatusTooManyRequests, Text: fmt.Sprintf("Too Many Requests: retry after %d", secs),
			Params: map[string]any{"retry_after": secs},
		}
	}
	now := time.Now()
	s.limits.sent[0] = append(s.limits.sent[0], now)
	if chat != 0 {
		s.limits.sent[chat] = append(s.limits.sent[chat], now)
	}
	return nil
}

// wait returns how long until one more keeps to n per window.
func (l limits) wait(key int64, n int, window time.Duration) time.Duration {
	sent := l.sent[key]
	for len(sent) > 0 && time.Since(sent[0]) >= window {
		sent = sent[1:]
	}
	l.sent[key] = sent
	if len(sent) < n {
		return 0
	}
	return window - time.Since(sent[len(sent)-n])
}
