// Package chat has the vocabulary of the gateway: who speaks, where, and what was
// said. Every other package uses it; it only imports the standard library.
package chat

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"time"
)

// An Address is a place where people talk: a chat, or a thread of it, on a
// channel.
type Address struct {
	Channel string `json:"channel"`          // name of the channel in config.json, such as "telegram"
	Chat    string `json:"chat"`             // only the channel knows its meaning
	Thread  string `json:"thread,omitempty"` // empty outside threads
}

// Session returns the ID of the conversation at a, such as "telegram:42" or
// "telegram:-100/7".
func (a Address) Session() SessionID {
	id := a.Channel + ":" + a.Chat
	if a.Thread != "" {
		id += "/" + a.Thread
	}
	return SessionID(id)
}

// A SessionID identifies a conversation and its history.
type SessionID string

// A Message is something said to the agent, by a person, a scheduled job or
// another agent.
type Message struct {
	ID      string    `json:"id"`                // the platform's ID, unique within Account and the chat
	Account string    `json:"account,omitempty"` // which of our accounts received it, such as the bot's ID
	At      Address   `json:"at"`
	From    Sender    `json:"from"`
	Group   bool      `json:"group,omitempty"` // other people read the chat
	Text    string    `json:"text,omitempty"`
	Media   string    `json:"media,omitempty"` // a description of what it has besides Text: "photo", "voice 12 s"
	Quote   *Quote    `json:"quote,omitempty"`
	Edits   string    `json:"edits,omitempty"` // ID of the earlier message that it corrects
	Files   []File    `json:"files,omitempty"`
	Notice  string    `json:"notice,omitempty"` // parts that could not be received, in words for the person
	Answer  *Answer   `json:"answer,omitempty"` // the press of a button; then the message has nothing else
	Time    time.Time `json:"time"`             // when it was sent
	Again   bool      `json:"-"`                // the network knows that it was delivered before
	Origin  Origin    `json:"origin,omitempty"`

	In      SessionID `json:"in,omitempty"`      // its session, if that is not At's: the session of a job or a subagent
	Tainted bool      `json:"tainted,omitempty"` // it contains untrusted content (R-S12)
	Sources []string  `json:"sources,omitempty"` // where that content comes from
	Spoken  bool      `json:"spoken,omitempty"`  // Text is a transcript, in which other people may speak
	// Chosen means that Text is a choice that the agent offered, and not the
	// person's own words.
	Chosen  bool        `json:"chosen,omitempty"`
	Options *RunOptions `json:"errand,omitempty"` // how to answer it, if no person wrote it
	Wishes  *Wishes     `json:"wishes,omitempty"` // of the program that a person sent it with; nil: none
	Branch  *Branch     `json:"branch,omitempty"` // where its conversation goes on; nil: at its end
}

// Session returns the ID of the session that m belongs to.
func (m Message) Session() SessionID { return cmp.Or(m.In, m.At.Session()) }

// Key identifies m among all messages ever received. A message whose key was
// delivered in the last 48 hours is dropped (P2).
func (m Message) Key() string {
	return strings.Join([]string{m.At.Channel, m.Account, m.At.Chat, m.ID}, "/")
}

// Reply returns an empty reply to m. Its ID is derived from m's, so that an answer
// that is repeated is sent once.
func (m Message) Reply() Reply {
	r := Reply{ID: "re:" + m.Key(), To: m.At, For: Whose(m.At, m.From, m.Group), Group: m.Group}
	if m.Origin == FromPerson { // nobody sees the others in the chat
		r.Quote = m.ID
	} else {
		r.Unasked = true
	}
	if m.Origin == FromSchedule && m.Options != nil && m.Options.Job != "" {
		r.Run = m.ID
	}
	if m.Origin == FromSubagent {
		r.Run = m.ID
	}
	return r
}

// ToolReplyID returns the ID of a reply that a tool sends, given the key of its call, which is that of the message
// that the turn answers, "#", and the ID of the call.
func ToolReplyID(call string) string { return "tool:" + call }

// IsOfTool reports whether a tool sends r, in a turn whose answer follows.
func (r Reply) IsOfTool() bool { return strings.HasPrefix(r.ID, ToolReplyID("")) }

// IsPart reports whether the reply with the ID part was sent by a tool on the way to r, which answers a message.
func (r Reply) IsPart(part string) bool {
	message, answers := strings.CutPrefix(r.ID, "re:")
	return answers && strings.HasPrefix(part, ToolReplyID(message+"#"))
}

