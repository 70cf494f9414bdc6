package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"parley/chat"
)

// cmdRaise raises limits for today by as much as they are, once for each message.
func (p *Pool) cmdRaise(ctx context.Context, m chat.Message) string {
	if m.From.Role != chat.Owner {
		return wordsNoRaise
	}
	_, name := cut(m.Text)
	lines := p.raise(ctx, m.Key(), p.named(name, m), name == "")
	switch {
	case len(lines) == 0 && name == "":
		return fmt.Sprintf(wordsAllWell, warnAt)
	case len(lines) == 0:
		return fmt.Sprintf("There is no limit for %s.", name)
	}
	if err := p.ledger.write(ctx); err != nil { // what an owner was told is to be true after a crash
		return p.sorry("note that", m.Session(), err)
	}
	return fmt.Sprintf("Raised, until midnight (%s):\n%s", p.Zone, strings.Join(lines, "\n"))
}

// named returns the payer called name, or those of m's session.
func (p *Pool) named(name string, m chat.Message) []payer {
	var by []payer
	job, isJob := strings.CutPrefix(name, "job ")
	switch {
	case name == "":
		return p.payersOf(m)
	case name == "all":
		by = p.payers("", "", "")
	case name == "session":
		by = p.payers("", m.Session(), "")
	case isJob:
		by = p.payers("", "", strings.TrimSpace(job))
	default:
		by = p.payers(chat.Person(name), "", "")
	}
	if name != "all" && name != "session" {
		by[0].whose = name
	}
	return by[:1]
}

// raise raises the limits of by, because of the message called key; with low of
// those only who stand high. It returns where those now stand.
func (p *Pool) raise(ctx context.Context, key string, by []payer, low bool) (lines []string) {
	l := &p.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range by {
		pg := l.page(ctx, b.key)
		before := slices.Contains(pg.Raised, key)
		if pg.standing(b) == "" || low && !before && !pg.anyLow(b.limit) {
			continue
		}
		if !before {
			pg.Raised, pg.Warned = append(pg.Raised, key), nil
			l.changed(b.key)
		}
		lines = append(lines, pg.standing(b))
	}
	return lines
}

// standings says where by stand today, "" if they have no limits.
func (p *Pool) standings(ctx context.Context, by []payer) string {
	l := &p.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	var lines []string
	for _, b := range by {
		lines = append(lines, l.page(ctx, b.key).standing(b))
	}
	if text := strings.Join(slices.DeleteFunc(lines, func(s string) bool { return s == "" }), "\n"); text != "" {
		return fmt.Sprintf("\n\nToday, until midnight (%s):\n%s", p.Zone, text)
	}
	return ""
}
