package channels

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley/chat"
	"parley/store"
)

// A delivery is one reply becoming messages of its chat. What was sent is
// journalled before the next message is, so that a crash repeats one at most,
// and none where a Tracer finds out what became of it (P9). A reply of one
// message that had no live view needs no journal: its place in the outbox is
// enough.
type delivery struct {
	line  *line
	id    string
	reply chat.Reply
	live  bool // the reply is still being made: what its messages say changes faster than the journal
	record

	entered bool // it may send to its chat, and nobody else may

	after  Position // that is in the outbox beside the reply
	begun  bool     // its first message may have been sent before this start
	strays []doubt  // messages that were sent, and nobody knows their numbers

	loaded bool
	stored bool // the journal has a record
	dirty  bool // this one says more than that
}

// A record is a delivery in the journal.
type record struct {
	Sent  []sent    `json:"sent"`            // messages that are out, in order
	Above bool      `json:"above,omitempty"` // they are above what else was said since
	Old   []sent    `json:"old,omitempty"`   // that were above: taken back once the reply is below
	Time  time.Time `json:"time"`

	To     chat.Address `json:"to,omitzero"`      // of a reply to a Tracer
	Unsure *unsure      `json:"unsure,omitempty"` // the message that may have been sent; nil for none
}

// settle notes what became of the message that may have been sent; found is nil
// if it was not.
func (r *record) settle(found *sent) {
	if found != nil {
		r.place(r.Unsure.Index, *found)
	}
	r.Unsure = nil
}

// place notes that message i was sent, for the first time or anew.
func (r *record) place(i int, m sent) {
	if i < len(r.Sent) {
		r.Sent[i] = m
	} else {
		r.Sent = append(r.Sent, m)
	}
}

// A sent message is one part of a reply.
type sent struct {
	Receipt Receipt `json:"receipt"`
	Says    string  `json:"says,omitempty"` // digest of its text; empty when that is not known

	Position Position `json:"position,omitempty"` // how far a Tracer's numbers had come
}

// keepRecords is how long a reply shown by a live view may take to be sent.
const keepRecords = 30 * 24 * time.Hour

// finish makes the messages of the reply say what it says in the end. It may
// be called again after an error, and goes on where it was.
func (d *delivery) finish(ctx context.Context) error {
	parts, err := d.line.parts(d.reply)
	if err != nil {
		return err
	}
	if err := d.put(ctx, parts); err != nil {
		return err
	}
	for last := len(d.Sent) - 1; last >= len(parts); last-- { // a live view showed more
		if err := d.remove(ctx, d.Sent[last].Receipt); err != nil {
			return err
		}
		d.Sent = d.Sent[:last]
	}
	return d.clear(ctx)
}

// clear takes back the messages above, once the reply is journalled as sent
// below. One that the network keeps says no more than the steps.
func (d *delivery) clear(ctx context.Context) error {
	for ; len(d.Old) > 0; d.Old = d.Old[1:] {
		if err := d.keep(ctx); err != nil {
			return err
		}
		old := d.Old[0].Receipt
		err := attempt(ctx, func(ctx context.Context) error { return d.line.editor.Delete(ctx, d.reply.To, old) })
		if IsPermanent(err) {
			parts, _ := d.line.parts(chat.Reply{To: d.reply.To, Group: d.reply.Group, Text: "⬇", Steps: d.reply.Steps})
			err = attempt(ctx, func(ctx context.Context) error { return d.line.editor.Edit(ctx, old, parts[0]) })
		}
		if err != nil && !IsPermanent(err) {
			return err
		}
	}
	return nil
}

