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

// keepRecords is how long a reply that a live view showed may take to be sent.
const keepRecords = 30 * 24 * time.Hour

// A delivery is one reply becoming messages of its chat. What was sent is written to
// the journal before the next message is sent, so that a crash repeats one message at
// most, and none where a Tracer finds out what became of it (P9). A reply of one
// message that had no live view needs no record: its place in the outbox is enough.
type delivery struct {
	outbox *outbox
	id     string
	reply  chat.Reply
	live   bool // the reply is still being written: its messages change faster than the journal
	record record

	entered bool // it may send to its chat, and nobody else may

	after  Position // stored in the outbox beside the reply
	begun  bool     // its first message may have been sent before the start
	strays []doubt  // messages that were sent and whose numbers nobody knows

	loaded bool
	stored bool // the journal has a record
	dirty  bool // record differs from that one
}

// A record is a delivery in the journal.
type record struct {
	Sent  []sent    `json:"sent"`            // messages that were sent, in order
	Above bool      `json:"above,omitempty"` // they are above other replies that were sent since
	Old   []sent    `json:"old,omitempty"`   // messages that were above: deleted once the reply is below
	Time  time.Time `json:"time"`

	To     chat.Address `json:"to,omitzero"`      // of a reply to a Tracer
	Unsure *unsure      `json:"unsure,omitempty"` // the message that may have been sent; nil for none
}

// A sent message is one part of a reply.
type sent struct {
	Receipt  Receipt  `json:"receipt"`
	Says     string   `json:"says,omitempty"`     // digest of its text; empty if that is not known
	Position Position `json:"position,omitempty"` // how far a Tracer's numbers had come
}

// resolve records what became of the message that may have been sent; found is nil if
// it was not.
func (r *record) resolve(found *sent) {
	if found != nil {
		r.setSent(r.Unsure.Index, *found)
	}
	r.Unsure = nil
}

// setSent records that message i was sent, for the first time or anew.
func (r *record) setSent(i int, m sent) {
	if i < len(r.Sent) {
		r.Sent[i] = m
	} else {
		r.Sent = append(r.Sent, m)
	}
}

// finish makes the messages of the reply say what it says in the end. It may be called
// again after an error, and continues where it was.
func (d *delivery) finish(ctx context.Context) error {
	parts, err := d.outbox.render.parts(d.reply)
	if err != nil {
		return err
	}
	if err := d.put(ctx, parts); err != nil {
		return err
	}
	for last := len(d.record.Sent) - 1; last >= len(parts); last-- { // a live view showed more
		if err := d.remove(ctx, d.record.Sent[last].Receipt); err != nil {
			return err
		}
		d.record.Sent = d.record.Sent[:last]
	}
	return d.removeOld(ctx)
}

