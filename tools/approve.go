package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"parley/chat"
	"parley/texts"
)

// DefaultPatience is how long people may take to approve a call.
const DefaultPatience = 15 * time.Minute

// An Asker asks a person who may decide whether c is to be run: prompt says
// what it is about, in Markdown. It returns what they say and their ID, or an
// error once ctx ends. To ask again for a call with the same Key, as after a
// restart, is to go on waiting.
type Asker func(ctx context.Context, c Call, prompt string) (yes bool, by string, err error)

// Approve asks before calls of Dangerous tools (C-051), Risky ones, of categories whose
// Rule is Ask, and those that a Guard holds back: of who is no owner, and of
// anybody in an untrusted turn (R-S12). After a yes, and after Call.Begin, which
// is called for all that get here, the call is run. No answer within patience,
// which is DefaultPatience if 0, is a no.
func Approve(ask Asker, patience time.Duration, say texts.Approval) Middleware {
	return around(func(ctx context.Context, t Tool, c Call) (given Result, err error) {
		if len(t.Schema) == 0 { // what the Kit refuses has none: nothing takes effect
			return t.Run(ctx, c)
		}
		if t.asks(c) {
			if t.Precheck != nil { // nobody is to decide about what cannot be done anyway
				if r, err := t.Precheck(c); err != nil || r.Failed {
					return r, err
				}
			}
			if c.Effect = ""; !t.asksAlways(c) && c.From.Role == chat.Owner {
				c.Effect = t.effect(c)
			}
			given, err = ask.consent(ctx, say, t, c, cmp.Or(patience, DefaultPatience))
		}
		if err == nil && !given.Failed && c.Begin != nil {
			err = c.Begin(ctx)
		}
		if err != nil || given.Failed {
			return given, err
		}
		r, err := t.Run(ctx, c)
		r.By = given.By
		return r, err
	})
}

// asks reports whether a person is asked before c is run.
func (t Tool) asks(c Call) bool {
	skipped := c.Twin != "" && !t.ReadOnly // by Dedupe
	return !skipped && (t.asksAlways(c) || t.held(c))
}

// asksAlways reports whether c is asked for in each turn, whoever it is of.
func (t Tool) asksAlways(c Call) bool {
	return t.Dangerous || t.rule == Ask || t.Risky != nil && holdsBack(t.Risky, c)
}

// held reports whether c is asked for because of what it reaches.
func (t Tool) held(c Call) bool {
	owner := c.From.Role == chat.Owner
	if t.Guard == nil || owner && !c.Tainted || !holdsBack(t.Guard, c) {
		return false
	}
	return !owner || !t.wanted(c) && (c.Granted == nil || !c.Granted(t.effect(c)))
}

// effect names what c would do, for people.
func (t Tool) effect(c Call) (what string) {
	defer func() {
		if recover() != nil || what == "" {
			what = "use " + t.canonical()
		}
	}()
	if t.Effect != nil {
		return t.Effect(c)
	}
	name, _ := c.Input["path"].(string)
	if c.Workspace != nil && name != "" {
		at, _ := c.Workspace.Resolve(name)
		name = at.String()
	}
	return strings.TrimSpace(t.canonical() + " " + name)
}

// holdsBack reports whether judge, a Guard or a Risky, holds c back. One that breaks
// down does.
func holdsBack(judge func(Call) bool, c Call) (held bool) {
	defer func() { held = recover() != nil || held }()
	return judge(c)
}

// consent returns a Result that says who agreed to c, or a failure.
func (ask Asker) consent(
	ctx context.Context,
	say texts.Approval,
	t Tool,
	c Call,
	patience time.Duration,
) (Result, error) {
	if ask == nil {
		return Failf(CodeDenied, "%s needs the approval of an owner, which cannot be asked for here: it was not run",
			t.Name), nil
	}
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	yes, by, err := ask(asking, c, prompt(say, t, c))
	switch {
	case ctx.Err() != nil:
		return Result{}, cmp.Or(err, context.Cause(ctx))
	case err == nil && yes:
		return Result{By: by}, nil
	case errors.Is(asking.Err(), context.DeadlineExceeded):
		return Failf(CodeDenied, "nobody approved %s within %v: it was not run", t.Name, patience), nil
	case err != nil:
		return Result{}, fmt.Errorf("ask for the approval of %s: %w", t.Name, err)
	}
	return Failf(CodeRefused, "the person who was asked refused this call of %s: it was not run. "+
		"Do not try to get the same done by other means; go on without it, or ask them what they want instead.",
		t.Name), nil
}

// What a person sees of a call.
const (
	shown    = 300 // characters of each argument …
	shownEnd = 60  // … and of what is not shown
)

// prompt says in Markdown what c would do.
func prompt(say texts.Approval, t Tool, c Call) string {
	var b strings.Builder
	b.WriteString(say.May.With(plainly(t.Name)) + "\n")
	for _, name := range slices.Sorted(maps.Keys(c.Input)) {
		value, isText := c.Input[name].(string)
		if !isText || strings.TrimSpace(value) == "" {
			value = text(c.Input[name])
		}
		value = chat.HideLogins(value)
		fmt.Fprintf(&b, "\n- `%s`: `%s`", plainly(name), plainly(value))
		if more := utf8.RuneCountInString(value) - shown; more > 0 {
			all := []rune(value)
			b.WriteString(" " + say.More.With(more, plainly(string(all[len(all)-min(more, shownEnd):]))))
		}
	}
	if c.Tainted {
		b.WriteString("\n\n" + say.Sources)
		for _, source := range c.Sources {
			fmt.Fprintf(&b, "\n- `%s`", plainly(source))
		}
		if c.Effect != "" {
			b.WriteString("\n\n" + say.Effect.With(plainly(c.Effect)))
		}
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
		case !unicode.IsGraphic(r):
			return '\ufffd'
		}
		return r
	}, chat.Clip(s, shown, ""))
}
