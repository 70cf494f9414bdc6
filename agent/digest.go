package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/memory"
)

const (
	aNight = 200 // parts that one Digest archives at most: the rest is for the next
	nights = 3   // in which the model may fail before a part is archived as it is
)

// digested is how far the Archive has what was said in a session.
type digested struct {
	Epoch  int64  `json:"epoch,omitempty"`
	Seq    uint64 `json:"seq,omitempty"`    // of the last record
	Failed int    `json:"failed,omitempty"` // how often the model could not sum up what comes next
}

// Digest archives what was said since the last time in sessions in which nobody
// has spoken for a while, and returns how many parts. The conversations stay as
// they are, and what is said meanwhile waits for the next time. Those of jobs
// and helpers have nothing of their own: what came of it was told in a chat.
func (p *Pool) Digest(ctx context.Context, silent time.Duration) (n int, err error) {
	if p.Archive == nil {
		return 0, nil
	}
	for id, bad := range p.states.Keys(ctx, "") {
		if bad = cmp.Or(bad, ctx.Err()); bad != nil {
			return n, fmt.Errorf("digest: %w", errors.Join(err, bad))
		}
		if strings.HasPrefix(id, "agent:") || strings.HasPrefix(id, "cron:") || n >= aNight {
			continue
		}
		d := digest{Pool: p, id: chat.SessionID(id), silent: silent}
		bad = d.session(ctx)
		if n += d.n; bad != nil && !errors.Is(bad, errBusy) {
			err = errors.Join(err, fmt.Errorf("digest session %s: %w", id, bad))
		}
	}
	return n, err
}

// A digest is Digest of one session.
type digest struct {
	*Pool
	id     chat.SessionID
	silent time.Duration
	was    digested // as its state says
	epoch  int64
	read   uint64 // the last record of the epoch
	n      int
}

// errBusy says that somebody speaks: another night will do.
var errBusy = errors.New("somebody speaks")

func (d *digest) session(ctx context.Context) error {
	st, _, err := d.lookup(ctx, d.id)
	d.was = st.Digested
	for _, d.epoch = range st.epochs() {
		if err == nil && d.epoch >= d.was.Epoch {
			err = d.talk(ctx)
		}
	}
	return err
}

// talk archives what is new in the epoch: what turns summed up, should a crash
// have kept it from the Archive, and then what was not summed up.
func (d *digest) talk(ctx context.Context) error {
	h, parts := &history{zone: d.Zone}, []memory.Entry(nil)
	if d.read = 0; d.epoch == d.was.Epoch {
		d.read = d.was.Seq
	}
	for r, err := range d.records(ctx, d.id, d.epoch, d.read) {
		if err != nil {
			return err
		}
		d.read = r.seq
		if s := r.Summed; s == nil {
			h.apply(r.seq, r.record)
		} else {
			h.entries = slices.DeleteFunc(h.entries, func(e entry) bool { return s.From <= e.seq && e.seq <= s.Upto })
			if s.Part != nil {
				parts = append(parts, *s.Part)
			}
		}
	}
	es := h.entries
	if h.open != nil {
		es = es[:h.lastTurn()]
	}
	if len(es) > 0 && time.Since(d.partOf(d.id, d.epoch, es).Time) < d.silent {
		return errBusy
	}
	for _, e := range parts {
		if err := d.file(ctx, d.was, e); err != nil {
			return err
		}
	}
	return d.parts(ctx, es)
}

// parts archives es, part by part.
func (d *digest) parts(ctx context.Context, es []entry) error {
	s := d.settings.Load()
	name := s.Sum
	if s.Models[name].Model == nil {
		name = s.Model
	}
	t := turn{lane: &lane{Pool: d.Pool}, name: name, model: s.Models[name]}
	most := max(2*t.room(1000), 512) // half of what the model takes, in bytes
	for len(es) > 0 && d.n < aNight {
		part := firstPart(es, 0, most)
		es = es[len(part):]
		e, next := d.partOf(d.id, d.epoch, part), digested{Epoch: d.epoch, Seq: part[len(part)-1].seq}
		if e.Who != "" {
			if err := d.Allow(ctx, e.Who, d.id, ""); err != nil {
				return err
			}
			said, used, err := transcript(part), llm.Usage{}, error(nil)
			e.Text, used, err = d.Archive.Summarise(ctx, t.model.Model, "", abridged(said, most))
			d.Charge(ctx, e.Who, d.id, "", name, used)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil && d.was.Failed < nights-1:
				next = d.was
				next.Failed++
				return errors.Join(err, d.file(ctx, next, memory.Entry{}))
			case err != nil:
				e.Raw, e.Text = true, abridged(said, mostRaw)
			}
		}
		if err := d.file(ctx, next, e); err != nil {
			return err
		}
		if e.Text != "" {
			d.n++
		}
	}
	return nil
}

// file archives e, unless it is empty, and notes how far that is. No turn is
// waited for, and what it did since the log was read stays as it is: a part may
// be the turn's by now.
func (d *digest) file(ctx context.Context, next digested, e memory.Entry) error {
	over, cancel := context.WithCancel(ctx)
	cancel()
	if d.enter(over, d.id, &running{since: time.Now(), doing: "archiving", stop: func(error) {}}, nil) != nil {
		return errBusy
	}
	defer d.leave(d.id)
	st, rev, err := d.lookup(ctx, d.id)
	for _, bad := range d.records(ctx, d.id, d.epoch, d.read) {
		err = cmp.Or(err, bad, errBusy)
	}
	if err == nil && (rev == 0 || st.Digested != d.was) { // it was forgotten
		err = errBusy
	}
	if err == nil && e.Text != "" {
		_, err = d.Archive.Append(ctx, e.Who, e)
	}
	if err == nil && next != d.was {
		err = d.update(ctx, d.id, func(s *state) { s.Digested = next })
	}
	if err == nil {
		d.was = next
	}
	return err
}
