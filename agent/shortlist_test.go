package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/llm"
	"parley/store/storetest"
	"parley/timetest"
	"parley/tools"
	"parley/tools/catalog"
)

// A faraway is a source of tools of MCP servers, some of which may be away.
type faraway struct {
	mu    sync.Mutex
	tools []tools.Tool
	away  string // category of the server that is not there
}

func (f *faraway) Tools(context.Context, tools.Scope) (there []tools.Tool, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.tools {
		if t.Category != f.away {
			there = append(there, t)
		}
	}
	return there, nil
}

func (f *faraway) leave(category string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = category
}

// remote returns a tool of an MCP server that gives what it was given.
func remote(server, name string, hints tools.Hints) tools.Tool {
	hints.Category = "mcp_" + server
	t := giving(hints.Category+"_"+name, hints, tools.Result{})
	t.Description = "Does " + name + ". " + strings.Repeat("It says a lot. ", 10)
	t.Schema = json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"},"number":{"type":"integer"}}}`)
	t.Run = func(_ context.Context, c tools.Call) (tools.Result, error) {
		return tools.Result{Text: fmt.Sprint(c.Name, " ", c.Input)}, nil
	}
	return t
}

// servers returns two servers of 10 tools each.
func servers() *faraway {
	f := &faraway{}
	for i := range 10 {
		f.tools = append(f.tools, remote("near", fmt.Sprintf("list_%d", i), tools.Hints{ReadOnly: true}))
		f.tools = append(f.tools, remote("far", fmt.Sprintf("create_%d", i), tools.Hints{}))
	}
	return f
}

// short lets h have the tools of f, in a list that is short for a model with so large a window.
func short(h *house, f tools.Source, window int, pipeline tools.StandardConfig) {
	lists := new(catalog.Catalog)
	h.set = func(s *agent.Settings) {
		for name, m := range s.Models {
			m.Window = window
			s.Models[name] = m
		}
		s.Kit = func(ctx context.Context, scope tools.Scope) (*tools.Kit, error) {
			kit, err := tools.NewKit(ctx, scope, []tools.Source{tools.Fixed(h.tools), f}, tools.Standard(pipeline)...)
			if err != nil {
				return nil, err
			}
			return lists.Shorten(kit, scope), nil
		}
	}
}

func listed(r llm.Request) (names []string) {
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	return names
}

// A list that is short stays so while the conversation lasts: when a server goes away, when it is there
// again, and after a restart. Then requests begin with the same bytes.
func TestShortListStays(t *testing.T) {
	f := servers()
	h := &house{model: func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) { return words("ok"), nil }}
	short(h, f, 12_000, tools.StandardConfig{}) // the tools of one server alone would have a long list
	play(t, h, func(h *house) {
		say := func(id string) llm.Request {
			h.say(id, "hi")
			synctest.Wait()
			return h.asks[len(h.asks)-1]
		}
		first := say("1")
		if got := listed(first); !slices.Equal(got, []string{"find_tool", "call_tool"}) {
			t.Fatalf("listed %q", got)
		}
		same := func(r llm.Request) {
			t.Helper()
			if r.System != first.System || fmt.Sprint(r.Tools) != fmt.Sprint(first.Tools) ||
				fmt.Sprint(r.Messages[:len(first.Messages)]) != fmt.Sprint(first.Messages) {
				t.Errorf("another prefix: %v", r)
			}
		}
		same(say("2"))
		f.leave("mcp_far")
		if got := listed(say("3")); !slices.Equal(got, []string{"find_tool", "call_tool"}) {
			t.Errorf("without one server: %q", got)
		}
		h.stop()
		h.start()
		if got := listed(say("4")); !slices.Equal(got, []string{"find_tool", "call_tool"}) {
			t.Errorf("without one server, after a restart: %q", got)
		}
		f.leave("")
		same(say("5"))
		h.stop()
		h.start()
		same(say("6"))
		f.leave("mcp_far")
		h.say("7", "/new")
		synctest.Wait()
		if got := listed(say("8")); len(got) != 10 {
			t.Errorf("in a new conversation: %q", got)
		}
	})
}

// A subagent, or a conversation with another model, has the list that fits its own window.
func TestShortForSmallWindow(t *testing.T) {
	h := &house{model: func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) { return words("ok"), nil }}
	short(h, servers(), 100_000, tools.StandardConfig{})
	set := h.set
	h.set = func(s *agent.Settings) {
		set(s)
		m := s.Models["other"]
		m.Window = 8000
		s.Models["other"] = m
	}
	play(t, h, func(h *house) {
		for i, c := range []struct {
			text string
			want int
		}{{"hi", 20}, {"/model other", 20}, {"hi", 2}, {"hi", 2}, {"/model main", 2}, {"hi", 20}} {
			h.say(fmt.Sprint(i), c.text)
			synctest.Wait()
			if got := listed(h.asks[len(h.asks)-1]); len(got) != c.want {
				t.Errorf("%d, %s: %q", i, c.text, got)
			}
		}
	})
}

