package conversation

import (
	"mime"
	"path"
	"slices"
	"strings"

	"parley/chat"
	"parley/llm"
	"parley/tools"
)

// OpenTurn is a turn that has not ended.
type OpenTurn struct {
	first   chat.Message             // the message that the reply answers
	from    chat.Sender              // the sender with the fewest rights: nobody acts with another's rights
	keys    map[string]bool          // of the messages heard
	heard   []chat.Message           // the messages heard
	calls   []llm.ToolCall           // of the last answer
	started map[string]bool          // IDs of the calls that were started
	done    map[string]tools.Verdict // by the IDs of the calls that have a result
	said    []llm.Message            // the model's answers, and what tools said at the end
	cuts    int                      // number of answers that were cut at the length limit
	told    []string                 // what tools told the person meanwhile
	files   []chat.File              // what tools made for the person
	steps   []chat.Step              // the calls that have ended
	fault   string                   // the last failure of a tool
	usage   map[string]llm.Usage     // by model
	notices []string                 // what could not be taken in
	asks    bool                     // something heard needs an answer
	sources []string                 // origins of the untrusted content that the model was shown (R-S12)
	ending  bool                     // a tool ended the turn, and nobody spoke since (C-030)
	torn    bool                     // a part of the turn cannot be read

	revoked []llm.Message // answers that were rolled back
	row     int           // number of rollbacks in a row
	note    string        // what the model is told of the last rollback
}

// First returns the message that the reply answers.
func (o *OpenTurn) First() chat.Message { return o.first }

// From returns the sender whose rights the turn has: of all who spoke, the one
// with the fewest.
func (o *OpenTurn) From() chat.Sender { return o.from }

// LimitRole takes away the rights that the sender has lost since the message was sent.
func (o *OpenTurn) LimitRole(role chat.Role) { o.from.Role = role }

// Has reports whether the message with that key was heard in the turn.
func (o *OpenTurn) Has(key string) bool { return o.keys[key] }

// MessageCount returns how many messages were heard.
func (o *OpenTurn) MessageCount() int { return len(o.keys) }

// NeedsAnswer reports whether anything heard asks for an answer of the model.
func (o *OpenTurn) NeedsAnswer() bool { return o.asks }

// Calls returns the tool calls of the last answer.
func (o *OpenTurn) Calls() []llm.ToolCall { return o.calls }

// Unanswered returns the calls of the last answer that have no result yet.
func (o *OpenTurn) Unanswered() (calls []llm.ToolCall) {
	for _, c := range o.calls {
		if _, done := o.done[c.ID]; !done {
			calls = append(calls, c)
		}
	}
	return calls
}

// Started reports whether the call with that ID was started.
func (o *OpenTurn) Started(id string) bool { return o.started[id] }

// Verdict returns how useful the result of the call with that ID was.
func (o *OpenTurn) Verdict(id string) tools.Verdict { return o.done[id] }

// Steps returns the calls that have ended.
func (o *OpenTurn) Steps() []chat.Step { return o.steps }

// Fault returns the last failure of a tool, "" if none failed.
func (o *OpenTurn) Fault() string { return o.fault }

// EndedByTool reports whether a tool has ended the turn and nobody spoke since.
func (o *OpenTurn) EndedByTool() bool { return o.ending }

// Told returns what tools told the person during the turn.
func (o *OpenTurn) Told() []string { return o.told }

// HasTold reports whether a tool told the person what the model said last, or else the answer.
func (o *OpenTurn) HasTold() bool {
	if len(o.said) == 0 {
		return false
	}
	last := o.said[len(o.said)-1].Text
	return slices.ContainsFunc(o.told, func(told string) bool { return last == "" || SameWords(told, last) })
}

// maxAttached is how many files come with an answer: as many as with a message.
const maxAttached = 10

// Attachments returns the files that come with the answer.
func (o *OpenTurn) Attachments() []chat.File { return slices.Clone(o.files) }

// attach adds files of the workspace to the answer. One that was made again replaces the older one of
// the same name, and when there are too many, the latest are kept.
func (o *OpenTurn) attach(paths []string) {
	for _, at := range paths {
		f := chat.File{Path: at, Name: path.Base(at), Type: mime.TypeByExtension(path.Ext(at))}
		o.files = slices.DeleteFunc(o.files, func(older chat.File) bool { return older.Name == f.Name })
		o.files = append(o.files, f)
	}
	o.files = o.files[max(0, len(o.files)-maxAttached):]
}

// Answers returns the model's answers, and what tools said when they ended the
// turn, without what was rolled back.
func (o *OpenTurn) Answers() []llm.Message { return o.said }

// AllAnswers returns the answers together with those that were rolled back.
func (o *OpenTurn) AllAnswers() []llm.Message {
	return append(o.revoked[:len(o.revoked):len(o.revoked)], o.said...)
}

// CutAnswers returns how many answers were cut at the length limit.
func (o *OpenTurn) CutAnswers() int { return o.cuts }

