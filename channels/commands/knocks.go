package commands

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"parley/channels/admission"
	"parley/chat"
	"parley/texts"
)

const (
	maxKnocks       = 3 // requests that are told in a knockInterval, however many come
	knockInterval   = 10 * time.Minute
	maxKnockRunes   = 32 // of a name
	maxKnockIDRunes = 40 // of an ID
)

// Knocks puts into words, for an owner at a terminal, who asks to be let in. However many ask, the lines are few. The
// zero Knocks is ready. It may be used concurrently.
type Knocks struct {
	mu   sync.Mutex
	last string      // the code that was told last
	told []time.Time // within the last knockInterval
}

// Line returns what to show of p at now, "" for nothing. No part of it that p's sender chose can look like the rest.
func (k *Knocks) Line(say *texts.Channels, p admission.Pairing, now time.Time) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.told = slices.DeleteFunc(k.told, func(t time.Time) bool { return now.Sub(t) >= knockInterval || t.After(now) })
	if k.last == p.Code || len(k.told) > maxKnocks {
		return ""
	}
	k.last = p.Code
	k.told = append(k.told, now)
	if len(k.told) > maxKnocks {
		return say.Pairing.Knocks
	}
	name := cmp.Or(chat.Shorten(chat.OneLine(p.Name), maxKnockRunes), say.Commands.NoName)
	return say.Pairing.Knock.With(name, p.At.Channel, chat.Shorten(chat.OneLine(p.Sender), maxKnockIDRunes), p.Code)
}
