package console

import (
	"slices"
	"time"

	"parley/chat"
)

const (
	maxNotes     = 8   // that wait for a terminal
	maxNoteRunes = 240 // of a line that is no answer
	fromAnother  = "(from another terminal) "
)

// A note is a line for whoever looks at a terminal before until.
type note struct {
	text  string
	until time.Time
}

// Announce implements [channels.Announcer].
func (c *Channel) Announce(text string, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.sendNote(nil, text) {
		c.notes = append(c.notes, note{text, until})
		c.notes = c.notes[max(0, len(c.notes)-maxNotes):]
	}
}

// showNotes sends k, a terminal, the notes that nobody has seen.
func (c *Channel) showNotes(k *client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.notes {
		if time.Now().Before(n.until) {
			k.conn.send(frame{Kind: frameNote, Text: n.text})
		}
	}
	c.notes = nil
}

// showToOthers shows the terminals besides that of k what was said at k, which they will see answered.
func (c *Channel) showToOthers(k *client, f frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.said, f.ID) { // a message comes again on a new connection
		c.said = remember(c.said, f.ID)
		c.sendNote(k, fromAnother+chat.Shorten(f.Text, maxNoteRunes))
	}
}

// sendNote sends text to all terminals but k, and reports whether there is one. The caller holds mu.
func (c *Channel) sendNote(k *client, text string) (sent bool) {
	for _, o := range c.clients {
		if o != k && !o.pipe {
			o.conn.send(frame{Kind: frameNote, Text: text})
			sent = true
		}
	}
	return sent
}

// showNote prints a line that is no answer.
func (s *screen) showNote(text string) {
	s.print(s.dim(chat.Shorten(chat.OneLine(text), maxNoteRunes)) + "\n")
}

// dim returns line with the attribute of what matters less.
func (s *screen) dim(line string) string {
	if !s.colour {
		return line
	}
	return "\x1b[2m" + line + "\x1b[0m"
}

// ShowsHints implements [channels.HintShower]: a terminal shows a hint once, and a pipe none.
func (c *Channel) ShowsHints() {}
