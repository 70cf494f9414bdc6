// Package sessioncommands answers the commands that need only what is kept of a
// session: /approvals, /verbose, /search and /why.
package sessioncommands

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/agent/conversation"
	"parley/agent/receipts"
	"parley/chat"
	"parley/texts"
)

const (
	maxFoundText = 400 // bytes of each place that /search shows
	maxFound     = 8   // places that /search shows
)

// Commands answers the commands, each by the method that has its name.
type Commands struct {
	Sessions *conversation.Sessions
	Texts    *texts.Agent
	Zone     *time.Location // in which people read times

	// Explain tells what is remembered about the words of /why, and from where. nil: nothing is.
	Explain func(context.Context, chat.Message) (string, error)
}

// Approvals lists what is approved for a while in m's chat, and revokes it.
func (c Commands) Approvals(ctx context.Context, m chat.Message) (string, error) {
	_, rest := chat.Word(m.Text)
	word, which := chat.Word(rest)
	which = strings.TrimSpace(which)
	st, _, err := c.Sessions.Lookup(ctx, m.Session())
	if err != nil {
		return "", fmt.Errorf("list the approvals: %w", err)
	}
	all := slices.DeleteFunc(slices.Clone(st.Grants), conversation.Grant.Over)
	switch n, _ := strconv.Atoi(which); {
	case word == "" && len(all) == 0:
		return c.Texts.Approvals.None, nil
	case word == "":
		return c.listApprovals(all), nil
	case word != "revoke" || which != "all" && (n < 1 || n > len(all)):
		return c.Texts.Approvals.Usage, nil
	case m.From.Role != chat.Owner:
		return c.Texts.Approvals.NotOwner, nil
	case which != "all":
		all = all[n-1 : n]
	}
	err = c.Sessions.Update(ctx, m.Session(), func(s *conversation.State) {
		s.Grants = slices.DeleteFunc(s.Grants, func(g conversation.Grant) bool { return slices.Contains(all, g) })
	})
	if err != nil {
		return "", fmt.Errorf("revoke approvals: %w", err)
	}
	return c.Texts.Approvals.Revoked, nil
}

// listApprovals tells which calls no owner is asked about.
func (c Commands) listApprovals(all []conversation.Grant) string {
	var b strings.Builder
	b.WriteString(c.Texts.Approvals.List + "\n")
	for i, g := range all {
		until := c.Texts.Approvals.UntilNew
		if !g.Until.IsZero() {
			until = c.Texts.Approvals.Until.With(g.Until.In(c.Zone).Format("15:04"))
		}
		fmt.Fprintf(&b, "\n%d. %s (%s)", i+1, strings.ReplaceAll(chat.Inline(g.Effect, 200), "`", "'"), until)
	}
	return b.String() + "\n\n" + c.Texts.Approvals.End
}

// Verbose reports whether steps are shown, and changes it with "on" or "off" only.
func (c Commands) Verbose(ctx context.Context, m chat.Message) (string, error) {
	say := c.Texts.Commands
	_, want := chat.Word(strings.ToLower(m.Text))
	if want != "on" && want != "off" {
		st, _, err := c.Sessions.Lookup(ctx, m.Session())
		switch {
		case err != nil:
			return "", fmt.Errorf("look up whether steps are shown: %w", err)
		case st.Quiet:
			return say.StepsHidden, nil
		}
		return say.StepsShown, nil
	}
	quiet := want == "off"
	err := c.Sessions.Update(ctx, m.Session(), func(s *conversation.State) { s.Quiet = quiet })
	switch {
	case err != nil:
		return "", fmt.Errorf("note whether steps are shown: %w", err)
	case quiet:
		return say.StepsHide, nil
	}
	return say.StepsShow, nil
}

// Why tells what was done for the answer that m quotes, or for the latest, or with words where what is remembered about
// these comes from.
func (c Commands) Why(ctx context.Context, m chat.Message) (string, error) {
	_, words := chat.Word(m.Text)
	_, err := strconv.Atoi(words)
	isWords := words != "" && err != nil
	if isWords && m.Quote == nil && c.Explain != nil {
		return c.Explain(ctx, m)
	}
	return receipts.Why{Sessions: c.Sessions, Texts: c.Texts.Why, Zone: c.Zone}.Answer(ctx, m)
}

// Search shows what was said in m's chat.
func (c Commands) Search(ctx context.Context, m chat.Message) (string, error) {
	say := c.Texts.Commands
	_, words := chat.Word(m.Text)
	if words == "" {
		return say.NoSearch, nil
	}
	finds, err := c.Sessions.Search(ctx, func(id chat.SessionID) bool { return id == m.Session() }, words, maxFound)
	if err != nil {
		return "", err
	}
	st, _, err := c.Sessions.Lookup(ctx, m.Session())
	if err != nil {
		return "", err
	}
	finds, notes := c.splitNotes(finds)
	if st.Removed.Seq > 0 {
		notes = conversation.Join(say.NotKept.With(st.Removed.Before.In(c.Zone).Format(time.DateOnly)), notes)
	}
	if len(finds) == 0 {
		return conversation.Join(say.NotFound, notes), nil
	}
	var b strings.Builder
	b.WriteString(say.Found + "\n")
	for _, f := range finds {
		who := chat.Inline(f.Entry.Who, 64)
		if f.Entry.Kind == chat.Said {
			who = say.Me
		}
		at := f.Entry.Time.In(c.Zone).Format("2006-01-02 15:04")
		text := chat.ClipMiddle(chat.OneLine(f.Entry.Text), maxFoundText)
		fmt.Fprintf(&b, "\n- %s, %s: %s", at, who, text)
	}
	return conversation.Join(b.String(), notes), nil
}

// splitNotes takes from finds those that stand for what could not be searched, and
// returns what the person is told of these.
func (c Commands) splitNotes(finds []chat.Find) (found []chat.Find, notes string) {
	for _, f := range finds {
		if f.Entry.Kind == chat.Lost {
			notes = c.Texts.Commands.NotSearched
		} else {
			found = append(found, f)
		}
	}
	return found, notes
}
