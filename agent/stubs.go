package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/agent/conversation"
	"parley/chat"
	"parley/llm"
	"parley/tools"
)

// kit makes tools of what the turn had, which give what they gave.
func (p *player) kit(ctx context.Context, scope tools.Scope) (*tools.Kit, error) {
	i := max(0, slices.IndexFunc(p.turn.Events, func(e Event) bool { return e.Asked != nil }))
	how := cmp.Or(p.turn.Events[i].Asked, &conversation.Request{})
	return kitOf(ctx, p.box(how.Tools).text, scope, p.give)
}

// kit makes tools of what was kept of them. Each call, also one that the Kit
// refuses, is a call of run.
func kitOf(ctx context.Context, text conversation.ToolSet, scope tools.Scope, run func(context.Context, tools.Call) (tools.Result, error)) (*tools.Kit, error) {
	var all tools.Fixed
	for _, s := range text.Known {
		t := tools.Tool{
			ToolSpec: llm.ToolSpec{Name: s.Name, Description: s.Name, Schema: json.RawMessage(`{"type":"object"}`)},
			Hints:    tools.Hints{AliasOf: s.AliasOf, Hidden: true, ReadOnly: s.ReadOnly, Last: s.Last, JSON: s.JSON}, Run: run,
		}
		for _, spec := range text.Specs {
			if spec.Name == s.Name {
				t.ToolSpec, t.Hidden = spec, false
			}
		}
		all = append(all, t)
	}
	return tools.NewKit(ctx, scope, []tools.Source{all}, func(t tools.Tool) tools.Tool {
		t.Run = run
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
	was, again := essence(p.turn.last), []conversation.NumberedRecord(nil)
	for n, err := range p.sessions.Records(ctx, p.session, 0, p.turn.last[0].Seq-1) {
		if err != nil {
			return err
		}
		again = append(again, n)
	}
	is := essence(again)
	for i := range max(len(was), len(is)) {
		switch {
		case i >= len(is):
			p.differ("there is no more of: " + conversation.ClipMiddle(was[i], 160))
		case i >= len(was):
			p.differ("there was nothing of: " + conversation.ClipMiddle(is[i], 160))
		case was[i] != is[i]:
			p.differ(fmt.Sprintf("record %d: %s", i+1, apart(was[i], is[i])))
		default:
			continue
		}
		break
	}
	return nil
}

// essence returns what must be the same again of records. Not part of it are why
// a model failed, which of several calls under way ended first, and the names of
// the sources of untrusted content, which older recordings do not have.
func essence(records []conversation.NumberedRecord) (all []string) {
	var results []conversation.Record // that follow each other
	flush := func() {
		slices.SortFunc(results, func(a, b conversation.Record) int { return strings.Compare(a.Finished.Call, b.Finished.Call) })
		for _, r := range results {
			all = append(all, string(r.Encode()))
		}
		results = nil
	}
	for _, n := range records {
		r := n.Record
		if r.Started != nil {
			continue
		}
		if r.Finished != nil {
			results = append(results, r)
			continue
		}
		flush()
		if r.Asked != nil {
			request := *r.Asked
			request.Untrusted = nil
			r.Asked = &request
		}
		if e := r.Ended; e != nil {
			r.Ended = &conversation.End{Outcome: e.Outcome}
			if e.Reply != nil && e.Outcome != conversation.Failed {
				r.Ended.Reply = &chat.Reply{Text: strings.TrimSpace(strings.TrimSuffix(e.Reply.Text, e.Note))}
			}
		}
		all = append(all, string(r.Encode()))
	}
	flush()
	return all
}
