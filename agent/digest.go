package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/agent/budget"
	"parley/agent/conversation"
	"parley/chat"
	"parley/memory"
)

// A night, also the first one after an upgrade, takes no more than this.
const (
	night  = time.Hour
	aNight = 200 // parts …
	ofEach = 40  // … and of one session
	faults = 5   // sessions that the model fails to sum up: then it is not up to them

	nights   = 3               // that a part is tried, before it is archived as it is
	aCommand = 2 * time.Second // is over by then
)

// errBusy ends the digest of a session: somebody speaks there.
var errBusy = errors.New("somebody speaks")

// Digest archives what is new in sessions in which nobody has spoken for a
// while, at the expense of a run of a job, and returns how many parts it
// archived. The conversations stay as they are. Those of jobs and subagents are
// left out: what came of them was told in a chat. What is too much for one night
// is for the next.
func (p *Pool) Digest(outer context.Context, job, run string, silent time.Duration) (parts int, err error) {
	if p.config.Archive == nil {
		return 0, nil
	}
	ctx, over := context.WithTimeout(outer, night)
	defer over()
	soon, over := context.WithTimeout(ctx, aCommand) // that of a person who wants it done
	defer over()
	var failed []error
	dumb := 0
	for id, err := range p.sessions.IDs(ctx, "") {
		if err != nil && ctx.Err() == nil {
			failed = append(failed, err)
		}
		if err != nil || ctx.Err() != nil || parts >= aNight || dumb >= faults {
			break
		}
		if strings.HasPrefix(string(id), helperPrefix) || strings.HasPrefix(string(id), runPrefix) {
			continue
		}
		d := digest{pool: p, id: id, job: job, run: run, most: min(ofEach, aNight-parts)}
		err := d.session(ctx, soon, silent)
		parts += d.parts
		if err != nil {
			failed = append(failed, fmt.Errorf("digest session %s: %w", id, err))
			if d.dumb {
				dumb++
			}
		}
	}
	return parts, errors.Join(append(failed, outer.Err())...)
}

// A digest is that of one session.
type digest struct {
	pool     *Pool
	id       chat.SessionID
	job, run string // for which it is made
	progress conversation.ArchiveProgress
	parts    int  // archived so far
	most     int  // parts to archive
	dumb     bool // the model could not sum up
}

// session archives what is new, unless a turn is under way and not over soon;
// one that comes ends it.
func (d *digest) session(outer, soon context.Context, silent time.Duration) error {
	ctx, stop := context.WithCancelCause(outer)
	defer stop(nil)
	if d.pool.enter(soon, d.id, &running{since: time.Now(), doing: d.pool.texts.Doing.Archiving, stop: stop}, nil) != nil {
		return nil
	}
	defer d.pool.leave(d.id)
	st, _, err := d.pool.sessions.Lookup(ctx, d.id)
	d.progress = st.Digested
	for _, epoch := range st.Epochs() {
		if err != nil || epoch < d.progress.Epoch {
			continue
		}
		if epoch > d.progress.Epoch {
			d.progress = conversation.ArchiveProgress{Epoch: epoch}
		}
		var es conversation.Entries
		if es, err = d.news(ctx); len(es) == 0 {
			continue
		}
		if time.Since(es.ForArchive(d.id, epoch, d.pool.config.Zone).Time) < silent {
			break
		}
		err = d.file(ctx, es)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// news returns what the Archive has not of the epoch, but for the turn under
// way, and appends what a crash kept from there.
func (d *digest) news(ctx context.Context) (conversation.Entries, error) {
	h := conversation.NewHistory(d.pool.config.Zone)
	for r, err := range d.pool.sessions.Records(ctx, d.id, d.progress.Epoch, d.progress.Done) {
		if s := r.Summed; s == nil {
			h.Apply(r.Seq, r.Record)
		} else {
			h.Drop(max(s.From, d.progress.Seq+1), s.Upto)
			for _, part := range s.Parts() {
				if err == nil {
					_, err = d.pool.config.Archive.Append(ctx, part.Who, part)
				}
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return h.EndedEntries(), nil
}

// file archives es, part by part.
func (d *digest) file(ctx context.Context, es conversation.Entries) (err error) {
	s := d.pool.settings.Load()
	name := s.Sum
	if s.Models[name].Model == nil {
		name = s.Model
	}
	model := s.Models[name]
	most := min(max(2*(model.Window-model.MaxTokens), 512), mostRaw) // bytes: half of what it takes
	for len(es) > 0 && err == nil && d.parts < d.most {
		part := es.FirstPart(d.progress.Seq, most)
		e, said := part.ForArchive(d.id, d.progress.Epoch, d.pool.config.Zone), part.Transcript()
		if err := d.pool.budget.Allow(ctx, d.spender(e.Who)); err != nil { // R-S15: for another night
			d.pool.log.Info("not summed up", "session", d.id, "err", err)
			return nil
		}
		es, d.progress.Seq, d.progress.Tries = es[len(part):], part.Last(), d.progress.Tries+1
		switch err = d.settle(ctx); {
		case err != nil || !conversation.IsOnePerson(e.Who):
		case d.progress.Tries > nights:
			e.Raw, e.Text = true, conversation.ClipMiddle(said, mostRaw)
		default:
			e.Text, err = d.summarise(ctx, model, name, e.Who, conversation.ClipMiddle(said, most))
		}
		if err == nil && e.Text != "" {
			_, err = d.pool.config.Archive.Append(ctx, e.Who, e)
			d.parts++
		}
		if own := part.OwnWords(); err == nil && e.Tainted && own != "" && conversation.IsOnePerson(e.Who) {
			err = d.fileOwn(ctx, conversation.OwnPart(e), conversation.ClipMiddle(own, most), model, name)
		}
		if err == nil {
			d.progress.Done, d.progress.Tries = d.progress.Seq, 0
			err = d.settle(ctx)
		}
	}
	return err
}

// fileOwn archives what the person typed themselves in an untrusted part.
func (d *digest) fileOwn(ctx context.Context, e memory.Entry, own string, model Model, name string) (err error) {
	if e.Text = own; !e.Raw {
		e.Text, err = d.summarise(ctx, model, name, e.Who, own)
	}
	if err == nil && e.Text != "" {
		_, err = d.pool.config.Archive.Append(ctx, e.Who, e)
	}
	return err
}

// summarise has the model called name sum up said, at who's expense.
func (d *digest) summarise(ctx context.Context, model Model, name string, who chat.Person, said string) (string, error) {
	text, used, err := d.pool.config.Archive.Summarise(ctx, model.Model, "", said)
	d.dumb = err != nil
	d.pool.budget.Charge(ctx, d.spender(who), 1, name, used)
	return text, err
}

// spender returns for whom what who said is summed up.
func (d *digest) spender(who chat.Person) budget.Spender {
	return budget.Spender{Person: who, Session: d.id, Job: d.job, Run: d.run}
}

// settle notes how far it is.
func (d *digest) settle(ctx context.Context) error {
	return d.pool.sessions.Update(ctx, d.id, func(s *conversation.State) { s.Digested = d.progress })
}
