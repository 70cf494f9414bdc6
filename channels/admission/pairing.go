package admission

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/channels/safetext"
	"parley/chat"
)

// A Pairing is the request of an unknown sender to be let in. It is granted once an
// owner approves its code. Nothing that the sender wrote is kept (R-S10).
type Pairing struct {
	Code    string       `json:"code"`
	Name    string       `json:"name"` // chosen by the sender: for display only
	Sender  string       `json:"sender"`
	Account string       `json:"account,omitempty"`
	At      chat.Address `json:"at"`
	Message string       `json:"message"` // key of the message that asked
	Time    time.Time    `json:"time"`
	Granted bool         `json:"granted,omitempty"`
}

// Expires returns when the code of p is no longer good.
func (p Pairing) Expires() time.Time { return p.Time.Add(codeValidity) }

const (
	codeValidity        = time.Hour // for as long, the sender is sent no other code
	codeLength          = 8         // letters and digits of base 32
	maxOpenRequests     = 100
	maxAnswersPerMinute = 10 // to unknown senders, on all channels together
)

// ErrNoPairing is returned for a code that nobody has, or that has expired.
var ErrNoPairing = errors.New("no open pairing has this code")

// Pairings returns the open requests, oldest first.
func (c *Control) Pairings(ctx context.Context) ([]Pairing, error) {
	all, err := c.recentRequests(ctx)
	return slices.DeleteFunc(all, func(p Pairing) bool { return p.Granted }), err
}

// Paired returns the people whom owners let in by a code.
func (c *Control) Paired(ctx context.Context) (all []Pairing, err error) {
	for e, err := range c.paired.Each(ctx, "") {
		if err != nil {
			return nil, fmt.Errorf("read who is paired: %w", err)
		}
		all = append(all, e.Value)
	}
	return all, nil
}

// Approve lets the sender with that code talk from now on, and tells them. It
// returns ErrNoPairing for an unknown code. Approving twice is harmless.
func (c *Control) Approve(ctx context.Context, code string) (Pairing, error) {
	all, err := c.recentRequests(ctx)
	if err != nil {
		return Pairing{}, err
	}
	i := slices.IndexFunc(all, func(p Pairing) bool { return p.Code == strings.ToUpper(code) })
	if i < 0 {
		return Pairing{}, ErrNoPairing
	}
	p := all[i]
	p.Granted = true
	if err := c.paired.Set(ctx, personKey(p.At.Channel, p.Account, p.Sender), p); err != nil {
		return p, fmt.Errorf("pair: %w", err)
	}
	if err := c.requests.Set(ctx, p.Code, p); err != nil {
		return p, fmt.Errorf("pair: %w", err)
	}
	c.cfg.Log.Info("paired", "channel", p.At.Channel, "account", p.Account, "sender", p.Sender)
	return p, c.cfg.Welcome(ctx, p)
}

// Unpair undoes Approve for all our accounts on channel. It reports whether there
// was anything to undo.
func (c *Control) Unpair(ctx context.Context, channel, sender string) (found bool, err error) {
	for key, err := range c.paired.Keys(ctx, channel+"\x00") {
		if err != nil {
			return found, fmt.Errorf("unpair: %w", err)
		}
		if !strings.HasSuffix(key, "\x00"+sender) {
			continue
		}
		found = true
		if err := c.paired.Delete(ctx, key); err != nil {
			return found, fmt.Errorf("unpair: %w", err)
		}
	}
	if found {
		c.cfg.Log.Info("unpaired", "channel", channel, "sender", sender)
	}
	return found, nil
}

// Request returns the pairing that the sender of m should be told of, and makes it
// if necessary. It reports false if the sender is to get no answer: to each of them
// one code is told per hour, and to all together ten per minute. Who is blocked gets
// none. The same message always gets the same pairing.
func (c *Control) Request(ctx context.Context, m chat.Message) (Pairing, bool, error) {
	c.requesting.Lock()
	defer c.requesting.Unlock()
	if blocked, err := c.isBlockedAt(ctx, m.At, m.From.ID); err != nil || blocked {
		return Pairing{}, false, err
	}
	all, err := c.recentRequests(ctx)
	if err != nil {
		return Pairing{}, false, err
	}
	lastMinute := 0
	for _, p := range all {
		if p.Message == m.Key() {
			return p, true, nil
		}
		if p.At.Channel == m.At.Channel && p.Account == m.Account && p.Sender == m.From.ID {
			return Pairing{}, false, nil
		}
		if time.Since(p.Time) < time.Minute {
			lastMinute++
		}
	}
	if lastMinute >= maxAnswersPerMinute || len(all) >= maxOpenRequests {
		return Pairing{}, false, nil
	}
	p := Pairing{
		Code:    rand.Text()[:codeLength],
		Name:    safetext.PersonName(m.From.Name),
		Sender:  m.From.ID,
		Account: m.Account,
		At:      m.At,
		Message: m.Key(),
		Time:    time.Now(),
	}
	return p, true, c.requests.Set(ctx, p.Code, p)
}

// recentRequests returns the requests of the last hour, oldest first, and deletes
// older ones. The rate limits are taken from them, so that a restart does not lift
// the limits.
func (c *Control) recentRequests(ctx context.Context) (all []Pairing, err error) {
	err = c.requests.Retain(ctx, func(_ string, p Pairing) bool {
		age := time.Since(p.Time)
		valid := age < codeValidity && age > -codeValidity
		if valid {
			all = append(all, p)
		}
		return valid
	})
	if err != nil {
		return nil, fmt.Errorf("read pairings: %w", err)
	}
	slices.SortFunc(all, func(a, b Pairing) int { return a.Time.Compare(b.Time) })
	return all, nil
}

// personKey is the key of a paired sender (R-S8).
func personKey(channel, account, sender string) string {
	return strings.Join([]string{channel, account, sender}, "\x00")
}
