package budget

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"parley/chat"
	"parley/llm"
)

// A LimitError tells people which limit is reached.
type LimitError struct {
	Text     string
	Repeated bool // whoever asked was told before
}

func (e *LimitError) Error() string { return e.Text }

// Is reports whether target is [llm.ErrLimit], which models fail with.
func (e *LimitError) Is(target error) bool { return target == llm.ErrLimit }

// requestNeeds lists what must be left for a request to a model.
func requestNeeds() []Kind { return []Kind{Requests, Tokens, Money} }

// spend counts plus for who, and hands the usage of each account to count, which
// may be nil. If an account has nothing left of something in need it counts
// nothing, and the error is a [*LimitError].
func (b *Book) spend(ctx context.Context, who Spender, need []Kind, plus Amounts, count func(*usage)) error {
	limited := b.accounts(who)
	all := append(limited, totals(who)...)
	defer b.open(ctx, all)()
	limited = all[:len(limited)]
	for _, a := range limited {
		i := slices.IndexFunc(need, func(k Kind) bool { return a.at(100, k) })
		if i < 0 {
			continue
		}
		narrowest := limited[max(len(limited)-2, 0)].used
		repeated := narrowest.Told
		narrowest.Told = true
		b.write(narrowest)
		return &LimitError{b.cfg.Texts.Reached.With(a.title, b.share(a, need[i]), b.zoneNow(), a.name), repeated}
	}
	if plus == (Amounts{}) {
		return nil
	}
	for _, a := range all {
		for k, n := range plus {
			a.used.Spent[k] += n
		}
		if count != nil && countsByModel(a.key) {
			count(a.used)
		}
		b.write(a.used)
	}
	return nil
}

// countsByModel reports whether the account of that key tells models apart.
func countsByModel(key string) bool {
	_, _, ofPerson := personOf(key)
	return ofPerson || lasting(key)
}

// Spend counts plus for who, unless a limit of something in plus is reached:
// then it counts nothing, and returns a [*LimitError]. A request needs tokens
// and money, too. A turn counts for the model that is to answer it, if one is.
func (b *Book) Spend(ctx context.Context, who Spender, model string, plus Amounts) error {
	var need []Kind
	if plus[Requests] > 0 {
		need = requestNeeds()
	}
	for k, n := range plus {
		if n > 0 && !slices.Contains(need, Kind(k)) {
			need = append(need, Kind(k))
		}
	}
	var count func(*usage)
	if model != "" && plus[Turns] > 0 {
		count = func(u *usage) { u.add(model, ModelUsage{Turns: int(plus[Turns])}) }
	}
	return b.spend(ctx, who, need, plus, count)
}

// Charge counts what so many requests to model took, also over a limit.
func (b *Book) Charge(ctx context.Context, who Spender, requests int, model string, u llm.Usage) {
	plus := Amounts{Requests: float64(requests), Tokens: float64(u.In + u.Out)}
	taken := b.priced(model, ModelUsage{Usage: u})
	plus[Money] = taken.Cost
	var count func(*usage)
	if u != (llm.Usage{}) {
		count = func(used *usage) { used.add(model, taken) }
	}
	_ = b.spend(ctx, who, nil, plus, count) // nil: it was spent
}

// Allow returns nil if a model may be asked for who, or a [*LimitError]. It
// counts nothing.
func (b *Book) Allow(ctx context.Context, who Spender) error {
	return b.spend(ctx, who, requestNeeds(), Amounts{}, nil)
}

// TakeBytes counts bytes that who sends or has written into files, unless the
// limit of the day is used up: then it counts nothing, and returns a
// [*chat.Refusal]. To ask for 0 bytes tells whether it is. What owners send does
// not count.
func (b *Book) TakeBytes(ctx context.Context, who chat.Person, bytes int64) error {
	if who == chat.TheOwner {
		return nil
	}
	err := b.spend(ctx, Spender{Person: who}, []Kind{Bytes}, Amounts{Bytes: float64(bytes)}, nil)
	if over, ok := errors.AsType[*LimitError](err); ok {
		return &chat.Refusal{Text: over.Text}
	}
	return err
}

// TakeMessage counts the bytes of the words that m brings, as TakeBytes does.
func (b *Book) TakeMessage(ctx context.Context, m chat.Message) error {
	bytes := len(m.Text)
	if m.Quote != nil {
		bytes += len(m.Quote.Text)
	}
	return b.TakeBytes(ctx, chat.Whose(m.At, m.From, m.Group), int64(bytes))
}

// Meter returns a Model that asks model, which has that name in the config, at the
// expense of who: it fails once their limits are reached.
func (b *Book) Meter(who Spender, name string, model llm.Model) llm.Model {
	return llm.ModelFunc(func(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Message, error) {
		if err := b.Spend(ctx, who, "", Amounts{Requests: 1}); err != nil {
			return llm.Message{}, err
		}
		answer, err := model.Generate(ctx, req, stream)
		used := answer.Usage
		if llm.WasInterrupted(ctx, err) {
			used.In = req.EstimateTokens()
		}
		b.Charge(ctx, who, 0, cmp.Or(answer.Model, name), used)
		return answer, err
	})
}
