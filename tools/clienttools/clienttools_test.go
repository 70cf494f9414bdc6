package clienttools_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"parley/chat"
	"parley/llm"
	"parley/tools"
	"parley/tools/clienttools"
)

// clients are programs of which one offers a tool.
type clients struct {
	fault  error
	handed []chat.ClientCall
}

func (c *clients) ClientTools(_ context.Context, message string) ([]chat.ClientTool, error) {
	if message != "m1" {
		return nil, c.fault
	}
	return []chat.ClientTool{{Name: "dim", Description: "Dims the lights.", Schema: json.RawMessage(`{"type":"object"}`)}}, c.fault
}

func (c *clients) HandOver(_ context.Context, message string, call chat.ClientCall) (string, error) {
	c.handed = append(c.handed, call)
	return "handed " + message, c.fault
}

func scope() tools.Scope {
	return tools.Scope{At: chat.Address{Channel: "api", Chat: "ann"}, Message: "m1", Turn: "t"}
}

// A call goes to the program, and the turn ends with it.
func TestCall(t *testing.T) {
	c := &clients{}
	source := clienttools.Source{Channel: "api", Clients: c}
	kit, err := tools.NewKit(t.Context(), scope(), []tools.Source{source}, tools.Standard(tools.StandardConfig{})...)
	if err != nil {
		t.Fatal(err)
	}
	call := tools.Call{ToolCall: llm.ToolCall{ID: "7", Name: "dim", Args: `{"by":3}`}, Scope: scope()}
	r := kit.Together(t.Context(), []tools.Call{call})[0]
	if r.Failed || r.End != "handed m1" || r.Text == "" {
		t.Errorf("%+v", r)
	}
	if want := (chat.ClientCall{ID: "7", Name: "dim", Arguments: `{"by":3}`}); len(c.handed) != 1 || c.handed[0] != want {
		t.Errorf("%+v", c.handed)
	}
	c.fault = errors.New("nobody is there")
	call.ID = "8"
	if r := kit.Together(t.Context(), []tools.Call{call})[0]; !r.Failed || r.End != "" {
		t.Errorf("%+v", r)
	}
}

// Nobody else has the tools of a program: not other channels, not subagents, not jobs. A store that cannot be read
// is told.
func TestWhose(t *testing.T) {
	c := &clients{}
	source := clienttools.Source{Channel: "api", Clients: c}
	for what, change := range map[string]func(*tools.Scope){
		"another channel": func(s *tools.Scope) { s.At.Channel = "web" },
		"a subagent":      func(s *tools.Scope) { s.Depth = 1 },
		"a job":           func(s *tools.Scope) { s.Origin = chat.FromSchedule },
		"no message":      func(s *tools.Scope) { s.Message = "" },
		"another message": func(s *tools.Scope) { s.Message = "m2" },
	} {
		s := scope()
		change(&s)
		if all, err := source.Tools(t.Context(), s); len(all) > 0 || err != nil {
			t.Errorf("%s: %v, %v", what, all, err)
		}
	}
	c.fault = errors.New("damaged")
	if _, err := source.Tools(t.Context(), scope()); !errors.Is(err, c.fault) {
		t.Error(err)
	}
}
