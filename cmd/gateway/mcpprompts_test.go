package main

import (
	"slices"
	"strings"
	"testing"

	"parley/tools/mcp/mcptest"
)

// The model reads what a server says of itself as a whole, in instructions that begin alike in each request: also
// after Parley was killed. Who may not use the server is not shown it.
func TestMCPInstructions(t *testing.T) {
	t.Parallel()
	remote := mcptest.NewInstructing(t, "Read before you write.")
	remote.Offer("read", "Reads.")
	w := newTestGateway(t, obedient)
	w.mcpServers(map[string]any{"notes": map[string]any{"url": remote.URL}})
	w.start()
	said := func(who int64) string {
		t.Helper()
		w.does(who, "mcp_notes_read {}")
		return w.lastAsked().Messages[0].Content
	}
	first := said(person)
	if !strings.Contains(first, "## The MCP server notes\n\n> Read before you write.") {
		t.Errorf("the model reads %s", first)
	}
	if said(person) != first {
		t.Error("the next request begins otherwise")
	}
	w.kill()
	w.start()
	if said(person) != first {
		t.Error("after kill -9 the request begins otherwise")
	}
	if got := said(guest); strings.Contains(got, "Read before you write.") {
		t.Errorf("for a guest the model reads %s", got)
	}
}

// D-111, R-S22: a prompt of a server is a slash command: its text is with the first request to the model. Who leaves
// something out reads how to write it, without a model. A prompt that was not approved is none.
func TestMCPPromptCommand(t *testing.T) {
	t.Parallel()
	remote := mcptest.NewChanging(t)
	remote.Offer("read", "Reads.")
	remote.OfferPrompt("plan", "Plans a trip.", "city", "day")
	w := newTestGateway(t, obedient)
	w.mcpServers(map[string]any{"notes": map[string]any{"url": remote.URL}})
	w.start()
	says := func(what, words string) {
		t.Helper()
		w.told(person, what, func(texts []string) bool {
			return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, words) })
		})
	}
	w.tg.Say(person, "/mcp_notes_prompt_plan New York day=Monday")
	says("the prompt", "the tools say: this is plan, city New York, day Monday")
	r := w.lastAsked()
	last := r.Messages[len(r.Messages)-3:]
	if !strings.Contains(last[0].Content, "/mcp_notes_prompt_plan New York") || len(last[1].ToolCalls) != 1 || last[1].ToolCalls[0].Name != "mcp_notes_prompt_plan" {
		t.Errorf("the model is shown %+v", last)
	}
	w.tg.Say(person, "/mcp_notes_prompt_plan")
	says("how to write it", "Please write it like this: /mcp_notes_prompt_plan city=… (day=…)")
	remote.OfferPrompt("spy", "Spies.", "on")
	says("that the server has changed", "The MCP server notes offers something that you have not approved.")
	w.tg.Say(person, "/mcp_notes_prompt_spy me")
	says("that there is none", "There is no prompt /mcp_notes_prompt_spy here.")
	if again := w.lastAsked(); again.N != r.N {
		t.Errorf("the model was asked: %+v", again.Messages[len(again.Messages)-1])
	}
	w.tg.Say(guest, "/mcp_notes_prompt_plan Paris")
	w.told(guest, "that there is none", func(texts []string) bool {
		return slices.ContainsFunc(texts, func(text string) bool {
			return strings.Contains(text, "There is no prompt /mcp_notes_prompt_plan here.") && !strings.Contains(text, "city")
		})
	})
}
