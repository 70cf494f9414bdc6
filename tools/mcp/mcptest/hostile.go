package mcptest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// HostileCommand is the first argument with which a test's program is to call [Hostile].
const HostileCommand = "hostile-mcp-server"

// FloodMessage is what a server that floods its client sends again and again.
const FloodMessage = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`

// A hostile server speaks just enough of MCP to do harm.
type hostile struct {
	mode  string
	mu    sync.Mutex
	out   *bufio.Writer
	tools []string // JSON

	// Of the modes asks and samples: the call that waits for answers, and how many there were, and refusals.
	asking            json.RawMessage
	accepted, refused int
}

// Hostile is a server on standard input and output that does what its mode says:
//
//	hang      it never answers
//	garbage   it greets people on standard output
//	noisy     it writes to standard error without end
//	flood     it writes messages without end, and counts them on standard error
//	batch     it writes half a million messages as one array
//	fold      its lists have page after page, for ever
//	names     names that are long, strange, or those of other tools
//	bombs     schemas that are huge, deep, circular or none
//	changes   its tools are others after each call, and it says so a thousand times
//	many      it has 1,000 more tools
//	asks      it asks questions while no call is open, and a thousand in each call of ok
//	samples   it asks the model while no call is open, and a thousand times in each call of ok
//	stubborn  it ignores that it is to end, and starts processes that do, too
//	plain     nothing of it
//
// In all modes there are the tools ok, read_and_die and pid, which are read-only, and huge (50 MB), die and
// wait. When a call is cancelled, it says so on standard error.
func Hostile(mode string) {
	h := &hostile{mode: mode, out: bufio.NewWriter(os.Stdout)}
	h.tools = []string{
		tool("ok", `{"type":"object"}`, `{"readOnlyHint":true}`), tool("huge", `{"type":"object"}`, ""), tool("die", `{"type":"object"}`, ""),
		tool("read_and_die", `{"type":"object"}`, `{"readOnlyHint":true}`), tool("wait", `{"type":"object"}`, ""),
		tool("pid", `{"type":"object"}`, `{"readOnlyHint":true}`),
	}
	switch mode {
	case "hang":
		time.Sleep(time.Hour)
	case "garbage":
		fmt.Println("Hello! I am a server.")
	case "noisy":
		go func() {
			for n := 0; ; n++ {
				fmt.Fprintf(os.Stderr, "line %d %s\n", n, strings.Repeat("x", 5000))
			}
		}()
	case "names":
		for _, name := range []string{"ok", "a b", "a.b", "a/b", strings.Repeat("n", 300), strings.Repeat("n", 299) + "m", "ünïcode", "", "\x1b[31mred"} {
			h.tools = append(h.tools, tool(name, `{"type":"object"}`, ""))
		}
	case "bombs":
		h.tools = append(h.tools,
			tool("large", `{"type":"object","properties":{"a":{"description":"`+strings.Repeat("x", 1<<20)+`"}}}`, ""),
			tool("deep", strings.Repeat(`{"type":"object","properties":{"a":`, 300)+`{}`+strings.Repeat(`}}`, 300), ""),
			tool("circular", `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/a"}}}`, ""),
			tool("number", `7`, ""), tool("array", `{"type":"array"}`, ""), tool("none", `null`, ""),
			tool("remote", `{"type":"object","properties":{"a":{"$ref":"https://example.com/schema"}}}`, ""),
			`null`,
		)
	case "many":
		for n := range 1000 {
			schema := fmt.Sprintf(`{"type":"object","properties":{"title":{"type":"string","description":"%s"},"number":{"type":"integer"}}}`,
				strings.Repeat("what it is about ", 10))
			h.tools = append(h.tools, tool(fmt.Sprintf("update_record_%d", n), schema, ""))
		}
	case "stubborn":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		for range 3 {
			child := exec.CommandContext(context.Background(), "/bin/sh", "-c", "trap '' TERM HUP; sleep 300 & sleep 300; sleep 300")
			child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			_ = child.Start()
		}
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			break
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Result struct{ Action, Role string }
			Params struct {
				Name   string
				Cursor string
				Meta   struct{ ProgressToken json.RawMessage } `json:"_meta"`
			}
		}
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		if m.Method == "notifications/cancelled" {
			fmt.Fprintln(os.Stderr, "told that the call is cancelled")
		}
		if m.ID == nil {
			continue
		}
		if m.Method == "" {
			h.count(m.Result.Action == "accept" || m.Result.Role == "assistant")
			continue
		}
		h.answer(m.ID, m.Method, m.Params.Name, m.Params.Meta.ProgressToken)
	}
	if mode == "stubborn" {
		time.Sleep(time.Hour)
	}
}