// EmptyAnswers returns how many answers have neither text nor calls.
func (o *OpenTurn) EmptyAnswers() (n int) {
	for _, m := range o.said {
		if m.Empty() {
			n++
		}
	}
	return n
}

// RolledBack returns how many answers were rolled back in the turn.
func (o *OpenTurn) RolledBack() int { return len(o.revoked) }

// RolledBackInRow returns how many answers were rolled back one after the other.
func (o *OpenTurn) RolledBackInRow() int { return o.row }

// Note returns what the model is told of the last rollback, "" if it has answered since.
func (o *OpenTurn) Note() string { return o.note }

// Notice tells the person what could not be taken in.
func (o *OpenTurn) Notice() string { return strings.Join(o.notices, "\n\n") }

// Text returns all that the model said in the turn, as a person read it while it came in.
func (o *OpenTurn) Text() string { return flow(o.said) }

// TextBeforeLast returns what the model said before its last answer.
func (o *OpenTurn) TextBeforeLast() string { return flow(o.said[:len(o.said)-1]) }

// Tokens returns what the turn has taken so far, of all models; nil if none was asked.
func (o *OpenTurn) Tokens() *chat.Tokens {
	if len(o.usage) == 0 {
		return nil
	}
	var sum llm.Usage
	for _, u := range o.usage {
		sum = sum.Add(u)
	}
	return &chat.Tokens{In: sum.In, Out: sum.Out, Cached: sum.Cached}
}

// Sources names the origins of the untrusted content that the model was shown.
func (o *OpenTurn) Sources() []string { return o.sources }

// Untrusted reports whether the model was shown untrusted content in the turn (R-S12).
func (o *OpenTurn) Untrusted() bool { return len(o.sources) > 0 }

// IsDamaged reports whether a part of the turn cannot be read.
func (o *OpenTurn) IsDamaged() bool { return o.torn }

// distrust adds origins of untrusted content that the model was shown.
func (o *OpenTurn) distrust(sources []string) { o.sources = chat.JoinSources(o.sources, sources...) }

// acceptRights adopts the untrusted content of e, and if it was heard its sender, if that one is no owner.
func (o *OpenTurn) acceptRights(e Entry) {
	o.distrust(e.sources)
	if e.of != "" && e.from.Role != chat.Owner {
		o.from = e.from
	}
}

// expectCalls replaces the calls of the last answer. None of them is started.
func (o *OpenTurn) expectCalls(calls []llm.ToolCall) {
	o.calls = calls
	o.started = map[string]bool{}
	o.done = map[string]tools.Verdict{}
}

// say adds an answer of the model.
func (o *OpenTurn) say(m llm.Message) {
	o.said = append(o.said, m)
	o.note = ""
	o.ending = false
	if m.Finish == llm.Length {
		o.cuts++
	}
	if m.Model != "" {
		if o.usage == nil {
			o.usage = map[string]llm.Usage{}
		}
		o.usage[m.Model] = o.usage[m.Model].Add(m.Usage)
	}
	if len(o.calls) > 0 && !o.hasPoorResult() {
		o.row = 0 // E-028
	}
	o.expectCalls(m.Calls)
}

// finish adds m, the result of a call.
func (o *OpenTurn) finish(m llm.Message, result tools.Result) {
	step := chat.Step{
		Call: m.Call, Tool: m.Name, State: chat.Done, Spoke: result.Told != "",
		Began: result.Time, Ended: result.Time.Add(result.Took),
	}
	if result.Failed {
		step.State = result.State()
		o.fault = m.Name + ": " + Reason(m.Text)
	}
	o.steps = append(o.steps, step)
	o.done[m.Call] = result.Verdict
	if result.End != "" {
		o.said = append(o.said, llm.Message{Role: llm.Assistant, Text: result.End})
		o.ending = true
	}
}

// hasPoorResult reports whether a call of the last answer found nothing of use.
func (o *OpenTurn) hasPoorResult() bool {
	for _, c := range o.calls {
		if o.done[c.ID] == tools.Poor {
			return true
		}
	}
	return false
}

// flow returns the texts of answers that followed each other. An answer that was
// cut goes on without a break.
func flow(said []llm.Message) string {
	var b strings.Builder
	for i, m := range said {
		if i > 0 && said[i-1].Finish != llm.Length && b.Len() > 0 && m.Text != "" {
			b.WriteString("\n\n")
		}
		b.WriteString(m.Text)
	}
	return strings.TrimSpace(b.String())
}

// LastTurn is the turn that ended last.
type LastTurn struct {
	keys  map[string]bool
	Reply *chat.Reply // nil if there was nothing to say

	First   chat.Message // that it answered
	Outcome Outcome
	Text    string               // the last of what was said
	Steps   []chat.Step          // the calls that had ended
	Usage   map[string]llm.Usage // by model
	Sources []string             // origins of the untrusted content that the model was shown
}

// Has reports whether the turn answered the message with that key.
func (l *LastTurn) Has(key string) bool { return l.keys[key] }

// Untrusted reports whether the model was shown untrusted content in the turn (R-S12).
func (l *LastTurn) Untrusted() bool { return len(l.Sources) > 0 }
