package main

import (
	"bytes"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"parley/redact"
	"parley/web"
)

// newLog returns a log that writes to w, without secrets, and remembers in last
// what went wrong.
func newLog(w io.Writer, level slog.Leveler, r *redact.Redactor, last *recent) *slog.Logger {
	return slog.New(slog.NewMultiHandler(
		slog.NewTextHandler(r.Writer(w), &slog.HandlerOptions{Level: level}),
		slog.NewTextHandler(r.Writer(last), recentOptions()),
	))
}

// mostRecent is how many lines of the log the owner's page shows.
const mostRecent = 100

// recent keeps the latest warnings and errors, as a log without secrets wrote them.
type recent struct {
	mu    sync.Mutex
	lines []web.LogLine // oldest first
}

// Write takes one line of the log.
func (r *recent) Write(p []byte) (int, error) {
	line := web.LogLine{Time: time.Now(), Level: slog.LevelWarn.String(), Text: string(bytes.TrimSpace(p))}
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
func (r *recent) Lines() []web.LogLine {
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
