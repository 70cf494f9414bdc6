package manage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/chat"
	"parley/tools/mcp"
	"parley/tools/mcp/pins"
)

// pagePath is where the owner's page is.
const pagePath = "/admin/mcp"

// Command answers the slash command /mcp. Owners see all servers in a private chat; other people, and
// everybody in groups, see which servers they can use.
func (m *Manager) Command(ctx context.Context, message chat.Message) (string, error) {
	say := m.config.Texts
	_, rest := chat.Word(message.Text)
	word, rest := chat.Word(rest)
	name, code := m.splitName(strings.TrimSpace(rest))
	owner := message.From.Role == chat.Owner
	switch {
	case word == "" && owner && !message.Group:
		return m.listAll(ctx)
	case word == "":
		return m.listUsable(ctx, message)
	case word == "login" || word == "logout":
		return m.signInOrOut(ctx, word, name, message)
	case !owner:
		return say.OnlyOwners, nil
	case message.Group:
		return say.OnlyPrivate, nil
	case !slices.Contains([]string{"show", "approve", "reconnect"}, word) || name == "":
		return say.Usage, nil
	case m.config.Servers.Server(name) == nil:
		return say.Unknown.With(chat.Inline(name, 100), strings.Join(m.names(), ", ")), nil
	}
	switch {
	case word == "reconnect" && m.isDisabled(name):
		return say.SwitchedOff.With(name), nil
	case word == "reconnect":
		return say.Reconnecting.With(name), m.Reconnect(name, message.From.ID)
	case word == "approve" && code != "":
		return m.approve(ctx, name, strings.Fields(code), message.From.ID)
	}
	return m.show(ctx, name)
}

// splitName returns the name of a server that text begins with, and what follows it. Names may have
// spaces. If no server has such a name, it is the first word.
func (m *Manager) splitName(text string) (name, rest string) {
	for _, known := range m.names() {
		after, ok := strings.CutPrefix(text, known)
		if ok && (after == "" || after[0] == ' ') && len(known) > len(name) {
			name = known
			rest = strings.TrimSpace(after)
		}
	}
	if name == "" {
		return chat.Word(text)
	}
	return name, rest
}

