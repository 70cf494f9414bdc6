package conversation

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"parley/llm"
	"parley/store/mem"
	"parley/tools"
)

// The tools of a turn are those that are kept under their digest, whatever the turn before had; the same tools are
// made into a text once.
func TestToolsAreThoseOfTheTurn(t *testing.T) {
	changes := []func(list []tools.Tool) []tools.Tool{
		func(list []tools.Tool) []tools.Tool { return list },
		func(list []tools.Tool) []tools.Tool { return list[1:] },
		func(list []tools.Tool) []tools.Tool { return list[:1] },
		func(list []tools.Tool) []tools.Tool { list[0].Description += "."; return list },
		func(list []tools.Tool) []tools.Tool {
			list[0].Schema = json.RawMessage(`{"type":"object","x":1}`)
			return list
		},
		func(list []tools.Tool) []tools.Tool { list[1].Name = "c"; return list },
		func(list []tools.Tool) []tools.Tool { list[1].Hidden = true; return list },
		func(list []tools.Tool) []tools.Tool { list[1].ReadOnly = true; return list },
		func(list []tools.Tool) []tools.Tool { list[1].AliasOf = "a"; return list },
	}
	kit := func(i int) *tools.Kit {
		var list []tools.Tool
		for _, name := range []string{"a", "b"} {
			list = append(list, tools.Tool{
				ToolSpec: llm.ToolSpec{Name: name, Description: "Does it.", Schema: json.RawMessage(`{"type":"object"}`)},
				Run:      func(context.Context, tools.Call) (tools.Result, error) { return tools.Result{}, nil },
			})
		}
		k, err := tools.NewKit(t.Context(), tools.Scope{}, []tools.Source{tools.Fixed(changes[i](list))})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	for first := range changes {
		for second := range changes {
			p := NewPrompts(mem.New(), slog.New(slog.DiscardHandler))
			before := p.KeepTools(t.Context(), kit(first))
			got := p.KeepTools(t.Context(), kit(second))
			want, _ := json.Marshal(NewPrompts(mem.New(), slog.New(slog.DiscardHandler)).KeepTools(t.Context(), kit(second)))
			kept, err := p.Text(t.Context(), got.Digest)
			if err != nil || kept != string(want) {
				t.Errorf("after change %d, with %d: %s, want %s, %v", first, second, kept, want, err)
			}
			if (before == got) != (first == second) {
				t.Errorf("after change %d, with %d: made anew is %v", first, second, before != got)
			}
		}
	}
}

// P28: the tools of a machine that slept for long are noted as used when it wakes: the monotonic clock stands still
// while it sleeps, so it is not what their age is counted by.
func TestToolsAgeWhileTheMachineSleeps(t *testing.T) {
	k, err := tools.NewKit(t.Context(), tools.Scope{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	set := NewPrompts(mem.New(), slog.New(slog.DiscardHandler)).KeepTools(t.Context(), k)
	if set.noted.IsZero() || set.noted != set.noted.Round(0) { //nolint:staticcheck // Equal compares no monotonic clock
		t.Errorf("the use was noted at %v", set.noted)
	}
}
