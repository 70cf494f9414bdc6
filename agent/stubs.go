package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/chat"
	"parley/llm"
	"parley/tools"
)

// kit makes tools of what the model was told of them and of what they gave.
func (p *player) kit(ctx context.Context, scope tools.Scope) (*tools.Kit, error) {
	var text toolText
	for _, e := range slices.Backward(p.turn.Events) {
		if e.Asked != nil && e.Asked.Tools != "" {
			text, _ = p.tools(e.Asked.Tools)
		}
	}
	by := map[string]*tools.Tool{}
	add := func(spec llm.ToolSpec, hidden bool) {
		if by[spec.Name] == nil {
			by[spec.Name] = &tools.Tool{ToolSpec: spec, Hints: tools.Hints{Hidden: hidden}, Run: p.give}
		}
	}
	for _, spec := range text.Specs {
		add(spec, false)
	}
	unlisted := func(name string) {
		add(llm.ToolSpec{Name: name, Description: name, Schema: json.RawMessage(`{"type":"object"}`)}, true)
	}
	for _, name := range text.Light {
		unlisted(name)
		by[name].ReadOnly = name != "exec" && name != "execute_python"
	}
	made := func() (*tools.Kit, error) {
		var all tools.Fixed
		for _, name := range slices.Sorted(maps.Keys(by)) {
			all = append(all, *by[name])
		}
		return tools.NewKit(ctx, scope, []tools.Source{all}, func(t tools.Tool) tools.Tool {
			t.Run = p.give // also of calls that the kit refuses
			return t
		})
	}
	listed, err := made()
	if err != nil {
		return nil, err
	}
	beside := map[*tools.Tool]bool{}
	for _, e := range p.turn.Events {
		if !e.worked() || e.Result.Code == tools.CodeNotFound {
			continue
		}
		known, _ := listed.Tool(e.Finished.Name)
		if known.Name == "" {
			known.Name = e.Finished.Name
			unlisted(known.Name)
		}
		t := by[known.Name]
		t.JSON = t.JSON || e.Result.JSON
		beside[t] = beside[t] || p.beside(e.Finished.Call)
		t.Exclusive = !beside[t]
		t.Last = t.Last || p.late(e.Finished.Call)
	}
	return made()
}

// beside says whether a call ran beside another.
func (p *player) beside(id string) bool {
	return slices.ContainsFunc(p.turn.Events, func(e Event) bool { return len(e.Started) > 1 && slices.Contains(e.Started, id) })
}

// late says whether a call ran after one that the model asked for later.
func (p *player) late(id string) bool {
	place, passed := map[string]int{}, -1
	for _, e := range p.turn.Events {
		switch {
		case e.Said != nil:
			passed = -1
			for i, c := range e.Said.Calls {
				place[c.ID] = i
			}
		case e.Finished != nil && e.Finished.Call == id:
			return place[id] < passed
		case e.Finished != nil:
			passed = max(passed, place[e.Finished.Call])
		}
	}
	return false
}

// give gives what a call gave. After the last one of a turn that was stopped
// while tools were at work, it is stopped.
func (p *player) give(_ context.Context, c tools.Call) (tools.Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.turn.Events, func(e Event) bool { return e.worked() && e.Finished.Call == c.ID })
	if i < 0 {
		p.differ(fmt.Sprintf("%s is called, as %s", c.Name, c.ID))
		return tools.Failf(tools.CodeError, "there is no such call in the recording"), nil
	}
	e, left := p.turn.Events[i], 0
	call := c.ToolCall
	call.Name = e.Finished.Name
	r := *e.Result
	r.Text, r.Told = e.Finished.Text, e.Told
	if r.Verdict == tools.Poor {
		r.Text = strings.TrimSuffix(r.Text, "\n\n"+wordsPoor(call))
	}
	if r.JSON {
		r.Text = unwrapped(r.Text)
	}
	for _, e := range p.turn.Events {
		if e.worked() {
			left++
		}
	}
	if p.works++; p.works == left && p.stops() {
		p.halt()
	}
	return r, nil
}

// stops says whether the turn was stopped while no request was under way.
func (p *player) stops() bool {
	return p.turn.Events[len(p.turn.Events)-1].Ended.Outcome == stopped && !p.turn.stoppedIn(p.requests)
}

// unwrapped returns what an envelope was made of.
func unwrapped(text string) string {
	var e struct {
		Data  json.RawMessage
		Error *string
	}
	if json.Unmarshal([]byte(text), &e) == nil && e.Error != nil {
		return *e.Error
	}
	return string(e.Data)
}

// compare notes the first record that is not as it was.
func (p *player) compare(ctx context.Context) error {
	var was, is []string
	asks := p.turn.approved()
	for _, n := range p.turn.last {
		if n.Started == nil || !asks {
			was = append(was, essence(n.record))
		}
	}
	for n, err := range p.records(ctx, p.session, 0, p.turn.last[0].seq-1) {
		if err != nil {
			return err
		}
		if n.Started == nil || !asks {
			is = append(is, essence(n.record))
		}
	}
	for i := range max(len(was), len(is)) {
		switch {
		case i >= len(is):
			p.differ("there is no more of: " + clip(was[i], 160))
		case i >= len(was):
			p.differ("there was nothing of: " + clip(is[i], 160))
		case was[i] != is[i]:
			p.differ(fmt.Sprintf("record %d: %s", i+1, apart(was[i], is[i])))
		default:
			continue
		}
		return nil
	}
	return nil
}

// approved says whether a person was asked over a call: nobody is when the turn
// is run again, so that calls are begun in other groups.
func (t Turn) approved() bool {
	started := map[string]bool{}
	for _, e := range t.Events {
		for _, id := range e.Started {
			started[id] = true
		}
		if e.worked() && (e.Result.By != "" || !started[e.Finished.Call]) {
			return true
		}
	}
	return false
}

// essence is what of r must be the same again.
func essence(r record) string {
	if r.Ended != nil && r.Ended.Reply != nil {
		r.Ended = &ended{Outcome: r.Ended.Outcome, Reply: &chat.Reply{Text: r.Ended.Reply.Text, Failed: r.Ended.Reply.Failed}}
	}
	return string(r.encode())
}
