package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/agent/conversation"
	"parley/llm"
	"parley/tools"
)

// Kit makes tools of what the turn had, which give what they gave.
func (p *Replayer) Kit(ctx context.Context, scope tools.Scope) (*tools.Kit, error) {
	i := max(0, slices.IndexFunc(p.turn.Events, func(e Event) bool { return e.Asked != nil }))
	how := cmp.Or(p.turn.Events[i].Asked, &conversation.Request{})
	return kitOf(ctx, p.recording.toolSet(how.Tools).text, scope, p.give)
}

// kitOf makes tools of what was kept of them. Each call, also one that the Kit
// refuses, is a call of run.
func kitOf(
	ctx context.Context, text conversation.ToolSet, scope tools.Scope,
	run func(context.Context, tools.Call) (tools.Result, error),
) (*tools.Kit, error) {
	var all tools.Fixed
	for _, s := range text.Known {
		t := tools.Tool{
			ToolSpec: llm.ToolSpec{Name: s.Name, Description: s.Name, Schema: json.RawMessage(`{"type":"object"}`)},
			Hints:    tools.Hints{AliasOf: s.AliasOf, Hidden: true, ReadOnly: s.ReadOnly, Last: s.Last, JSON: s.JSON},
			Run:      run,
		}
		for _, spec := range text.Specs {
			if spec.Name == s.Name {
				t.ToolSpec = spec
				t.Hidden = false
			}
		}
		all = append(all, t)
	}
	kit, err := tools.NewKit(ctx, scope, []tools.Source{all}, func(t tools.Tool) tools.Tool {
		t.Run = run
		return t
	})
	if err != nil {
		return nil, err
	}
	return kit.With(all), nil // in the order that was kept
}

// isResult reports whether e is what a tool gave.
func (e Event) isResult() bool { return e.Finished != nil && e.Result != nil }

// give returns what a call gave.
func (p *Replayer) give(_ context.Context, c tools.Call) (tools.Result, error) {
	i := slices.IndexFunc(p.turn.Events, func(e Event) bool { return e.isResult() && e.Finished.Call == c.ID })
	if i < 0 {
		p.differ(fmt.Sprintf("%s is called, as %s", c.Name, c.ID))
		return tools.Failf(tools.CodeError, "there is no such call in the recording"), nil
	}
	e := p.turn.Events[i]
	r := *e.Result
	r.Text = e.Finished.Text
	r.Told = e.Told
	c.Name = e.Finished.Name
	if r.Verdict == tools.Poor {
		r.Text = strings.TrimSuffix(r.Text, "\n\n"+conversation.PoorLookup(c.ToolCall))
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
