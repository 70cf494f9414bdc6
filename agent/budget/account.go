package budget

import (
	"math"
	"strconv"
	"strings"
	"time"

	"parley/chat"
)

// A Kind is something of which a day has only so much.
type Kind int

// The kinds.
const (
	Turns     Kind = iota // answers that were begun
	Requests              // to models
	Tokens                // of requests and answers
	Money                 // as far as prices are known
	Subagents             // that were begun
	Bytes                 // that a person sent or had written
	kinds
)

// String returns the name of k in the IDs of warnings.
func (k Kind) String() string {
	return [...]string{"answers", "requests", "tokens", "money", "helpers", "megabytes"}[k]
}

// Amounts are how much of each Kind.
type Amounts [kinds]float64

// Limits say how much may be spent in a day of [Config].Zone (R-S15). What is
// spent counts for all whom it concerns.
type Limits struct {
	Person    Limit // of each chat.Person
	Session   Limit // of each session with its subagents
	Job       Limit // of all runs of a job
	Everybody Limit // of all together
}

// A Limit is how much of each Kind; 0 is no limit.
type Limit struct {
	Turns     int
	Requests  int
	Tokens    int
	Money     float64
	Subagents int
	Bytes     int64 // owners have no limit of their own
}

func (l Limit) amounts() Amounts {
	return Amounts{
		Turns: float64(l.Turns), Requests: float64(l.Requests), Tokens: float64(l.Tokens),
		Money: l.Money, Subagents: float64(l.Subagents), Bytes: float64(l.Bytes),
	}
}

// A Spender says for whom and for what something is spent; each of its fields
// may be empty.
type Spender struct {
	Person  chat.Person
	Group   bool           // Person is a group
	Session chat.SessionID // of a subagent: the one that it works for in the end
	Job     string         // the ID of a scheduled job
	Run     string         // the ID of its run
}

// An account is somebody or something for which is counted what is spent.
type account struct {
	key   string // in the book
	name  string // for /raise
	title string // as people are told
	limit Limit  // of a day
	used  *usage // once the book is open
}

// accounts returns those with limits for which counts what who spends today.
// The last is that of everybody together, and before it stands the narrowest.
func (b *Book) accounts(who Spender) (all []account) {
	limits := b.cfg.Limits()
	say := b.cfg.Texts
	day := b.today()
	add := func(key, name, title string, limit Limit) {
		all = append(all, account{key: day + key, name: name, title: title, limit: limit})
	}
	if who.Person == chat.TheOwner {
		limits.Person.Bytes = 0
	}
	if name := string(who.Person); name != "" {
		title := say.You
		if who.Group {
			title = say.Group
		}
		add(personInfix+name, name, title, limits.Person)
	}
	if id := string(who.Session); id != "" {
		add("/session/"+id, "session", say.Session, limits.Session)
	}
	if id := who.Job; id != "" {
		add("/job/"+id, "job "+id, say.Job, limits.Job)
	}
	add("/all", "all", say.Everyone, limits.Everybody)
	return all
}

// totals returns the accounts without limits that what who spends counts for.
func totals(who Spender) (all []account) {
	if who.Session != "" {
		all = append(all, account{key: conversationPrefix + string(who.Session)})
	}
	if who.Run != "" {
		all = append(all, account{key: runPrefix + who.Run})
	}
	return all
}

// personInfix stands between day and person in the key of a person's account.
const personInfix = "/person/"

// personOf returns day and person of the account that a key names, if it is a
// person's.
func personOf(key string) (day string, who chat.Person, ofPerson bool) {
	key = strings.TrimPrefix(key, importedPrefix)
	n := len(time.DateOnly)
	if len(key) < n || !strings.HasPrefix(key[n:], personInfix) {
		return "", "", false
	}
	return key[:n], chat.Person(key[n+len(personInfix):]), true
}

// most is how much of k the account may use today, 0 if there is no limit.
func (a account) most(k Kind) float64 {
	return a.limit.amounts()[k] * float64(1+len(a.used.Raised))
}

// at reports whether the account has used so many percent of k.
func (a account) at(percent float64, k Kind) bool {
	return a.most(k) > 0 && a.used.Spent[k]*100 >= a.most(k)*percent
}

// share tells how much of k the account has used.
func (b *Book) share(a account, k Kind) string {
	spent, most := a.used.Spent[k], a.most(k)
	if k == Bytes {
		spent, most = spent/1e6, most/1e6
		if most >= 1 {
			spent = math.Ceil(spent*10) / 10
		}
	}
	say := b.cfg.Texts
	if k == Money {
		return say.ShareCost.With(Number(spent), Number(most))
	}
	what := [kinds]string{
		Turns: say.Answers, Requests: say.Requests, Tokens: say.Tokens, Subagents: say.Subagents, Bytes: say.Megabytes,
	}
	return say.Share.With(Number(spent), Number(most), what[k])
}

// Number returns x as people read it: 20,000,000, with as many of four decimals
// as it needs.
func Number(x float64) string {
	s := strconv.FormatFloat(math.Round(x*1e4)/1e4, 'f', -1, 64)
	whole, _, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
