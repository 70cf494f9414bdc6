package mcp

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"time"

	"parley/chat"
)

// What is kept and logged of what a server writes to its standard error.
const (
	tailLines      = 20
	lastLines      = 3   // that an error has
	tailLineLength = 400 // characters
	logPerMinute   = 60  // lines
)

// A tail keeps the last lines that a program wrote, and logs them, but not more than so many in a
// minute.
type tail struct {
	log *slog.Logger

	mu      sync.Mutex
	kept    []string
	partial []byte
	window  time.Time
	logged  int
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range bytes.Lines(p) {
		whole := bytes.HasSuffix(line, []byte("\n"))
		room := max(4*tailLineLength-len(t.partial), 0)
		t.partial = append(t.partial, line[:min(len(line), room)]...)
		if whole {
			t.add()
		}
	}
	return len(p), nil
}

// add makes a line of what is partial.
func (t *tail) add() {
	text := strings.TrimSpace(strings.ToValidUTF8(string(t.partial), "\ufffd"))
	t.partial = t.partial[:0]
	if text == "" {
		return
	}
	text = chat.Clip(text, tailLineLength, "…")
	t.kept = append(t.kept[max(len(t.kept)-tailLines+1, 0):], text)
	if time.Since(t.window) > time.Minute {
		t.window = time.Now()
		t.logged = 0
	}
	t.logged++
	switch {
	case t.logged < logPerMinute:
		t.log.Debug("MCP server wrote", "line", text)
	case t.logged == logPerMinute:
		t.log.Debug("MCP server writes too much: the rest of this minute is left out", "line", text)
	}
}

// lines returns the last lines.
func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.kept...)
}

// last returns the last few lines as one, "" if there are none.
func (t *tail) last() string {
	all := t.lines()
	return strings.Join(all[max(len(all)-lastLines, 0):], " | ")
}

// reset forgets all lines.
func (t *tail) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = nil
	t.partial = nil
}