// A Branch says where a conversation goes on, if not at its end: what was said after
// that place is left, as another branch, to which a later Branch may come back.
type Branch struct {
	// Instead is the ID of the message in whose place this one is said: what came
	// before the turn that answered it stays.
	Instead string `json:"instead,omitempty"`
	// After are IDs of messages, the latest first, without Instead: the conversation
	// goes on after the answer to the first of them that was answered.
	After []string `json:"after,omitempty"`
}

// RunOptions say how to answer a message that no person wrote.
type RunOptions struct {
	Job   string `json:"job,omitempty"`   // ID of the scheduled job, for a run of one
	Name  string `json:"name,omitempty"`  // of that job
	Run   string `json:"run,omitempty"`   // ID of the message that started the run, for work that subagents do for it
	Model string `json:"model,omitempty"` // name of the model that answers; "" is the session's model
	// Quiet means that an answer without news is not sent, and that no progress is
	// shown.
	Quiet bool   `json:"quiet,omitempty"`
	Fresh bool   `json:"fresh,omitempty"` // the run starts without the earlier messages of its session
	Tool  string `json:"tool,omitempty"`  // the tool to call instead of a model; its result is the answer
	Args  string `json:"args,omitempty"`  // arguments of Tool, a JSON object

	RetriedJob string `json:"retriedJob,omitempty"` // ID of the scheduled job whose run a person has answered again
}

// RunID returns the ID of the run of a scheduled job that m is or belongs to, or
// "" if there is none.
func (m Message) RunID() string {
	switch {
	case m.Options == nil || m.Options.Job == "":
		return ""
	case m.Origin == FromSchedule:
		return m.ID
	}
	return m.Options.Run
}

// JobName returns what people call the scheduled job that m is or belongs to, or "" if there is none.
func (m Message) JobName() string {
	if m.Options == nil {
		return ""
	}
	return cmp.Or(m.Options.Name, m.Options.Job)
}

// InheritedOptions returns the options of m as subagents that work for m inherit
// them, or nil if m has none.
func (m Message) InheritedOptions() *RunOptions {
	if m.Options == nil {
		return nil
	}
	options := *m.Options
	options.Run = m.RunID()
	return &options
}

// A Sender is the author of a Message.
type Sender struct {
	ID   string `json:"id"`             // never changes, and is never given to another person
	Name string `json:"name,omitempty"` // the name they currently use, for display only
	Role Role   `json:"role,omitempty"`
}

// A Role says what a Sender may do.
type Role string

// The roles, from least to most.
const (
	Unknown Role = ""      // may not even talk to the agent
	User    Role = "user"  // may talk to the agent
	Owner   Role = "owner" // may also approve calls and administer Parley
)

// A Quote is an earlier message that a Message refers to.
type Quote struct {
	ID   string `json:"id"`
	From string `json:"from,omitempty"` // display name; "you" for the agent
	Text string `json:"text,omitempty"`

	Forwarded bool `json:"forwarded,omitempty"` // the message forwards it: its text is the message
}

// An Origin says what a Message comes from.
type Origin string

// The things that wake the agent.
const (
	FromPerson   Origin = ""
	FromSchedule Origin = "schedule" // a scheduled job is due
	FromParent   Origin = "parent"   // an agent gives a task to a subagent
	FromSubagent Origin = "subagent" // a subagent reports
)

