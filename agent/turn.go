package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"parley/agent/activity"
	"parley/agent/conversation"
	"parley/agent/live"
	"parley/agent/summary"
	"parley/chat"
	"parley/llm"
	"parley/tools"
)

// A turn is one answer in the making: the messages heard, the rounds of model
// and tools, the end. Everything it does is a record of the session's log, so
// that after a crash the next turn of the session goes on where it was.
type turn struct {
	session    *conversation.Session
	pool       *Pool
	worker     *worker
	activity   *activity.Activity
	live       *live.View
	deliveries []delivery           // that it answers
	outcome    conversation.Outcome // "" until it has ended
	stoppedBy  string               // ID of the message that stopped it; "" for none
	part       string               // of the answer that is coming in

	// What prepare sets.
	settings  Settings
	name      string // of the model
	model     Model
	kit       *tools.Kit
	toolSet   *conversation.ToolSet // of kit, once a model was told
	newTools  bool                  // kit is to be made anew
	scope     tools.Scope
	summaries *summary.Summarizer // makes room for requests
	subagent  *tools.Subagent     // whose turn it is; nil: it answers a person or a job
}

// do answers the deliveries. An error means that the turn did not end and is to be
// resumed: the person waits for its answer.
func (t *turn) do(ctx context.Context) error {
	if err := t.catchUp(t.worker.hard); err != nil || len(t.deliveries) == 0 {
		return err
	}
	if err := t.refuseDoubtful(); err != nil || len(t.deliveries) == 0 {
		return err
	}
	defer func() { t.live.Close() }()
	if t.resume() {
		if t.deliveries[0].isLastTry() {
			return t.giveUp()
		}
		return t.completion(t.deliveries).removeDeliveries(t.worker.hard) // the conversation it was said in is over
	}
	if over, err := (intake{t}).goBack(ctx); over || err != nil {
		return t.broken(ctx, err)
	}
	if err := (intake{t}).take(ctx, t.deliveries); err != nil {
		return t.broken(ctx, err)
	}
	if t.openTurn() == nil {
		return intake{t}.endUnanswered(t.worker.hard)
	}
	intake{t}.openView(ctx, t.openTurn().First())
	if err := t.prepare(ctx, t.openTurn().First()); err != nil {
		return t.broken(ctx, err)
	}
	return t.broken(ctx, t.rounds(ctx))
}

// catchUp finishes those of the deliveries that the last turn answered, whose reply a
// crash may have kept from the outbox. If a turn is open and the deliveries are not
// its own, the record of its end is damaged: it is closed, because an answer
// with the ID of the one it gave would be dropped.
func (t *turn) catchUp(ctx context.Context) error {
	n := 0
	for n < len(t.deliveries) && t.session.History.LastTurn().Has(t.deliveries[n].Key()) {
		n++
	}
	if n > 0 {
		if err := t.completion(t.deliveries[:n]).run(ctx); err != nil {
			return err
		}
		t.deliveries = t.deliveries[n:]
	}
	if o := t.openTurn(); o != nil && len(t.deliveries) > 0 && !o.Has(t.deliveries[0].Key()) {
		t.session.Keep(conversation.Record{Ended: &conversation.End{Outcome: conversation.Failed}})
	}
	return nil
}

// refuseDoubtful ends the deliveries that may have been begun in a part of the log that
// cannot be read. To begin them again might repeat what was done for them, so the
// person is asked to say it again. If they were answered, the ID of that answer
// keeps this one from being sent.
func (t *turn) refuseDoubtful() error {
	o := t.openTurn()
	if !t.session.History.IsDoubtful() || o != nil && !o.IsDamaged() {
		return nil
	}
	n := 0
	isDoubtful := func(d delivery) bool { return d.item.Again || d.begun || o != nil && o.Has(d.Key()) }
	for n < len(t.deliveries) && isDoubtful(t.deliveries[n]) {
		n++
	}
	if n == 0 {
		return nil
	}
	t.pool.log.Error("what was done for a message cannot be read; it is not begun again",
		"session", t.session.ID, "message", t.deliveries[0].Key())
	for _, d := range t.deliveries[:n] {
		if !t.session.History.Knows(d.Message) {
			t.session.Keep(conversation.Record{Heard: &d.Message})
		}
	}
	old := turn{session: t.session, pool: t.pool, worker: t.worker, deliveries: t.deliveries[:n], activity: t.activity}
	t.deliveries = t.deliveries[n:]
	if t.openTurn() == nil { // only corrections that changed nothing
		return old.completion(old.deliveries).removeDeliveries(t.worker.hard)
	}
	return old.end(t.worker.hard, conversation.Failed, t.pool.texts.Turn.Unreadable)
}

