// Package live shows people what a turn does while it does it: the answer as it
// comes in, and each call of a tool as a step.
package live

import (
	"cmp"
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
	"parley/tools/arguments"
)

const (
	maxText      = 200                    // characters of a result, and of each argument, that a step shows
	maxArgs      = 16                     // arguments that a step shows
	maxName      = 64                     // characters of the name of an argument or a tool
	maxTip       = 120                    // characters of what a call does, or why it failed (D-040)
	maxRead      = 4096                   // characters of a result that are looked at for what a step shows
	callInterval = 500 * time.Millisecond // between two views of a call that is coming in (C-015)
)

// A View is what the person sees of a turn before its reply is whole. It knows
// each step whole (C-010): tools report on steps from goroutines of their own,
// maybe when the turn is over.
type View struct {
	texts texts.Steps

	mu     sync.Mutex
	view   chat.Live // nil: nobody looks
	hidden bool      // steps are not shown: nobody wants to see them, or the view is closed
	steps  chat.Steps
}

// NewView returns a view that is not open: it shows nothing.
func NewView(say texts.Steps) *View { return &View{texts: say} }

// IsOpen reports whether the person sees anything.
func (v *View) IsOpen() bool { return v.view != nil }

// Open shows the rest of the turn in view, with its steps or without.
func (v *View) Open(view chat.Live, hideSteps bool) {
	v.view = view
	v.hidden = hideSteps
}

// Close ends the view. Of calls that nobody waits for nothing more is shown.
func (v *View) Close() {
	v.mu.Lock()
	v.hidden = true
	v.mu.Unlock()
	if v.view != nil {
		v.view.Close()
	}
}

// Show replaces the text shown.
func (v *View) Show(text string) {
	if v.view != nil {
		v.view.Show(text)
	}
}

// Step adds news to what is known of a step, unless it is over or never began.
func (v *View) Step(news chat.Step) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.view == nil || v.hidden {
		return
	}
	if step, isNews := v.steps.Add(news); isNews {
		v.view.Step(step)
	}
}

// Tip shows what a call does, in the words of its tool.
func (v *View) Tip(call, text string) {
	v.Step(chat.Step{Call: call, Tip: chat.Inline(chat.HideLogins(text), maxTip)})
}

// IsComingIn reports whether a call is shown to be coming in.
func (v *View) IsComingIn(call string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.ContainsFunc(v.steps, func(s chat.Step) bool { return s.Call == call && s.State == chat.Waiting })
}

// shows reports whether a step of a call is shown.
func (v *View) shows(call string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.ContainsFunc(v.steps, func(s chat.Step) bool { return s.Call == call })
}

// DropIncoming ends the steps of calls that were coming in, but for those that came.
func (v *View) DropIncoming(came []llm.ToolCall) {
	v.mu.Lock()
	steps := slices.Clone(v.steps)
	v.mu.Unlock()
	for _, s := range steps {
		if s.State == chat.Waiting && !slices.ContainsFunc(came, func(c llm.ToolCall) bool { return c.ID == s.Call }) {
			v.Step(chat.Step{Call: s.Call, State: chat.Failed, Ended: time.Now()})
		}
	}
}

// Call shows how far c is, a call of a tool of kit, and what it is about.
func (v *View) Call(kit *tools.Kit, c llm.ToolCall, state chat.StepState) {
	v.call(kit, c, chat.Step{State: state})
}

// Ask shows that somebody is asked whether c may be made.
func (v *View) Ask(kit *tools.Kit, c llm.ToolCall) {
	v.call(kit, c, chat.Step{State: chat.Waiting, Asked: true})
}

func (v *View) call(kit *tools.Kit, c llm.ToolCall, news chat.Step) {
	step := Describe(v.texts, kit, c)
	if known, _ := kit.Tool(c.Name); speaks(known, step.Params) {
		return
	}
	step.State = news.State
	step.Asked = news.Asked
	step.Began = time.Now()
	v.Step(step)
}

// Describe returns the step that c is, a call of a tool of kit: what it is about.
func Describe(say texts.Steps, kit *tools.Kit, c llm.ToolCall) chat.Step {
	known, _ := kit.Tool(c.Name)
	hide := chat.HideLogins
	if !json.Valid([]byte(c.Args)) {
		hide = chat.HideUnfinishedLogins
	}
	params, _ := mapText(arguments.Partial(c.Args), hide).(map[string]any)
	rename(params, known.Aliases)
	return chat.Step{
		Call:   c.ID,
		Tool:   cmp.Or(known.Name, chat.Inline(c.Name, maxName)),
		Name:   displayName(say, known),
		Tip:    preview(say, known, params, hide(conversation.FirstText(c.Args))),
		Params: brief(params),
	}
}

// rename gives the arguments among params that models name in other ways their right names (E-005).
func rename(params map[string]any, aliases map[string]string) {
	for wrong, right := range aliases {
		if value, has := params[wrong]; has && params[right] == nil {
			delete(params, wrong)
			params[right] = value
		}
	}
}