// removeOld deletes the messages above, once the reply below is in the journal. A
// message that the network does not delete is changed to show the steps only.
func (d *delivery) removeOld(ctx context.Context) error {
	editor := d.outbox.editor
	for ; len(d.record.Old) > 0; d.record.Old = d.record.Old[1:] {
		if err := d.save(ctx); err != nil {
			return err
		}
		old := d.record.Old[0].Receipt
		err := attempt(ctx, func(ctx context.Context) error { return editor.Delete(ctx, d.reply.To, old) })
		if IsPermanent(err) {
			pointer := chat.Reply{To: d.reply.To, Group: d.reply.Group, Text: "⬇", Steps: d.reply.Steps}
			parts, _ := d.outbox.render.parts(pointer)
			err = attempt(ctx, func(ctx context.Context) error { return editor.Edit(ctx, old, parts[0]) })
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
		if i < len(d.record.Sent) || d.outbox.sequence == nil { // else prepare does it
			if err := d.save(ctx); err != nil {
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
	if i < len(d.record.Sent) {
		return d.change(ctx, i, part)
	}
	return d.send(ctx, i, part)
}

// change makes message i say part. It sends a new message if that one cannot be
// changed.
func (d *delivery) change(ctx context.Context, i int, part chat.Reply) error {
	old := &d.record.Sent[i]
	if d.outbox.editor == nil || old.Says == digest(part) {
		return nil
	}
	if len(part.Files) > 0 {
		if err := d.remove(ctx, old.Receipt); err != nil {
			return err
		}
		return d.send(ctx, i, part)
	}
	old.Says = ""
	err := attempt(ctx, func(ctx context.Context) error { return d.outbox.editor.Edit(ctx, old.Receipt, part) })
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

// prepare writes to the journal that part is about to be sent as message i, if that
// is needed to find out after a crash whether it was.
func (d *delivery) prepare(ctx context.Context, i int, part chat.Reply) error {
	s := d.outbox.sequence
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
	d.record.Unsure = &u
	if d.stored || d.dirty || d.live || i > 0 || now > d.after+farAhead {
		d.dirty = true
		return d.save(ctx)
	}
	return nil
}

// replaced returns the message whose place message i takes when it is sent; "" if there is none.
func (d *delivery) replaced(i int) Receipt {
	switch {
	case i < len(d.record.Sent):
		return d.record.Sent[i].Receipt
	case i < len(d.record.Old):
		return d.record.Old[i].Receipt
	}
	return ""
}

// send sends part as message i. What takes the place of another message has an ID of its own: a
// network that recognizes messages by their IDs, as Discord does, would return the other one.
func (d *delivery) send(ctx context.Context, i int, part chat.Reply) error {
	if old := d.replaced(i); old != "" {
		part.ID = fmt.Sprintf("%s~%s", part.ID, old)
	}
	isTraced := d.outbox.sequence != nil
	if isTraced {
		if err := d.prepare(ctx, i, part); err != nil {
			return err
		}
	}
	limit := sendTimeout
	if len(part.Files) > 0 {
		limit = uploadTimeout
	}
	var rc Receipt
	err := within(ctx, limit, func(ctx context.Context) (err error) {
		rc, err = d.outbox.channel.Send(ctx, part)
		return err
	})
	if err != nil && !isTraced {
		return unclear{err}
	}
	if err != nil {
		if !MayBeSent(err) {
			d.record.Unsure = nil
			d.dirty = d.dirty || d.stored
		}
		return err
	}
	if err := d.recordSent(ctx, i, sent{Receipt: rc, Says: digest(part)}); err != nil {
		return err
	}
	if part.Ask != nil {
		d.outbox.questions.setReceipt(part.Ask.ID, rc)
	}
	return nil
}

// recordSent records that message i was sent.
func (d *delivery) recordSent(ctx context.Context, i int, m sent) (err error) {
	if s := d.outbox.sequence; s != nil {
		if m.Position, err = s.tracer.Position(ctx, d.reply); err != nil {
			return err
		}
		if m.Receipt == "" {
			d.strays = append(d.strays, doubt{unsure: *d.record.Unsure})
		}
	}
	d.record.setSent(i, m)
	d.record.Unsure = nil
	d.dirty = true
	return nil
}

// enter waits until the messages of d may be sent to its chat.
func (d *delivery) enter(ctx context.Context) (err error) {
	if s := d.outbox.sequence; s != nil && !d.entered {
		err = s.enter(ctx, d.reply.To.Chat)
		d.entered = err == nil
	}
	return err
}

// exit lets other deliveries send to the chat.
func (d *delivery) exit() {
	if !d.entered {
		return
	}
	left := d.strays
	if d.record.Unsure != nil {
		left = append(left, doubt{d.id, *d.record.Unsure})
	}
	d.outbox.sequence.exit(d.reply.To.Chat, left...)
	d.entered = false
	d.strays = nil
}

// resume finds out what was sent of the reply before a crash, or before a connection
// broke. A finished reply is sent anew if other replies came below its live view.
func (d *delivery) resume(ctx context.Context, parts []chat.Reply) (err error) {
	if err := d.load(ctx); err != nil {
		return err
	}
	s := d.outbox.sequence
	if d.begun && !d.stored && len(d.record.Sent) == 0 && d.record.Unsure == nil {
		if d.record.Unsure, err = s.firstDoubt(ctx, d, parts); err != nil {
			return err
		}
	}
	d.begun = false
	if d.record.Unsure != nil {
		if err := s.settle(ctx, d.reply.To.Chat, d.id); err != nil {
			return err
		}
		found, err := s.trace(ctx, doubt{d.id, *d.record.Unsure})
		if err != nil {
			return err
		}
		d.dirty = d.dirty || d.stored
		d.record.resolve(found)
	}
	if d.record.Above && !d.live {
		d.record.Old = d.record.Sent
		d.record.Sent = nil
		d.record.Above = false
		d.dirty = true
	}
	return nil
}

// remove deletes a message, which only a live view may have shown.
func (d *delivery) remove(ctx context.Context, rc Receipt) error {
	err := attempt(ctx, func(ctx context.Context) error { return d.outbox.editor.Delete(ctx, d.reply.To, rc) })
	if IsPermanent(err) {
		return nil
	}
	return err
}

// load reads the record of the reply, once.
func (d *delivery) load(ctx context.Context) error {
	if d.loaded {
		return nil
	}
	r, _, err := d.outbox.journal.Get(ctx, d.id)
	switch {
	case err == nil:
		d.record = r
		d.stored = true
	case !errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("read delivery: %w", err)
	}
	d.loaded = true
	for _, s := range d.record.Sent {
		d.dirty = d.dirty || d.live && s.Says != ""
	}
	return nil
}

// save writes the record to the journal, if it has changed.
func (d *delivery) save(ctx context.Context) error {
	if !d.dirty {
		return nil
	}
	r := d.record
	r.Sent = slices.Clone(r.Sent)
	r.Time = time.Now()
	if d.outbox.sequence != nil {
		r.To = d.reply.To
	}
	for i := range r.Sent {
		if d.live {
			r.Sent[i].Says = ""
		}
	}
	err := attempt(ctx, func(ctx context.Context) error { return d.outbox.journal.Set(ctx, d.id, r) })
	if err != nil {
		return fmt.Errorf("journal delivery: %w", err)
	}
	d.stored = true
	d.dirty = false
	return nil
}

// forget deletes the record, once the reply has left the outbox.
func (d *delivery) forget(ctx context.Context) error {
	if !d.stored {
		return nil
	}
	return d.outbox.journal.Delete(ctx, d.id)
}
