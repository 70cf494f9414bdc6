package channels

import (
	"context"
	"errors"
	"fmt"

	"parley/chat"
	"parley/panics"
)

// receive runs the channel until ctx ends or it cannot go on. A channel that
// panics is run again.
func (l *line) receive(ctx context.Context, deliver chat.Deliver) {
	p := patience()
	for {
		err := panics.Try(func() error {
			return l.Run(ctx, func(ctx context.Context, m chat.Message) error { return l.hear(ctx, m, deliver) })
		})
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			err = fmt.Errorf("channel %s: %w", l.name, err)
			l.log.Error("channel does not receive", "err", err, panics.Stack(err))
		}
		l.fault.set(err)
		if _, crashed := errors.AsType[*panics.Error](err); !crashed || !Sleep(ctx, p.Next(err)) {
			return
		}
		l.fault.set(nil)
	}
}

// hear is the one way in for everything a channel reports (R-S8).
func (l *line) hear(ctx context.Context, m chat.Message, deliver chat.Deliver) error {
	m.At.Channel = l.name
	m.Origin = chat.FromPerson
	role, err := l.hub.access.RoleOf(ctx, m)
	if err != nil {
		return err
	}
	m.From.Role = role
	switch {
	case m.Answer != nil:
		return l.press(ctx, m, deliver)
	case role == chat.Unknown:
		return l.answerUnknown(ctx, m)
	}
	own, err := l.hub.command(ctx, m)
	if !own {
		own, err = l.typed(ctx, m)
	}
	if !own && err == nil {
		err = l.pass(ctx, m, deliver)
	}
	if refusal, refused := errors.AsType[*chat.Refusal](err); refused {
		err = l.refuse(ctx, m, refusal)
	}
	l.notice(m, err)
	return err
}

// answerUnknown counts m, which comes from an unknown sender, and answers with a
// pairing code if one is due. Nobody is answered in a group.
func (l *line) answerUnknown(ctx context.Context, m chat.Message) error {
	l.dropped.Add(1)
	if m.Group || m.From.ID == "" {
		return nil
	}
	request, due, err := l.hub.access.Request(ctx, m)
	if err != nil {
		return fmt.Errorf("pairing: %w", err)
	}
	if !due {
		return nil
	}
	l.log.Info("unknown sender was told a pairing code", "sender", request.Sender, "name", request.Name)
	r := m.Reply()
	r.Text = l.hub.cfg.Texts.Pairing.Refused.With(request.Code, request.Code)
	return l.hub.Send(ctx, r)
}

// refuse tells the sender of m why it was refused.
func (l *line) refuse(ctx context.Context, m chat.Message, why *chat.Refusal) error {
	r := m.Reply()
	r.ID, r.Text = "refused:"+m.Key(), why.Text // m may be answered under the other ID, if it was taken before
	return l.hub.Send(ctx, r)
}

// pass delivers m and marks it.
func (l *line) pass(ctx context.Context, m chat.Message, deliver chat.Deliver) error {
	s := spot{m.At, m.ID}
	l.mark(s, "") // before, because it may be answered before deliver has returned
	err := deliver(ctx, m)
	if err == nil {
		l.mark(s, Seen)
	}
	return err
}

// offer sets the command menu of the channel, however often it takes.
func (l *line) offer(ctx context.Context, c CommandMenu) {
	p := patience()
	for {
		err := panics.Try(func() error { return c.SetCommands(ctx, l.hub.cfg.Commands) })
		if IsPermanent(err) {
			l.log.Warn("command menu not set", "err", err)
		}
		if err == nil || IsPermanent(err) || !Sleep(ctx, p.Next(err)) {
			return
		}
	}
}
