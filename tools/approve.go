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

	"parley/chat"
	"parley/texts"
	"parley/tools/arguments"
)

// DefaultPatience is how long people have to approve a call.
const DefaultPatience = 15 * time.Minute

// An Asker asks a person who may decide whether c is to run; prompt describes the
// call, in Markdown. It returns the decision and the person's ID, or an error once
// ctx ends. Asking again for a call with the same Key, as after a restart,
// continues to wait for the same answer.
type Asker func(ctx context.Context, c Call, prompt string) (yes bool, by string, err error)

// Approve asks for approval of calls of Dangerous tools (C-051) and Risky calls,
// of calls in categories whose Rule is Ask, and of calls that a Guard holds back:
// those of people who are not owners, and of anybody in an untrusted turn (R-S12).
// After the approval, and after Call.Begin, which is called for every call that
// gets here, the call runs. No answer within patience, which is DefaultPatience if
// 0, counts as a refusal.
func Approve(ask Asker, patience time.Duration, say texts.Approval) Middleware {
	return around(func(ctx context.Context, t Tool, c Call) (given Result, err error) {
		if len(t.Schema) == 0 { // a call that the Kit refuses, which has no effect
			return t.Run(ctx, c)
		}
		if t.asks(c) {
			if t.Precheck != nil { // nobody should decide about a call that would fail anyway
				if r, err := t.Precheck(c); err != nil || r.Failed {
					return r, err
				}
			}
			c.Effect = ""
			if t.isGrantable(c) {
				c.Effect = t.effect(c)
			}
			c.Consequence = t.consequence(say, c)
			given, err = ask.consent(ctx, say, t, c, cmp.Or(patience, DefaultPatience))
			if err == nil && !given.Failed && t.consequence(say, c) != c.Consequence {
				return Failf(CodeRefused, "what %s may do has changed since its approval was asked for: "+
					"it was not run. Call it again to ask anew.", t.Name), nil
			}
		}
		if err != nil || given.Failed {
			return given, err
		}
		if c.Begin != nil {
			if err := c.Begin(ctx); err != nil {
				return given, err
			}
		}
		start := time.Now()
		r, err := t.Run(ctx, c)
		r.By = given.By
		if r.By != "" {
			r.Time = start // what the person took to answer is no part of the call
		}
		return r, err
	})
}

// asks reports whether a person is asked before c runs.
func (t Tool) asks(c Call) bool {
	skipped := c.Twin != "" && !t.ReadOnly // by Dedupe
	return !skipped && (t.asksAlways(c) || t.held(c))
}

// asksAlways reports whether c needs approval in every turn, whoever asked for it.
func (t Tool) asksAlways(c Call) bool {
	return t.Dangerous || t.whoMay() == Ask || t.Risky != nil && holdsBack(t.Risky, c) && !t.isGranted(c)
}

// isGrantable reports whether an owner may approve all calls with the effect of c for a while.
func (t Tool) isGrantable(c Call) bool {
	switch {
	case c.From.Role != chat.Owner || t.Dangerous || t.whoMay() == Ask:
		return false
	case t.Grantable == nil:
		return t.Risky == nil || !holdsBack(t.Risky, c)
	}
	return !holdsBack(func(c Call) bool { return !t.Grantable(c) }, c)
}

// isGranted reports whether an owner has approved all calls with the effect of c for a while,
// although c is risky.
func (t Tool) isGranted(c Call) bool {
	return t.Grantable != nil && c.Granted != nil && t.isGrantable(c) && c.Granted(t.effect(c))
}

// held reports whether c needs approval because of its effects outside the turn.
func (t Tool) held(c Call) bool {
	owner := c.From.Role == chat.Owner
	if t.Guard == nil || owner && !c.Tainted || !holdsBack(t.Guard, c) {
		return false
	}
	return !owner || !t.wanted(c) && (c.Granted == nil || !c.Granted(t.effect(c)))
}

// effect names the effect of c, for people.
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

func (t Tool) consequence(say texts.Approval, c Call) string {
	if t.Consequence == nil {
		return ""
	}
	return t.Consequence(say, c)
}

// holdsBack reports whether judge, a Guard or a Risky, holds c back. A panic
// counts as yes.
func holdsBack(judge func(Call) bool, c Call) (held bool) {
	defer func() { held = recover() != nil || held }()
	return judge(c)
}

// consent returns a Result with the person who approved c, or a failure.
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

// How much of a call a person sees, in characters. The longest argument, such as a command, is shown up to
// shownLongest, less what the others take: a payload must not hide in its middle.
const (
	shownLongest  = 2000
	shown         = 300 // at the beginning of any other argument
	shownEndShare = 5   // at the end of one that is cut: this part of what is shown of its beginning
	shownPerLine  = 500 // in one pair of backticks: channels that split messages do so between lines
)

// prompt describes in Markdown what c would do.
func prompt(say texts.Approval, t Tool, c Call) string {
	var b strings.Builder
	asked, told := sentence(say, t, c)
	b.WriteString(asked + "\n")
	values, longest := argumentsOf(c, told)
	rest := shownLongest // for the longest argument
	for name, value := range values {
		if name != longest {
			rest -= min(len(value), shown)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		limit := shown
		if name == longest {
			limit = max(rest, shown)
		}
		value := values[name]
		beginning := value[:min(len(value), limit)]
		fmt.Fprintf(&b, "\n- `%s`: `%s`", plainly(name), inLines(beginning))
		if more := len(value) - limit; more > 0 {
			end := value[len(value)-min(more, limit/shownEndShare):]
			b.WriteString(" " + say.More.With(more, inLines(end)))
		}
	}
	if c.Consequence != "" {
		b.WriteString("\n\n" + c.Consequence)
	}
	if c.Tainted {
		b.WriteString("\n\n" + say.Sources)
		for _, source := range c.Sources {
			fmt.Fprintf(&b, "\n- `%s`", plainly(source))
		}
	}
	if c.Effect != "" {
		b.WriteString("\n\n" + say.Effect.With(plainly(c.Effect)))
	}
	return strings.TrimSpace(b.String())
}

// argumentsOf returns the arguments of c as people are shown them, and the name of the longest. Those that
// they are told anyway are left out.
func argumentsOf(c Call, told []string) (values map[string][]rune, longest string) {
	values = map[string][]rune{}
	for _, name := range slices.Sorted(maps.Keys(c.Input)) {
		value, isText := c.Input[name].(string)
		if i := slices.Index(told, value); isText && i >= 0 {
			told = slices.Delete(slices.Clone(told), i, i+1) // another argument of this value is not told
			continue
		}
		if !isText || strings.TrimSpace(value) == "" {
			value = arguments.JSON(c.Input[name])
		}
		values[name] = []rune(chat.HideLogins(value))
		if len(values[name]) > len(values[longest]) {
			longest = name
		}
	}
	return values, longest
}

// inLines is inPlain for a text that may be long: each of its lines has backticks of its own.
func inLines(value []rune) string {
	var lines []string
	for line := range slices.Chunk(value, shownPerLine) {
		lines = append(lines, inPlain(string(line)))
	}
	return strings.Join(lines, "`\n`")
}

// plainly is inPlain for the beginning of s.
func plainly(s string) string { return inPlain(chat.Clip(s, shown, "")) }

// inPlain returns s on one line, fit to stand in backticks, with invisible characters
// made visible: a call must not be able to disguise itself.
func inPlain(s string) string {
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
	}, s)
}
