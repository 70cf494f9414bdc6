package agent

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/agent/conversation"
	"parley/chat"
	"parley/llm"
)

// books are kept of the tokens that answers took. They are read from the logs,
// each record once while the process lives.
type books struct {
	mu       sync.Mutex
	sessions map[chat.SessionID]*tally
	spent    map[llm.Spent]llm.Spent // by Day, Who and Model
}

// A tally is how far the logs of a session are read.
type tally struct {
	epoch int64
	seq   uint64
	turn  llm.Spent            // Day, Who and Model of the turn under way
	here  map[string]llm.Usage // of epoch, by model
}

// Usage returns what the models were paid with, by day, person and model, the
// latest day first. What was forgotten since the start is part of it.
func (p *Pool) Usage(ctx context.Context) ([]llm.Spent, error) {
	for id, err := range p.sessions.IDs(ctx, "") {
		if err == nil {
			_, err = p.usage(ctx, id)
		}
		if err != nil {
			return nil, err
		}
	}
	p.books.mu.Lock()
	defer p.books.mu.Unlock()
	return slices.SortedFunc(maps.Values(p.books.spent), func(a, b llm.Spent) int {
		return cmp.Or(cmp.Compare(b.Day, a.Day), cmp.Compare(a.Who, b.Who), cmp.Compare(a.Model, b.Model))
	}), nil
}

// usage brings the books of the session id up to date, and returns what the
// conversation under way took, by model.
func (p *Pool) usage(ctx context.Context, id chat.SessionID) (map[string]llm.Usage, error) {
	b := &p.books
	b.mu.Lock()
	defer b.mu.Unlock()
	st, _, err := p.sessions.Lookup(ctx, id)
	if err != nil {
		return nil, err
	}
	t := b.sessions[id]
	if t == nil {
		t = &tally{}
		b.sessions[id] = t
	}
	for _, epoch := range st.Epochs() {
		if epoch > t.epoch {
			*t = tally{epoch: epoch}
		}
		if epoch < t.epoch {
			continue
		}
		for r, err := range p.sessions.Records(ctx, id, epoch, t.seq) {
			if err != nil {
				return nil, err
			}
			t.seq = r.Seq
			b.read(t, r.Record, p.Zone)
		}
	}
	return maps.Clone(t.here), nil
}

// read takes in r. A turn is that of whom it answers, and counts for the model
// that answered last.
func (b *books) read(t *tally, r conversation.Record, zone *time.Location) {
	switch m := cmp.Or(r.Heard, r.Retried); {
	case m != nil && t.turn.Who == "":
		t.turn = llm.Spent{Day: m.Time.In(zone).Format(time.DateOnly), Who: strings.TrimSuffix(m.At.Channel+":"+m.From.ID, ":")}
	case r.IsAnswer() && r.Said.Model != "":
		if t.here == nil {
			t.here = map[string]llm.Usage{}
		}
		t.turn.Model = r.Said.Model
		t.here[t.turn.Model] = t.here[t.turn.Model].Add(r.Said.Usage)
		b.add(t.turn, 0, r.Said.Usage)
	case r.Summed != nil:
		b.read(t, conversation.Record{Said: &llm.Message{Role: llm.Assistant, Model: r.Summed.Model, Usage: r.Summed.Usage}}, zone)
	case r.Ended != nil:
		if t.turn.Model != "" {
			b.add(t.turn, 1, llm.Usage{})
		}
		t.turn = llm.Spent{}
	}
}

func (b *books) add(key llm.Spent, turns int, u llm.Usage) {
	s := b.spent[key]
	b.spent[key] = llm.Spent{Day: key.Day, Who: key.Who, Model: key.Model, Turns: s.Turns + turns, Usage: s.Usage.Add(u)}
}
