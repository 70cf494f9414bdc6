package agent

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/agent/conversation"
	"parley/chat"
)

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
		fmt.Fprintf(&b, "\n%d. %s (%s)", i+1, strings.ReplaceAll(chat.Inline(g.Effect, 200), "`", "'"), until)
	}
	return b.String() + "\n\n" + p.texts.Approvals.End
}
