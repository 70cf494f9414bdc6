package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/agent/conversation"
	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/tools"
)

// Rerun runs t again in a house of its own on s, an empty Store: the messages
// are heard again, the model answers as it did, and tools give what they gave.
// It returns where what is asked, done and said is not as it was. An error says
// why the turn cannot be run again.
func (r *Recording) Rerun(ctx context.Context, s store.Store, t Turn) ([]string, error) {
	if why := t.unfit(); why != "" {
		return nil, errors.New("cannot be re-run: " + why)
	}
	p := &player{Recording: r, turn: t, rest: t.Events}
	p.Pool = New(Config{
		Store: s, Send: func(context.Context, chat.Reply) error { return nil },
		Memory: p, Log: slog.New(slog.DiscardHandler), Zone: r.zone,
	}, p.settings())
	if err := p.furnish(ctx); err != nil {
		return nil, err
	}
	p.lane = lane{Pool: p.Pool, id: r.session, soft: ctx, hard: ctx, pull: func() []store.Item { return nil }}
	p.hear(t.Events)
	if id := helperOf(p.lane.waiting[0].In); id != "" {
		_ = p.kin.add(tools.Child{ID: id}) // which there may be any number of
	}
	if err := p.lane.handle(p.lane.shift(1)); err != nil {
		return nil, err
	}
	return p.differences, p.compare(ctx)
}

// unfit says why t cannot be run again, "" if it can.
func (t Turn) unfit() string {
	n, asked := len(t.Events), 0
	first, last := t.Events[0], t.Events[n-1].Ended
	for i, e := range t.Events {
		switch how := e.Asked; {
		case i > 0 && t.last[i].Seq != t.last[i-1].Seq+1:
			return "records of it are damaged"
		case how == nil && e.Finished != nil && e.Finished.Text == wordsInterrupted, how != nil && how.Since != nil && asked > 0:
			return "it was interrupted"
		case how != nil && (e.Request == nil || len(how.Limits) == 0), how == nil && e.IsAnswer() && last != nil && last.Outcome == conversation.Answered:
			return "what the model was told was not kept"
		case e.Suspended != nil, e.Resumed != "":
			return "it was put aside on the way"
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

// A player is the model, the tools and the memory of a turn that is run again.
type player struct {
	*Recording
	*Pool
	lane lane
	turn Turn

	asked       Event   // the last request …
	rest        []Event // … and what came after it
	tries       int     // of it
	requests    int
	differences []string
	noting      sync.Mutex // of differences
}

// settings are those that the turn had, as far as they show.
func (p *player) settings() Settings {
	s, eyes, said := Settings{Model: "recorded", Kit: p.kit, Rounds: math.MaxInt}, false, 0
	for _, e := range p.turn.Events {
		if how := e.Asked; how != nil {
			if eyes = how.Eyes; how.Last {
				s.Rounds = min(s.Rounds, said+1)
			}
		}
		switch {
		case e.IsAnswer(), e.Result != nil && e.Result.End != "":
			said++
		case e.RolledBack != "":
			s.Rollback, said = true, said-1
		}
	}
	s.Models = map[string]Model{s.Model: {Model: p, Window: wide, Vision: eyes}}
	return s
}

// furnish puts what was before the turn into the store: the session is read
// from there if that was so, and else at hand, as requests had left it.
func (p *player) furnish(ctx context.Context) error {
	first := p.turn.last[0].Seq
	before := make([]conversation.Record, first-1)
	h := p.Recording.history(nil, 0)
	for i, n := range p.turn.done {
		before[n.Seq-1] = n.Record
		h, _ = p.step(h, p.turn.done[:i], n)
	}
	if err := p.sessions.Append(ctx, p.session, before...); err != nil {
		return err
	}
	for _, e := range p.turn.Events {
		if e.Asked != nil && e.Asked.Since != nil {
			return p.sessions.Update(ctx, p.session, func(s *conversation.State) { s.From = *e.Asked.Since + 1 })
		}
	}
	p.idle.put(p.sessions.Restore(p.session, conversation.State{}, h, first-1))
	return nil
}

// hear has the messages wait that events tell of, up to the next request.
func (p *player) hear(events []Event) {
	for _, e := range events {
		m := cmp.Or(e.Heard, e.Retried)
		if e.Asked != nil {
			return
		}
		if m != nil {
			item := store.Item{ID: m.Key(), Done: func(context.Context) error { return nil }, Later: func(time.Duration) {}}
			p.lane.waiting = append(p.lane.waiting, job{Message: *m, item: item, command: p.command(*m)})
		}
	}
}

const wide = 1 << 40 // tokens: more than any request has

// System begins the next request. It has the pool think of tokens as it did when
// the request was fitted.
func (p *player) System(context.Context, chat.SessionID, chat.Person) (string, error) {
	i := slices.IndexFunc(p.rest, func(e Event) bool { return e.Asked != nil })
	if i < 0 {
		p.differ("the model is asked once more")
		return "", errors.New("there is no such request")
	}
	p.asked, p.rest, p.tries = p.rest[i], p.rest[i+1:], 0
	p.requests++
	fixed := fixedSize(llm.Request{System: p.asked.Request.System, Tools: p.asked.Request.Tools})
	p.ratios.mu.Lock()
	defer p.ratios.mu.Unlock()
	p.ratios.by = map[string]float64{"recorded": wide * 0.95 / (float64(p.asked.Asked.Limits[0]+fixed) + 0.5)}
	return p.asked.Request.System, nil
}

// Helper is for nobody: a turn of a helper is run again as any other.
func (p *player) Helper(ctx context.Context, who chat.Person, _ string) (string, error) {
	return p.System(ctx, p.session, who)
}

// Generate answers as the model did.
func (p *player) Generate(_ context.Context, req llm.Request, _ func(llm.Delta)) (llm.Message, error) {
	if p.tries++; p.tries < len(p.asked.Asked.Limits) {
		return llm.Message{}, &llm.Error{Kind: llm.TooLong, Err: errors.New("recorded")}
	}
	p.check(req)
	p.hear(p.rest)
	if p.asked.Said == nil {
		return llm.Message{}, &llm.Error{Kind: llm.BadRequest, Err: errors.New("recorded")} // whatever it was
	}
	return *p.asked.Said, nil
}

// check compares req with the recorded request.
func (p *player) check(req llm.Request) {
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

func (p *player) differ(what string) {
	p.noting.Lock()
	defer p.noting.Unlock()
	p.differences = append(p.differences, what)
}
