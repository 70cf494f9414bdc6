package conversation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"parley/chat"
	"parley/store"
	"parley/tools"
)

// maxGrants is how many grants of a session are kept, the latest ones.
const maxGrants = 50

// grantSession is the session for which a call in s is approved: that of a
// subagent is the one it works for.
func grantSession(s tools.Scope) chat.SessionID { return cmp.Or(s.Root, s.Session) }

// Grant notes that by, an owner, has approved all calls like c: for an hour, or
// else until the conversation ends. Granted twice is granted once.
func (ss *Sessions) Grant(ctx context.Context, c tools.Call, by string, hour bool) error {
	g := Grant{Session: grantSession(c.Scope), Effect: c.Effect, By: by}
	if hour {
		g.Until = time.Now().Add(time.Hour)
	}
	err := ss.Update(ctx, c.At.Session(), func(s *State) {
		s.Grants = slices.DeleteFunc(s.Grants, func(old Grant) bool {
			return old.Over() || old.Covers(g.Session, g.Effect)
		})
		s.Grants = append(s.Grants, g)
		s.Grants = s.Grants[max(0, len(s.Grants)-maxGrants):]
	})
	if err != nil {
		return fmt.Errorf("keep an approval: %w", err)
	}
	return nil
}

// Granted returns a function that reports which calls in s are approved for a while.
func (ss *Sessions) Granted(ctx context.Context, s tools.Scope) func(effect string) bool {
	return func(effect string) bool {
		st, _, err := ss.Lookup(ctx, s.At.Session())
		if err != nil {
			ss.log.Error("approvals cannot be read", "session", s.At.Session(), "err", err)
			return false
		}
		return slices.ContainsFunc(st.Grants, func(g Grant) bool { return g.Covers(grantSession(s), effect) })
	}
}

// Approvals returns what owners have approved for a while, by chat.
func (ss *Sessions) Approvals(ctx context.Context) (all []chat.Approval, err error) {
	for id, err := range ss.IDs(ctx, "") {
		if err != nil {
			return nil, fmt.Errorf("list approvals: %w", err)
		}
		st, _, err := ss.Lookup(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("list approvals: %w", err)
		}
		for _, g := range st.Grants {
			if !g.Over() {
				given := chat.Approval{Chat: id, Session: g.Session, Effect: g.Effect, By: g.By, Until: g.Until}
				all = append(all, given)
			}
		}
	}
	return all, nil
}

// Revoke takes a back. The error is store.ErrNotFound if there is no such approval.
func (ss *Sessions) Revoke(ctx context.Context, a chat.Approval) error {
	_, rev, err := ss.Lookup(ctx, a.Chat)
	if err != nil {
		return err
	}
	if rev == 0 {
		return store.ErrNotFound
	}
	found := false
	err = ss.Update(ctx, a.Chat, func(s *State) {
		left := slices.DeleteFunc(slices.Clone(s.Grants), func(g Grant) bool { return g.Covers(a.Session, a.Effect) })
		found = len(left) < len(s.Grants)
		s.Grants = left
	})
	if err != nil {
		return err
	}
	if !found {
		return store.ErrNotFound
	}
	return nil
}
