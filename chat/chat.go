// Package chat is the vocabulary of the gateway: who speaks, where, and what was said.
// Every other package speaks it; it imports only the standard library.
package chat

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"time"
)

// An Address is a place where people talk: one chat, or one thread of it, on one channel.
type Address struct {
	Channel string `json:"channel"`          // name of the channel in config.json, such as "telegram"
	Chat    string `json:"chat"`             // opaque to everyone but that channel
	Thread  string `json:"thread,omitempty"` // empty outside threads
}

// Session names the conversation held at a, such as "telegram:42" or "telegram:-100/7".
func (a Address) Session() SessionID {
	id := a.Channel + ":" + a.Chat
	if a.Thread != "" {
		id += "/" + a.Thread
	}
	return SessionID(id)
}

// A SessionID names one conversation and its history.
type SessionID string

// A Message is something said to the agent, by a person, a clock or another agent.
type Message struct {
	ID      string    `json:"id"`                // as the platform names it: unique within At's chat and Account
	Account string    `json:"account,omitempty"` // which of our accounts heard it, such as the bot's id
	At      Address   `json:"at"`
	From    Sender    `json:"from"`
	Group   bool      `json:"group,omitempty"` // others read along
	Text    string    `json:"text,omitempty"`
	Media   string    `json:"media,omitempty"` // what it shows besides Text, in words: "photo", "voice 12 s"
	Quote   *Quote    `json:"quote,omitempty"`
	Edits   string    `json:"edits,omitempty"` // ID of the earlier message that this one corrects
	Files   []File    `json:"files,omitempty"`
	Notice  string    `json:"notice,omitempty"` // what of it could not be taken in, in words for the person
	Answer  *Answer   `json:"answer,omitempty"` // the press of a button, and nothing else
	Time    time.Time `json:"time"`             // when it was said
	Origin  Origin    `json:"origin,omitempty"`

	In      SessionID `json:"in,omitempty"`      // the session it belongs to, if not At's: that of a job or a subagent
	Tainted bool      `json:"tainted,omitempty"` // it holds untrusted content (R-S12) …
	Sources []string  `json:"sources,omitempty"` // … from there
	Spoken  bool      `json:"spoken,omitempty"`  // Text was heard in a recording: somebody else may speak in it
	// Text is a choice that the agent offered, and not the person's own words
	Chosen  bool        `json:"chosen,omitempty"`
	Options *RunOptions `json:"errand,omitempty"` // of what no person wrote: how it is to be answered
}

// Session names the session that m belongs to.
func (m Message) Session() SessionID { return cmp.Or(m.In, m.At.Session()) }

// Key tells m from every other message that ever comes in. A message whose
// key was delivered in the last 48 hours is dropped (P2).
func (m Message) Key() string {
	return strings.Join([]string{m.At.Channel, m.Account, m.At.Chat, m.ID}, "/")
}

// Reply returns an empty reply to m. Its ID follows from m's, so that an
// answer given twice is sent once.
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

// RunOptions say how a message that no person wrote is to be answered.
type RunOptions struct {
	Job   string `json:"job,omitempty"`   // ID of the scheduled job that it is a run of
	Run   string `json:"run,omitempty"`   // ID of the run's own message, of what subagents do for the run
	Model string `json:"model,omitempty"` // name of the model that answers; "" is the session's
	// an answer that has nothing to say is not sent, and nothing is shown on the way
	Quiet bool   `json:"quiet,omitempty"`
	Fresh bool   `json:"fresh,omitempty"` // what was said in the session before is not known any more
	Tool  string `json:"tool,omitempty"`  // is called instead of a model, and its result is the answer …
	Args  string `json:"args,omitempty"`  // … with these arguments, a JSON object

	RetriedJob string `json:"retriedJob,omitempty"` // ID of the scheduled job whose run a person has answered anew
}

// A Sender is whoever said a Message.
type Sender struct {
	ID   string `json:"id"`             // never changes and is never given to another person
	Name string `json:"name,omitempty"` // what they call themselves today: for show only
	Role Role   `json:"role,omitempty"`
}

// A Role is what a Sender may do.
type Role string

// The roles, from least to most.
const (
	Unknown Role = ""      // may not even talk
	User    Role = "user"  // may talk
	Owner   Role = "owner" // may also approve and administer
)

// A Quote is the earlier message that a Message refers to.
type Quote struct {
	ID   string `json:"id"`
	From string `json:"from,omitempty"` // display name; "you" for the agent
	Text string `json:"text,omitempty"`

	Forwarded bool `json:"forwarded,omitempty"` // it is passed on, with its text as the message
}

// An Origin says what woke the agent.
type Origin string

// The things that wake the agent.
const (
	FromPerson   Origin = ""
	FromSchedule Origin = "schedule" // a job's time has come
	FromParent   Origin = "parent"   // an agent gives a task to a subagent
	FromSubagent Origin = "subagent" // a subagent reports
)

