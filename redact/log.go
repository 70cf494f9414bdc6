package redact

import (
	"bytes"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// NewLog returns a log that writes to w, without the secrets of r, and keeps the
// latest warnings and errors in recent.
func NewLog(w io.Writer, level slog.Leveler, r *Redactor, recent *Recent) *slog.Logger {
	warnings := &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: dropTime}
	return slog.New(slog.NewMultiHandler(
		slog.NewTextHandler(r.Writer(w), &slog.HandlerOptions{Level: level}),
		slog.NewTextHandler(r.Writer(recent), warnings),
	))
}

// dropTime removes the time of a log line, because a Line has it.
func dropTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// maxRecent is how many lines are kept.
const maxRecent = 100

// A Line is one line of the log.
type Line struct {
	Time  time.Time `json:"time"`
	Level string    `json:"level"`
	Text  string    `json:"text"`
}

// Recent keeps the latest warnings and errors of a log.
type Recent struct {
	mu    sync.Mutex
	lines []Line // oldest first
}

// Write takes one line of the log.
func (r *Recent) Write(p []byte) (int, error) {
	line := Line{Time: time.Now(), Level: slog.LevelWarn.String(), Text: string(bytes.TrimSpace(p))}
	if bytes.HasPrefix(p, []byte("level=ERROR")) {
		line.Level = slog.LevelError.String()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
	r.lines = r.lines[max(0, len(r.lines)-maxRecent):]
	return len(p), nil
}

// Count counts the errors and warnings since start. More says that there were more than
// are kept.
func (r *Recent) Count(start time.Time) (errors, warnings int, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lines {
		switch {
		case l.Time.Before(start):
		case l.Level == slog.LevelError.String():
			errors++
		default:
			warnings++
		}
	}
	return errors, warnings, len(r.lines) == maxRecent && r.lines[0].Time.After(start)
}

// Lines returns the lines, newest first.
func (r *Recent) Lines() []Line {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := slices.Clone(r.lines)
	slices.Reverse(lines)
	return lines
}
