package agent_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/llm"
	"parley/memory"
	"parley/texts"
	"parley/timetest"
	"parley/tools"
)

// burstingMemory panics when it is asked for instructions.
type burstingMemory struct{ prompt }

func (burstingMemory) System(context.Context, chat.SessionID, chat.Person, llm.Room) (string, error) {
	panic("oh")
}

// burstingArchive panics when it is to sum up.
type burstingArchive struct{}

func (burstingArchive) Summarise(context.Context, llm.Model, string, string) (string, llm.Usage, error) {
	panic("oh")
}

func (burstingArchive) Append(context.Context, chat.Person, memory.Entry) (memory.Entry, error) {
	panic("oh")
}

// TestPanicAnywhere is P8: a panic, wherever a turn or a command meets one, is
// that of this message. The person is told or answered, the process lives, and
// the next message is answered.
func TestPanicAnywhere(t *testing.T) {
	burst := func() { panic("oh") }
	look := func(change func(*tools.Tool)) []tools.Tool {
		looks := tool("look", func(context.Context) (string, error) { return "seen", nil })
		looks.ReadOnly = true
		change(&looks)
		return []tools.Tool{looks}
	}
	outer := func(t tools.Tool) tools.Tool { // as a stage outside of the standard ones
		t.Run = func(context.Context, tools.Call) (tools.Result, error) { panic("oh") }
		return t
	}
	for name, c := range map[string]struct {
		text  string // "": "look"
		tools []tools.Tool
		stage tools.Middleware
		conf  func(*agent.Config)
		model func() // is done by it when it is asked about what the person said
	}{
		"tool": {tools: look(func(l *tools.Tool) {
			l.Run = func(context.Context, tools.Call) (tools.Result, error) { panic("oh") }
		})},
		"tool, in a part of a call": {tools: look(func(l *tools.Tool) {
			l.Run = func(context.Context, tools.Call) (tools.Result, error) {
				var g tools.Group
				g.Go(func() error { panic("oh") })
				return tools.Result{}, g.Wait()
			}
		})},
		"stage of the pipeline": {stage: outer},
		"query":                 {tools: look(func(l *tools.Tool) { l.Query = func(map[string]any) string { panic("oh") } })},
		"assess":                {tools: look(func(l *tools.Tool) { l.Assess = func(tools.Result) tools.Verdict { panic("oh") } })},
		"guard":                 {tools: look(func(l *tools.Tool) { l.Guard = func(tools.Call) bool { panic("oh") } })},
		"preview":               {tools: look(func(l *tools.Tool) { l.Preview = func(texts.Steps, map[string]any) string { panic("oh") } })},
		"model":                 {model: burst},
		"instructions":          {conf: func(c *agent.Config) { c.Memory = burstingMemory{} }},
		"archive":               {conf: func(c *agent.Config) { c.Archive = burstingArchive{} }},
		"role": {conf: func(c *agent.Config) {
			c.Role = func(context.Context, chat.Address, chat.Sender) (chat.Role, error) { panic("oh") }
		}},
		"begin": {conf: func(c *agent.Config) {
			c.Begun = func(context.Context, chat.SessionID, chat.Message) (context.Context, func(string)) { panic("oh") }
		}},
		"fetch":     {text: "file", conf: func(c *agent.Config) { c.Fetch = func(context.Context, chat.Message) chat.Message { panic("oh") } }},
		"live view": {conf: func(c *agent.Config) { c.Live = func(context.Context, chat.Reply) chat.Live { panic("oh") } }},
		"command": {text: "/burst", conf: func(c *agent.Config) {
			c.Commands = []agent.Command{{Name: "burst", Do: func(context.Context, chat.Message) (string, error) { panic("oh") }}}
		}},
		"command that does not wait": {text: "/toolstats", conf: func(c *agent.Config) { c.ToolStats = func() string { panic("oh") } }},
		"new conversation":           {text: "/new", conf: func(c *agent.Config) { c.Left = func(chat.SessionID) { panic("oh") } }},
	} {
		t.Run(name, func(t *testing.T) {
			if c.text == "" {
				c.text = "look"
			}
			h := &house{tools: c.tools, conf: c.conf}
			if h.tools == nil {
				h.tools = look(func(*tools.Tool) {})
			}
			h.set = func(s *agent.Settings) {
				s.Kit = func(ctx context.Context, scope tools.Scope) (*tools.Kit, error) {
					stages := tools.Standard(tools.StandardConfig{})
					if c.stage != nil {
						stages = append([]tools.Middleware{c.stage}, stages...)
					}
					return tools.NewKit(ctx, scope, []tools.Source{tools.Fixed(h.tools)}, stages...)
				}
			}
			h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
				switch last := lastOf(r); {
				case last.Role == llm.ToolRole:
					return words("done"), nil
				case strings.HasSuffix(last.Text, "look"):
					if c.model != nil {
						c.model()
					}
					return calls(call("1", "look"), with("2", "look", `{"n":2}`)), nil
				}
				return words("well"), nil
			}
			play(t, h, func(h *house) {
				m := message("1", c.text)
				if c.text == "file" {
					m.Files = []chat.File{{Ref: "f", Name: "a.txt"}}
				}
				h.deliver(m)
				timetest.Sleep(time.Minute)
				synctest.Wait()
				if h.said["re:test//1/1"] == "" {
					t.Error("the person was told nothing")
				}
				if n, err := h.store.Queue("inbox").Len(t.Context()); n != 0 || err != nil {
					t.Errorf("%d messages left in the inbox, %v", n, err)
				}
				other := message("2", "hello")
				other.At.Chat = "2"
				h.deliver(other)
				timetest.Sleep(time.Minute)
				synctest.Wait()
				if h.said["re:test//2/2"] == "" {
					t.Error("another was told nothing")
				}
			})
		})
	}
}
