package channels

import (
	"context"
	"errors"
	"maps"
	"time"

	"parley/chat"
	"parley/panics"
	"parley/store"
)

// An errand is something small to do at the network, tried once, that nobody
// waits for.
type errand struct {
	what string
	do   func(context.Context) error
}

const (
	maxErrands = 100
	signTime   = 10 * time.Second // the most one may take, or another sign
)

// errand has do done by Work, unless too much waits already.
func (l *line) errand(what string, do func(context.Context) error) {
	select {
	case l.errands <- errand{what, do}:
	default:
		l.log.Warn("left undone: the network is too slow", "what", what)
	}
}

// run does errands until ctx ends.
func (l *line) run(ctx context.Context) {
	for {
		select {
		case e := <-l.errands:
			if err := within(ctx, signTime, e.do); err != nil {
				l.log.Warn("left undone", "what", e.what, "err", err, panics.Stack(err))
			}
		case <-ctx.Done():
			return
		}
	}
}

// notice tells the chat of m that m waits, if err says that the disk is full
// (P19), once until a message of the chat is taken. It goes past the outbox,
// which is on the same disk, and is tried once.
func (l *line) notice(m chat.Message, err error) {
	if err == nil {
		l.noticed.Delete(m.At)
	}
	if !errors.Is(err, store.ErrFull) {
		return
	}
	if _, told := l.noticed.LoadOrStore(m.At, true); told {
		return
	}
	r := chat.Reply{ID: "full:" + m.Key(), To: m.At, // no Quote: what waits is not answered
		Text: l.hub.cfg.Texts.DiskFull}
	l.errand("tell the chat that the disk is full", func(ctx context.Context) error {
		if _, waits := l.noticed.Load(m.At); !waits {
			return nil
		}
		parts, err := l.parts(r)
		if err != nil {
			return err
		}
		d := delivery{line: l, id: r.ID, reply: r, loaded: true}
		if err := d.enter(ctx); err != nil {
			return err
		}
		defer d.exit()
		if l.sequence != nil {
			if d.after, err = l.sequence.tracer.Position(ctx, r); err != nil {
				return err
			}
		}
		return d.put(ctx, parts)
	})
}

const (
	markAfter = time.Second      // an answer quicker than this needs no marks
	markTime  = 10 * time.Minute // what is not answered by then may be forgotten
	maxMarks  = 1000
	reactions = 20 // in a second, at most
)

// A spot is one message.
type spot struct {
	at chat.Address
	id string
}

// A marking says that a message is to be marked, or by "" that it may be.
type marking struct {
	spot
	mark Mark
}

// mark has s marked with m if that may be, and there is time. Marks are best
// effort: lost by a restart, and not tried again.
func (l *line) mark(s spot, m Mark) {
	select {
	case l.marks <- marking{s, m}:
	default:
	}
}

// A marked message is being answered. It has one mark to come at most, the latest.
type marked struct {
	want, shown Mark      // "" for none yet
	due         time.Time // not earlier
}

// heeded notes m in all, and says whether the message is now to be marked and was not before.
func (m marking) heeded(all map[spot]*marked) bool {
	e := all[m.spot]
	switch {
	case m.mark == "":
		if len(all) >= maxMarks {
			maps.DeleteFunc(all, func(_ spot, e *marked) bool { return time.Since(e.due) > markTime })
		}
		if e == nil && len(all) < maxMarks {
			all[m.spot] = &marked{due: time.Now().Add(markAfter)}
		}
		return false
	case e == nil, m.mark == Seen && e.want != "": // it is further already
		return false
	case m.mark == Done && e.shown == "": // quick
		delete(all, m.spot)
		return false
	}
	waits := e.want != e.shown
	e.want = m.mark
	return !waits
}

// react marks messages until ctx ends, each in its turn.
func (l *line) react(ctx context.Context, c Reactor) {
	all := map[spot]*marked{}
	var todo []spot
	heed := func(m marking) {
		if m.heeded(all) {
			todo = append(todo, m.spot)
		}
	}
	for rest := time.Now(); ; {
		var turn <-chan time.Time
		if len(todo) > 0 {
			wait := time.Until(rest)
			if e := all[todo[0]]; e != nil {
				wait = max(wait, time.Until(e.due)) // those that come after have to wait, too
			}
			turn = time.After(wait)
		}
		select {
		case m := <-l.marks:
			heed(m)
		case <-turn:
			for len(l.marks) > 0 { // what is answered by now needs none
				heed(<-l.marks)
			}
			s := todo[0]
			todo = todo[1:]
			rest = time.Now().Add(l.show(ctx, c, s, all))
		case <-ctx.Done():
			return
		}
	}
}

// show marks s as it is to be, and returns how long to leave the network alone.
func (l *line) show(ctx context.Context, c Reactor, s spot, all map[spot]*marked) time.Duration {
	e := all[s]
	if e == nil {
		return 0
	}
	e.shown = e.want
	err := within(ctx, signTime, func(ctx context.Context) error { return c.React(ctx, s.at, s.id, e.want) })
	if err != nil {
		l.log.Debug("message not marked", "chat", s.at.Session(), "err", err, panics.Stack(err))
	}
	if e.want == Done || IsPermanent(err) { // as in a chat that takes no marks
		delete(all, s)
	}
	return max(asked(err), time.Second/reactions)
}
