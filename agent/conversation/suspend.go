package conversation

import (
	"maps"
	"slices"

	"parley/chat"
	"parley/llm"
)

// A suspended turn waits: what was heard, said and done in it is not part of the
// conversation until it is resumed, and is not done again then.
type suspended struct {
	key     string // of the message it was suspended for
	entries []Entry
	open    *OpenTurn // nil if nothing had been heard of it
}

// suspend takes the open turn out of the conversation. Unless the whole turn is
// suspended, what joined it goes on, with the results of tools and without the
// text of the message: the process may have died over that, and no call that has
// ended is made again (P8).
func (h *History) suspend(a Suspension) {
	if h.suspendedWith(a.Key) != nil {
		return
	}
	o := h.open
	if o == nil || !o.keys[a.Key] {
		h.suspended = append(h.suspended, suspended{key: a.Key})
		return
	}
	from := h.view.turnStart()
	es := slices.Clone(h.view.entries[from:])
	h.view.entries = h.view.entries[:from:from]
	h.open = nil
	if a.Whole || len(o.keys) == 1 {
		h.suspended = append(h.suspended, suspended{a.Key, es, o})
		return
	}
	rest := *o
	rest.keys = maps.Clone(o.keys)
	rest.done = maps.Clone(o.done)
	rest.heard = nil
	rest.said = slices.Clone(o.said)
	rest.steps = slices.Clone(o.steps)
	rest.files = slices.Clone(o.files)
	delete(rest.keys, a.Key)
	for _, m := range o.heard {
		if m.Key() != a.Key {
			rest.heard = append(rest.heard, m)
		}
	}
	rest.first = rest.heard[0]
	rest.calls = slices.DeleteFunc(slices.Clone(o.calls), func(c llm.ToolCall) bool {
		_, ended := o.done[c.ID]
		return !ended
	})
	rest.started = map[string]bool{}
	h.open = &rest
	first := true
	for _, e := range es {
		switch {
		case e.of == a.Key: // what follows was done for it
			e = Entry{Message: llm.Message{Role: llm.User, Text: msgSuspended}, seq: e.seq, first: true}
		case e.of != "" && first:
			e.first, first = true, false
		}
		h.view.entries = append(h.view.entries, e)
	}
	alone := *o
	alone.keys = map[string]bool{a.Key: true}
	alone.heard = slices.DeleteFunc(slices.Clone(o.heard), func(m chat.Message) bool { return m.Key() != a.Key })
	es = slices.DeleteFunc(es, func(e Entry) bool { return e.of != "" && e.of != a.Key })
	h.suspended = append(h.suspended, suspended{a.Key, es, &alone})
}

// resume continues the turn that was suspended for the message key.
func (h *History) resume(seq uint64, key string) {
	s := h.suspendedWith(key)
	if s == nil {
		return
	}
	was := *s
	h.suspended = slices.DeleteFunc(h.suspended, func(s suspended) bool { return s.key == was.key })
	if was.open == nil {
		return
	}
	moved := map[uint64]bool{}
	for _, e := range was.entries {
		moved[e.seq] = true
	}
	h.view.entries = slices.DeleteFunc(h.view.entries, func(e Entry) bool { return moved[e.seq] && e.of == "" })
	for i, e := range was.entries {
		e.seq, e.first = seq, i == 0
		h.add(seq, e, e.Message)
	}
	h.open = was.open
}

// HasSuspended reports whether a turn is suspended.
func (h *History) HasSuspended() bool { return len(h.suspended) > 0 }

// IsSuspended reports whether the turn of the message key is suspended.
func (h *History) IsSuspended(key string) bool { return h.suspendedWith(key) != nil }

// suspendedWith returns the suspended turn of the message key, or nil.
func (h *History) suspendedWith(key string) *suspended {
	for i := range h.suspended {
		if s := &h.suspended[i]; s.key == key || s.open != nil && s.open.keys[key] {
			return s
		}
	}
	return nil
}