// A Reply is something the agent says.
type Reply struct {
	ID    string   `json:"id"` // a reply whose ID was sent in the last 48 hours is dropped
	To    Address  `json:"to"`
	For   Person   `json:"for,omitempty"`   // the person who talks to the agent there; empty if unknown
	Quote string   `json:"quote,omitempty"` // ID of the message that it answers, if any
	Also  []string `json:"also,omitempty"`  // IDs of other messages that it answers
	Group bool     `json:"group,omitempty"` // other people read the chat, so the answer quotes the message
	Text  string   `json:"text"`            // Markdown
	// Steps is one line about the tools that were used, for channels that cannot
	// show it elsewhere.
	Steps string `json:"steps,omitempty"`
	// Taken counts those tools, for channels that show what became of each on demand; nil: none was used.
	Taken *StepCounts `json:"taken,omitempty"`
	Files []File      `json:"files,omitempty"`
	// Failed means that Text is an apology: there is no answer or, if ID is not
	// that of [Message.Reply], none yet.
	Failed bool `json:"failed,omitempty"`
	// Before means that Text was said before a tool gave the answer, with a reply that is a part of this one.
	Before bool    `json:"before,omitempty"`
	Cut    bool    `json:"cut,omitempty"`    // Text ends where the [Wishes] of the message have it end
	Tokens *Tokens `json:"tokens,omitempty"` // used for the answer; nil: no model was called

	// Unasked means that no person waits for it: if it cannot be delivered, owners
	// are told (P26).
	Unasked bool `json:"unasked,omitempty"`
	// Run is the ID of the message that started the job's run, or of the
	// subagent's report, that it is about.
	Run string `json:"run,omitempty"`

	Ask *Question `json:"ask,omitempty"` // a question with choices
	// Hint says how to answer the choices that Text lists, for channels that show that in their own way.
	Hint string `json:"-"`
	// Outcome says how the question ended that the message asked: Text says so, too.
	Outcome *Outcome `json:"outcome,omitempty"`
}

// Tokens counts the tokens of requests to models.
type Tokens struct {
	In     int `json:"in"`               // of the requests, including Cached
	Out    int `json:"out"`              // of the answers
	Cached int `json:"cached,omitempty"` // part of In that was read from the provider's cache
}

// A File belongs to a Message or a Reply. Its content is in the workspace or still
// at the network, because a message is accepted before its files are fetched.
type File struct {
	Path  string `json:"path,omitempty"`  // in the workspace; empty until it is fetched
	Type  string `json:"type,omitempty"`  // MIME type, according to its sender or its name
	Name  string `json:"name,omitempty"`  // the sender's name for it, for display only
	Size  int64  `json:"size,omitempty"`  // bytes; 0 if unknown
	Voice bool   `json:"voice,omitempty"` // a voice message
	Ref   string `json:"ref,omitempty"`   // identifies it at the network, as long as its message exists
}

// A Question is asked with a Reply, and answered by a choice.
type Question struct {
	ID      string   `json:"id"` // 1 to 32 letters and digits, unique
	Choices []string `json:"choices"`
	Whom    string   `json:"whom,omitempty"`  // ID of the Sender who may answer; owners may, too
	Alone   bool     `json:"alone,omitempty"` // nobody else may, owners neither
	Free    bool     `json:"free,omitempty"`  // a text of their own is also an answer
	Say     bool     `json:"say,omitempty"`   // the choice becomes a message from the person; nobody waits for it

	// Asker names who wants the answer, such as a scheduled job; empty: the agent itself.
	Asker string `json:"asker,omitempty"`
	// Approval means that it asks whether a call may be made. The first of Choices is yes, the second no.
	Approval bool `json:"approval,omitempty"`

	// Fields are values to fill in, on a channel that shows forms. They go with the first of Choices.
	Fields []Field `json:"fields,omitempty"`
}

// TakesValues reports whether values go with that choice.
func (q *Question) TakesValues(choice int) bool { return len(q.Fields) > 0 && choice == 0 }

// An Outcome is how a Question ended.
type Outcome struct {
	Choice int       `json:"choice"`           // index in its Choices; -1 for none of them
	Answer string    `json:"answer,omitempty"` // the choice, or the person's own words; "": nobody waits any more
	By     string    `json:"by,omitempty"`     // name of that person, if it is known
	Filled string    `json:"filled,omitempty"` // the values of a form, as a list in Markdown
	Time   time.Time `json:"time"`
}

// An Answer is the choice of a person who was asked a Question.
type Answer struct {
	Question string `json:"question"`          // ID of the Question
	Choice   int    `json:"choice"`            // index in its Choices
	Receipt  string `json:"receipt,omitempty"` // the network's ID of the message with the question

	// Values are what was filled in, for each of its Fields: none if a field was left out.
	Values [][]string `json:"values,omitempty"`
}

// Deliver hands a message to the gateway. It returns nil once the message cannot
// be lost, a [*Refusal] for one that is not accepted and should not be repeated, and
// [*WrongValues] for an Answer whose Values are not right.
type Deliver func(context.Context, Message) error

// A Refusal says why a message or a file is not accepted, in a sentence for its
// sender.
type Refusal struct{ Text string }

// Error implements error.
func (r *Refusal) Error() string { return r.Text }

