package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"parley/chat"
	"parley/llm"
)

// Limits say how much may be spent in a day, by the house's clock (R-S15). What
// is spent counts for all whom it concerns.
type Limits struct {
	Person    Limit // of each chat.Person
	Session   Limit // of each session with its helpers
	Job       Limit // of all runs of a job
	Everybody Limit // of all together
}

// A Limit is how much of each kind; 0 is no limit.
type Limit struct {
	Turns    int     // answers that were begun
	Rounds   int     // requests to models
	Tokens   int     // of requests and answers
	Money    float64 // as far as prices are known
	Children int     // helpers that were begun
	Jobs     int     // that a person may have: the scheduler counts them
}

func (l Limit) of(k kind) float64 {
	switch k {
	case aTurn:
		return float64(l.Turns)
	case aRound:
		return float64(l.Rounds)
	case aToken:
		return float64(l.Tokens)
	case someMoney:
		return l.Money
	}
	return float64(l.Children)
}

// kinds in the order they are told.
var kinds = []kind{aTurn, aRound, aToken, someMoney, aChild}

// asking is what a request of a model takes.
var asking = []kind{aRound, aToken, someMoney}

// A payer is somebody or something whose limit counts.
type payer struct {
	key   string // in the ledger
	name  string // for /raise
	whose string // as the subject of a sentence
	limit Limit
}

// payers are those who pay for what is done for who in session, in a run of job;
// what is "" does not. A helper's session is that of whom it helps.
func (p *Pool) payers(who chat.Person, session chat.SessionID, job string) []payer {
	l := p.settings.Load().Limits
	return slices.DeleteFunc([]payer{
		{"person/" + string(who), string(who), "you", l.Person},
		{"session/" + string(p.ledger.root(session)), "session", "this conversation", l.Session},
		{"job/" + job, "job " + job, "this job", l.Job},
		{"all", "all", "everybody together", l.Everybody},
	}, func(b payer) bool { return strings.HasSuffix(b.key, "/") })
}

// payersOf are those who pay for what m asks for.
func (p *Pool) payersOf(m chat.Message) []payer {
	job := ""
	if m.Errand != nil {
		job = m.Errand.Job
	}
	by := p.payers(chat.Whose(m.At, m.From, m.Group), m.Session(), job)
	if m.Group {
		by[0].whose = "this group"
	}
	return by
}

// Charge counts a request made of model outside a turn; of who, session and job
// those that are "" are not charged. It counts also what is over a limit.
func (p *Pool) Charge(ctx context.Context, who chat.Person, session chat.SessionID, job, model string, u llm.Usage) {
	plus := p.cost(model, u)
	plus[aRound] = 1
	_ = p.spend(ctx, p.payers(who, session, job), nil, plus) // nil: it was spent
}

// Allow returns nil if a model may be asked outside a turn, or an error that
// tells people which limit is reached. It counts nothing.
func (p *Pool) Allow(ctx context.Context, who chat.Person, session chat.SessionID, job string) error {
	return p.spend(ctx, p.payers(who, session, job), asking, nil)
}

// MayHaveChild counts a helper that is to be begun in session, or returns an
// error that tells people which limit is reached.
func (p *Pool) MayHaveChild(ctx context.Context, who chat.Person, session chat.SessionID) error {
	return p.spend(ctx, p.payers(who, session, ""), []kind{aChild}, amounts{aChild: 1})
}

// cost is what a request took of model.
func (p *Pool) cost(model string, u llm.Usage) amounts {
	a := amounts{aToken: float64(u.In + u.Out)}
	if price := p.settings.Load().Price; price != nil {
		a[someMoney], _ = price(model, u)
	}
	return a
}

// errLimit tells people which limit is reached.
type errLimit string

func (e errLimit) Error() string { return string(e) }

