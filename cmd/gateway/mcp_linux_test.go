package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/channels/telegram/telegramtest"
	"parley/llm/llmtest"
	"parley/tools/mcp/mcptest"
)

// mcpServers has the config name these servers.
func (w *testGateway) mcpServers(servers map[string]any) {
	w.more["tools"] = map[string]any{"mcpServers": servers}
}

// hostileServer returns the entry of the hostile server. Its processes have mark in their arguments.
func hostileServer(t testing.TB, mode, mark string) map[string]any {
	t.Helper()
	path, err := exec.LookPath(mcptest.HostileCommand)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{"command": path, "args": []string{mode, mark}}
}

// marked returns the command lines of processes that have mark in them.
func marked(t *testing.T, mark string) (lines []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, _ := os.ReadFile(file) // the process may have ended
		if strings.Contains(string(text), mark) {
			lines = append(lines, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return lines
}

// connects has MCP servers connected by a turn. It waits for them longer than a turn does, which a busy machine may
// need to start a program.
func (w *testGateway) connects(servers ...string) {
	w.t.Helper()
	w.tg.Say(person, "hello")
	w.says(person, "heard hello")
	for _, name := range servers {
		w.logs(`msg="MCP server connected" server=`+name+" ", 1)
	}
}

// D-030, D-100: a person in Telegram has the agent use the reference server for files, in the sandbox. For
// somebody who is no owner it does not exist.
func TestMCPFromTelegram(t *testing.T) {
	t.Parallel()
	index := mcptest.Package(t, "server-filesystem/dist/index.js")
	notes := t.TempDir()
	if err := os.WriteFile(filepath.Join(notes, "shopping.txt"), []byte("tea and bread"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newTestGateway(t, obedient)
	w.mcpServers(map[string]any{"notes": map[string]any{"command": "node", "args": []string{index, notes}}})
	w.start()
	w.connects("notes")
	call := fmt.Sprintf(`mcp_notes_read_text_file {"path": "%s/shopping.txt"}`, notes)
	if got := w.does(person, call); !strings.Contains(got, "tea and bread") {
		t.Errorf("an owner's call: %s", got)
	}
	if got := w.does(guest, call); !strings.Contains(got, "Tool 'mcp_notes_read_text_file' not found") {
		t.Errorf("a guest's call: %s", got)
	}
}

// R-S22: when Parley is killed, no process of a server is left, with a sandbox or without one. It is there
// again after the start.
func TestMCPServersEndWithParley(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	bare := hostileServer(t, "stubborn", "mark-of-bare-server-17")
	bare["sandbox"] = "none"
	w.mcpServers(map[string]any{"bare": bare, "confined": hostileServer(t, "stubborn", "mark-of-confined-server-17")})
	w.start()
	w.connects("bare", "confined")
	if got := w.does(person, "mcp_bare_ok {}", "mcp_confined_ok {}"); strings.Count(got, "fine") != 2 {
		t.Fatalf("%s", got)
	}
	for _, mark := range []string{"mark-of-bare-server-17", "mark-of-confined-server-17"} {
		if len(marked(t, mark)) == 0 {
			t.Errorf("no process has %s", mark)
		}
	}
	w.kill()
	waitFor(t, "the end of all processes", func() bool { return len(marked(t, "-server-17")) == 0 })
	w.start()
	if got := w.does(person, "mcp_bare_ok {}", "mcp_confined_ok {}"); strings.Count(got, "fine") != 2 {
		t.Errorf("%s", got)
	}
}

// D-030, D-031, P14: no server is started before the first message. That is answered although twenty of them
// hang, and the next one at once.
func TestMCPServersStartWithTheFirstMessage(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	servers := map[string]any{"good": hostileServer(t, "plain", "mark-of-lazy-server-18")}
	for n := range 20 {
		hanging := hostileServer(t, "hang", "mark-of-lazy-server-18")
		hanging["sandbox"] = "none"
		servers[fmt.Sprintf("hangs%d", n)] = hanging
	}
	w.mcpServers(servers)
	w.start()
	w.logs("programs of models run in", 1) // some seconds after the start
	if lines := marked(t, "mark-of-lazy-server-18"); len(lines) > 0 {
		t.Errorf("before the first message there are %q", lines)
	}
	begin := time.Now()
	if got := w.does(person, "mcp_good_ok {}"); !strings.Contains(got, "fine") {
		t.Errorf("%s", got)
	}
	if took := time.Since(begin); took > 25*time.Second {
		t.Errorf("the first message took %v", took)
	}
	begin = time.Now()
	if got := w.does(person, "mcp_good_ok {}"); !strings.Contains(got, "fine") {
		t.Errorf("%s", got)
	}
	if took := time.Since(begin); took > 8*time.Second {
		t.Errorf("the second message took %v", took)
	}
}

// A change of the config counts at once.
func TestMCPServersAreLive(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	w.mcpServers(map[string]any{"first": hostileServer(t, "plain", "mark-of-live-server-19")})
	w.start()
	w.connects("first")
	if got := w.does(person, "mcp_first_ok {}"); !strings.Contains(got, "fine") {
		t.Errorf("%s", got)
	}
	w.mcpServers(map[string]any{"second": hostileServer(t, "plain", "mark-of-other-server-19")})
	w.config()
	waitFor(t, "the end of the first server", func() bool { return len(marked(t, "mark-of-live-server-19")) == 0 })
	w.connects("second")
	if got := w.does(person, "mcp_second_ok {}", "mcp_first_ok {}"); strings.Count(got, "fine") != 1 {
		t.Errorf("%s", got)
	}
}

// A server with 1,000 tools: a request has at most 12 kB of them, and the same ones after kill -9. They are
// found and called, and the model is shown what it called. For somebody else they do not exist.
func TestThousandMCPTools(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	w.mcpServers(map[string]any{"big": hostileServer(t, "many", "mark-of-big-server-20")})
	w.start()
	w.connects("big")
	if got := w.does(person, `find_tool {"query":"update_record_512","limit":1}`); !strings.Contains(got, "## mcp_big_update_record_512") ||
		!strings.Contains(got, "what it is about") {
		t.Errorf("%s", got)
	}
	first := w.lastAsked()
	if got := w.does(person, `call_tool {"name":"mcp_big_ok","arguments":{}}`); !strings.Contains(got, "fine") {
		t.Errorf("%s", got)
	}
	r := w.lastAsked()
	size := 0
	for _, tool := range r.Tools {
		if tool.Name == "find_tool" || tool.Name == "call_tool" {
			size += len(tool.Name) + len(tool.Description) + len(tool.Schema)
		}
	}
	if names, _ := offered(r, ""); size > 12_000 || !slices.Equal(names[len(names)-2:], []string{"find_tool", "call_tool"}) || strings.Contains(fmt.Sprint(names), "mcp_big") {
		t.Errorf("%d bytes of %q", size, names)
	}
	if last := r.Messages[len(r.Messages)-2]; len(last.ToolCalls) != 1 || last.ToolCalls[0].Name != "call_tool" ||
		last.ToolCalls[0].Args != `{"name":"mcp_big_ok","arguments":{}}` {
		t.Errorf("the model is shown %+v", last)
	}
	if got := w.does(person, `call_tool {"name":"mcp_big_update_recrd_7"}`, "mcp_big_pid {}"); !strings.Contains(got, "Did you mean 'mcp_big_update_record_7'") {
		t.Errorf("%s", got)
	}
	w.kill()
	w.start()
	if got := w.does(person, `call_tool {"name":"mcp_big_ok"}`); !strings.Contains(got, "fine") {
		t.Errorf("%s", got)
	}
	if again := w.lastAsked(); fmt.Sprint(again.Tools) != fmt.Sprint(first.Tools) {
		t.Error("after kill -9 the request has other tools")
	}
	if got := w.does(guest, `call_tool {"name":"mcp_big_ok"}`); !strings.Contains(got, "Tool 'mcp_big_ok' not found") {
		t.Errorf("a guest's call: %s", got)
	}
	if all := fmt.Sprint(w.lastAsked().Tools); strings.Contains(all, "mcp_") {
		t.Errorf("a guest is offered %s", all)
	}
}

// D-031, D-107: after kill -9, the tools of a server that does not start any more are the same in the request.
// Its calls answer at once what is wrong. When it is there again, they work.
func TestToolsOfADeadMCPServer(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "server")
	there, err := exec.LookPath(mcptest.HostileCommand)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("#!/bin/sh\nexec %s plain mark-of-dead-server-21\n", there)
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	w := newTestGateway(t, obedient)
	w.mcpServers(map[string]any{"files": map[string]any{"command": program, "sandbox": "none"}})
	w.start()
	w.connects("files")
	if got := w.does(person, "mcp_files_ok {}"); !strings.Contains(got, "fine") {
		t.Fatalf("%s", got)
	}
	before := w.lastAsked()
	w.kill()
	if err := os.Rename(program, program+".away"); err != nil {
		t.Fatal(err)
	}
	w.start()
	if got := w.does(person, "mcp_files_ok {}"); !strings.Contains(got, "the MCP server files is not connected: the program ended with exit code 127") {
		t.Errorf("%s", got)
	}
	if again := w.lastAsked(); fmt.Sprint(again.Tools) != fmt.Sprint(before.Tools) {
		t.Error("after kill -9 the request has other tools")
	}
	if err := os.Rename(program+".away", program); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the server", func() bool { return strings.Contains(w.does(person, "mcp_files_ok {}"), "fine") })
}

// D-108, E-009: from Telegram, a picture of a server reaches the model, which sees, and the chat once; progress is
// shown as a step; /stop cancels the call, and the server is told.
func TestMCPPicturesStepsAndStop(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	w.model["vision"] = true
	w.more["log"] = map[string]any{"level": "debug"}
	w.mcpServers(map[string]any{
		"every": map[string]any{"command": "node", "args": []string{mcptest.Package(t, "server-everything/dist/index.js")}},
		"slow":  hostileServer(t, "plain", "mark-of-slow-server-22"),
	})
	w.start()
	w.connects("every", "slow")
	w.tg.Say(person, "call mcp_every_get-tiny-image {}")
	shows := func(is func(telegramtest.Message) bool) func(telegramtest.View) bool {
		return func(v telegramtest.View) bool {
			return slices.ContainsFunc(v.Chat(person), func(m telegramtest.Message) bool { return m.FromBot() && is(m) })
		}
	}
	w.sees("the picture", shows(func(m telegramtest.Message) bool { return len(m.Files) > 0 }))
	if files := w.received(person); len(files) != 1 || !strings.HasPrefix(files[0], "\x89PNG") {
		t.Errorf("files %.50q", files)
	}
	seen := slices.ContainsFunc(w.lastAsked().Messages, func(m llmtest.Message) bool {
		return len(m.Images) == 1 && strings.HasPrefix(string(m.Images[0].Data), "\x89PNG")
	})
	if !seen {
		t.Error("the model was not shown the picture")
	}
	w.tg.Say(person, "/new") // what a server says makes a conversation untrusted
	w.tg.Say(person, "call mcp_slow_wait {}")
	w.sees("how far the call is", shows(func(m telegramtest.Message) bool {
		return strings.Contains(m.Text+strings.Join(m.Edits, ""), "waiting (")
	}))
	w.tg.Say(person, "/stop")
	w.says(person, "(Stopped.)")
	w.logs("told that the call is cancelled", 1)
	if got := w.does(person, "mcp_slow_ok {}"); !strings.Contains(got, "fine") {
		t.Errorf("%s", got)
	}
}

// How long it takes from the start of the program to the first poll for messages, and to the answer to a message that
// waited, without MCP servers and with twenty that have been connected before.
func BenchmarkMCPStart(b *testing.B) {
	for _, n := range []int{0, 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newTestGateway(b, echo)
			servers := map[string]any{}
			for i := range n {
				servers[fmt.Sprintf("server%d", i)] = hostileServer(b, "plain", "mark-of-bench-server-23")
			}
			w.mcpServers(servers)
			w.start()
			w.tg.Say(person, "first")
			w.says(person, "heard first")
			var poll, answer time.Duration
			rounds := 0
			for b.Loop() {
				w.kill()
				rounds++
				polls := w.tg.Count("getUpdates")
				text := fmt.Sprint("round ", rounds)
				w.tg.Say(person, text)
				begin := time.Now()
				w.start()
				w.sees("a poll", func(v telegramtest.View) bool { return v.Count("getUpdates") > polls })
				poll += time.Since(begin)
				w.says(person, "heard "+text)
				answer += time.Since(begin)
			}
			b.ReportMetric(ms(poll)/float64(rounds), "poll-ms")
			b.ReportMetric(ms(answer)/float64(rounds), "answer-ms")
		})
	}
}
