package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/tools/mcp/mcptest"
	"parley/tools/network/networktest"
)

// R-S22: while a turn waits for an approval, the owner is told that a server has changed, looks at it, approves it, and
// writes to a coding session: every command is answered at once, in the order given. Kill -9 at any time loses none of
// them and answers none twice, and the turn goes on after all of that.
func TestRS22CommandsBesideATurn(t *testing.T) {
	t.Parallel()
	remote := mcptest.NewChanging(t)
	remote.Offer("read", "Reads.")
	w := newTestGateway(t, obedient)
	w.mcpServers(map[string]any{"notes": map[string]any{"url": remote.URL}})
	w.start()
	if got := w.does(person, "mcp_notes_read {}"); !strings.Contains(got, "this is read") {
		t.Fatalf("before: %s", got)
	}
	file := w.file("keep.txt", "x")
	w.tg.Say(person, `call file_delete {"path": "keep.txt"}`)
	q := w.asks(person, "keep.txt")
	remote.Offer("read", "Reads and sends.")
	w.told(person, "that the server has changed", func(texts []string) bool {
		return toldOf(texts, "The MCP server notes offers something that you have not approved.")
	})
	answer := func(n int, part string) (text string) {
		t.Helper()
		w.told(person, part, func(texts []string) bool {
			found := slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return !strings.Contains(text, part) })
			if len(found) > 0 {
				text = found[0]
			}
			return len(found) == n
		})
		return text
	}
	w.tg.Say(person, "/mcp")
	answer(1, "MCP servers:")
	w.tg.Say(person, "/mcp show notes")
	shown := answer(1, "+description: Reads and sends.")
	code := regexp.MustCompile(`/mcp approve notes ([a-z2-7]{8})`).FindStringSubmatch(shown)
	if code == nil {
		t.Fatalf("no code: %q", shown)
	}
	for range 3 {
		w.tg.Say(person, "/code @none hello")
		w.kill()
		w.start()
	}
	answer(3, "none is not connected now. It will get this when it is.")
	w.tg.Say(person, "/mcp approve notes "+code[1])
	w.tg.Say(person, "/mcp reconnect nothing")
	answer(1, "There is no MCP server called nothing.")
	texts := w.told(person, "the approval", func(texts []string) bool { return toldOf(texts, "Approved.") })
	at := func(part string) int {
		return slices.IndexFunc(texts, func(text string) bool { return strings.Contains(text, part) })
	}
	if at("Approved.") > at("There is no MCP server called nothing.") || !there(file) {
		t.Errorf("the order is wrong, or the turn did not wait: %q", texts)
	}
	w.tg.PressData(person, q.ID, q.Buttons[0][0].Data)
	w.told(person, "the end of the turn", func(texts []string) bool { return toldOf(texts, "the tools say:") && !there(file) })
	answer(3, "none is not connected now. It will get this when it is.")
}

// What keeps somebody from signing in is said in plain words, in the chat and at the machine.
func TestLoginThatCannotBegin(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	address := networktest.FreeAddress(t)
	w.mcpServers(map[string]any{
		"mail": map[string]any{"url": "http://" + address},
		"old":  map[string]any{"url": "http://" + address, "disabled": true},
	})
	w.start()
	w.tg.Say(person, "/mcp login mail")
	w.told(person, "that there is no link", func(texts []string) bool { return toldOf(texts, "I could not get a link from mail") })
	w.tg.Say(person, "/mcp login old")
	w.tg.Say(person, "/mcp reconnect old")
	w.told(person, "that it is switched off, twice", func(texts []string) bool {
		return strings.Count(strings.Join(texts, "\n"), "old is switched off in the config.") == 2
	})
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"login", "mail"}, 1, "cannot reach http://" + address},
		{[]string{"login", "old"}, 1, "switched off in the config: old"},
		{[]string{"approve"}, 2, "give the NAME of one server"},
		{[]string{"help"}, 0, "Available Commands:"},
	} {
		cmd := w.command(append([]string{"mcp"}, c.args...)...)
		cmd.Stderr = nil
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.want) {
			t.Errorf("%q: %d: %s", c.args, code, out)
		}
	}
}

// A sign-in to a service that answers nothing holds up neither what the person says next nor the end of the gateway.
func TestLoginThatHangs(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 10)
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the end of the connection is not seen
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(hangs.Close)
	w := newTestGateway(t, obedient)
	w.mcpServers(map[string]any{"mail": map[string]any{"url": hangs.URL}})
	w.start()
	w.tg.Say(person, "/mcp login mail")
	<-asked
	w.tg.Say(person, "hello")
	w.told(person, "an answer", func(texts []string) bool { return toldOf(texts, "heard hello") })
	if code := w.stop(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
}