// Send hands a reply to its channel. It returns nil once the reply cannot be lost.
type Send func(context.Context, Reply) error

// A Live shows a reply while it is being made: a typing indicator, the text so far
// and the steps on the way, if the channel can show them. It is best effort.
type Live interface {
	// Show replaces the text shown. It never blocks.
	Show(text string)
	// Step shows what the agent does besides speaking. It never blocks.
	Step(s Step)
	// Close ends the view and returns when nothing more is on its way to the
	// channel. What was shown stays, for the final reply to take its place.
	Close()
}

// A Step is one use of a tool, as people see it. Models do not see Steps. Updates
// of a Step add to what is known: see Merge.
type Step struct {
	Call   string         `json:"requestId"` // identifies it within its reply
	Tool   string         `json:"toolName"`
	Name   string         `json:"displayName"` // by default the same as Tool (C-014)
	State  StepState      `json:"status"`
	Tip    string         `json:"showTip,omitempty"` // a few words on what it does, or on its result; plain text
	Params map[string]any `json:"params,omitempty"`  // while State is Waiting perhaps incomplete
	Result string         `json:"result,omitempty"`  // the beginning of the result, once Done
	Error  string         `json:"error,omitempty"`   // once Failed
	Began  time.Time      `json:"startTime,omitzero"`
	Ended  time.Time      `json:"endTime,omitzero"`
	Took   int64          `json:"duration,omitempty"` // milliseconds

	Pictures []string `json:"-"` // files of the workspace that it made or looked at, once Done

	Receipt *Receipt `json:"receipt,omitempty"` // once its reply is there: how its call can be checked

	// Words are what the agent said before its next call, in Markdown. Then the Step is no use of a tool.
	Words string `json:"words,omitempty"`

	Asked bool `json:"-"` // it waits for somebody's yes, or did not get it
	Spoke bool `json:"-"` // it said something in the turn's own chat, where people see it
}

// A Receipt is what else is known of the call that a Step was, for whoever wants to check what an answer claims.
type Receipt struct {
	Digest  string `json:"digest,omitempty"` // of the call and its result, as the audit log has it
	By      string `json:"by,omitempty"`     // who approved the call
	Note    string `json:"note,omitempty"`   // what became of it, if its State does not tell
	Altered bool   `json:"altered,omitempty"`
}

// A StepState is the state of a Step.
type StepState string

// The states of a Step, by the names they have on the wire (C-007).
const (
	Waiting StepState = "wait" // its arguments are still coming in, or it waits to be approved
	Running StepState = "doing"
	Done    StepState = "success"
	Failed  StepState = "error"
	// Refused did not run, because a person or a rule did not allow it. Nothing is wrong with it.
	Refused StepState = "refused"
	// Interrupted was cut off, by /stop or by the end of the process: nobody knows how far it got.
	Interrupted StepState = "interrupted"
)

// Over reports whether a Step in this state has ended.
func (s StepState) Over() bool { return s == Done || s == Failed || s == Refused || s == Interrupted }

// Merge returns s with an update applied: fields that the update leaves empty stay
// as they are (C-010). A Step that has ended does not change (C-007).
func (s Step) Merge(news Step) Step {
	if s.State.Over() {
		return s
	}
	if s.Call != news.Call { // C-012
		s = Step{Call: news.Call}
	}
	s.Asked = s.Asked || news.Asked
	s.Tool = cmp.Or(news.Tool, s.Tool)
	s.State = cmp.Or(news.State, s.State)
	s.Name = cmp.Or(news.Name, s.Name, s.Tool)
	s.Tip = cmp.Or(news.Tip, s.Tip)
	if len(news.Params) > 0 {
		params := maps.Clone(s.Params)
		if params == nil {
			params = map[string]any{}
		}
		maps.Copy(params, news.Params)
		s.Params = params
	}
	if s.Began.IsZero() || s.Asked && s.State == Running { // what somebody took to answer is no part of it
		s.Began = cmp.Or(news.Began, s.Began)
		s.Asked = s.Asked && s.State != Running
	}
	if news.State.Over() { // C-011, C-013
		s.Result = news.Result
		s.Error = news.Error
		s.Ended = news.Ended
		if !s.Asked && !s.Began.IsZero() && !s.Ended.IsZero() {
			s.Took = s.Ended.Sub(s.Began).Milliseconds()
		}
	}
	return s
}