// listUsable lists the servers whose tools exist for who wrote message.
func (m *Manager) listUsable(ctx context.Context, message chat.Message) (string, error) {
	say := m.config.Texts
	scope := scopeOf(message)
	names := m.config.Servers.Usable(scope)
	if len(names) == 0 {
		return say.None, nil
	}
	all, err := m.List(ctx)
	if err != nil {
		return "", err
	}
	lines := []string{say.List}
	for _, name := range names {
		line := "- " + name
		for _, s := range all {
			if s.Name == name && s.Person == scope.Whose() && s.SignIn != nil {
				line += ": " + m.signedIn(s.SignIn)
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), nil
}

// listAll lists all servers for owners.
func (m *Manager) listAll(ctx context.Context) (string, error) {
	say := m.config.Texts
	all, err := m.List(ctx)
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return say.None, nil
	}
	lines := []string{say.List}
	for _, s := range all {
		lines = append(lines, "- "+m.line(s))
	}
	return strings.Join(append(lines, "", say.End), "\n"), nil
}

// line says how a server is.
func (m *Manager) line(s Status) string {
	say := m.config.Texts
	parts := []string{m.phase(s)}
	if s.SignIn != nil {
		parts = append(parts, m.signedIn(s.SignIn))
	}
	switch {
	case s.Tools > 0 && s.New:
		parts = append(parts, say.NewOffers.Of(s.Tools))
	case s.Tools > 0:
		parts = append(parts, say.Offers.Of(s.Tools))
	}
	if s.Calls > 0 {
		parts = append(parts, say.Calls.With(s.Calls, s.Failures, time.Duration(s.LatencyMS)*time.Millisecond))
	}
	if s.Changes > 0 {
		parts = append(parts, say.Waiting.Of(s.Changes))
	}
	name := s.Name
	if s.Person != "" {
		name += " (" + string(s.Person) + ")"
	}
	return say.Server.With(name, strings.Join(parts, "; "))
}

func (m *Manager) phase(s Status) string {
	say := m.config.Texts
	switch s.Phase {
	case mcp.Disabled:
		return say.Disabled
	case mcp.Idle:
		return say.Idle
	case mcp.Connected:
		return say.Connected
	case mcp.Ended:
		return say.Ended
	case mcp.SignedOut:
		return say.SignInNeeded.With(s.Name)
	case mcp.Failed:
		const most = 300 // characters of what may be written by the server
		return say.Failed.With(chat.Inline(s.LastError, most), s.NextTry.In(m.config.Zone).Format("15:04:05"))
	}
	return say.Connecting
}

// show tells all about a server.
func (m *Manager) show(ctx context.Context, name string) (string, error) {
	say := m.config.Texts
	r, err := m.Show(ctx, name)
	if err != nil {
		return "", err
	}
	var parts, offers []string
	for _, s := range r.Status {
		parts = append(parts, m.line(s))
	}
	for _, o := range r.Offers {
		offers = append(offers, o.Name)
	}
	waits := len(r.Pending.Changes) > 0 && !r.Pending.First
	if len(offers) > 0 && !waits {
		const most = 2000 // characters
		parts = append(parts, chat.Inline(strings.Join(offers, ", "), most))
	}
	if r.Pending.First {
		parts = append(parts, say.First.With(name, pagePath))
	}
	if waits {
		shown, whole := m.pending(name, r)
		parts = append(parts, shown...)
		if whole { // nobody approves what they cannot have read (R-S22)
			parts = append(parts, say.HowToApprove.With(name, r.Pending.Code))
		}
		if whole && len(r.Pending.Changes) > 1 {
			parts = append(parts, say.HowToApproveSome.With(name, r.Pending.Code))
		}
	}
	return strings.Join(parts, "\n\n"), nil
}

// pending tells what waits for approval, and whether that is all of it.
func (m *Manager) pending(name string, r Report) (parts []string, whole bool) {
	say := m.config.Texts
	p := r.Pending
	if p.Damaged {
		parts = append(parts, say.Damaged)
	}
	if p.Before != "" {
		parts = append(parts, say.ConfigChanged, fenced(p.Before+"\n"+p.Command))
	}
	var diff strings.Builder
	for i, c := range p.Changes {
		fmt.Fprintf(&diff, "# %d. %s\n%s", i+1, r.Summary[i], c.Diff)
	}
	const most = 6000 // characters
	text := chat.Clip(diff.String(), most, "\n…")
	parts = append(parts, fenced(text))
	if text != diff.String() {
		return append(parts, say.Cut.With(pagePath, name)), false
	}
	return parts, true
}

// fenced returns text as a block of code, whatever it has in it.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "diff\n" + strings.TrimSuffix(text, "\n") + "\n" + fence
}

// approve approves what waits of a server, if it is what the code names that words begin with. The numbers of
// some changes may follow. Otherwise it shows how it is.
func (m *Manager) approve(ctx context.Context, name string, words []string, by string) (string, error) {
	say := m.config.Texts
	var numbers []int
	for _, word := range words[1:] {
		n, err := strconv.Atoi(word)
		if err != nil {
			return say.Usage, nil
		}
		numbers = append(numbers, n)
	}
	switch err := m.Approve(ctx, name, strings.ToLower(words[0]), cmp.Or(by, "owner"), numbers...); {
	case errors.Is(err, pins.ErrNumber):
		return say.NoSuchChange.With(name), nil
	case errors.Is(err, pins.ErrNothing):
		return say.Nothing.With(name), nil
	case errors.Is(err, pins.ErrStale):
		now, err := m.show(ctx, name)
		return say.Stale.With(name) + "\n\n" + now, err
	case err != nil:
		return "", err
	}
	if p, err := m.config.Book.Pending(ctx, name); err == nil && len(p.Changes) > 0 {
		return say.ApprovedSome.Of(len(p.Changes), name), nil
	}
	return say.Approved.With(name), nil
}
