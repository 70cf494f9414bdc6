package channels

import (
	"slices"
	"strings"
	"time"

	"parley/channels/admission"
)

// An Announcer is a Channel that can show a line to a person who looks at it now, as at a terminal.
type Announcer interface {
	// Announce shows text to those who look, or, until then, to the first who does. Nothing is lost if nobody does.
	// It must not block.
	Announce(text string, until time.Time)
}

// A HintShower is a Channel that shows by itself how to answer suggestions: Send is given that as r.Hint, and not in
// r.Text, and the question as r.Ask, though Text lists its choices.
type HintShower interface{ ShowsHints() }

// announceRequest tells the owners at terminals of the request p.
func (h *Hub) announceRequest(p admission.Pairing) {
	line := h.knocks.Line(h.cfg.Texts, p, time.Now())
	if line == "" {
		return
	}
	owners := h.access.Rules().Owners()
	for name, s := range h.channels {
		a, ok := s.channel.(Announcer)
		isOwner := func(o string) bool { return o == name || strings.HasPrefix(o, name+":") }
		if ok && slices.ContainsFunc(owners, isOwner) {
			a.Announce(line, p.Expires())
		}
	}
}