// Result shows what came of a call: m is what the model reads of result. retried says that the round
// is rolled back.
func (v *View) Result(m llm.Message, result tools.Result, retried bool) {
	if result.Told != "" && !v.shows(m.Call) { // the person sees what was said
		return
	}
	news := Outcome(m, result, maxText)
	news.Ended = time.Now()
	if retried {
		news.Tip = v.texts.Retrying
	}
	v.Step(news)
}

// Outcome returns what came of a call, with at most so many characters of its result: m is what the model
// reads of result.
func Outcome(m llm.Message, result tools.Result, most int) chat.Step {
	step := chat.Step{Call: m.Call, Tool: m.Name, State: result.State(), Pictures: result.Pictures}
	if result.Shown != "" {
		step.Tip = chat.Inline(chat.HideLogins(result.Shown), maxTip)
	}
	if result.Failed {
		step.Error = conversation.Reason(m.Text)
		if step.State == chat.Refused { // what follows tells the model how to go on
			step.Error, _, _ = strings.Cut(step.Error, ". ")
		}
		return step
	}
	seen := chat.Clip(cmp.Or(result.Shown, m.Text), max(maxRead, most), "")
	step.Result = chat.Clip(chat.HideLogins(seen), most, "")
	return step
}

// Summarize returns one line about all steps of a turn, calls of tools of kit, and counts them, also if the model
// answered and did nothing but speak.
func Summarize(
	say texts.Steps, kit *tools.Kit, steps []chat.Step, answers []llm.Message,
) (line string, taken *chat.StepCounts) {
	calls := 0
	made := map[string]map[string]any{} // arguments by ID, which one that was rolled back may have had, too
	for _, m := range answers {
		calls += len(m.Calls)
		for _, c := range m.Calls {
			known, _ := kit.Tool(c.Name)
			made[c.ID] = arguments.Partial(c.Args)
			rename(made[c.ID], known.Aliases)
		}
	}
	var shown []chat.Step
	spoken := 0
	for _, s := range steps {
		known, _ := kit.Tool(s.Tool)
		switch {
		case s.Spoke, s.State == chat.Done && speaks(known, made[s.Call]):
			spoken++
			continue
		case known.Category == "message" && known.Speaks == nil: // the person sees what was asked
			continue
		}
		s.Name = cmp.Or(displayName(say, known), known.Name, chat.Inline(s.Tool, maxName))
		shown = append(shown, s)
	}
	if len(answers) > 0 && spoken == calls {
		return "", &chat.StepCounts{}
	}
	return chat.Sum(shown, func(n int) string { return say.Failed.Of(n) }), chat.CountSteps(shown)
}

// speaks reports whether a call of t with these arguments only says something to the person, who sees it.
func speaks(t tools.Tool, params map[string]any) bool { return t.Speaks != nil && t.Speaks(params) }

// displayName returns what people call t, or "" if that is its name (C-014).
func displayName(say texts.Steps, t tools.Tool) string {
	return cmp.Or(t.Display, say.Names.Of(cmp.Or(t.AliasOf, t.Name)))
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

// preview tells in a few words what a call does: in those of its tool, or else by
// the first text among its arguments.
func preview(say texts.Steps, t tools.Tool, params map[string]any, first string) (words string) {
	if t.Preview == nil {
		return chat.Inline(first, conversation.MaxTip)
	}
	defer func() {
		if recover() != nil { // a preview that panics is not worth a turn
			words = ""
		}
	}()
	return chat.Inline(t.Preview(say, params), maxTip)
}

// brief returns the first of params by name, with long ones clipped.
func brief(params map[string]any) map[string]any {
	all := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		v := params[name]
		s, isText := v.(string)
		if !isText {
			b, _ := json.Marshal(v)
			s = string(b)
		}
		if len(s) > maxText {
			v = chat.Clip(s, maxText, "")
		}
		if len(all) < maxArgs {
			all[chat.Clip(name, maxName, "")] = v
		}
	}
	return all
}

// Incoming shows the calls of an answer that is coming in.
type Incoming struct {
	View   *View
	Kit    *tools.Kit
	Before []llm.Message // the answers of the turn before this one

	calls []llm.ToolCall
	shown []time.Time // when each call was shown last
}

// Reset forgets the calls: the answer comes in anew.
func (in *Incoming) Reset() { in.calls = nil }

// Add shows what there is of c, every now and then, under the ID that it will have.
func (in *Incoming) Add(c llm.ToolCall) {
	i := len(in.calls) - 1
	for i >= 0 && (in.calls[i].ID != c.ID || !strings.HasPrefix(c.Args, in.calls[i].Args)) {
		i--
	}
	if i < 0 {
		i = len(in.calls)
		in.calls = append(in.calls, c)
		in.shown = append(in.shown[:i], time.Time{})
	}
	in.calls[i] = c
	if time.Since(in.shown[i]) < callInterval {
		return
	}
	in.shown[i] = time.Now()
	calls := slices.Clone(in.calls)
	llm.Identify(calls, in.Before)
	if inner, ok := in.Kit.InnerSoFar(calls[i]); ok {
		in.View.Call(in.Kit, inner, chat.Waiting)
	}
}