// People, the log and statistics see the inner call of call_tool. The model sees the one that it made.
func TestInnerCallIsSeen(t *testing.T) {
	stats := new(tools.Stats)
	var asked []string
	approve := func(_ context.Context, c tools.Call, prompt string) (bool, string, error) {
		asked = append(asked, prompt)
		return true, "7", nil
	}
	f := servers()
	f.tools = append(f.tools, remote("far", "destroy", tools.Hints{Dangerous: true}))
	const args = `{"name":"mcp_far_destroy","arguments":{"title":"x","number":"12"}}`
	answers := script(
		calls(with("1", "call_tool", args), with("2", "call_tool", args), with("3", "mcp_near_list_1", `{}`)),
		words("done"), words("again"))
	h := &house{model: func(ctx context.Context, r llm.Request, stream func(llm.Delta)) (llm.Message, error) {
		a, err := answers(ctx, r, stream)
		if len(a.Calls) > 0 {
			streamed(stream, 8, a.Calls[0])
		}
		return a, err
	}}
	short(h, f, 12_000, tools.StandardConfig{Stats: stats, Approve: approve})
	view := watched(h)
	play(t, h, func(h *house) {
		h.say("1", "hi")
		timetest.Sleep(time.Minute)
		h.want("done")
		if len(asked) != 1 || !strings.Contains(asked[0], "mcp_far_destroy") || strings.Contains(asked[0], "call_tool") {
			t.Errorf("asked: %q", asked)
		}
		for _, s := range view.steps {
			if strings.Contains(fmt.Sprint(s), "call_tool") {
				t.Errorf("shown: %+v", s)
			}
		}
		if got := view.states("1"); len(got) == 0 || got[0] == "" {
			t.Errorf("shown: %q", got)
		}
		for _, s := range stats.All() {
			if s.Tool != "mcp_far_destroy" && s.Tool != "mcp_near_list_1" {
				t.Errorf("counted: %+v", s)
			}
		}
		records, err := h.pool.Sessions().Calls(t.Context(), "test:1", h.pool.Tools(t.Context(), "test:1"))
		if err != nil || len(records) != 3 {
			t.Fatal(records, err)
		}
		if r := records[0]; r.Function.Name != "mcp_far_destroy" || r.Function.Arguments != `{"title":"x","number":"12"}` || !r.Success {
			t.Errorf("recorded: %+v", r)
		}
		if !records[1].Skipped {
			t.Errorf("the same call was made twice: %+v", records[1])
		}
		m := h.asks[1].Messages
		if c := m[1].Calls; c[0].Name != "call_tool" || c[0].Args != args || c[0].Through != "" || c[2].Name != "mcp_near_list_1" {
			t.Errorf("the model is shown %+v", c)
		}
		if m[2].Name != "call_tool" || !strings.Contains(m[2].Text, "mcp_far_destroy map[number:12 title:x]") {
			t.Errorf("the model is shown %+v", m[2])
		}
		h.say("2", "hi")
		h.want("again")
		if fmt.Sprint(h.asks[2].Messages[:len(m)]) != fmt.Sprint(m) {
			t.Error("the next turn begins in another way")
		}
		h.reruns(2, nil)
	})
}

// P6: after a kill -9 in the middle of calls through call_tool, it is the inner tool that says whether its
// call can be made again.
func TestInnerCallAfterCrash(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		dir, said := storetest.TempDir(t), map[string]string{}
		for run := range 2 {
			m := newMortal(t, dir, 1<<40)
			h := &house{t: t, store: m, said: said}
			f := servers()
			for i, hints := range []tools.Hints{{ReadOnly: true, Repeatable: true}, {ReadOnly: true}} {
				slow := remote("slow", fmt.Sprintf("look_%d", i), hints)
				look := slow.Run
				slow.Run = func(ctx context.Context, c tools.Call) (tools.Result, error) {
					if run == 0 {
						time.Sleep(10 * time.Second)
						m.left.Store(0)
						runtime.Goexit()
					}
					return look(ctx, c)
				}
				f.tools = append(f.tools, slow)
			}
			short(h, f, 12_000, tools.StandardConfig{})
			h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
				if lastOf(r).Role == llm.ToolRole {
					return words(spoken(r, 2)), nil
				}
				return calls(
					with("1", "call_tool", `{"name":"mcp_slow_look_0"}`),
					with("2", "call_tool", `{"name":"mcp_slow_look_1"}`)), nil
			}
			h.start()
			if run == 0 {
				h.say("1", "look around")
			}
			timetest.Sleep(time.Minute)
			synctest.Wait()
			h.stop()
			m.Close()
		}
		want := "tool mcp_slow_look_0 map[] | tool Error: interrupted while it ran. It may have taken effect: look before you do it again."
		if got := said["re:test//1/1"]; got != want {
			t.Errorf("the model read %q\nwant           %q", got, want)
		}
	})
}

// Owners call a tool by hand through call_tool, too.
func TestInnerCallByHand(t *testing.T) {
	h := &house{model: script()}
	short(h, servers(), 12_000, tools.StandardConfig{})
	play(t, h, func(h *house) {
		h.say("1", `/tool call_tool {"name":"mcp_far_create_1","arguments":{"number":1}}`)
		h.want("mcp_far_create_1 map[number:1]")
		if records, err := h.pool.Sessions().Calls(t.Context(), "test:1", h.pool.Tools(t.Context(), "test:1")); err != nil || records[0].Function.Name != "mcp_far_create_1" {
			t.Errorf("recorded: %+v, %v", records, err)
		}
		h.say("2", `/tool find_tool {"query":"create","limit":1}`)
		synctest.Wait()
		h.mu.Lock()
		defer h.mu.Unlock()
		if last := h.sent[len(h.sent)-1]; !strings.HasPrefix(last, "## mcp_far_create_") {
			t.Errorf("found: %s", last)
		}
	})
}
