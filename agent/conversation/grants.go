package conversation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"parley/chat"
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
