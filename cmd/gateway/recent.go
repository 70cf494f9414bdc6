package main

import (
	"bytes"
	"log/slog"
	"slices"
	"sync"
	"time"

	"parley/web"
)

// mostRecent is how many lines of the log the owner's page shows.
const mostRecent = 100

// recent keeps the latest warnings and errors, as a log without secrets wrote them.
type recent struct {
	mu    sync.Mutex
	lines []web.Line // oldest first
}

// Write takes one line of the log.
func (r *recent) Write(p []byte) (int, error) {
	line := web.Line{Time: time.Now(), Level: slog.LevelWarn.String(), Text: string(bytes.TrimSpace(p))}
	if bytes.HasPrefix(p, []byte("level=ERROR")) {
		line.Level = slog.LevelError.String()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
	r.lines = r.lines[max(0, len(r.lines)-mostRecent):]
	return len(p), nil
}

// Lines returns them, newest first.
func (r *recent) Lines() []web.Line {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := slices.Clone(r.lines)
	slices.Reverse(lines)
	return lines
}

// options of a log whose lines recent takes.
func recentOptions() *slog.HandlerOptions {
	return &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
}