// A Reply is something the agent says.
type Reply struct {
	ID    string   `json:"id"` // a reply whose ID was sent in the last 48 hours is dropped
	To    Address  `json:"to"`
	For   Person   `json:"for,omitempty"`   // who talks to the agent there; empty if that is not known
	Quote string   `json:"quote,omitempty"` // ID of the message answered, if any
	Also  []string `json:"also,omitempty"`  // IDs of other messages that it answers, too
	Group bool     `json:"group,omitempty"` // others read along: the answer quotes what it answers
	Text  string   `json:"text"`            // Markdown
	// one line on the tools that were used, for channels without a place of its own for it
	Steps string `json:"steps,omitempty"`
	Files []File `json:"files,omitempty"`
	// Text is an apology: there is no answer, or none yet if ID is not that of
	// [Message.Reply]
	Failed bool    `json:"failed,omitempty"`
	Tokens *Tokens `json:"tokens,omitempty"` // what the answer took; nil: no model was asked

	// no person waits for it: if the network does not take it, owners are told (P26)
	Unasked bool `json:"unasked,omitempty"`
	// the run of a job, or the report of a subagent, that it tells of: the ID of its
	// message
	Run string `json:"run,omitempty"`

	Ask *Question `json:"ask,omitempty"` // what the person is to choose
}

// Tokens are what requests to models took.
type Tokens struct {
	In     int `json:"in"`               // of the requests, Cached included
	Out    int `json:"out"`              // of the answers
	Cached int `json:"cached,omitempty"` // of In: read from the provider's cache
}

// A File travels with a Message or a Reply. Its bytes are in the workspace, or
// still at the network: a message is taken before its files are fetched.
type File struct {
	Path  string `json:"path,omitempty"`  // within the workspace; empty until it is fetched
	Type  string `json:"type,omitempty"`  // MIME type, as its sender says or its name tells
	Name  string `json:"name,omitempty"`  // what its sender calls it: for show only
	Size  int64  `json:"size,omitempty"`  // bytes; 0 if the network does not say
	Voice bool   `json:"voice,omitempty"` // somebody speaks in it instead of writing
	Ref   string `json:"ref,omitempty"`   // names it at the network, for as long as its message is there
}

// A Question is asked with a Reply and answered by a choice.
type Question struct {
	ID      string   `json:"id"` // 1 to 32 letters and digits, of one question only
	Choices []string `json:"choices"`
	Whom    string   `json:"whom,omitempty"` // ID of the Sender who may answer; owners always may
	Free    bool     `json:"free,omitempty"` // words of their own are an answer, too
	Say     bool     `json:"say,omitempty"`  // the choice comes back as what the person says; nobody waits for it
}

// An Answer is the choice of a person who was shown a Question.
type Answer struct {
	Question string `json:"question"`          // its ID
	Choice   int    `json:"choice"`            // index in its Choices
	Receipt  string `json:"receipt,omitempty"` // the network's name of the message that asked
}

// Deliver hands a message to the gateway. It returns nil once the message cannot be
// lost, and a [*Refusal] for one that is not taken and need not come again.
type Deliver func(context.Context, Message) error

// A Refusal is why a message or a file is not taken, in a sentence for the person
// who sent it.
type Refusal struct{ Text string }

// Error implements error.
func (r *Refusal) Error() string { return r.Text }

// Send hands a reply to the channel it is addressed to. It returns nil once the reply cannot be lost.
type Send func(context.Context, Reply) error

// A Live is the view of a reply that is still being made: a typing sign, the
// text so far and the steps on the way, where the channel can show them. It is
// best effort.
type Live interface {
	// Show replaces the text shown. It never blocks.
	Show(text string)
	// Step shows what the agent does besides speaking. It never blocks.
	Step(s Step)
	// Close ends the view and returns when nothing more is on its way to the
	// channel. What was shown stays, for the final reply to take its place.
	Close()
}

// A Step is one use of a tool, as the person is shown it. Nothing of it is for
// the model. Each news of a Step adds to what was known before: see Merge.
type Step struct {
	Call   string         `json:"requestId"` // names it within its reply
	Tool   string         `json:"toolName"`
	Name   string         `json:"displayName"` // Tool, if the tool has no other (C-014)
	State  StepState      `json:"status"`
	Tip    string         `json:"showTip,omitempty"` // a few words on what it does or what came of it; plain text
	Params map[string]any `json:"params,omitempty"`  // while State is Waiting maybe not all, and the last one not whole
	Result string         `json:"result,omitempty"`  // the beginning of it, once Done
	Error  string         `json:"error,omitempty"`   // once Failed
	Began  time.Time      `json:"startTime,omitzero"`
	Ended  time.Time      `json:"endTime,omitzero"`
	Took   int64          `json:"duration,omitempty"` // milliseconds
}

// A StepState says how far a Step is.
type StepState string

// The states of a Step, by the names they have on the wire (C-007).
const (
	Waiting StepState = "wait" // its arguments are still coming in, or it waits to be approved
	Running StepState = "doing"
	Done    StepState = "success"
	Failed  StepState = "error"
)

// Over reports whether nothing more comes of a Step in that state.
func (s StepState) Over() bool { return s == Done || s == Failed }

// Merge returns what is known of a Step after news of it: what the news leaves
// out stays (C-010). A Step that is over stays as it is (C-007).
func (s Step) Merge(news Step) Step {
	if s.State.Over() {
		return s
	}
	if s.Call != news.Call { // C-012
		s = Step{Call: news.Call}
	}
	s.Tool, s.State = cmp.Or(news.Tool, s.Tool), cmp.Or(news.State, s.State)
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
	if s.Began.IsZero() {
		s.Began = news.Began
	}
	if news.State.Over() { // C-011, C-013
		s.Result = news.Result
		s.Error = news.Error
		s.Ended = news.Ended
		if !s.Began.IsZero() && !s.Ended.IsZero() {
			s.Took = s.Ended.Sub(s.Began).Milliseconds()
		}
	}
	return s
}
