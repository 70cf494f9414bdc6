package channels

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"parley/chat"
	"parley/panics"
)

const (
	typingDelay    = 200 * time.Millisecond // an answer quicker than this needs no typing sign
	typingInterval = 4 * time.Second
	showDelay      = 700 * time.Millisecond // an answer quicker than this is sent once, complete
	streamInterval = 30 * time.Millisecond
	busyInterval   = 50 * time.Millisecond // between two looks at a chat that others send to
	retryEditDelay = 5 * time.Second
)

// A view is the live view of one reply. It shows what a person may see early; whatever
// goes wrong is left to the delivery of the reply.
type view struct {
	outbox *outbox       // nil if there is no such channel
	reply  chat.Reply    // without text
	news   chan struct{} // holds a token if there may be something to show
	stop   context.CancelFunc
	live   sync.WaitGroup
	show   func() *time.Timer // has news shown, from the first on; nil: nobody can be shown it

	mu        sync.Mutex // guards what follows
	shown     bool       // its first message may be in the chat
	overtaken bool       // another reply comes below that message
	waiting   []string   // the replies that entered the outbox before it was shown, and are not sent
	text      string     // of the reply as it is so far, as are the steps
	steps     chat.Steps
	closed    bool
	shower    *time.Timer // begins to show; nil: there is no news yet
	typer     *time.Timer // shows the next typing sign

	showing  sync.Mutex // held while something is shown to a Streamer
	streamed string     // the text it has
}

// Live opens the view of r, which has no text yet. The reply that will be sent has the
// same ID, To, Quote and Group; it is sent after Close.
func (h *Hub) Live(ctx context.Context, r chat.Reply) chat.Live {
	ctx, stop := context.WithCancel(ctx)
	v := &view{reply: r, stop: stop, news: make(chan struct{}, 1)}
	s := h.channels[r.To.Channel]
	if s == nil {
		return v
	}
	v.outbox = s.outbox
	s.marks.mark(messageID{r.To, r.Quote}, Working)
	if c, ok := s.channel.(Streamer); ok {
		v.show = func() *time.Timer { return v.after(0, func() { v.stream(ctx, c) }) }
	} else if s.outbox.editor != nil {
		v.show = func() *time.Timer { return v.after(showDelay, func() { v.edit(ctx) }) }
		s.outbox.views.Store(v, nil)
	}
	if c, ok := s.channel.(Typer); ok {
		v.mu.Lock() // until it is set
		v.typer = v.after(typingDelay, func() { v.typing(ctx, c) })
		v.mu.Unlock()
	}
	return v
}

// after runs part of the view in a goroutine once wait has passed, unless the view is closed by then. While a turn
// waits for its model, it needs no goroutine here. A panic ends the part.
func (v *view) after(wait time.Duration, part func()) *time.Timer {
	v.live.Add(1)
	return time.AfterFunc(wait, func() {
		defer v.live.Done()
		if err := panics.Try(func() error { part(); return nil }); err != nil {
			v.outbox.log.Error("live view ended", "err", err, panics.Stack(err))
		}
	})
}

// Show implements [chat.Live].
func (v *view) Show(text string) {
	v.mu.Lock()
	v.text = text
	v.mu.Unlock()
	v.wake()
}

// wake has the reply shown as it is now.
func (v *view) wake() {
	select {
	case v.news <- struct{}{}:
	default:
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.show != nil && v.shower == nil && !v.closed {
		v.shower = v.show()
	}
}

// Step implements [chat.Live]. A Stepper is given the text that came before s first.
func (v *view) Step(s chat.Step) {
	v.showing.Lock()
	defer v.showing.Unlock()
	v.mu.Lock()
	s, news := v.steps.Add(s)
	v.mu.Unlock()
	if v.outbox == nil || !news {
		return
	}
	c, ok := v.outbox.channel.(Stepper)
	if !ok {
		v.wake()
		return
	}
	err := panics.Try(func() error {
		v.passText(c)
		c.Step(v.reply, s)
		return nil
	})
	if err != nil {
		v.outbox.log.Warn("step not shown", "err", err, panics.Stack(err))
	}
}

// passText gives c the text so far, if it has changed. The caller holds showing.
func (v *view) passText(c Streamer) {
	if r := v.latest(); r.Text != v.streamed {
		v.streamed = r.Text
		c.Stream(r)
	}
}

// Close implements [chat.Live].
func (v *view) Close() {
	v.stop()
	v.mu.Lock()
	v.closed = true
	for _, timer := range []*time.Timer{v.shower, v.typer} {
		if timer != nil && timer.Stop() {
			v.live.Done()
		}
	}
	v.mu.Unlock()
	v.live.Wait()
	if v.outbox != nil {
		v.outbox.views.Delete(v)
	}
}

// noteReply notes that another reply has entered the outbox. If the view is shown already, that comes below it.
func (v *view) noteReply(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.shown {
		v.overtaken = true
	} else {
		v.waiting = append(v.waiting, id)
	}
}

// noteSent notes that another reply is no longer on its way.
func (v *view) noteSent(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.waiting = slices.DeleteFunc(v.waiting, func(other string) bool { return other == id })
}

// noteShown notes that the view is about to be shown. What is still on its way comes below it: it may be so new that
// the traffic does not have it.
func (v *view) noteShown() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shown = true
	v.overtaken = v.overtaken || len(v.waiting) > 0
}

