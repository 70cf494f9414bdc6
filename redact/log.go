package redact

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// NewLog returns a log that writes to w, without the secrets of r, and keeps the
// latest lines in recent: those of that level, and warnings and errors in any case.
func NewLog(w io.Writer, level slog.Leveler, r *Redactor, recent *Recent) *slog.Logger {
	kept := &slog.HandlerOptions{Level: atMostWarn{level}, ReplaceAttr: dropTime}
	return slog.New(slog.NewMultiHandler(
		slog.NewTextHandler(r.Writer(w), &slog.HandlerOptions{Level: level}),
		keeper{slog.NewTextHandler(r.Writer(recent), kept), recent},
	))
}

// atMostWarn is a level, but not above that of warnings.
type atMostWarn struct{ slog.Leveler }

func (l atMostWarn) Level() slog.Level { return min(l.Leveler.Level(), slog.LevelWarn) }

// A keeper notes what is known of a record besides its text, which its handler writes.
type keeper struct {
	slog.Handler
	recent *Recent
}

// Handle implements [slog.Handler].
func (k keeper) Handle(ctx context.Context, record slog.Record) error {
	k.recent.writing.Lock()
	defer k.recent.writing.Unlock()
	k.recent.next = Line{Time: record.Time, Level: record.Level.String(), Part: partOf(record.PC)}
	return k.Handler.Handle(ctx, record)
}

// WithAttrs implements [slog.Handler].
func (k keeper) WithAttrs(attrs []slog.Attr) slog.Handler {
	return keeper{k.Handler.WithAttrs(attrs), k.recent}
}

// WithGroup implements [slog.Handler].
func (k keeper) WithGroup(name string) slog.Handler {
	return keeper{k.Handler.WithGroup(name), k.recent}
}

// partOf returns the package that logged at pc, without the name of the module:
// "channels/telegram".
func partOf(pc uintptr) string {
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	folder, name := path.Split(frame.Function)
	name, _, _ = strings.Cut(name, ".")
	return strings.TrimPrefix(folder+name, "parley/")
}

// dropTime removes the time of a log line, because a Line has it.
func dropTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

const (
	maxRecent = 100     // warnings and errors that are kept
	maxLines  = 2000    // lines of any level
	maxBytes  = 1 << 20 // of these
)

// A Line is one line of the log.
type Line struct {
	N     uint64    `json:"n,omitempty"` // counts the lines since the start
	Time  time.Time `json:"time"`
	Level string    `json:"level"`
	Part  string    `json:"part,omitempty"` // what logged it: "channels/telegram"
	Text  string    `json:"text"`
}

// Recent keeps the latest lines of a log, and the latest warnings and errors for longer.
type Recent struct {
	writing sync.Mutex // held while a record is written
	next    Line       // what is known of that

	mu      sync.Mutex
	lines   []Line // warnings and errors, oldest first
	all     []Line // of any level, oldest first
	size    int    // bytes of the texts of all
	n       uint64
	changed chan struct{} // closed by the next line, if somebody waits for it
}

// Write takes one line of the log.
func (r *Recent) Write(p []byte) (int, error) {
	line := r.next
	line.Text = string(bytes.TrimSpace(p))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	line.N = r.n
	r.all = append(r.all, line)
	r.size += len(line.Text)
	for len(r.all) > maxLines || r.size > maxBytes {
		r.size -= len(r.all[0].Text)
		r.all = r.all[1:]
	}
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
	if line.Level == slog.LevelWarn.String() || line.Level == slog.LevelError.String() {
		r.lines = append(r.lines, line)
		r.lines = r.lines[max(0, len(r.lines)-maxRecent):]
	}
	return len(p), nil
}

// After returns the lines after the one of that number, the oldest first, and what is
// closed when there are more.
func (r *Recent) After(n uint64) (lines []Line, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	if len(r.all) > 0 && n > r.all[len(r.all)-1].N {
		n = 0 // of an earlier process
	}
	for i, l := range slices.Backward(r.all) {
		if l.N <= n {
			return slices.Clone(r.all[i+1:]), r.changed
		}
	}
	return slices.Clone(r.all), r.changed
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
