package channels

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"parley/chat"
	"parley/panics"
)

const (
	typingAfter = 200 * time.Millisecond // an answer quicker than this needs no sign
	typingEvery = 4 * time.Second
	showAfter   = 700 * time.Millisecond // an answer quicker than this is sent once, whole
	streamEvery = 30 * time.Millisecond
	holdEvery   = 50 * time.Millisecond
	slowEdits   = 5 * time.Second // after a failure
)

// A view is the live view of one reply. It sends at most what a person may see
// early; whatever goes wrong is left to the delivery of the reply.
type view struct {
	line *line
	r    chat.Reply    // without text
	news chan struct{} // holds a token when there may be something to show
	stop context.CancelFunc
	live sync.WaitGroup

	shown     atomic.Bool // its first message may be in the chat
	overtaken atomic.Bool // and another reply comes below that

	mu    sync.Mutex // guards what the reply is so far
	text  string
	steps chat.Steps

	showing  sync.Mutex // held while something is shown to a Streamer
	streamed string     // the text it has
}

// Live opens the view of r, which has no text yet: its ID, To, Quote and Group
// are those of the reply that will be sent. That is sent after Close.
func (h *Hub) Live(ctx context.Context, r chat.Reply) chat.Live {
	ctx, stop := context.WithCancel(ctx)
	l := h.lines[r.To.Channel]
	v := &view{line: l, r: r, stop: stop, news: make(chan struct{}, 1)}
	if l == nil {
		return v
	}
	l.mark(spot{r.To, r.Quote}, Working)
	if c, ok := l.Channel.(Typer); ok {
		v.run(func() { v.typing(ctx, c) })
	}
	if c, ok := l.Channel.(Streamer); ok {
		v.run(func() { v.stream(ctx, c) })
	} else if l.editor != nil {
		v.run(func() { v.edit(ctx) })
	}
	return v
}

// run does part of the view in a goroutine of its own. A panic ends that part.
func (v *view) run(part func()) {
	v.live.Go(func() {
		if err := panics.Try(func() error { part(); return nil }); err != nil {
			v.line.log.Error("live view ended", "err", err, panics.Stack(err))
		}
	})
}

// Show implements [chat.Live].
func (v *view) Show(text string) {
	v.mu.Lock()
	v.text = text
	v.mu.Unlock()
	v.rouse()
}

func (v *view) rouse() {
	select {
	case v.news <- struct{}{}:
	default:
	}
}

// Step implements [chat.Live]. A Stepper has the text first that came before s.
func (v *view) Step(s chat.Step) {
	v.showing.Lock()
	defer v.showing.Unlock()
	v.mu.Lock()
	s, news := v.steps.Add(s)
	v.mu.Unlock()
	if v.line == nil || !news {
		return
	}
	c, ok := v.line.Channel.(Stepper)
	if !ok {
		v.rouse()
		return
	}
	err := panics.Try(func() error {
		v.tell(c)
		c.Step(v.r, s)
		return nil
	})
	if err != nil {
		v.line.log.Warn("step not shown", "err", err, panics.Stack(err))
	}
}

// tell gives c the text so far, if that is news. The caller holds showing.
func (v *view) tell(c Streamer) {
	if r := v.latest(); r.Text != v.streamed {
		v.streamed = r.Text
		c.Stream(r)
	}
}

// Close implements [chat.Live].
func (v *view) Close() {
	v.stop()
	v.live.Wait()
}

// changed waits until there is something to show.
func (v *view) changed(ctx context.Context) bool {
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
	r := v.r
	if r.Text = v.text; v.line.lists() {
		r.Text = v.line.above(r.Text, v.steps)
	}
	return r
}

func (v *view) typing(ctx context.Context, c Typer) {
	for wait := typingAfter; Sleep(ctx, wait); {
		wait = typingEvery
		err := panics.Try(func() error {
			ctx, cancel := context.WithTimeout(ctx, signTime)
			defer cancel()
			return c.Typing(ctx, v.r.To)
		})
		if err != nil && ctx.Err() == nil {
			wait = v.slower(err, wait)
		}
	}
}

func (v *view) stream(ctx context.Context, c Streamer) {
	for v.changed(ctx) {
		err := panics.Try(func() error {
			v.showing.Lock()
			defer v.showing.Unlock()
			v.tell(c)
			return nil
		})
		if err != nil {
			v.line.log.Warn("live view ended", "err", err, panics.Stack(err))
			return
		}
		if !Sleep(ctx, streamEvery) {
			return
		}
	}
}

// edit shows the reply by a message that is edited, or several.
func (v *view) edit(ctx context.Context) {
	d := &delivery{line: v.line, id: v.r.ID, reply: v.r, live: true}
	v.line.views.Store(v, nil)
	defer v.leave(ctx, d)
	wait, again := showAfter, false
	for again || v.changed(ctx) {
		if !Sleep(ctx, wait) {
			return
		}
		err := v.paint(ctx, d)
		wait = v.line.editor.EditEvery(v.r.To)
		if again = err != nil; !again {
			continue
		}
		if ctx.Err() != nil || hopeless(err) {
			return
		}
		wait = max(wait, v.slower(err, slowEdits))
	}
}

// paint brings the newest text to the chat. Replies that were there before go first (P9).
func (v *view) paint(ctx context.Context, d *delivery) error {
	if err := d.load(ctx); err != nil {
		return err
	}
	for {
		parts, err := v.line.parts(v.latest())
		if err != nil {
			return err
		}
		parts = withoutOverflow(parts)
		more := len(parts) > len(d.Sent)
		if more || d.Unsure != nil {
			if err := d.enter(ctx); err != nil {
				return err
			}
		}
		if more && d.Unsure == nil && v.line.traffic.busy(v.line.lane(v.r.To)) {
			d.exit()
			if !Sleep(ctx, holdEvery) {
				return ctx.Err()
			}
			continue
		}
		v.shown.Store(len(parts)+len(d.Sent) > 0)
		err = d.put(ctx, parts)
		if d.Unsure != nil || err != nil && !d.entered {
			return err // what is in doubt is found out before anybody else sends
		}
		if errKeep := d.keep(ctx); errKeep != nil {
			return errors.Join(err, errKeep)
		}
		d.exit()
		return err
	}
}

// leave journals what the messages say at last, and whether others came below.
func (v *view) leave(ctx context.Context, d *delivery) {
	v.line.views.Delete(v)
	defer d.exit()
	if len(d.Sent) == 0 && d.Unsure == nil {
		return
	}
	d.live, d.dirty = false, true
	d.Above = d.Above || v.overtaken.Load()
	if err := d.keep(ctx); err != nil {
		v.line.log.Error("live view", "id", d.id, "err", err)
	}
}

// overtake tells the views in the chat of r that r will be below what they show.
func (l *line) overtake(r chat.Reply) {
	l.views.Range(func(key, _ any) bool {
		if v := key.(*view); v.r.To == r.To && v.shown.Load() {
			v.overtaken.Store(true)
		}
		return true
	})
}

// slower says how long to wait after err: d unless err says so itself.
func (v *view) slower(err error, d time.Duration) time.Duration {
	v.line.log.Debug("live view", "chat", v.r.To.Session(), "err", err)
	return cmp.Or(asked(err), d)
}

// hopeless says that a live view must not try again after err. A message may have
// been sent although sending it failed, unless the network asked for patience.
func hopeless(err error) bool {
	var u unclear
	return IsPermanent(err) || errors.As(err, &u) && asked(err) == 0
}
