package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/chat"
	"parley/llm"
	"parley/scheduler/jobs"
	"parley/tools"
)

// An api is what one caller can call.
type api struct {
	cfg     Config
	inbox   *inbox
	repeats *repeats
	closing <-chan struct{} // closed when the server ends
	caller  caller
}

type done struct {
	Text string `json:"text" jsonschema:"what was done"`
}

// The hints of tools: what only reads, what adds, what may be repeated, what removes, and what may do anything that
// the agent may do.
func hintRead() *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(false)}
}

func hintAdd(isOpen bool) *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: &isOpen}
}

func hintSet() *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{DestructiveHint: new(false), IdempotentHint: true, OpenWorldHint: new(false)}
}

func hintRemove() *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{DestructiveHint: new(true), IdempotentHint: true, OpenWorldHint: new(false)}
}

func hintAnything() *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{DestructiveHint: new(true), OpenWorldHint: new(true)}
}

// addTools gives server all tools.
func (a *api) addTools(server *mcp.Server) {
	add(a, server, "ask_agent", "Ask the agent", hintAnything(), a.ask,
		"Ask Parley's agent, and wait for the answer of its whole turn, in which it may use its own tools. "+
			"Cancelling the call stops the turn.")
	add(a, server, "send_message", "Send a message", hintAdd(true), a.send,
		"Send a message to a person's chat. It arrives also if the chat's network is out of reach now.")
	add(a, server, "ask_person", "Ask the person", hintAdd(true), a.askPerson,
		"Ask the person in their chat a question with choices, and wait for the answer for up to a day.")
	add(a, server, "list_jobs", "List scheduled jobs", hintRead(), a.listJobs,
		"List the scheduled jobs that the person may see.")
	add(a, server, "add_job", "Add a scheduled job", hintAdd(true), a.addJob,
		"Schedule work for the agent. It needs message or tool, and one of every_seconds, cron_expr and at.")
	add(a, server, "remove_job", "Remove a scheduled job", hintRemove(), a.removeJob,
		"Remove a scheduled job for good.")
	add(a, server, "set_job_enabled", "Switch a scheduled job", hintSet(), a.switchJob,
		"Switch a scheduled job on or off.")
	add(a, server, "search_memory", "Search memory", hintRead(), a.searchMemory,
		"Search what is noted about the person, and summaries of earlier conversations. It finds words, not meanings.")
	add(a, server, "search_conversations", "Search conversations", hintRead(), a.searchConversations,
		"Find the latest messages of the person's conversations that have all words of the query.")
	add(a, server, "wait_for_message", "Wait for a message", hintRead(), a.waitForMessage,
		"Wait for messages that the person writes to this coding session with /code in their chat. "+
			"A message is returned again until it is answered with reply or acknowledged.")
	add(a, server, "reply", "Reply", hintAdd(true), a.reply,
		"Answer a message that the person wrote to this coding session, in the chat where they wrote it.")
	add(a, server, "acknowledge", "Acknowledge messages", hintSet(), a.acknowledge,
		"Acknowledge messages to this coding session that need no reply, so that they are not returned again.")
}

// add gives server the tool that do is. Its errors are sentences for the caller. Whatever ends with the server is no
// result, so that the call is made again.
func add[In, Out any](
	a *api, server *mcp.Server, name, title string, hints *mcp.ToolAnnotations,
	do func(context.Context, request, In) (Out, error), description string,
) {
	hints.Title = title
	t := &mcp.Tool{Name: name, Title: title, Description: description, Annotations: hints}
	mcp.AddTool(server, t, func(ctx context.Context, r *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		out, err := do(ctx, request{r}, in)
		if err != nil && a.isClosing() {
			err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the gateway is shutting down: call again"}
		}
		return nil, out, err
	})
}

// own returns the person in their own chat.
func (a *api) own() (jobs.Asker, error) {
	if a.caller.who.Role == chat.Owner {
		at, err := a.cfg.OwnerAt("")
		if err != nil { // no owner can be written to: there is still what needs no chat
			return jobs.Asker{At: chat.Address{Channel: "api", Chat: a.caller.who.ID}, From: a.caller.who}, nil
		}
		return at, nil
	}
	at, ok := a.cfg.PrivateChat("web:" + a.caller.who.ID)
	if !ok {
		return jobs.Asker{}, errors.New("you have no chat of your own: the chat page is switched off")
	}
	return jobs.Asker{At: at, From: a.caller.who}, nil
}

// in returns the person in the chat of that session, "" for their own.
func (a *api) in(session string) (jobs.Asker, error) {
	own, err := a.own()
	switch {
	case err != nil || session == "" || session == string(own.At.Session()):
		return own, err
	case a.caller.who.Role != chat.Owner:
		return jobs.Asker{}, errors.New("only an owner may name another chat: leave out chat")
	}
	return a.cfg.OwnerAt(session)
}

// run has a tool of the agent do its work, for at, as if the agent had called it: what the person may not do is
// refused, what an owner must approve is asked, and it is audited. The same call under the same key takes
// effect once.
func (a *api) run(ctx context.Context, r request, at jobs.Asker, key, tool string, args any) (tools.Result, error) {
	working, leave := context.WithCancelCause(context.WithoutCancel(ctx))
	defer leave(nil)
	defer a.watch(ctx, r, key, func(goesOn bool) {
		if goesOn {
			leave(tools.ErrClosing) // questions stay open
		} else {
			leave(context.Canceled)
		}
	})()
	text, err := json.Marshal(args)
	if err != nil {
		return tools.Result{}, err
	}
	turn := "mcp:" + digest(a.caller.who.ID, a.caller.prefix, cmp.Or(key, rand.Text()), tool, string(text))[:32]
	scope := tools.Scope{
		Session: at.At.Session(), At: at.At, From: at.From, Group: at.Group, Turn: turn,
		Workspace: a.cfg.Sees(at.Whose()),
	}
	kit, err := a.cfg.Kit(working, scope)
	if err != nil {
		a.cfg.Log.Error("no tools for a call of an MCP client", "person", a.caller.who.ID, "err", err)
		return tools.Result{}, errors.New("this cannot be done at present")
	}
	if !kit.Has(tool) {
		return tools.Result{}, fmt.Errorf("the tool %s is switched off for you", tool)
	}
	call := llm.ToolCall{ID: "1", Name: tool, Args: string(text)}
	result := kit.Call(working, tools.Call{ToolCall: call, Scope: scope})
	if !result.Failed {
		return result, nil
	}
	why, _, _ := strings.Cut(strings.TrimPrefix(result.Text, "Error: "), "\n\n[Analyze")
	return result, errors.New(why)
}

// remarshal sets out to what in is as JSON.
func remarshal(in, out any) error {
	b, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, out)
}