// spend counts plus for all of by, unless one of them has nothing left of one
// of the kinds in need: then it counts nothing.
func (p *Pool) spend(ctx context.Context, by []payer, need []kind, plus amounts) error {
	l := &p.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range by {
		pg := l.page(ctx, b.key)
		if i := slices.IndexFunc(need, func(k kind) bool { return pg.out(b.limit, k) }); i >= 0 {
			return errLimit(fmt.Sprintf(wordsLimit, b.whose, pg.share(b.limit, need[i]), p.Zone, b.name))
		}
	}
	for _, b := range by {
		l.add(ctx, b.key, plus)
	}
	return nil
}

// afford counts a request of the model, and with the first one the turn. If a
// tool answers, that is all there is to count.
func (t *turn) afford(ctx context.Context) error {
	o := t.history.open
	need, plus := asking, amounts{aRound: 1}
	if o.toolOf() != nil {
		need, plus = nil, amounts{}
	}
	if len(o.all()) == 0 {
		need, plus[aTurn] = append(slices.Clip(need), aTurn), 1
	}
	return t.spend(ctx, t.payersOf(o.first), need, plus)
}

// pay counts what the answer m took.
func (t *turn) pay(ctx context.Context, m *llm.Message) {
	_ = t.spend(ctx, t.payersOf(t.history.open.first), nil, t.cost(cmp.Or(m.Model, t.name), m.Usage)) // nil: it was spent
}

// overLimit ends the turn because of why, a limit. What was said and done stays. A
// job that has nothing else to say tells of it once a day.
func (t *turn) overLimit(ctx context.Context, why error) error {
	o := t.history.open
	text := joined(o.notice(), o.text(), why.Error())
	if e := o.first.Errand; e != nil && e.Job != "" && o.text() == "" && !t.ledger.mark(ctx, "job/"+e.Job, kind(overLimit)) {
		text = ""
	}
	if len(o.said) > 0 {
		t.keep(record{Said: &llm.Message{Role: llm.Assistant, Text: wordsCutOver, Finish: llm.Stopped}})
	}
	return t.end(t.hard, overLimit, text)
}

// warning tells with an answer what is running out, each once a day. Owners are
// told what runs out for everybody.
func (t *turn) warning(ctx context.Context, how outcome) string {
	m := t.history.open.first
	if how != answered || quiet(m) || m.Origin == chat.FromParent {
		return ""
	}
	var texts []string
	by := t.payersOf(m)
	for _, w := range t.warnings(ctx, by[:len(by)-1]) {
		texts = append(texts, w.text)
	}
	return strings.Join(texts, "\n")
}

// A warning is that something of a page is running out.
type warning struct {
	id, text string
	page     *page
	kind     kind
}

// warnings marks what is running out for by, and returns what was not marked today.
func (p *Pool) warnings(ctx context.Context, by []payer) (all []warning) {
	l := &p.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range by {
		pg := l.page(ctx, b.key)
		for _, k := range kinds {
			if !pg.low(b.limit, k) || !pg.mark(k) {
				continue
			}
			l.changed(b.key)
			has := "has"
			if b.whose == "you" {
				has = "have"
			}
			percent := int(100 * pg.Spent[k] / pg.most(b.limit, k))
			all = append(all, warning{
				id:   fmt.Sprintf("limit/%s/%s/%s/%d", l.day, b.key, k, len(pg.Raised)),
				text: fmt.Sprintf(wordsLow, capital(b.whose), has, percent, pg.share(b.limit, k)), page: pg, kind: k,
			})
		}
	}
	return all
}

// warnOwners tells owners what is running out for everybody.
func (p *Pool) warnOwners(ctx context.Context) error {
	if p.Warn == nil {
		return nil
	}
	for _, w := range p.warnings(ctx, p.payers("", "", "")) {
		if err := p.Warn(ctx, w.id, w.text); err != nil {
			p.ledger.mu.Lock()
			delete(w.page.Warned, w.kind)
			p.ledger.mu.Unlock()
			return fmt.Errorf("warn owners: %w", err)
		}
	}
	return nil
}
