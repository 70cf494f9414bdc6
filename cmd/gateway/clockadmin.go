package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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
		Jobs: func(ctx context.Context) (all []web.Job, err error) {
			jobs, err := h.clock.Jobs(ctx)
			for _, j := range jobs {
				all = append(all, web.Job{Job: j, Soon: h.clock.Soon(j, 3)})
			}
			return all, err
		},
		AddJob: func(ctx context.Context, to string, o web.Order) (scheduler.Job, error) {
			s, err := h.ownerAt(to)
			if err != nil {
				return scheduler.Job{}, web.Wrong(err)
			}
			j, err := h.addJob(ctx, s, cron.Order(o))
			return j, told(err)
		},
		EditJob: func(ctx context.Context, id string, o web.Order) (scheduler.Job, error) {
			j, err := h.editJob(ctx, id, cron.Order(o))
			return j, told(err)
		},
		FireJob:   func(ctx context.Context, id string) error { return told(h.clock.Fire(ctx, id)) },
		RemoveJob: func(ctx context.Context, id string) error { return h.clock.Remove(ctx, id) },
	}
}

// ownerAt is the owner who has a job made for the session to, which may be "":
// then where they can be spoken to first. They are who they are on its channel,
// so that their rights there count (R-S24). In what is not their own chat they
// are among others.
func (h *house) ownerAt(to string) (tools.Scope, error) {
	at, ok := h.hub.Office()
	if to != "" {
		i := strings.LastIndex(to, ":")
		at = chat.Address{Channel: to[:max(i, 0)]}
		at.Chat, at.Thread, _ = strings.Cut(to[i+1:], "/")
		ok = i > 0 && at.Chat != ""
	}
	access, err := h.now.Load().access()
	if err != nil {
		return tools.Scope{}, err
	}
	for _, owner := range access.Owners() {
		channel, id := owner, "" // of somebody who is the only one there
		if i := strings.LastIndex(owner, ":"); i >= 0 {
			channel, id = owner[:i], owner[i+1:]
		}
		if ok && channel == at.Channel && channel != "api" {
			group := id != "" && strings.TrimPrefix(at.Chat, "@") != id
			return tools.Scope{Session: at.Session(), At: at, Group: group, From: chat.Sender{ID: id, Role: chat.Owner}}, nil
		}
	}
	return tools.Scope{}, fmt.Errorf("say where, as in telegram:42: no owner can be spoken to at '%s'", to)
}

// about says whether err is about what was asked for, and no trouble of the house.
func about(err error) bool {
	return err != nil && !slices.ContainsFunc([]error{
		store.ErrNotFound, scheduler.ErrProtected, store.ErrFull, store.ErrDamaged, store.ErrClosed, context.Canceled, context.DeadlineExceeded,
	}, func(e error) bool { return errors.Is(err, e) })
}

// told has whoever asked be told of err if it is about that.
func told(err error) error {
	if about(err) {
		return web.Wrong(err)
	}
	return err
}
