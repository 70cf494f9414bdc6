package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"parley/agent/conversation"
	"parley/chat"
	"parley/llm"
)

// A Replayer is the model, the tools and the memory of a turn that is run again:
// the model answers as it did, and tools give what they gave. It notes where what
// is asked, done and said is not as it was.
type Replayer struct {
	recording *Recording
	turn      Turn
	hear      func(chat.Message)
	fit       func(ratio float64)

	asked    Event   // the last request
	rest     []Event // what came after it
	tries    int     // of the last request
	requests int

	mu          sync.Mutex
	differences []string
}

// NewReplayer returns a Replayer of t. It calls hear with each message at the time
// at which the turn heard it, and fit with what one estimated token counts for
// in the next request, so that this is fitted as it was. An error says why the
// turn cannot be run again.
func NewReplayer(r *Recording, t Turn, hear func(chat.Message), fit func(ratio float64)) (*Replayer, error) {
	if why := t.unfit(); why != "" {
		return nil, errors.New("cannot be re-run: " + why)
	}
	return &Replayer{recording: r, turn: t, hear: hear, fit: fit, rest: t.Events}, nil
}

// unfit returns why t cannot be run again, "" if it can.
func (t Turn) unfit() string {
	n := len(t.Events)
	first, last := t.Events[0], t.Events[n-1].Ended
	asked := 0
	for i, e := range t.Events {
		switch how := e.Asked; {
		case i > 0 && t.records[i].Seq != t.records[i-1].Seq+1:
			return "records of it are damaged"
		case how == nil && e.Finished != nil && e.Finished.Text == conversation.MsgInterrupted,
			how != nil && how.Since != nil && asked > 0:
			return "it was interrupted"
		case how != nil && (e.Request == nil || len(how.Limits) == 0),
			how == nil && e.IsAnswer() && last != nil && last.Outcome == conversation.Answered:
			return "what the model was told was not kept"
		case e.Suspended != nil, e.Resumed != "":
			return "it was suspended on the way"
		case e.Summed != nil:
			return "what was said before it was summed up on the way"
		case how != nil && how.Refused:
			return "its pictures were refused"
		case how != nil:
			asked++
		}
	}
	switch {
	case last == nil:
		return "it has not ended"
	case first.Heard == nil && first.Retried == nil:
		return "its beginning is not recorded"
	case last.Outcome == conversation.Failed && (t.Events[n-2].Asked == nil || t.Events[n-2].Said != nil):
		return "it failed, and not over the model"
	case last.Outcome != conversation.Answered && last.Outcome != conversation.Failed:
		return "it was not answered: " + string(last.Outcome)
	}
	return ""
}

// Window is how many tokens the model takes: more than any request has.
const Window = 1 << 26

// Traits are what the turn shows of the settings that it had.
type Traits struct {
	Rounds   int  // of the turn; the last one got no tools
	Rollback bool // rounds that found nothing were rolled back
	Vision   bool // the model could be shown pictures
}

// Traits returns what the turn shows of its settings.
func (p *Replayer) Traits() Traits {
	t := Traits{Rounds: math.MaxInt}
	said := 0
	for _, e := range p.turn.Events {
		if how := e.Asked; how != nil {
			t.Vision = how.Eyes
			if how.Last {
				t.Rounds = min(t.Rounds, said+1)
			}
		}
		switch {
		case e.IsAnswer(), e.Result != nil && e.Result.End != "":
			said++
		case e.RolledBack != "":
			t.Rollback = true
			said--
		}
	}
	return t
}

// Prepare puts what was before the turn into sessions, which are empty. It returns
// the session as requests had left it, nil if the turn began by reading it.
func (p *Replayer) Prepare(ctx context.Context, sessions *conversation.Sessions) (*conversation.Session, error) {
	id, first := p.recording.session, p.turn.records[0].Seq
	before := make([]conversation.Record, first-1)
	h := p.recording.history(nil, 0)
	forked := false
	for i, n := range p.turn.before {
		forked = forked || n.Branched != nil
		before[n.Seq-1] = n.Record
		h, _ = p.recording.apply(h, p.turn.before[:i], n)
	}
	if err := sessions.Append(ctx, id, before...); err != nil {
		return nil, err
	}
	for _, e := range p.turn.Events {
		if e.Asked != nil && e.Asked.Since != nil {
			from := *e.Asked.Since + 1
			return nil, sessions.Update(ctx, id, func(s *conversation.State) { s.From, s.Forked = from, forked })
		}
	}
	return sessions.Restore(id, conversation.State{Forked: forked}, h, first-1), nil
}

// Begin has the messages heard that begin the turn.
func (p *Replayer) Begin() { p.hearAll(p.turn.Events) }

// hearAll has the messages heard that events tell of, up to the next request.
func (p *Replayer) hearAll(events []Event) {
	for _, e := range events {
		if e.Asked != nil {
			return
		}
		if m := cmp.Or(e.Heard, e.Retried); m != nil {
			p.hear(*m)
		}
	}
}

// System begins the next request.
func (p *Replayer) System(context.Context, chat.SessionID, chat.Person, llm.Room) (string, error) {
	i := slices.IndexFunc(p.rest, func(e Event) bool { return e.Asked != nil })
	if i < 0 {
		p.differ("the model is asked once more")
		return "", errors.New("there is no such request")
	}
	p.asked = p.rest[i]
	p.rest = p.rest[i+1:]
	p.tries = 0
	p.requests++
	fixed := llm.Request{System: p.asked.Request.System, Tools: p.asked.Request.Tools}.EstimateFixedTokens()
	p.fit(Window * 0.95 / (float64(p.asked.Asked.Limits[0]+fixed) + 0.5))
	return p.asked.Request.System, nil
}

// SubagentSystem begins the next request, too: the turn of a subagent is run again as any other.
func (p *Replayer) SubagentSystem(
	ctx context.Context, who chat.Person, _ string, room llm.Room,
) (string, error) {
	return p.System(ctx, p.recording.session, who, room)
}

// Generate answers as the model did.
func (p *Replayer) Generate(_ context.Context, req llm.Request, _ func(llm.Delta)) (llm.Message, error) {
	p.tries++
	if p.tries < len(p.asked.Asked.Limits) {
		return llm.Message{}, &llm.Error{Kind: llm.TooLong, Err: errors.New("recorded")}
	}
	p.check(req)
	p.hearAll(p.rest)
	if p.asked.Said == nil { // whatever its error was
		return llm.Message{}, &llm.Error{Kind: llm.BadRequest, Err: errors.New("recorded")}
	}
	return *p.asked.Said, nil
}

// check compares req with the recorded request.
func (p *Replayer) check(req llm.Request) {
	was, _ := json.Marshal(p.asked.Request)
	is, _ := json.Marshal(req)
	if string(was) != string(is) {
		p.differ(fmt.Sprintf("request %d: %s", p.requests, apart(string(was), string(is))))
	}
}

// apart shows where was and is begin to differ.
func apart(was, is string) string {
	n := 0
	for n < min(len(was), len(is)) && was[n] == is[n] {
		n++
	}
	from := max(n-40, 0)
	show := func(s string) string { return strings.ToValidUTF8(s[from:min(n+120, len(s))], "") }
	return fmt.Sprintf("was …%s…, is …%s…", show(was), show(is))
}

func (p *Replayer) differ(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.differences = append(p.differences, what)
}

// Differences returns where the turn was not as it had been.
func (p *Replayer) Differences() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.differences
}
