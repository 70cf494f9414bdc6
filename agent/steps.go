package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/agent/conversation"
	"parley/chat"
	"parley/llm"
	"parley/texts"
	"parley/tools"
)

const (
	shownText  = 200                    // characters of a result, and of each argument, that a step shows
	shownArgs  = 16                     // arguments
	shownName  = 64                     // characters of the name of one
	shownError = 120                    // characters of an error (D-040)
	readText   = 4096                   // characters of a result that are looked at for what a step shows
	partly     = 500 * time.Millisecond // between two views of the arguments that come in (C-015)
)

// A screen is the live view of a turn. It knows each step whole (C-010): tools
// tell its news from goroutines of their own, maybe when the turn is over.
type screen struct {
	mu    sync.Mutex
	view  chat.Live // nil: nobody looks
	hush  bool      // steps are not shown: nobody wants to see them, or the view is closed
	steps chat.Steps
}

// show opens the live view of the reply to m, unless it is open.
func (t *turn) show(ctx context.Context, m chat.Message) {
	if t.pool.config.Live != nil && t.live.view == nil && m.In == "" && !conversation.IsQuiet(m) {
		t.live.view, t.live.hush = t.pool.config.Live(ctx, m.Reply()), t.session.State.Quiet
	}
}

// Show replaces the text shown.
func (s *screen) Show(text string) {
	if s.view != nil {
		s.view.Show(text)
	}
}

// Step adds news to what is known of a step, unless it is over or never began.
func (s *screen) Step(news chat.Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view == nil || s.hush {
		return
	}
	if step, isNews := s.steps.Add(news); isNews {
		s.view.Step(step)
	}
}

// waits says whether a call is shown to be coming in.
func (s *screen) waits(call string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.steps, func(x chat.Step) bool { return x.Call == call && x.State == chat.Waiting })
}

// settle ends the steps of calls that were coming in, but for those that came.
func (s *screen) settle(came []llm.ToolCall) {
	s.mu.Lock()
	steps := slices.Clone(s.steps)
	s.mu.Unlock()
	for _, x := range steps {
		if x.State == chat.Waiting && !slices.ContainsFunc(came, func(c llm.ToolCall) bool { return c.ID == x.Call }) {
			s.Step(chat.Step{Call: x.Call, State: chat.Failed, Ended: time.Now()})
		}
	}
}

// Close ends the view: of strays nothing more is shown.
func (s *screen) Close() {
	s.mu.Lock()
	s.hush = true
	s.mu.Unlock()
	if s.view != nil {
		s.view.Close()
	}
}

// step shows the person how far c is, and what it is about.
func (t *turn) step(c llm.ToolCall, s chat.StepState) {
	known, _ := t.kit.Tool(c.Name)
	hide := chat.HideLogins
	if !json.Valid([]byte(c.Args)) {
		hide = chat.HideUnfinishedLogins
	}
	params, _ := mapText(tools.Partial(c.Args), hide).(map[string]any)
	for wrong, right := range known.Aliases { // E-005
		if v, has := params[wrong]; has && params[right] == nil {
			delete(params, wrong)
			params[right] = v
		}
	}
	t.live.Step(chat.Step{
		Call: c.ID, Tool: cmp.Or(known.Name, conversation.Inline(c.Name, 64)), Name: known.Display, State: s,
		Tip: preview(t.pool.texts.Steps, known, params, hide(conversation.FirstText(c.Args))), Params: brief(params), Began: time.Now(),
	})
}

// mapText returns v, a value of JSON, with change made to each text in it.
func mapText(v any, change func(string) string) any {
	switch v := v.(type) {
	case string:
		return change(v)
	case []any:
		changed := make([]any, len(v))
		for i, element := range v {
			changed[i] = mapText(element, change)
		}
		return changed
	case map[string]any:
		changed := make(map[string]any, len(v))
		for name, value := range v {
			changed[name] = mapText(value, change)
		}
		return changed
	}
	return v
}

// preview says in a few words of say what a call does: a tool's own, or first, the first text among its arguments.
func preview(say texts.Steps, t tools.Tool, params map[string]any, first string) (words string) {
	if t.Preview == nil {
		return conversation.Inline(first, conversation.MaxTip)
	}
	defer func() {
		if recover() != nil { // a tip is not worth a turn
			words = ""
		}
	}()
	return conversation.Inline(t.Preview(say, params), shownError)
}

// brief returns the first of params by name, with what is long in them cut.
func brief(params map[string]any) map[string]any {
	all := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		v := params[name]
		s, isText := v.(string)
		if !isText {
			b, _ := json.Marshal(v)
			s = string(b)
		}
		if len(s) > shownText {
			v = chat.Clip(s, shownText, "")
		}
		if len(all) < shownArgs {
			all[chat.Clip(name, shownName, "")] = v
		}
	}
	return all
}

// over shows the person what came of a call.
func (t *turn) over(m llm.Message, r tools.Result) {
	news := chat.Step{Call: m.Call, Tool: m.Name, State: chat.Done, Ended: time.Now()}
	if news.Result = chat.Clip(chat.HideLogins(chat.Clip(m.Text, readText, "")), shownText, ""); r.Failed {
		news.State, news.Result, news.Error = chat.Failed, "", conversation.Reason(m.Text)
	}
	if r.Verdict == tools.Poor && t.revocable() {
		news.Tip = t.pool.texts.Steps.Retrying
	}
	t.live.Step(news)
}

// summary is what remains of the steps: one line.
func (t *turn) summary() string {
	o := t.openTurn()
	if t.kit == nil || t.session.State.Quiet {
		return ""
	}
	var steps []chat.Step
	for _, s := range o.Steps() {
		known, _ := t.kit.Tool(s.Tool)
		if s.Name = cmp.Or(known.Display, known.Name, conversation.Inline(s.Tool, 64)); known.Category != "message" { // what is said is seen
			steps = append(steps, s)
		}
	}
	return chat.Sum(steps, func(n int) string { return t.pool.texts.Steps.Failed.Of(n) })
}

// arrivals are the calls of an answer that is coming in.
type arrivals struct {
	turn  *turn
	calls []llm.ToolCall
	shown []time.Time
}

// news shows what there is of a call, every now and then, under the ID that it
// will have.
func (a *arrivals) news(c llm.ToolCall) {
	i := len(a.calls) - 1
	for i >= 0 && (a.calls[i].ID != c.ID || !strings.HasPrefix(c.Args, a.calls[i].Args)) {
		i--
	}
	if i < 0 {
		i, a.calls, a.shown = len(a.calls), append(a.calls, c), append(a.shown[:len(a.calls)], time.Time{})
	}
	a.calls[i] = c
	if time.Since(a.shown[i]) < partly {
		return
	}
	a.shown[i] = time.Now()
	calls := slices.Clone(a.calls)
	llm.Identify(calls, a.turn.openTurn().AllAnswers())
	a.turn.step(calls[i], chat.Waiting)
}
