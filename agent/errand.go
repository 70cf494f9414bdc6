package agent

import (
	"context"
	"math"
	"strings"

	"parley/chat"
	"parley/llm"
)

// wordsNothing is what a model answers that has nothing to say.
const wordsNothing = "NOTHING_TO_SAY"

// nothingSaid is the outcome of such an answer.
const nothingSaid = "nothing to say"

// runsKept is how many conversations there are at most of a session whose
// errands each begin one.
const runsKept = 20

func quiet(m chat.Message) bool { return m.Errand != nil && m.Errand.Quiet }

// silent says whether an answer says that there is nothing to say.
func silent(text string) bool {
	text = strings.TrimSpace(text)
	return text == "" || strings.HasSuffix(strings.TrimRight(text, ".!*`\"' \n"), wordsNothing)
}

// spoken returns r, the answer to the turn under way, or nil if nobody is to hear it.
func (t *turn) spoken(how outcome, r chat.Reply) *chat.Reply {
	o := t.history.open
	alone := len(o.keys) <= 1 // no person has joined
	if how == overLimit && r.Text == "" || quiet(o.first) && alone && (how != answered || silent(r.Text)) {
		return nil
	}
	return &r
}

// openFor returns the session of the turn that answers m. A fresh errand begins
// a conversation, unless it has begun already; the oldest of too many are forgotten.
func (l *lane) openFor(m chat.Message) (*session, error) {
	s, err := l.open(l.hard, l.id)
	if err != nil || m.Errand == nil || !m.Errand.Fresh || len(s.history.entries) == 0 || s.history.knows(m) {
		return s, err
	}
	last := s.Epoch - runsKept + 1
	if last >= 0 {
		if err := l.logOf(l.id, last).Trim(l.hard, math.MaxUint64); err != nil {
			return nil, err
		}
	}
	err = l.update(l.hard, l.id, func(s *state) { s.Epoch, s.From, s.First = s.Epoch+1, 0, max(last+1, s.First) })
	if err != nil {
		return nil, err
	}
	l.Left(l.id)
	return l.open(l.hard, l.id)
}

// toolOf returns the call that answers the turn instead of a model, if one does.
func (o *open) toolOf() (calls []llm.ToolCall) {
	if e := o.first.Errand; e != nil && e.Tool != "" {
		calls = []llm.ToolCall{{ID: "errand", Name: e.Tool, Args: e.Args}}
	}
	return calls
}

// byTool answers the turn by one call.
func (t *turn) byTool(ctx context.Context, calls []llm.ToolCall) error {
	if len(t.history.open.said) == 0 {
		t.keep(record{Said: &llm.Message{Role: llm.Assistant, Calls: calls}})
	}
	if err := t.use(ctx); err != nil {
		return err
	}
	how, last := answered, t.history.entries[len(t.history.entries)-1]
	if steps := t.history.open.steps; steps[len(steps)-1].State == chat.Failed {
		how = failed
	}
	return t.end(t.hard, how, last.Text)
}

// tell tells how the errand came out that the last turn answered.
func (t *turn) tell(ctx context.Context) error {
	last := t.history.last
	if t.Ended == nil || last.first.Errand == nil || len(t.jobs) == 0 || t.jobs[0].Key() != last.first.Key() {
		return nil
	}
	e := End{Message: last.first, Outcome: string(last.how), Text: last.text, Tainted: last.tainted}
	if last.how == answered && last.reply == nil {
		e.Outcome = nothingSaid
	}
	price := t.settings.Load().Price
	for model, u := range last.usage {
		e.Tokens += u.In + u.Out
		if price != nil {
			cost, _ := price(model, u)
			e.Cost += cost
		}
	}
	return t.insist(ctx, "note how "+last.first.Key()+" ended", func(ctx context.Context) error { return t.Pool.Ended(ctx, e) })
}