// prepare readies what a turn that answers m needs: model and tools.
func (t *turn) prepare(ctx context.Context, m chat.Message) (err error) {
	t.settings = *t.pool.settings.Load()
	name := cmp.Or(m.Wanted().Model, t.session.State.Model)
	t.scope = tools.Scope{
		Session: t.session.ID,
		At:      m.At,
		From:    m.From,
		Group:   m.Group,
		Message: m.ID,
		Origin:  m.Origin,
		Model:   t.name,
		Turn:    m.Key(),
	}
	if t.openTurn() != nil {
		if err := t.limitRights(ctx, m); err != nil {
			return err
		}
		t.scope.From = t.openTurn().From()
	}
	t.scope.Workspace = t.pool.config.workspaceOf(t.scope.Whose())
	if t.settings, err = t.settings.forScope(ctx, t.scope); err != nil {
		return fmt.Errorf("choose a model: %w", err)
	}
	t.name, t.model = t.settings.model(name)
	t.scope.Model = t.name
	if m.Options != nil && m.Options.Job != "" { // also while a subagent works for it or reports (D-097)
		t.scope.Origin, t.scope.Job = chat.FromSchedule, m.JobName()
	}
	t.scope.Tools = func() []tools.Tool { return t.kit.Tools() }
	if err := t.beginSubagentTurn(m); err != nil {
		return err
	}
	t.scope.Lend = lendModel(t, m)
	if err := gatherTools(ctx, t); err != nil {
		return err
	}
	t.summaries = t.newSummarizer()
	return nil
}

// gatherTools makes the tools of t. Once their list is short for a model, it stays so until the
// conversation ends, or every change of its length would have providers read the whole request anew.
func gatherTools(ctx context.Context, t *turn) (err error) {
	t.newTools = false
	t.toolSet = nil
	forModel := fmt.Sprintf("%s %d", t.name, t.model.Window)
	t.scope.Window = t.model.Window
	t.scope.Lean = t.model.Lean
	t.scope.Short = t.session.State.Short == forModel
	if t.kit, err = t.settings.Kit(ctx, t.scope); err != nil {
		return fmt.Errorf("gather tools: %w", err)
	}
	if t.scope.Short || !t.kit.Short || t.openTurn() == nil {
		return nil
	}
	t.session.State.Short = forModel
	return t.pool.insist(ctx, "note the list of tools", func(ctx context.Context) error {
		return t.pool.sessions.Update(ctx, t.session.ID, func(s *conversation.State) { s.Short = forModel })
	})
}

// limitRights lowers the rights of the turn to those that the sender of m has by
// now, if these are fewer (R-S24). For jobs the scheduler has asked already.
func (t *turn) limitRights(ctx context.Context, m chat.Message) error {
	if t.pool.config.Role == nil || m.Origin == chat.FromSchedule {
		return nil
	}
	role, err := t.pool.config.Role(ctx, m.At, m.From)
	switch {
	case err != nil:
		return fmt.Errorf("ask for the role of %s: %w", m.From.ID, err)
	case role == chat.Unknown:
		t.activity.Stop(activity.ErrStopped)
		return activity.ErrStopped
	case role != chat.Owner:
		t.openTurn().LimitRole(role)
	}
	return nil
}

// system returns the instructions of the session.
func (t *turn) system(ctx context.Context) (system string, err error) {
	room := llm.Room{Window: t.model.Window, Lean: t.model.Lean}
	if t.subagent != nil {
		system, err = t.pool.config.Memory.SubagentSystem(ctx, t.scope.Whose(), t.subagent.Instruction, room)
	} else {
		system, err = t.pool.config.Memory.System(ctx, t.session.ID, t.scope.Whose(), room)
	}
	if t.kit.Notice != "" {
		system = conversation.Join(system, t.kit.Notice)
	}
	return system, err
}

// age returns how long ago it was said, as far as can be told: the wall clock may
// have been set since the Pool was made, and then the younger of two ages is
// taken. An answer that nobody waits for is better than none.
func (p *Pool) age(said time.Time) time.Duration {
	sinceStart := time.Since(p.began) // by the monotonic clock
	return min(time.Since(said), p.began.Round(0).Add(sinceStart).Sub(said))
}

