package prompts_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"parley/llm"
	"parley/texts"
	"parley/tools"
	"parley/tools/mcp/prompts"
)

// prompt returns a tool as package mcp makes it of a prompt.
func prompt(name, schema string) tools.Tool {
	return tools.Tool{
		ToolSpec: llm.ToolSpec{Name: name, Description: "[MCP Prompt] " + name, Schema: json.RawMessage(schema)},
		Hints:    tools.Hints{ReadOnly: true, Category: "mcp_notes"},
		Run:      func(context.Context, tools.Call) (tools.Result, error) { return tools.Result{}, nil },
	}
}

// D-111: a command is the call of a prompt with its arguments, or tells the person how to write it. Tools that are
// no prompts, and prompts that are withheld, are no commands.
func TestCommands(t *testing.T) {
	t.Parallel()
	const two = `{"type":"object","properties":{"city":{"type":"string"},"day":{"type":"string"}},"required":["city"]}`
	const both = `{"type":"object","properties":{"city":{"type":"string"},"day":{"type":"string"}},"required":["city","day"]}`
	withheld := prompt("mcp_notes_prompt_new", `{"type":"object"}`)
	withheld.Hidden = true
	through := prompt("mcp_notes_prompt_Far", `{"type":"object"}`)
	through.Through = "call_tool"
	tool := prompt("mcp_notes_read", `{"type":"object"}`)
	tool.Description = "Reads."
	acting := prompt("mcp_notes_act", `{"type":"object"}`)
	acting.ReadOnly = false
	all := tools.Fixed{prompt("mcp_notes_prompt_plan", two), prompt("mcp_notes_prompt_trip", both), withheld, through, tool, acting}
	kit, err := tools.NewKit(t.Context(), tools.Scope{}, []tools.Source{all})
	if err != nil {
		t.Fatal(err)
	}
	kit = prompts.Offer(kit, &texts.English().Tools.MCP)
	for text, want := range map[string]string{
		"hello": "", "/help": "", "mcp_notes_prompt_plan": "",
		"/mcp_notes_prompt_plan Paris":                            `mcp_notes_prompt_plan {"city":"Paris"}`,
		"/mcp_notes_prompt_plan  New   York day=next  Monday":     `mcp_notes_prompt_plan {"city":"New York","day":"next Monday"}`,
		`/MCP_notes_prompt_PLAN@parleybot city="a=b" day=“May 1”`: `mcp_notes_prompt_plan {"city":"a=b","day":"May 1"}`,
		"/mcp_notes_prompt_trip day=1 city=2":                     `mcp_notes_prompt_trip {"city":"2","day":"1"}`,
		"/mcp_notes_prompt_far whatever":                          `mcp_notes_prompt_Far through call_tool {}`,
		"/mcp_notes_prompt_plan":                                  "? like this: `/mcp_notes_prompt_plan city=… (day=…)`",
		"/mcp_notes_prompt_plan day=1":                            "? like this: `/mcp_notes_prompt_plan city=… (day=…)`",
		"/mcp_notes_prompt_trip Paris":                            "? like this: `/mcp_notes_prompt_trip city=… day=…`",
		"/mcp_notes_prompt_new":                                   "? no prompt `/mcp_notes_prompt_new` here",
		"/mcp_notes_read":                                         "? - `/mcp_notes_prompt_plan city=… (day=…)`",
		"/mcp_notes_act":                                          "? no prompt",
		"/mcp_`x`":                                                "? no prompt `/mcp_'x'` here",
	} {
		calls, problem := kit.Command(text)
		got := ""
		for _, c := range calls {
			got = c.Name
			if c.Through != "" {
				got += " through " + c.Through
			}
			got += " " + c.Args
		}
		if expected, wrong := strings.CutPrefix(want, "? "); wrong && (got != "" || !strings.Contains(problem, expected)) || !wrong && (got != want || problem != "") {
			t.Errorf("%s: %s, %s", text, got, problem)
		}
	}
	if _, problem := kit.Command("/mcp_x"); strings.Contains(problem, "_new") || strings.Contains(problem, "_read`") || strings.Contains(problem, "_act") {
		t.Errorf("offered: %s", problem)
	}
}
