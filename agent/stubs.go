package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/chat"
	"parley/llm"
	"parley/tools"
)

// kit makes tools of what the model was told of them and of what they gave.
func (p *player) kit(ctx context.Context, scope tools.Scope) (*tools.Kit, error) {
	var text toolText
	for _, e := range p.turn.Events {
		if e.Asked != nil && text.Specs == nil {
			text, _ = p.tools(e.Asked.Tools)
		}
	}
	by := map[string]*tools.Tool{}
	add := func(spec llm.ToolSpec, hidden bool) *tools.Tool {
		if by[spec.Name] == nil {
			readOnly := slices.Contains(text.Light, spec.Name) && spec.Name != "exec" && spec.Name != "execute_python"
			by[spec.Name] = &tools.Tool{ToolSpec: spec, Hints: tools.Hints{Hidden: hidden, ReadOnly: readOnly}, Run: p.give}
		}
		return by[spec.Name]
	}
	unlisted := func(name string) *tools.Tool {
		return add(llm.ToolSpec{Name: name, Description: name, Schema: json.RawMessage(`{"type":"object"}`)}, true)
	}
	for _, spec := range text.Specs {
		add(spec, false)
	}
	for _, name := range text.Light {
		unlisted(name)
	}
	for _, e := range p.turn.Events {
		if e.worked() && e.Result.Code != tools.CodeNotFound {
			t := unlisted(e.Finished.Name)
			t.JSON, t.Last = t.JSON || e.Result.JSON, t.Last || e.Result.End != ""
		}
	}
	var all tools.Fixed
	for _, t := range by {
		all = append(all, *t)
	}
	return tools.NewKit(ctx, scope, []tools.Source{all}, func(t tools.Tool) tools.Tool {
		t.Run = p.give // also of calls that the kit refuses
		return t
	})
}

// worked says whether e is what a tool gave.
func (e Event) worked() bool { return e.Finished != nil && e.Result != nil }

// give gives what a call gave.
func (p *player) give(_ context.Context, c tools.Call) (tools.Result, error) {
	i := slices.IndexFunc(p.turn.Events, func(e Event) bool { return e.worked() && e.Finished.Call == c.ID })
	if i < 0 {
		p.differ(fmt.Sprintf("%s is called, as %s", c.Name, c.ID))
		return tools.Failf(tools.CodeError, "there is no such call in the recording"), nil
	}
	e := p.turn.Events[i]
	r := *e.Result
	r.Text, r.Told, c.Name = e.Finished.Text, e.Told, e.Finished.Name
	if r.Verdict == tools.Poor {
		r.Text = strings.TrimSuffix(r.Text, "\n\n"+wordsPoor(c.ToolCall))
	}
	if r.JSON {
		r.Text = unwrapped(r.Text)
	}
	return r, nil
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

// compare notes the first record that is not as it was. In which groups calls
// were begun depends on what is not recorded of tools, and on people.
func (p *player) compare(ctx context.Context) error {
	var was, is []string
	for _, n := range p.turn.last {
		was = essence(was, n.record)
	}
	for n, err := range p.records(ctx, p.session, 0, p.turn.last[0].seq-1) {
		if err != nil {
			return err
		}
		is = essence(is, n.record)
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
		break
	}
	return nil
}

// essence adds to what must be the same again what of r is part of it. Why a
// model failed is not.
func essence(all []string, r record) []string {
	if r.Started != nil {
		return all
	}
	if e := r.Ended; e != nil {
		r.Ended = &ended{Outcome: e.Outcome}
		if e.Reply != nil && e.Outcome != failed {
			r.Ended.Reply = &chat.Reply{Text: e.Reply.Text}
		}
	}
	return append(all, string(r.encode()))
}