func (v *view) isOvertaken() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.overtaken
}

// waitForNews waits until there is something to show. It returns false if ctx ended.
func (v *view) waitForNews(ctx context.Context) bool {
	select {
	case <-v.news:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// latest returns the reply as it is so far.
func (v *view) latest() chat.Reply {
	v.mu.Lock()
	defer v.mu.Unlock()
	r := v.reply
	r.Text = v.text
	if v.outbox.render.showsSteps {
		r.Text = v.outbox.render.withSteps(r.Text, v.steps)
	}
	return r
}

// typing shows a typing sign, and the next one a while later.
func (v *view) typing(ctx context.Context, c Typer) {
	wait := typingInterval
	err := panics.Try(func() error {
		ctx, cancel := context.WithTimeout(ctx, taskTimeout)
		defer cancel()
		return c.Typing(ctx, v.reply.To)
	})
	if err != nil && ctx.Err() == nil {
		wait = v.waitAfter(err, wait)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed || ctx.Err() != nil {
		return
	}
	v.live.Add(1)
	v.typer.Reset(wait)
}

func (v *view) stream(ctx context.Context, c Streamer) {
	for v.waitForNews(ctx) {
		err := panics.Try(func() error {
			v.showing.Lock()
			defer v.showing.Unlock()
			v.passText(c)
			return nil
		})
		if err != nil {
			v.outbox.log.Warn("live view ended", "err", err, panics.Stack(err))
			return
		}
		if !Sleep(ctx, streamInterval) {
			return
		}
	}
}

// edit shows the reply as one or several messages that it edits.
func (v *view) edit(ctx context.Context) {
	d := &delivery{outbox: v.outbox, id: v.reply.ID, reply: v.reply, live: true}
	defer v.leave(ctx, d)
	var wait time.Duration
	for failed := false; failed || v.waitForNews(ctx); {
		if !Sleep(ctx, wait) {
			return
		}
		err := v.showLatest(ctx, d)
		wait = v.outbox.editor.EditEvery(v.reply.To)
		failed = err != nil
		if !failed {
			continue
		}
		if ctx.Err() != nil || isHopeless(err) {
			return
		}
		wait = max(wait, v.waitAfter(err, retryEditDelay))
	}
}

// showLatest makes the messages of d show the reply as it is so far. Replies that were in the outbox before are
// sent first (P9).
func (v *view) showLatest(ctx context.Context, d *delivery) error {
	if err := d.load(ctx); err != nil {
		return err
	}
	for {
		parts, err := v.outbox.render.parts(v.latest())
		if err != nil {
			return err
		}
		parts = withoutOverflow(parts)
		more := len(parts) > len(d.record.Sent)
		if more || d.record.Unsure != nil {
			if err := d.enter(ctx); err != nil {
				return err
			}
		}
		if more && d.record.Unsure == nil && v.outbox.traffic.IsBusy(v.outbox.destination(v.reply.To)) {
			d.exit()
			if !Sleep(ctx, busyInterval) {
				return ctx.Err()
			}
			continue
		}
		if len(parts)+len(d.record.Sent) > 0 {
			v.noteShown()
		}
		err = d.put(ctx, parts)
		if d.record.Unsure != nil || err != nil && !d.entered {
			return err // what is in doubt is found out before anybody else sends
		}
		if errKeep := d.save(ctx); errKeep != nil {
			return errors.Join(err, errKeep)
		}
		d.exit()
		return err
	}
}

// leave records what the messages say in the end, and whether other replies came below them.
func (v *view) leave(ctx context.Context, d *delivery) {
	defer d.exit()
	if len(d.record.Sent) == 0 && d.record.Unsure == nil {
		return
	}
	d.live = false
	d.dirty = true
	d.record.Above = d.record.Above || v.isOvertaken()
	if err := d.save(ctx); err != nil {
		v.outbox.log.Error("live view", "id", d.id, "err", err)
	}
}

// waitAfter returns how long to wait after err: as long as err asks for, or d.
func (v *view) waitAfter(err error, d time.Duration) time.Duration {
	v.outbox.log.Debug("live view", "chat", v.reply.To.Session(), "err", err)
	return cmp.Or(requestedWait(err), d)
}

// isHopeless reports whether a live view must not try again after err: a message may
// have been sent although sending it failed, unless the network asked to wait.
func isHopeless(err error) bool {
	var u unclear
	return IsPermanent(err) || errors.As(err, &u) && requestedWait(err) == 0
}
