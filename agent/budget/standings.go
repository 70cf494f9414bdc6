package budget

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"parley/chat"
	"parley/texts"
)

// warnPercent is how much of a limit is used when people are warned.
const warnPercent = 80

// A warning tells what is running out, once for each id.
type warning struct{ id, text string }

// warnings returns what of accounts was not told yet today.
func (b *Book) warnings(ctx context.Context, accounts []account) (all []warning) {
	defer b.open(ctx, accounts)()
	for _, a := range accounts {
		for k := range kinds {
			if !a.at(warnPercent, k) || a.used.Warned[k] {
				continue
			}
			a.used.Warned[k] = true
			b.write(a.used)
			day, key, _ := strings.Cut(a.key, "/")
			percent := int(100 * a.used.Spent[k] / a.most(k))
			all = append(all, warning{
				id:   fmt.Sprintf("limit/%s/%s/%s/%d", day, key, k, len(a.used.Raised)),
				text: b.cfg.Texts.Low.With(percent, a.title, b.share(a, k)),
			})
		}
	}
	return all
}

// Warnings returns what who was not told yet today of what is running out. What
// runs out for everybody owners are told.
func (b *Book) Warnings(ctx context.Context, who Spender) (lines []string) {
	accounts := b.accounts(who)
	for _, w := range b.warnings(ctx, accounts[:len(accounts)-1]) {
		lines = append(lines, w.text)
	}
	return lines
}

func (b *Book) warnOwners(ctx context.Context) {
	if b.cfg.Warn == nil {
		return
	}
	for _, w := range b.warnings(ctx, b.accounts(Spender{})) {
		tell := func(ctx context.Context) error { return b.cfg.Warn(ctx, w.id, w.text) }
		_ = b.cfg.Retry(ctx, "warn owners", tell) // it fails only when the process ends
	}
}

// Standings tells where the accounts of who stand that have limits; "" if none
// has. That of everybody together is for owners to know.
func (b *Book) Standings(ctx context.Context, who Spender, everybody bool) string {
	accounts := b.accounts(who)
	if !everybody {
		accounts = accounts[:len(accounts)-1]
	}
	return b.standings(ctx, b.cfg.Texts.Today, accounts)
}

func (b *Book) standings(ctx context.Context, title texts.Format, accounts []account) string {
	defer b.open(ctx, accounts)()
	text := ""
	for _, a := range accounts {
		var shares []string
		for k := range kinds {
			if a.most(k) > 0 {
				shares = append(shares, b.share(a, k))
			}
		}
		if len(shares) > 0 {
			text += "\n- " + a.title + ": " + strings.Join(shares, ", ")
		}
	}
	if text == "" {
		return ""
	}
	return title.With(b.zoneNow()) + text
}

// Raise raises limits for today by as much as they are, once for each key of a
// message: those of the account called name, or of the accounts of who that are
// running out. It returns what people are told.
func (b *Book) Raise(ctx context.Context, who Spender, name, key string) string {
	accounts := b.named(name, who)
	unlock := b.open(ctx, accounts)
	accounts = slices.DeleteFunc(accounts, func(a account) bool {
		if slices.Contains(a.used.Raised, key) {
			return false
		}
		low := name != ""
		for k := range kinds {
			low = low || a.at(warnPercent, k)
		}
		if !low {
			return true
		}
		a.used.Raised = append(a.used.Raised, key)
		a.used.Warned = [kinds]bool{}
		a.used.Told = false
		b.write(a.used)
		return false
	})
	unlock()
	return cmp.Or(b.standings(ctx, b.cfg.Texts.Raised, accounts), b.cfg.Texts.NoSuch)
}

// named returns the account called name, or those of who if name is empty; none
// if nobody can be called that.
func (b *Book) named(name string, who Spender) []account {
	job, isJob := strings.CutPrefix(name, "job ")
	whose := Spender{Person: chat.Person(name)}
	switch {
	case name == "":
		return b.accounts(who)
	case name == "all":
		return b.accounts(Spender{})
	case name == "session":
		return b.accounts(Spender{Session: who.Session})[:1]
	case isJob:
		whose = Spender{Job: strings.TrimSpace(job)}
	case whose.Person != chat.TheOwner && !strings.Contains(name, ":"):
		return nil
	}
	accounts := b.accounts(whose)[:1]
	accounts[0].title = name
	return accounts
}
