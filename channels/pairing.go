package channels

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"parley/chat"
	"parley/store"
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
}

const (
	codeTime    = time.Hour // a code holds this long, and its stranger hears no more meanwhile
	codeLength  = 8
	codeLetters = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ" // 32, none like another
	maxOpen     = 100
	maxMinute   = 10 // replies to strangers in a minute, on all channels
	maxName     = 64 // runes
)

// ErrNoPairing is returned for a code that nobody holds, or no longer.
var ErrNoPairing = errors.New("no open pairing has this code")

// Pairing is the open requests. They are also the account of what strangers
// were told, so that a restart does not begin it anew.
type pairing struct {
	bucket store.Bucket // code -> Pairing

	mu   sync.Mutex
	open map[string]Pairing // nil until read
}

// Pairings returns the open requests, oldest first.
func (h *Hub) Pairings(ctx context.Context) ([]Pairing, error) {
	p := &h.pairing
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.refresh(ctx); err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(p.open), func(a, b Pairing) int {
		return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.Code, b.Code))
	}), nil
}

// Approve lets the stranger with that code talk from now on, and tells them.
// It returns ErrNoPairing for a code that is not open. It may be repeated.
func (h *Hub) Approve(ctx context.Context, code string) (Pairing, error) {
	req, err := h.grant(ctx, code)
	if err != nil {
		return req, err
	}
	return req, h.pairing.close(ctx, req.Code)
}

// grant approves code and leaves it open, for whoever has still to be told.
func (h *Hub) grant(ctx context.Context, code string) (Pairing, error) {
	open, err := h.Pairings(ctx)
	if err != nil {
		return Pairing{}, err
	}
	i := slices.IndexFunc(open, func(p Pairing) bool { return p.Code == strings.ToUpper(code) })
	if i < 0 {
		return Pairing{}, ErrNoPairing
	}
	req := open[i]
	val, err := json.Marshal(req)
	if err != nil {
		return req, fmt.Errorf("pair: %w", err)
	}
	key := person(req.At.Channel, req.Account, req.Sender)
	if _, err := h.store.Bucket("paired").Put(ctx, key, val, store.Any); err != nil {
		return req, fmt.Errorf("pair: %w", err)
	}
	h.log.Info("paired", "channel", req.At.Channel, "account", req.Account, "sender", req.Sender)
	return req, h.Send(ctx, chat.Reply{ID: "paired:" + req.Code, To: req.At, Text: "You can talk to me now."})
}

// Unpair undoes Approve, for all our accounts on channel.
func (h *Hub) Unpair(ctx context.Context, channel, sender string) error {
	b := h.store.Bucket("paired")
	for key, err := range b.Keys(ctx, channel+"\x00") {
		if err == nil && strings.HasSuffix(key, "\x00"+sender) {
			err = b.Delete(ctx, key)
		}
		if err != nil {
			return fmt.Errorf("unpair: %w", err)
		}
	}
	h.log.Info("unpaired", "channel", channel, "sender", sender)
	return nil
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
	req, err := l.hub.pairing.ask(ctx, m)
	if err != nil {
		return fmt.Errorf("pairing: %w", err)
	}
	if req.Code == "" {
		return nil
	}
	l.log.Info("a stranger was told how to pair", "sender", req.Sender, "name", req.Name)
	r := m.Reply()
	r.Text = fmt.Sprintf("I only talk to people my owner has let in. If you should be one of them, "+
		"ask the owner to send me `/pair %s` or to run `parley pair %s`. The code is good for an hour.", req.Code, req.Code)
	return l.hub.Send(ctx, r)
}

// ask returns the request that the sender of m is to be told, or none. The same
// message has the same request.
func (p *pairing) ask(ctx context.Context, m chat.Message) (Pairing, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.refresh(ctx); err != nil {
		return Pairing{}, err
	}
	recent := 0
	for _, req := range p.open {
		if req.Message == m.Key() {
			return req, nil
		}
		if req.At.Channel == m.At.Channel && req.Account == m.Account && req.Sender == m.From.ID {
			return Pairing{}, nil
		}
		if time.Since(req.Time) < time.Minute {
			recent++
		}
	}
	if recent >= maxMinute || len(p.open) >= maxOpen {
		return Pairing{}, nil
	}
	req := Pairing{Code: newCode(), Name: oneLine(m.From.Name), Sender: m.From.ID, Account: m.Account,
		At: m.At, Message: m.Key(), Time: time.Now()}
	val, err := json.Marshal(req)
	if err != nil {
		return Pairing{}, err
	}
	if _, err := p.bucket.Put(ctx, req.Code, val, store.Any); err != nil {
		return Pairing{}, err
	}
	p.open[req.Code] = req
	return req, nil
}

// refresh reads the requests the first time, and removes those that are too old.
func (p *pairing) refresh(ctx context.Context) error {
	if p.open == nil {
		open := map[string]Pairing{}
		for code, err := range p.bucket.Keys(ctx, "") {
			if err != nil {
				return fmt.Errorf("read pairings: %w", err)
			}
			var req Pairing
			if val, _, err := p.bucket.Get(ctx, code); err != nil || json.Unmarshal(val, &req) != nil {
				req = Pairing{} // unreadable: as good as too old
			}
			open[code] = req
		}
		p.open = open
	}
	for code, req := range p.open {
		if age := time.Since(req.Time); age < codeTime && age > -codeTime {
			continue
		}
		if err := p.bucket.Delete(ctx, code); err != nil {
			return fmt.Errorf("forget pairing: %w", err)
		}
		delete(p.open, code)
	}
	return nil
}

func (p *pairing) close(ctx context.Context, code string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.bucket.Delete(ctx, code); err != nil {
		return fmt.Errorf("forget pairing: %w", err)
	}
	delete(p.open, code)
	return nil
}

func newCode() string {
	b := make([]byte, codeLength)
	rand.Read(b) // never fails
	for i := range b {
		b[i] = codeLetters[b[i]%byte(len(codeLetters))]
	}
	return string(b)
}

// oneLine makes a name that a stranger chose safe to show (R-S11).
func oneLine(name string) string {
	rs := []rune(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" .'-", r) {
			return r
		}
		return -1
	}, name))
	return string(rs[:min(len(rs), maxName)])
}
