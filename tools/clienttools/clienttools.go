// Package clienttools offers the agent the tools of the program that asks: of a client of the OpenAI-compatible
// endpoint. The agent's answer asks for a call, the program makes it, and its next message has the result.
package clienttools

import (
	"context"
	"fmt"

	"parley/chat"
	"parley/llm"
	"parley/texts"
	"parley/tools"
)

// Clients are the programs that ask.
type Clients interface {
	// ClientTools returns the tools of the program that sent the message of that ID.
	ClientTools(ctx context.Context, message string) ([]chat.ClientTool, error)
	// HandOver has the answer to that message ask for a call, once for each ID. It returns what people read of it.
	HandOver(ctx context.Context, message string, call chat.ClientCall) (told string, err error)
}

// Category is the category of these tools.
const Category = "client"

// A Source offers the tools of programs that write to a channel.
type Source struct {
	Channel string // its name
	Clients Clients
}

// Tools implements [tools.Source]. Only the agent that answers the program has its tools: nobody hands over what a
// subagent calls.
func (s Source) Tools(ctx context.Context, scope tools.Scope) ([]tools.Tool, error) {
	if scope.At.Channel != s.Channel || scope.Message == "" || scope.Depth > 0 || scope.Origin != chat.FromPerson {
		return nil, nil
	}
	offered, err := s.Clients.ClientTools(ctx, scope.Message)
	if err != nil {
		return nil, fmt.Errorf("tools of a program: %w", err)
	}
	all := make([]tools.Tool, 0, len(offered))
	for _, t := range offered {
		all = append(all, s.tool(t))
	}
	return all, nil
}

// handedOver is what the model reads as the result of a call.
const handedOver = "The program that asks makes this call now. Its next message has the result."

func (s Source) tool(t chat.ClientTool) tools.Tool {
	return tools.Tool{
		ToolSpec: llm.ToolSpec{Name: t.Name, Description: t.Description, Schema: t.Schema},
		Hints: tools.Hints{
			Category: Category, Use: tools.Basic, Last: true, Repeatable: true, // HandOver knows the call by its ID
		},
		Preview: func(texts.Steps, map[string]any) string { return t.Name },
		Run: func(ctx context.Context, c tools.Call) (tools.Result, error) {
			told, err := s.Clients.HandOver(ctx, c.Message, chat.ClientCall{ID: c.ID, Name: c.Name, Arguments: c.Args})
			if err != nil {
				return tools.Result{}, err
			}
			return tools.Result{Text: handedOver, End: told}, nil
		},
	}
}
