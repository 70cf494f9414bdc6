package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"parley/agent/conversation"
	"parley/chat"
	"parley/texts"
)

// Who has spent so many percent of a limit is warned.
const warnAt = 80

// warnings returns what by have not been told yet today of what is running out,
// each with an ID.
func (p *Pool) warnings(ctx context.Context, by []payer) (ids, texts []string) {
	defer p.opened(ctx, by)()
	for _, b := range by {
		for k := range kinds {
			if !b.at(warnAt, k) || b.Warned[k] {
				continue
			}
			b.Warned[k] = true
			p.ledger.changed(b.page)
			percent := int(100 * b.Spent[k] / b.most(k))
			ids = append(ids, fmt.Sprintf("limit/%s/%s/%s/%d", p.daysAgo(0), b.key, k, len(b.Raised)))
			texts = append(texts, p.Texts.Limits.Low.With(percent, b.whose, p.share(b, k)))
		}
	}
	return ids, texts
}

// warning tells with an answer what is running out. Of what runs out for
// everybody owners are told.
func (t *turn) warning(ctx context.Context, how conversation.Outcome) string {
	m := t.openTurn().First()
	if how != conversation.Answered || conversation.IsQuiet(m) || m.Origin == chat.FromParent {
		return ""
	}
	by := t.payersOf(m)
	_, texts := t.warnings(ctx, by[:len(by)-1])
	return strings.Join(texts, "\n")
}

func (p *Pool) warnOwners(ctx context.Context) {
	if p.Warn == nil {
		return
	}
	ids, texts := p.warnings(ctx, p.payers("", "", ""))
	for i, id := range ids {
		_ = p.insist(ctx, "warn owners", func(ctx context.Context) error { return p.Warn(ctx, id, texts[i]) }) // the house ends
	}
}

// standings tells where those of by stand that have limits.
func (p *Pool) standings(ctx context.Context, title texts.Format, by []payer) (text string) {
	defer p.opened(ctx, by)()
	for _, b := range by {
		var shares []string
		for k := range kinds {
			if b.most(k) > 0 {
				shares = append(shares, p.share(b, k))
			}
		}
		if len(shares) > 0 {
			text += "\n- " + b.whose + ": " + strings.Join(shares, ", ")
		}
	}
	if text == "" {
		return ""
	}
	return title.With(p.zoneNow()) + text
}

// cmdRaise raises limits for today by as much as they are, once for each message:
// the one that is named, or those that run out here.
func (p *Pool) cmdRaise(ctx context.Context, m chat.Message) string {
	_, name := chat.Word(m.Text)
	if m.From.Role != chat.Owner {
		return p.Texts.Limits.NoRaise
	}
	by := p.named(name, m)
	done := p.opened(ctx, by)
	by = slices.DeleteFunc(by, func(b payer) bool {
		low := name != ""
		for k := range kinds {
			low = low || b.at(warnAt, k)
		}
		if again := slices.Contains(b.Raised, m.Key()); again || !low {
			return !again
		}
		b.Raised, b.Warned, b.Told = append(b.Raised, m.Key()), [kinds]bool{}, false
		p.ledger.changed(b.page)
		return false
	})
	done()
	return cmp.Or(p.standings(ctx, p.Texts.Limits.Raised, by), p.Texts.Limits.NoSuch)
}

// named returns the payer called name, or those of m's session; nobody if none
// can be called that.
func (p *Pool) named(name string, m chat.Message) []payer {
	who, job := chat.Person(name), ""
	switch id, isJob := strings.CutPrefix(name, "job "); {
	case name == "":
		return p.payersOf(m)
	case name == "all":
		return p.payers("", "", "")
	case name == "session":
		return p.payers("", m.Session(), "")[:1]
	case isJob:
		who, job = "", strings.TrimSpace(id)
	case who != chat.TheOwner && !strings.Contains(name, ":"):
		return nil
	}
	by := p.payers(who, "", job)[:1]
	by[0].whose = name
	return by
}
