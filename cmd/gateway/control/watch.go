package control

import (
	"context"
	"errors"

	"parley/agent"
	"parley/channels"
	"parley/texts"
	"parley/web"
	"parley/web/observe"
)

// apiChannel is the channel of programs that use the API.
const apiChannel = "api"

// Watch tells how the channels and queues do.
type Watch struct {
	Hub    *channels.Hub
	Pool   *agent.Pool
	Redact func(string) string
}

// Queues are what waits, for the metrics; of what cannot be counted there is none.
func (w Watch) Queues(ctx context.Context) (all []observe.Queue) {
	s, err := w.Pool.Status(ctx)
	if err != nil {
		return nil
	}
	all = append(all, observe.Queue{Name: "inbox", Depth: s.Waiting, Oldest: s.Oldest})
	states, err := w.Hub.Status(ctx)
	if err != nil {
		return all
	}
	for _, s := range states {
		all = append(all, observe.Queue{Name: "outbox/" + s.Channel, Depth: s.Pending, Oldest: s.Oldest})
	}
	dead, err := w.Hub.DeadLetters().List(ctx)
	if err != nil {
		return all
	}
	return append(all, observe.Queue{Name: "parked", Depth: len(dead)})
}

// Channels tells how the channels do.
func (w Watch) Channels(ctx context.Context) (all []web.Channel, err error) {
	states, err := w.Hub.Status(ctx)
	for _, s := range states {
		c := web.Channel{Name: s.Channel, Pending: s.Pending, Oldest: s.Oldest, Dropped: s.Dropped}
		if s.Err != nil {
			c.Trouble = w.Redact(s.Err.Error())
		}
		all = append(all, c)
	}
	return all, err
}

// Report tells an owner in a chat how the channels do, and what could not be sent. onlyConsole: the others wait for a
// gateway.
func (w Watch) Report(ctx context.Context, say texts.Report, onlyConsole bool) (states, dead []string, err error) {
	all, err := w.Hub.Status(ctx)
	letters, err2 := w.Hub.DeadLetters().List(ctx)
	for _, s := range all {
		state := say.Works
		switch {
		case onlyConsole && s.Channel != "console":
			state = say.WaitsForGateway
		case s.Err != nil:
			state = say.NotReceiving
		}
		if s.Channel == apiChannel && state == say.Works && s.Pending == 0 {
			continue // it is always there, and most people never set it up
		}
		dropped := ""
		if s.Dropped > 0 {
			dropped = say.Dropped.With(s.Dropped)
		}
		states = append(states, say.Channel.With(s.Channel, state, s.Pending, dropped))
	}
	if n := len(letters); n > 0 {
		last := letters[n-1]
		dead = []string{say.DeadLetters.With(n, last.Session(), last.Reason)}
	}
	return states, dead, errors.Join(err, err2)
}

// DamageWarning tells of the damaged places in the store, if there are any.
func DamageWarning(say texts.Report, places []string) []string {
	if len(places) == 0 {
		return nil
	}
	return []string{say.Damaged.With(len(places), places[0])}
}
