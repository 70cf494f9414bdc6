package channels

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/chat"
)

// A Pairing is a stranger who asked to be let in, and is once an owner
// approves its code. Nothing of what the stranger said is kept (R-S10).
type Pairing struct {
	Code    string       `json:"code"`
	Name    string       `json:"name"` // what they call themselves: for show only
	Sender  string       `json:"sender"`
	Account string       `json:"account,omitempty"`
	At      chat.Address `json:"at"`
	Message string       `json:"message"` // key of the message that asked
	Time    time.Time    `json:"time"`
	Granted bool         `json:"granted,omitempty"`
}

const (
	codeTime   = time.Hour // a code holds this long, and its stranger hears no more meanwhile
	codeLength = 8         // of 32 capitals and digits, none like another
	maxOpen    = 100
	maxMinute  = 10 // replies to strangers in a minute, on all channels
)

// ErrNoPairing is returned for a code that nobody holds, or no longer.
var ErrNoPairing = errors.New("no open pairing has this code")

// Pairings returns the open requests, oldest first.
func (h *Hub) Pairings(ctx context.Context) ([]Pairing, error) {
	all, err := h.requests(ctx)
	return slices.DeleteFunc(all, func(p Pairing) bool { return p.Granted }), err
}

// Approve lets the stranger with that code talk from now on, and tells them.
// It returns ErrNoPairing for a code that nobody holds. It may be repeated.
func (h *Hub) Approve(ctx context.Context, code string) (Pairing, error) {
	all, err := h.requests(ctx)
	if err != nil {
		return Pairing{}, err
	}
	i := slices.IndexFunc(all, func(p Pairing) bool { return p.Code == strings.ToUpper(code) })
	if i < 0 {
		return Pairing{}, ErrNoPairing
	}
	p := all[i]
	p.Granted = true
	err = h.kept.paired.Set(ctx, person(p.At.Channel, p.Account, p.Sender), p)
	if err == nil {
		err = h.kept.pairing.Set(ctx, p.Code, p)
	}
	if err != nil {
		return p, fmt.Errorf("pair: %w", err)
	}
	h.cfg.Log.Info("paired", "channel", p.At.Channel, "account", p.Account, "sender", p.Sender)
	return p, h.Send(ctx, chat.Reply{ID: "paired:" + p.Code, To: p.At, Text: h.cfg.Texts.Pairing.Welcome})
}

// Unpair undoes Approve, for all our accounts on channel. It says whether there
// was anything to undo.
func (h *Hub) Unpair(ctx context.Context, channel, sender string) (found bool, err error) {
	for key, err := range h.kept.paired.Keys(ctx, channel+"\x00") {
		if err == nil && strings.HasSuffix(key, "\x00"+sender) {
			found = true
			err = h.kept.paired.Delete(ctx, key)
		}
		if err != nil {
			return found, fmt.Errorf("unpair: %w", err)
		}
	}
	if found {
		h.cfg.Log.Info("unpaired", "channel", channel, "sender", sender)
	}
	return found, nil
}

// Role says what the sender with that id may do on channel by now, whichever of
// our accounts hears them: what somebody left to be done later is done with the
// rights they have then (R-S24).
func (h *Hub) Role(ctx context.Context, channel, id string) (chat.Role, error) {
	role := h.access.Load().Role(channel, id)
	if role != chat.Unknown || id == "" {
		return role, nil
	}
	for key, err := range h.kept.paired.Keys(ctx, channel+"\x00") {
		if err != nil {
			return chat.Unknown, fmt.Errorf("look up role: %w", err)
		}
		if strings.HasSuffix(key, "\x00"+id) {
			return chat.User, nil
		}
	}
	return chat.Unknown, nil
}

// person is the key of a paired sender (R-S8).
func person(channel, account, sender string) string {
	return strings.Join([]string{channel, account, sender}, "\x00")
}

// stranger counts m, and answers with a pairing code where that is due: in a
// private chat, once an hour for each, ten times a minute for all.
func (l *line) stranger(ctx context.Context, m chat.Message) error {
	l.dropped.Add(1)
	if m.Group || m.From.ID == "" {
		return nil
	}
	req, err := l.hub.ask(ctx, m)
	if err != nil {
		return fmt.Errorf("pairing: %w", err)
	}
	if req.Code == "" {
		return nil
	}
	l.log.Info("a stranger was told how to pair", "sender", req.Sender, "name", req.Name)
	r := m.Reply()
	r.Text = l.hub.cfg.Texts.Pairing.Refused.With(req.Code, req.Code)
	return l.hub.Send(ctx, r)
}

// ask returns the request that the sender of m is to be told, or none. The same
// message has the same request.
func (h *Hub) ask(ctx context.Context, m chat.Message) (Pairing, error) {
	h.asking.Lock()
	defer h.asking.Unlock()
	all, err := h.requests(ctx)
	if err != nil {
		return Pairing{}, err
	}
	recent := 0
	for _, p := range all {
		if p.Message == m.Key() {
			return p, nil
		}
		if p.At.Channel == m.At.Channel && p.Account == m.Account && p.Sender == m.From.ID {
			return Pairing{}, nil
		}
		if time.Since(p.Time) < time.Minute {
			recent++
		}
	}
	if recent >= maxMinute || len(all) >= maxOpen {
		return Pairing{}, nil
	}
	p := Pairing{Code: rand.Text()[:codeLength], Name: oneLine(m.From.Name), Sender: m.From.ID, Account: m.Account,
		At: m.At, Message: m.Key(), Time: time.Now()}
	return p, h.kept.pairing.Set(ctx, p.Code, p)
}

// requests returns the requests of the last hour, oldest first, and removes
// older ones. They are also the account of what strangers were told, so that a
// restart does not begin it anew.
func (h *Hub) requests(ctx context.Context) (all []Pairing, err error) {
	err = h.kept.pairing.Retain(ctx, func(_ string, p Pairing) bool {
		age := time.Since(p.Time)
		holds := age < codeTime && age > -codeTime
		if holds {
			all = append(all, p)
		}
		return holds
	})
	if err != nil {
		return nil, fmt.Errorf("read pairings: %w", err)
	}
	slices.SortFunc(all, func(a, b Pairing) int { return a.Time.Compare(b.Time) })
	return all, nil
}
