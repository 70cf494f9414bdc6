package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/chat"
	"parley/llm"
)

// digested is how far Digest came in a session. A part is settled before the
// Archive gets it: so it is the same part after a crash.
type digested struct {
	Epoch int64  `json:"epoch,omitempty"`
	Done  uint64 `json:"done,omitempty"`  // the last record of what the Archive has
	Seq   uint64 `json:"seq,omitempty"`   // that of the part that comes next, or Done: no turn archives it
	Tries int    `json:"tries,omitempty"` // of the model to sum it up
}

const (
	nights = 3   // that a part is tried, before it is archived as it is
	aNight = 200 // parts at most

	aCommand = 2 * time.Second // is over by then
)

// digested returns the last record of the conversation that Digest sees to.
func (s *session) digested() uint64 {
	if s.Digested.Epoch != s.Epoch {
		return 0
	}
	return s.Digested.Seq
}

// errBusy ends the digest of a session: somebody speaks there.
var errBusy = errors.New("somebody speaks")

// Digest archives what is new in sessions in which nobody has spoken for a
// while, and says in how many parts. The conversations stay as they are. Those
// of jobs and helpers are left out: what came of them was told in a chat.
func (p *Pool) Digest(ctx context.Context, silent time.Duration) (n int, err error) {
	for id, bad := range p.states.Keys(ctx, "") {
		if bad = cmp.Or(bad, ctx.Err()); bad != nil {
			return n, errors.Join(err, bad)
		}
		if p.Archive == nil || n >= aNight || strings.HasPrefix(id, helperPrefix) || strings.HasPrefix(id, runPrefix) {
			continue
		}
		d := digest{Pool: p, id: chat.SessionID(id)}
		if bad := d.session(ctx, silent); bad != nil {
			err = errors.Join(err, fmt.Errorf("digest session %s: %w", id, bad))
		}
		n += d.n
	}
	return n, err
}

// A digest is that of one session.
type digest struct {
	*Pool
	id chat.SessionID
	digested
	n int // parts archived
}

// session archives what is new, unless a turn is under way; one that comes ends it.
func (d *digest) session(outer context.Context, silent time.Duration) error {
	ctx, stop := context.WithCancelCause(outer)
	defer stop(nil)
	now, over := context.WithTimeout(ctx, aCommand) // that of a person who wants it done
	defer over()
	if d.enter(now, d.id, &running{since: time.Now(), doing: "archiving", stop: stop}, nil) != nil {
		return nil
	}
	defer d.leave(d.id)
	st, _, err := d.lookup(ctx, d.id)
	d.digested = st.Digested
	for _, epoch := range st.epochs() {
		if err != nil || epoch < d.Epoch {
			continue
		}
		if epoch > d.Epoch {
			d.digested = digested{Epoch: epoch}
		}
		var es []entry
		if es, err = d.news(ctx); len(es) == 0 {
			continue
		}
		if time.Since(d.partOf(d.id, epoch, es).Time) < silent {
			break
		}
		err = d.file(ctx, es)
	}
	if ctx.Err() != nil {
		return outer.Err()
	}
	return err
}

// news returns what the Archive has not of the epoch, but for the turn under
// way, and appends what a crash kept from there.
func (d *digest) news(ctx context.Context) ([]entry, error) {
	h := &history{zone: d.Zone}
	for r, err := range d.records(ctx, d.id, d.Epoch, d.Done) {
		if s := r.Summed; s == nil {
			h.apply(r.seq, r.record)
		} else if h.drop(max(s.From, d.Seq+1), s.Upto); s.Part != nil {
			_, err = d.Archive.Append(ctx, s.Part.Who, *s.Part)
		}
		if err != nil {
			return nil, err
		}
	}
	if h.open != nil {
		return h.entries[:h.lastTurn()], nil
	}
	return h.entries, nil
}

// file archives es, part by part.
func (d *digest) file(ctx context.Context, es []entry) (err error) {
	s := d.settings.Load()
	name := s.Sum
	if s.Models[name].Model == nil {
		name = s.Model
	}
	model := s.Models[name]
	most := max(2*(model.Window-model.MaxTokens), 512) // bytes: half of what it takes
	for len(es) > 0 && err == nil && d.n < aNight {
		part := firstPart(es, d.Seq, most)
		e, said := d.partOf(d.id, d.Epoch, part), transcript(part)
		if err := d.Allow(ctx, e.Who, d.id, ""); err != nil {
			return err
		}
		es, d.Seq, d.Tries = es[len(part):], part[len(part)-1].seq, d.Tries+1
		switch err = d.settle(ctx); {
		case err != nil || e.Who == "": // nobody said anything
		case d.Tries > nights:
			e.Raw, e.Text = true, clip(said, mostRaw)
		default:
			var used llm.Usage
			e.Text, used, err = d.Archive.Summarise(ctx, model.Model, "", clip(said, most))
			d.Charge(ctx, e.Who, d.id, "", name, used)
		}
		if err == nil && e.Text != "" {
			_, err = d.Archive.Append(ctx, e.Who, e)
			d.n++
		}
		if err == nil {
			d.Done, d.Tries = d.Seq, 0
			err = d.settle(ctx)
		}
	}
	return err
}

// settle notes how far it is.
func (d *digest) settle(ctx context.Context) error {
	return d.update(ctx, d.id, func(s *state) { s.Digested = d.digested })
}
