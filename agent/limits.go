package agent

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/agent/conversation"
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
	Bytes    int64   // that were sent, or written into files; owners have no limit of their own
}

// A payer is somebody or something whose limit counts.
type payer struct {
	key   string // in the ledger
	name  string // for /raise
	whose string // as people are told
	limit Limit
	*page
}

// payers are those who pay for what is done for who in session, in a run of job;
// what is "" does not. For helpers that is whom they work for.
func (p *Pool) payers(who chat.Person, session chat.SessionID, job string) []payer {
	l, say := p.settings.Load().Limits, p.Texts.Limits
	if who == chat.TheOwner {
		l.Person.Bytes = 0
	}
	session, _ = p.kin.root(session)
	root := string(session)
	if run, isolated := strings.CutPrefix(root, runPrefix); isolated {
		job = run
	}
	return slices.DeleteFunc([]payer{
		{"person/" + string(who), string(who), say.You, l.Person, nil},
		{"session/" + root, "session", say.Session, l.Session, nil},
		{"job/" + job, "job " + job, say.Job, l.Job, nil},
		{"all", "all", say.Everyone, l.Everybody, nil},
	}, func(b payer) bool { return strings.HasSuffix(b.key, "/") })
}

// payersOf are those who pay for the answer to m.
func (p *Pool) payersOf(m chat.Message) []payer {
	by := p.payers(chat.Whose(m.At, m.From, m.Group), m.Session(), cmp.Or(m.Errand, &chat.Errand{}).Job)
	if m.Group {
		by[0].whose = p.Texts.Limits.Group
	}
	return by
}

// most is how much of k there is for b, 0 if there is no limit.
func (b payer) most(k kind) float64 {
	l := b.limit
	return amounts{float64(l.Turns), float64(l.Rounds), float64(l.Tokens), l.Money, float64(l.Children), float64(l.Bytes)}[k] * float64(1+len(b.Raised))
}

// at says whether b has spent so many percent of k.
func (b payer) at(percent float64, k kind) bool {
	return b.most(k) > 0 && b.Spent[k]*100 >= b.most(k)*percent
}

// share says how much of k b has spent.
func (p *Pool) share(b payer, k kind) string {
	spent, most := b.Spent[k], b.most(k)
	if k == aByte {
		spent, most = spent/1e6, most/1e6
		if most >= 1 {
			spent = math.Ceil(spent*10) / 10
		}
	}
	say := p.Texts.Limits
	what := [kinds]string{say.Answers, say.Requests, say.Tokens, say.Money, say.Subagents, say.Megabytes}
	return say.Share.With(number(spent), number(most), what[k])
}

// number returns x as people read it: 20,000,000, with as many of four decimals
// as it needs.
func number(x float64) string {
	s := strconv.FormatFloat(math.Round(x*1e4)/1e4, 'f', -1, 64)
	whole, _, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// An errLimit tells people which limit is reached.
type errLimit struct {
	text  string
	again bool // whoever asked was told before
}

func (e errLimit) Error() string { return e.text }

// spend counts plus for all of by, unless one of them has nothing left of
// something in need: then it counts nothing, and the error is an errLimit.
func (p *Pool) spend(ctx context.Context, by []payer, need []kind, plus amounts) error {
	defer p.opened(ctx, by)()
	for _, b := range by {
		if i := slices.IndexFunc(need, func(k kind) bool { return b.at(100, k) }); i >= 0 {
			who := by[max(len(by)-2, 0)]
			again := who.Told
			who.Told = true
			p.ledger.changed(who.page)
			return errLimit{p.Texts.Limits.Reached.With(b.whose, p.share(b, need[i]), p.zoneNow(), b.name), again}
		}
	}
	for _, b := range by {
		for k, n := range plus {
			b.Spent[k] += n
		}
		if plus != (amounts{}) {
			p.ledger.changed(b.page)
		}
	}
	return nil
}

// TakeBytes counts bytes that who sends or has written into files, unless the
// limit of the day is used up: then it counts nothing, and returns a
// [*chat.Refusal]. To ask for 0 bytes tells whether it is. What owners send does
// not count.
func (p *Pool) TakeBytes(ctx context.Context, who chat.Person, bytes int64) error {
	if who == chat.TheOwner {
		return nil
	}
	err := p.spend(ctx, p.payers(who, "", ""), []kind{aByte}, amounts{aByte: float64(bytes)})
	if over, ok := errors.AsType[errLimit](err); ok {
		return &chat.Refusal{Text: over.text}
	}
	return err
}

// asking is what a request takes.
func asking() []kind { return []kind{aRound, aToken, someMoney} }

// Charge counts a request made of model outside a turn, also over a limit, and
// returns what it cost; of who, session and job those that are "" are not charged.
func (p *Pool) Charge(ctx context.Context, who chat.Person, session chat.SessionID, job, model string, u llm.Usage) (money float64) {
	plus := p.cost(1, model, u)
	_ = p.spend(ctx, p.payers(who, session, job), nil, plus) // nil: it was spent
	return plus[someMoney]
}

// Allow returns nil if a model may be asked outside a turn, or an error that
// tells people which limit is reached. It counts nothing.
func (p *Pool) Allow(ctx context.Context, who chat.Person, session chat.SessionID, job string) error {
	return p.spend(ctx, p.payers(who, session, job), asking(), amounts{})
}

// cost is what requests to model took.
func (p *Pool) cost(requests float64, model string, u llm.Usage) amounts {
	a := amounts{aRound: requests, aToken: float64(u.In + u.Out)}
	if price := p.settings.Load().Price; price != nil {
		a[someMoney], _ = price(model, u)
	}
	return a
}

// afford counts a request of the model, and with the first one the turn. If a
// tool answers, the turn is all there is to count.
func (t *turn) afford(ctx context.Context) error {
	o := t.openTurn()
	need, plus := asking(), amounts{aRound: 1}
	if toolCalls(o.First()) != nil {
		need, plus = nil, amounts{}
	}
	if len(o.AllAnswers()) == 0 {
		need, plus[aTurn] = append(need, aTurn), 1
	}
	return t.spend(ctx, t.payersOf(o.First()), need, plus)
}

// pay counts what so many requests of the turn took, also over a limit.
func (t *turn) pay(ctx context.Context, requests float64, model string, u llm.Usage) {
	_ = t.spend(ctx, t.payersOf(t.openTurn().First()), nil, t.cost(requests, model, u)) // nil: it was spent
}

// limited ends the turn because of why, a limit. What was said and done stays.
// Jobs that have nothing else to say tell of it once a day.
func (t *turn) limited(why error) error {
	o, e := t.openTurn(), errLimit{}
	text := conversation.Join(o.Notice(), o.Text(), why.Error())
	if o.First().Origin == chat.FromSchedule && o.Text() == "" && errors.As(why, &e) && e.again {
		text = ""
	}
	if len(o.Answers()) > 0 {
		t.session.Keep(conversation.Record{Said: &llm.Message{Role: llm.Assistant, Text: wordsCutOver, Finish: llm.Stopped}})
	}
	return t.end(t.hard, conversation.OverLimit, text)
}
