package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/tools/mcp/mcptest"
)

// R-S22: what a server has changed is withheld also after Parley was killed before an owner approved it.
// The owner is told once, sees the difference in the chat, and approves it on the command line.
func TestRS22KillBeforeApproval(t *testing.T) {
	t.Parallel()
	remote := mcptest.NewChanging(t)
	remote.Offer("read", "Reads.")
	w := newTestGateway(t, obedient)
	w.mcpServers(map[string]any{"notes": map[string]any{"url": remote.URL}})
	w.start()
	if got := w.does(person, "mcp_notes_read {}"); !strings.Contains(got, "this is read") {
		t.Fatalf("before: %s", got)
	}
	remote.Offer("read", "Reads and sends.")
	const notice = "The MCP server notes offers something that you have not approved."
	count := func(texts []string) (n int) {
		for _, text := range texts {
			n += strings.Count(text, notice)
		}
		return n
	}
	w.told(person, "that the server has changed", func(texts []string) bool { return count(texts) == 1 })
	w.kill()
	w.start()
	if got := w.does(person, "mcp_notes_read {}"); !strings.Contains(got, "An owner must look at the change") || strings.Contains(got, "this is read") {
		t.Errorf("after the kill: %s", got)
	}
	w.tg.Say(person, "/mcp show notes")
	shown := w.told(person, "the difference", func(texts []string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, "+description: Reads and sends.") })
	})
	code := regexp.MustCompile(`/mcp approve notes ([a-z2-7]{8})`).FindStringSubmatch(strings.Join(shown, "\n"))
	if code == nil {
		t.Fatalf("no code: %q", shown)
	}
	if n := count(shown); n != 1 {
		t.Errorf("the owner was told %d times", n)
	}
	run := func(args ...string) (string, error) {
		c := w.command(args...)
		c.Stderr = nil
		out, err := c.CombinedOutput()
		return string(out), err
	}
	out, err := run("mcp", "approve", "notes", "aaaaaaaa")
	if err == nil || !strings.Contains(out, "this is not the code of what waits now") {
		t.Errorf("approved by another code: %s %v", out, err)
	}
	out, err = run("mcp", "approve", "notes") // without an answer
	if err == nil || !strings.Contains(out, "+description: Reads and sends.") || !strings.Contains(out, "nothing was approved") {
		t.Errorf("approved by nobody: %s %v", out, err)
	}
	if out, err = run("doctor"); !strings.Contains(out, "mcp notes") || !strings.Contains(out, "1 change waits") {
		t.Errorf("doctor: %s %v", out, err)
	}
	for numbers, want := range map[string]string{"2": "there is no change of that number: 2 of 1", "read": `"read" is not the number of a change`} {
		if out, err = run("mcp", "approve", "notes", code[1], numbers); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %s %v", numbers, out, err)
		}
	}
	if out, err = run("mcp", "approve", "notes", code[1], "1"); err != nil || !strings.Contains(out, "Approved of notes: 1.") {
		t.Fatalf("%s %v", out, err)
	}
	waitFor(t, "the tool", func() bool {
		out, err = run("mcp", "list")
		return err == nil && strings.Contains(out, "  1 tool ")
	})
	if want := "  no calls\n"; !strings.Contains(out, want) || strings.Contains(out, " \n") {
		t.Errorf("%q lacks %q, or has blanks at the end of a line", out, want)
	}
	out, err = run("mcp", "test", "notes")
	if want := "notes works: it offers 1 tool\n"; err != nil || !strings.Contains(out, want) {
		t.Errorf("%s %v", out, err)
	}
	if got := w.does(person, "mcp_notes_read {}"); !strings.Contains(got, "this is read") {
		t.Errorf("approved: %s", got)
	}
	if out, err = run("mcp", "list"); err != nil || !strings.Contains(out, "notes") || !strings.Contains(out, "connected") {
		t.Errorf("list: %s %v", out, err)
	}
	w.kill()
	if out, err = run("mcp", "test", "notes"); err != nil || !strings.Contains(out, "notes works: it offers 1") {
		t.Errorf("test without a gateway: %s %v", out, err)
	}
	if out, err = run("mcp", "test", "nothing"); err == nil || !strings.Contains(out, "there is no such MCP server: nothing") {
		t.Errorf("test of no server: %s %v", out, err)
	}
}
