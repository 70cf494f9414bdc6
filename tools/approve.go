package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"parley/chat"
)

// DefaultPatience is how long people may take to approve a call.
const DefaultPatience = 15 * time.Minute

// An Asker asks a person who may decide whether c is to be run: prompt says
// what it is about, in Markdown. It returns what they say and their ID, or an
// error once ctx ends. To ask again for a call with the same Key, as after a
// restart, is to go on waiting.
type Asker func(ctx context.Context, c Call, prompt string) (yes bool, by string, err error)

// Approve asks before the calls of Dangerous tools (C-051), of categories whose
// Rule is Ask, and those a Guard holds back once strangers have had a word in
// the turn (R-S12). A call is run after a yes, and after Call.Begin, which is
// called for every call that gets here. No answer within patience, which is
// DefaultPatience if 0, is a no. It belongs to one turn: calls that are the
// same are asked for once.
//
// Approve also tells the Kit whom to deny its tools: rules may have let in the
// one who began the turn, and not another who joined it (B-014).
func Approve(rules Rules, ask Asker, patience time.Duration) Middleware {
	a := &approval{ask: ask, patience: cmp.Or(patience, DefaultPatience)}
	return func(t Tool) Tool {
		if len(t.Schema) == 0 { // what the Kit refuses has none: nothing takes effect
			return t
		}
		inner := t
		t.allows = func(role chat.Role) bool { return rules.allow(inner, role) }
		t.asks = rules.asks(inner)
		asks := t.asks
		t.Run = func(ctx context.Context, c Call) (Result, error) {
			var given consent
			if asks != nil && asks(c) {
				var err error
				if given, err = a.consent(ctx, inner, c); err != nil || given.denied.Failed {
					return given.denied, err
				}
			}
			if c.Begin != nil {
				if err := c.Begin(ctx); err != nil {
					return Result{}, err
				}
			}
			r, err := inner.Run(ctx, c)
			r.By = given.by
			return r, err
		}
		return t
	}
}

// asks returns which calls of t are asked for; nil means none ever.
func (r Rules) asks(t Tool) func(Call) bool {
	always := t.Dangerous || r.of(t) == Ask
	if !always && t.Guard == nil {
		return nil
	}
	return func(c Call) bool {
		if c.Twin != "" && !t.ReadOnly { // Dedupe does not run it
			return false
		}
		return always || c.Tainted && t.Guard(c)
	}
}

// An approval keeps what was said about the calls of one turn.
type approval struct {
	ask      Asker
	patience time.Duration
	given    sync.Map // ID of a call -> consent
}

// A consent is what became of the question for a call.
type consent struct {
	by     string
	denied Result // Failed unless they agreed
}

// consent asks for c, unless the same call was asked for.
func (a *approval) consent(ctx context.Context, t Tool, c Call) (consent, error) {
	if earlier, ok := a.given.Load(c.Twin); ok && c.Twin != "" {
		return earlier.(consent), nil
	}
	by, denied, err := a.question(ctx, t, c)
	if err != nil {
		return consent{}, err
	}
	given := consent{by, denied}
	a.given.Store(c.ID, given)
	return given, nil
}

// question returns who agreed to c, or how it was denied. The error is ask's,
// or ctx's.
func (a *approval) question(ctx context.Context, t Tool, c Call) (by string, denied Result, err error) {
	if a.ask == nil {
		return "", Failf(CodeDenied, "%s needs the approval of an owner, which cannot be asked for here: it was not run", t.Name), nil
	}
	asking, cancel := context.WithTimeout(ctx, a.patience)
	defer cancel()
	yes, by, err := a.ask(asking, c, prompt(t, c))
	switch {
	case ctx.Err() != nil:
		return "", Result{}, cmp.Or(err, context.Cause(ctx))
	case err == nil && yes:
		return by, Result{}, nil
	case errors.Is(asking.Err(), context.DeadlineExceeded):
		return "", Failf(CodeDenied, "nobody approved %s within %v: it was not run", t.Name, a.patience), nil
	case err != nil:
		return "", Result{}, fmt.Errorf("ask for the approval of %s: %w", t.Name, err)
	}
	return "", Failf(CodeDenied, "the person who was asked refused this call of %s: it was not run. "+
		"Do not try to get the same done by other means; go on without it, or ask them what they want instead.", t.Name), nil
}

// What a person is shown of the arguments of a call.
const (
	shownArgs  = 20
	shownRunes = 300 // of each
)

// prompt says in Markdown what c would do.
func prompt(t Tool, c Call) string {
	var b strings.Builder
	fmt.Fprintf(&b, "May I use `%s`?\n", plainly(t.Name))
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(c.Input)), func(n string) bool { return strings.HasPrefix(n, "_") })
	for i, name := range names {
		if i == shownArgs {
			fmt.Fprintf(&b, "\n- … and %d more arguments", len(names)-i)
			break
		}
		value, isText := c.Input[name].(string)
		if !isText || strings.TrimSpace(value) == "" {
			value = text(c.Input[name])
		}
		fmt.Fprintf(&b, "\n- `%s`: `%s`", plainly(name), plainly(value))
		if more := utf8.RuneCountInString(value) - shownRunes; more > 0 {
			fmt.Fprintf(&b, " … and %d more characters", more)
		}
	}
	if c.Tainted {
		b.WriteString("\n\n(this came up after reading what strangers wrote)")
	}
	return strings.TrimSpace(b.String())
}

// plainly returns the beginning of s so that it looks like what it is, on one
// line and within backticks: a call must not be able to dress up.
func plainly(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '`':
			return 'ˋ'
		case r < ' ':
			return '␀' + r
		case !unicode.IsGraphic(r), r == '\u2028', r == '\u2029':
			return '\ufffd'
		}
		return r
	}, cut(s, shownRunes))
}