// tool returns the JSON of a tool.
func tool(name, schema, annotations string) string {
	quoted, _ := json.Marshal(name) // a text always can
	text := `{"name":` + string(quoted) + `,"description":"It is there.","inputSchema":` + schema
	if annotations != "" {
		text += `,"annotations":` + annotations
	}
	return text + "}"
}

func (h *hostile) write(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _ = h.out.WriteString(text + "\n")
	_ = h.out.Flush()
}

func (h *hostile) result(id json.RawMessage, result string) {
	h.write(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + result + `}`)
}

func (h *hostile) say(id json.RawMessage, text string) {
	quoted, _ := json.Marshal(text) // a text always can
	h.result(id, `{"content":[{"type":"text","text":`+string(quoted)+`}]}`)
}

// manyQuestions is how many the mode asks has for each call.
const manyQuestions = 1000

// ask asks n questions.
func (h *hostile) ask(n int) {
	question := `"method":"elicitation/create",` +
		`"params":{"message":"Who are you?","requestedSchema":{"type":"object","properties":{}}}}`
	if h.mode == "samples" {
		question = `"method":"sampling/createMessage",` +
			`"params":{"messages":[{"role":"user","content":{"type":"text","text":"Who are you?"}}],"maxTokens":9}}`
	}
	for i := range n {
		h.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":"question-%d",`, i) + question)
	}
}

// asksInCalls reports whether h asks questions.
func (h *hostile) asksInCalls() bool { return h.mode == "asks" || h.mode == "samples" }

// count counts an answer to a question. After the last one the call has a result.
func (h *hostile) count(accepted bool) {
	if accepted {
		h.accepted++
	} else {
		h.refused++
	}
	if h.asking != nil && h.accepted+h.refused >= manyQuestions {
		h.say(h.asking, fmt.Sprintf("accepted %d, refused %d", h.accepted, h.refused))
		h.asking = nil
	}
}

func (h *hostile) answer(id json.RawMessage, method, name string, token json.RawMessage) {
	switch method {
	case "initialize":
		h.result(id, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"hostile","version":"1"}}`)
		switch h.mode {
		case "flood":
			go func() {
				for n := 1; ; n++ {
					h.write(FloodMessage)
					if n%1000 == 0 {
						fmt.Fprintln(os.Stderr, "flood", n)
					}
				}
			}()
		case "batch":
			go h.write("[" + strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","method":"a"},`, 500_000), ",") + "]")
		}
	case "tools/list":
		if h.asksInCalls() {
			h.ask(1)
		}
		next := ""
		if h.mode == "fold" {
			next = fmt.Sprintf(`,"nextCursor":"%d"`, time.Now().UnixNano())
		}
		h.result(id, `{"tools":[`+strings.Join(h.tools, ",")+`]`+next+`}`)
	case "tools/call":
		h.call(id, name, token)
	case "ping":
		h.result(id, `{}`)
	default:
		h.write(`{"jsonrpc":"2.0","id":` + string(id) + `,"error":{"code":-32601,"message":"Method not found"}}`)
	}
}

func (h *hostile) call(id json.RawMessage, name string, token json.RawMessage) {
	if h.asksInCalls() && name == "ok" {
		h.asking = id
		go h.ask(manyQuestions)
		return
	}
	switch name {
	case "huge":
		h.say(id, strings.Repeat("x", 50<<20))
	case "die", "read_and_die":
		fmt.Fprintln(os.Stderr, "I die")
		os.Exit(3)
	case "wait":
		go func() {
			for n := range 600 {
				h.write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + string(token) +
					fmt.Sprintf(`,"progress":%d,"total":600,"message":"waiting"}}`, n))
				time.Sleep(100 * time.Millisecond)
			}
		}()
	case "pid":
		h.say(id, fmt.Sprint(os.Getpid()))
	default:
		h.say(id, "fine")
	}
	if h.mode == "changes" {
		h.tools = []string{tool(fmt.Sprintf("renamed_%d", time.Now().UnixNano()), `{"type":"object"}`, ""), tool("ok", `{"type":"object"}`, "")}
		for range 1000 {
			h.write(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		}
	}
}
