package receipts

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/agent/conversation"
	"parley/chat"
	"parley/texts"
)

const (
	maxAsked = 80  // characters that are shown of what was answered
	maxTip   = 120 // bytes that are shown of what a call was about
)

// Why answers /why.
type Why struct {
	Sessions *conversation.Sessions
	Texts    texts.Why
	Zone     *time.Location // in which people read times
}

// Answer tells what was done for the answer that m quotes, for the latest, or for the one before it with "2".
func (w Why) Answer(ctx context.Context, m chat.Message) (string, error) {
	all, err := InSight(ctx, w.Sessions, m.Session(), m.Branch)
	if err != nil {
		return "", err
	}
	_, which := chat.Word(m.Text)
	if n, _ := strconv.Atoi(which); n > 1 {
		all = all[min(n-1, len(all)):]
	}
	t, found := Find(all, m.Quote)
	switch {
	case !found && m.Quote == nil && which == "":
		return w.Texts.NoAnswer, nil
	case !found:
		return w.Texts.NotFound.With(maxTurns), nil
	}
	return w.tell(t), nil
}

// tell tells what was done in t.
func (w Why) tell(t Turn) string {
	at := t.Time.In(w.Zone).Format("2006-01-02 15:04")
	if len(t.Calls) == 0 {
		return w.Texts.NoCalls.With(t.Asked, at)
	}
	lines := []string{w.Texts.Calls.Of(len(t.Calls), t.Asked, at), ""}
	for i, c := range t.Calls {
		lines = append(lines, strconv.Itoa(i+1)+". "+w.line(c))
	}
	return strings.Join(append(lines, "", w.Texts.End), "\n")
}

// line tells what became of c.
func (w Why) line(c Call) string {
	line := "`" + code(c.Name) + "`"
	if tip := code(plain.Replace(conversation.Tip(c.Args))); tip != "" {
		line += " `" + tip + "`"
	}
	line += ": " + w.outcome(c)
	if !c.Result.Time.IsZero() {
		line += ", " + c.Result.Time.In(w.Zone).Format("15:04:05")
	}
	if c.Result.Took >= time.Millisecond {
		line += ", " + c.Result.Took.Round(time.Millisecond).String()
	}
	if c.Result.By != "" {
		line += ", " + w.Texts.By.With(code(c.Result.By))
	}
	if c.Result.Receipt != "" {
		line += ", " + w.Texts.Receipt.With(c.Result.Receipt)
	}
	return line
}

// outcome tells what became of c.
func (w Why) outcome(c Call) string {
	note := Note(w.Texts, c)
	switch c.Outcome {
	case Done:
		return list(w.Texts.Done, note)
	case Failed:
		return list(w.Texts.Failed.With(code(conversation.Reason(c.Result.Text))), note)
	}
	return note
}

// Note tells of c what is to be known besides whether it was done or failed.
func Note(say texts.Why, c Call) string {
	note := map[Outcome]string{NotMade: say.NotMade, Interrupted: say.Interrupted, Altered: say.Altered}[c.Outcome]
	if c.Retried {
		return list(note, say.Retried)
	}
	return note
}

// list returns the parts that are not empty, with commas between them.
func list(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ", ")
}

// plain takes marks of Markdown out of what a call is about.
var plain = strings.NewReplacer("**", "", "`", "")

// code returns text as it may stand between backticks, or in a line of a list.
func code(text string) string {
	return strings.ReplaceAll(chat.Inline(chat.HideLogins(text), maxTip), "`", "'")
}
