package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/scheduler"
	"parley/store"
	"parley/tools"
	"parley/tools/cron"
	"parley/web"
)

// clockFace is the clock as the owner's page and the command line have it.
func (h *house) clockFace() web.Clock {
	return web.Clock{
		Jobs: h.clock.Jobs,
		Soon: h.clock.Soon,
		Order: func(ctx context.Context, id string, o web.Order) (scheduler.Job, error) {
			j, err := h.ownersOrder(ctx, id, o)
			return j, told(err)
		},
		Fire: func(ctx context.Context, id string, force bool) error { // each press is another
			return told(h.clock.Fire(ctx, id, "press/"+time.Now().UTC().Format(time.RFC3339Nano), force))
		},
		Remove: h.clock.Remove,
	}
}

// ownersOrder changes the job of that ID, or makes one if it is "".
func (h *house) ownersOrder(ctx context.Context, id string, ask web.Order) (scheduler.Job, error) {
	o := cron.Order{
		Name: ask.Name, Message: ask.Message, Every: ask.Every, Cron: ask.Cron, Zone: ask.Zone, At: ask.At, Isolated: ask.Isolated,
		Quiet: ask.Quiet, Model: ask.Model, Missed: ask.Missed, Tool: ask.Tool, Args: ask.Args,
	}
	if ask.Enabled != nil {
		o.Action = map[bool]string{true: "enable", false: "disable"}[*ask.Enabled]
	}
	if id != "" {
		return h.clock.Edit(ctx, id, func(j *scheduler.Job) error {
			if at := string(j.At.Session()); ask.To != "" && ask.To != at {
				return fmt.Errorf("to is %s for good: make another job", at)
			}
			return h.alter(ctx, j, o)
		})
	}
	s, err := h.ownerAt(ask.To)
	if err != nil {
		return scheduler.Job{}, err
	}
	return h.addJob(ctx, s, o)
}

// ownerAt is the owner who has a job made for the session to: the one whose chat
// it is, or else one of its channel, who is among others there. They are who they
// are on the channel, so that their rights there count (R-S24).
func (h *house) ownerAt(to string) (tools.Scope, error) {
	at, _ := h.hub.Office()
	if i := strings.LastIndex(to, ":"); to != "" {
		at = chat.Address{Channel: to[:max(i, 0)]}
		at.Chat, at.Thread, _ = strings.Cut(to[i+1:], "/")
	}
	s := tools.Scope{Session: at.Session(), At: at, Group: true}
	access, err := accessOf(h.now.Load())
	for _, owner := range access.Owners() {
		channel, id := owner, "" // of somebody who is alone there
		if i := strings.LastIndex(owner, ":"); i >= 0 {
			channel, id = owner[:i], owner[i+1:]
		}
		if own := id == "" || strings.TrimPrefix(at.Chat, "@") == id; channel == at.Channel && (own || s.From.Role == "") {
			s.Group, s.From = !own, chat.Sender{ID: id, Role: chat.Owner}
		}
	}
	if s.From.Role == "" || at.Chat == "" || at.Channel == "api" {
		return tools.Scope{}, errors.Join(err, fmt.Errorf("no owner is at '%s': name a chat that an owner is in, such as telegram:ID for an ID in owners, or console:local", to))
	}
	return s, nil
}

// theirs says whether err is about what was asked for, and no trouble of the house.
func theirs(err error) bool {
	return err != nil && !slices.ContainsFunc([]error{
		store.ErrNotFound, scheduler.ErrProtected, store.ErrFull, store.ErrDamaged, store.ErrClosed, context.Canceled, context.DeadlineExceeded,
	}, func(e error) bool { return errors.Is(err, e) })
}

// told has whoever asked be told of err, if it is theirs.
func told(err error) error {
	if theirs(err) {
		return web.Wrong(err)
	}
	return err
}
