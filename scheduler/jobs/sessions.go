package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"parley/chat"
	"parley/scheduler"
)

// OwnerAt returns the owner for whom a job is made that tells the session to: the one
// whose chat it is, or else one of its channel, who is in the chat with others. Their
// rights on that channel count (R-S24). An owner is a channel, or a channel and an ID.
// Without a session it is the owner in the chat office.
func OwnerAt(owners []string, office chat.Address, to string) (Asker, error) {
	at := office
	if i := strings.LastIndex(to, ":"); to != "" {
		at = chat.Address{Channel: to[:max(i, 0)]}
		at.Chat, at.Thread, _ = strings.Cut(to[i+1:], "/")
	}
	a := Asker{At: at, Group: true}
	for _, owner := range owners {
		channel, id := owner, "" // without an ID: whoever is alone on the channel
		if i := strings.LastIndex(owner, ":"); i >= 0 {
			channel = owner[:i]
			id = owner[i+1:]
		}
		own := id == "" || strings.TrimPrefix(at.Chat, "@") == id
		if channel == at.Channel && (own || a.From.Role == "") {
			a.Group = !own
			a.From = chat.Sender{ID: id, Role: chat.Owner}
		}
	}
	if a.From.Role == "" || at.Chat == "" || at.Channel == "api" {
		return Asker{}, fmt.Errorf("no owner is at '%s': name a chat that an owner is in, "+
			"such as telegram:ID for an ID in owners, or console:local", to)
	}
	return a, nil
}

// Sessions deletes the sessions of isolated jobs.
type Sessions struct {
	List   func(ctx context.Context, prefix string) ([]chat.Talk, error)
	Exists func(ctx context.Context, job string) bool
	Idle   func(context.Context, chat.SessionID) (bool, error) // nothing that the session began is under way
	Forget func(context.Context, chat.SessionID) error
}

// Sweep deletes the sessions of jobs that no longer exist, once they are idle.
func (s Sessions) Sweep(ctx context.Context) error {
	all, err := s.List(ctx, scheduler.Sessions)
	for _, t := range all {
		if s.Exists(ctx, strings.TrimPrefix(string(t.Session), scheduler.Sessions)) {
			continue
		}
		err = errors.Join(err, s.forgetIdle(ctx, t.Session))
	}
	return err
}

// forgetIdle deletes a session unless something that it began is under way.
func (s Sessions) forgetIdle(ctx context.Context, id chat.SessionID) error {
	idle, err := s.Idle(ctx, id)
	if err != nil || !idle {
		return err
	}
	return s.Forget(ctx, id)
}
