package agent

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/agent/conversation"
	"parley/chat"
	"parley/tools"
)

// maxGrants is how many grants of a session are kept, the latest ones.
const maxGrants = 50

// grantSession is the session for which a call in s is approved: that of a
// subagent is the one it works for.
func grantSession(s tools.Scope) chat.SessionID { return cmp.Or(s.Root, s.Session) }

// Approvals are what owners have approved for a while, in the sessions' states.
type Approvals struct {
	sessions *conversation.Sessions
	log      *slog.Logger
}

// Approvals returns what owners have approved for a while.
func (p *Pool) Approvals() Approvals { return Approvals{p.sessions, p.log} }

// Grant notes that by, an owner, has approved all calls like c: for an hour, or
// else until the conversation ends. Granted twice is granted once.
func (a Approvals) Grant(ctx context.Context, c tools.Call, by string, hour bool) error {
	g := conversation.Grant{Session: grantSession(c.Scope), Effect: c.Effect, By: by}
	if hour {
		g.Until = time.Now().Add(time.Hour)
	}
	err := a.sessions.Update(ctx, c.At.Session(), func(s *conversation.State) {
		s.Grants = slices.DeleteFunc(s.Grants, func(old conversation.Grant) bool { return old.Over() || old.Covers(g.Session, g.Effect) })
		s.Grants = append(s.Grants, g)
		s.Grants = s.Grants[max(0, len(s.Grants)-maxGrants):]
	})
	if err != nil {
		return fmt.Errorf("keep an approval: %w", err)
	}
	return nil
}

// granted returns a function that reports which calls in s are approved for a while.
func (a Approvals) granted(ctx context.Context, s tools.Scope) func(effect string) bool {
	return func(effect string) bool {
		st, _, err := a.sessions.Lookup(ctx, s.At.Session())
		if err != nil {
			a.log.Error("approvals cannot be read", "session", s.At.Session(), "err", err)
			return false
		}
		return slices.ContainsFunc(st.Grants, func(g conversation.Grant) bool { return g.Covers(grantSession(s), effect) })
	}
}

// manageApprovals lists what is approved for a while in m's chat, and revokes it.
func manageApprovals(ctx context.Context, p *Pool, m chat.Message) string {
	_, rest := chat.Word(m.Text)
	word, which := chat.Word(rest)
	which = strings.TrimSpace(which)
	st, _, err := p.sessions.Lookup(ctx, m.Session())
	if err != nil {
		return p.commandFailed("list the approvals", m.Session(), err)
	}
	all := slices.DeleteFunc(slices.Clone(st.Grants), conversation.Grant.Over)
	switch n, _ := strconv.Atoi(which); {
	case word == "" && len(all) == 0:
		return p.texts.Approvals.None
	case word == "":
		return listApprovals(p, all)
	case word != "revoke" || which != "all" && (n < 1 || n > len(all)):
		return p.texts.Approvals.Usage
	case m.From.Role != chat.Owner:
		return p.texts.Approvals.NotOwner
	case which != "all":
		all = all[n-1 : n]
	}
	err = p.sessions.Update(ctx, m.Session(), func(s *conversation.State) {
		s.Grants = slices.DeleteFunc(s.Grants, func(g conversation.Grant) bool { return slices.Contains(all, g) })
	})
	if err != nil {
		return p.commandFailed("revoke that", m.Session(), err)
	}
	return p.texts.Approvals.Revoked
}

// listApprovals tells which calls no owner is asked about.
func listApprovals(p *Pool, all []conversation.Grant) string {
	var b strings.Builder
	b.WriteString(p.texts.Approvals.List + "\n")
	for i, g := range all {
		until := p.texts.Approvals.UntilNew
		if !g.Until.IsZero() {
			until = p.texts.Approvals.Until.With(g.Until.In(p.config.Zone).Format("15:04"))
		}
		fmt.Fprintf(&b, "\n%d. %s (%s)", i+1, strings.ReplaceAll(conversation.Inline(g.Effect, 200), "`", "'"), until)
	}
	return b.String() + "\n\n" + p.texts.Approvals.End
}
