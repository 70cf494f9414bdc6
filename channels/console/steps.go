package console

import (
	"cmp"
	"slices"
	"time"

	"parley/chat"
)

const maxStepRunes = 100 // in the line of a step

// Step implements [channels.Stepper]. It sends the terminals one line when a tool
// starts and one when it ends.
func (c *Channel) Step(r chat.Reply, s chat.Step) {
	line := stepLine(s)
	id := r.ID + "/" + s.Call + "/" + string(s.State)
	c.mu.Lock()
	isNew := line != "" && !slices.Contains(c.steps, id)
	if isNew {
		c.steps = remember(c.steps, id)
	}
	c.mu.Unlock()
	if isNew {
		c.broadcast(r.To, frame{Kind: frameStep, ID: r.ID, Text: line})
	}
}

// stepLine describes a step that runs or has ended in one line. It returns ""
// for a step that still waits, and for one that only says what is shown anyway.
func stepLine(s chat.Step) string {
	if s.Tool == "message" && s.State != chat.Failed && s.State != chat.Refused {
		return ""
	}
	line := cmp.Or(s.Name, s.Tool)
	took := ""
	if !s.Ended.IsZero() {
		took = ", " + chat.Span(time.Duration(s.Took)*time.Millisecond)
	}
	switch s.State {
	case chat.Running:
		line = "🔧 " + line + " " + s.Tip
	case chat.Done:
		line = "✅ " + line + took
	case chat.Refused:
		line = "🚫 " + line + ": " + s.Error
	case chat.Failed, chat.Interrupted:
		if line = "❌ " + line + took; s.Error != "" {
			line += ": " + s.Error
		}
	default:
		return ""
	}
	return "  " + chat.Shorten(chat.OneLine(line), maxStepRunes-2)
}