// rounds asks the model and runs tools until an answer asks for none.
func (t *turn) rounds(ctx context.Context) error {
	maxAge := t.settings.MaxAge
	isYoung := func(d delivery) bool { return maxAge == 0 || t.pool.age(d.Time) <= maxAge }
	if !slices.ContainsFunc(t.deliveries, isYoung) {
		text := t.pool.texts.Turn.TooOld.Of(len(t.deliveries), t.pool.texts.Span.Of(maxAge))
		return t.end(t.worker.hard, conversation.TooOld, text)
	}
	if calls := conversation.DirectCalls(t.openTurn().First()); calls != nil {
		if err := t.spend(ctx); err != nil {
			return t.limited(err)
		}
		return t.answerByTool(ctx, calls)
	}
	if err := t.waitWhilePaused(ctx); err != nil {
		return err
	}
	if over, err := (intake{t}).beginByCommand(ctx); over || err != nil {
		return err
	}
	for {
		if err := (toolRunner{t}).run(ctx); err != nil {
			return err
		}
		if t.newTools {
			if err := gatherTools(ctx, t); err != nil {
				return err
			}
		}
		if why := t.openTurn().Fault(); why != "" && t.subagent != nil && t.subagent.Strict { // D-041
			return t.end(t.worker.hard, conversation.Failed, why)
		}
		if t.openTurn().EndedByTool() {
			if over, err := t.conclude(ctx); over || err != nil {
				return err
			}
		}
		if err := t.join(ctx); err != nil {
			return err
		}
		if o := t.openTurn(); !o.NeedsAnswer() && o.Notice() != "" {
			return t.end(t.worker.hard, conversation.Answered, o.Notice())
		}
		if err := t.spend(ctx); err != nil {
			return t.limited(err)
		}
		last := len(t.openTurn().Answers()) >= t.settings.Rounds-1
		answer, err := t.ask(ctx, last)
		if err != nil {
			return err
		}
		t.charge(ctx, 0, cmp.Or(answer.Said.Model, t.name), answer.Said.Usage)
		if t.say(answer, last) {
			if over, err := t.conclude(ctx); over || err != nil {
				return err
			}
		}
	}
}

// join takes in what was said while the turn was busy.
func (t *turn) join(ctx context.Context) error {
	if err := t.waitWhilePaused(ctx); err != nil || t.openTurn().First().IsAnsweredAlone() {
		return err
	}
	deliveries := t.worker.joining()
	err := intake{t}.take(ctx, deliveries)
	t.deliveries = append(t.deliveries, deliveries...)
	return err
}

// maxContinuations is how often a model whose answer was cut may go on.
const maxContinuations = 3

// say takes in an answer and reports whether it was the last one of the turn.
func (t *turn) say(answer conversation.Record, last bool) (end bool) {
	o := t.openTurn()
	m := answer.Said
	cut := m.Finish == llm.Length
	if cut || last {
		m.Calls = nil // the arguments of a cut call are not whole (P11)
	}
	llm.Identify(m.Calls, o.AllAnswers()) // a call is named by its turn and its ID
	for i, c := range m.Calls {
		m.Calls[i] = t.kit.Inner(c)
	}
	t.live.DropIncoming(m.Calls)
	for _, c := range m.Calls {
		if t.live.IsComingIn(c.ID) { // now its arguments are whole
			t.live.Call(t.kit, c, chat.Waiting)
		}
	}
	if len(m.Calls) == 0 {
		m.Reasoning = ""
	}
	t.session.Keep(answer)
	switch {
	case len(m.Calls) > 0:
		return false
	case !last && o.EmptyAnswers() == 1 && m.Empty() && m.Finish != llm.Filtered && len(o.Told()) == 0:
		t.session.Keep(conversation.Record{Said: &llm.Message{Role: llm.User, Text: msgAnswerEmpty}})
		return false
	case m.Empty():
	case cut && !last && o.CutAnswers() <= maxContinuations && o.First().Wanted().MaxTokens == 0:
		t.session.Keep(conversation.Record{Said: &llm.Message{Role: llm.User, Text: msgGoOn}})
		return false
	}
	return true
}

// openTurn returns what is known of the turn so far, nil before anything was heard
// and once it has ended.
func (t *turn) openTurn() *conversation.OpenTurn { return t.session.History.OpenTurn() }

// pause gives the turn's place to others while it waits, as for a person. A crash
// meanwhile is not blamed on it.
func (t *turn) pause(doing string) {
	t.doing(doing)
	t.worker.rest()
	t.worker.solo = false
}

// flush saves what was kept, and does not give up while ctx lasts.
func (t *turn) flush(ctx context.Context) error {
	return t.pool.insist(ctx, "save session", t.session.Save)
}

// doing notes for /status what the turn is doing.
func (t *turn) doing(what string) {
	t.pool.activities.SetDoing(t.activity, what)
}