// put makes the first messages of the reply say parts.
func (d *delivery) put(ctx context.Context, parts []chat.Reply) error {
	if err := d.resume(ctx, parts); err != nil {
		return err
	}
	for i, part := range parts {
		if i < len(d.Sent) || d.line.sequence == nil { // else send does it
			if err := d.keep(ctx); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		put := d.putPart
		if d.isOverflow(part) {
			put = d.putOverflow
		}
		if err := put(ctx, i, part); err != nil {
			return err
		}
	}
	return nil
}

// putPart makes message i say part.
func (d *delivery) putPart(ctx context.Context, i int, part chat.Reply) error {
	if i < len(d.Sent) {
		return d.change(ctx, i, part)
	}
	return d.send(ctx, i, part)
}

// change makes message i say part, by a new message where it cannot be changed.
func (d *delivery) change(ctx context.Context, i int, part chat.Reply) error {
	old := &d.Sent[i]
	if d.line.editor == nil || old.Says == digest(part) {
		return nil
	}
	if len(part.Files) > 0 {
		if err := d.remove(ctx, old.Receipt); err != nil {
			return err
		}
		return d.send(ctx, i, part)
	}
	old.Says = ""
	err := attempt(ctx, func(ctx context.Context) error { return d.line.editor.Edit(ctx, old.Receipt, part) })
	switch {
	case err == nil:
		old.Says = digest(part)
	case IsPermanent(err) && !d.live: // somebody deleted it
		return d.send(ctx, i, part)
	}
	return err
}

// An unclear error leaves open whether a message was sent, and nobody can find out.
type unclear struct{ error }

func (u unclear) Unwrap() error { return u.error }

// prepare journals that part is about to be sent as message i, where that is
// needed to find out after a crash whether it was.
func (d *delivery) prepare(ctx context.Context, i int, part chat.Reply) error {
	s := d.line.sequence
	if err := s.settle(ctx, d.reply.To.Chat, d.id); err != nil {
		return err
	}
	now, err := s.tracer.Position(ctx, part)
	if err != nil {
		return err
	}
	u := unsureOf(part, i, now)
	if d.live {
		u.Says = ""
	}
	d.Unsure = &u
	if d.stored || d.dirty || d.live || i > 0 || now > d.after+farAhead {
		d.dirty = true
		return d.keep(ctx)
	}
	return nil
}

// send sends part as message i.
func (d *delivery) send(ctx context.Context, i int, part chat.Reply) error {
	if d.line.sequence != nil {
		if err := d.prepare(ctx, i, part); err != nil {
			return err
		}
	}
	limit := attemptTime
	if len(part.Files) > 0 {
		limit = uploadTime
	}
	var rc Receipt
	err := within(ctx, limit, func(ctx context.Context) (err error) {
		rc, err = d.line.Send(ctx, part)
		return err
	})
	if err != nil && d.line.sequence == nil {
		return unclear{err}
	}
	if err != nil {
		if !MayBeSent(err) {
			d.Unsure, d.dirty = nil, d.dirty || d.stored
		}
		return err
	}
	if err := d.sentAs(ctx, i, sent{Receipt: rc, Says: digest(part)}); err != nil {
		return err
	}
	if part.Ask != nil {
		d.line.hub.shown(part.Ask.ID, rc)
	}
	return nil
}

// sentAs notes that message i was sent.
func (d *delivery) sentAs(ctx context.Context, i int, m sent) (err error) {
	if s := d.line.sequence; s != nil {
		if m.Position, err = s.tracer.Position(ctx, d.reply); err != nil {
			return err
		}
		if m.Receipt == "" {
			d.strays = append(d.strays, doubt{unsure: *d.Unsure})
		}
	}
	d.place(i, m)
	d.Unsure, d.dirty = nil, true
	return nil
}

// enter waits until the messages of d may be sent to its chat.
func (d *delivery) enter(ctx context.Context) (err error) {
	if s := d.line.sequence; s != nil && !d.entered {
		err = s.enter(ctx, d.reply.To.Chat)
		d.entered = err == nil
	}
	return err
}

// exit lets others send to the chat.
func (d *delivery) exit() {
	if !d.entered {
		return
	}
	left := d.strays
	if d.Unsure != nil {
		left = append(left, doubt{d.id, *d.Unsure})
	}
	d.line.sequence.exit(d.reply.To.Chat, left...)
	d.entered, d.strays = false, nil
}

// resume finds out what was sent of the reply before a crash, or before a
// connection broke. In the end the reply begins anew below what was said since.
func (d *delivery) resume(ctx context.Context, parts []chat.Reply) (err error) {
	if err := d.load(ctx); err != nil {
		return err
	}
	s := d.line.sequence
	if d.begun && !d.stored && len(d.Sent) == 0 && d.Unsure == nil {
		if d.Unsure, err = s.began(ctx, d, parts); err != nil {
			return err
		}
	}
	d.begun = false
	if d.Unsure != nil {
		if err := s.settle(ctx, d.reply.To.Chat, d.id); err != nil {
			return err
		}
		found, err := s.trace(ctx, doubt{d.id, *d.Unsure})
		if err != nil {
			return err
		}
		d.dirty = d.dirty || d.stored
		d.settle(found)
	}
	if d.Above && !d.live {
		d.Old, d.Sent, d.Above, d.dirty = d.Sent, nil, false, true
	}
	return nil
}

// remove takes a message back, which only a live view may have shown.
func (d *delivery) remove(ctx context.Context, rc Receipt) error {
	err := attempt(ctx, func(ctx context.Context) error { return d.line.editor.Delete(ctx, d.reply.To, rc) })
	if IsPermanent(err) {
		return nil
	}
	return err
}

// load reads how far the reply had come.
func (d *delivery) load(ctx context.Context) error {
	if d.loaded {
		return nil
	}
	r, _, err := d.line.delivery.Get(ctx, d.id)
	switch {
	case err == nil:
		d.record, d.stored = r, true
	case !errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("read delivery: %w", err)
	}
	d.loaded = true
	for _, s := range d.Sent {
		d.dirty = d.dirty || d.live && s.Says != ""
	}
	return nil
}

// keep journals what was sent.
func (d *delivery) keep(ctx context.Context) error {
	if !d.dirty {
		return nil
	}
	r := d.record
	r.Sent, r.Time = slices.Clone(r.Sent), time.Now()
	if d.line.sequence != nil {
		r.To = d.reply.To
	}
	for i := range r.Sent {
		if d.live {
			r.Sent[i].Says = ""
		}
	}
	err := attempt(ctx, func(ctx context.Context) error { return d.line.delivery.Set(ctx, d.id, r) })
	if err != nil {
		return fmt.Errorf("journal delivery: %w", err)
	}
	d.stored, d.dirty = true, false
	return nil
}

// forget removes the record, once the reply has left the outbox.
func (d *delivery) forget(ctx context.Context) error {
	if !d.stored {
		return nil
	}
	return d.line.delivery.Delete(ctx, d.id)
}

// prune forgets, at once and then every day until ctx ends, the records of replies
// that were begun and never sent, and whole answers that are old.
func (h *Hub) prune(ctx context.Context) {
	for more := true; more; more = Sleep(ctx, pruneEvery) {
		err := h.kept.deliveries.Retain(ctx, func(_ string, r record) bool { return time.Since(r.Time) < keepRecords })
		if err != nil && ctx.Err() == nil {
			h.cfg.Log.Warn("old delivery records not pruned", "err", err)
		}
		if err := h.pruneAnswers(); err != nil {
			h.cfg.Log.Warn("old answers not removed", "err", err)
		}
	}
}
