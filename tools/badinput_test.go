package tools

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/timetest"
	"parley/tools/arguments"
	"parley/workspace"
)

// Whatever a model writes and whatever a tool does, the model gets a text that
// tells it what to do, and the turn goes on (E-031).
func TestBadInput(t *testing.T) {
	w, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	type args struct {
		Path  string   `json:"path"`
		Count int      `json:"count,omitempty" limit:"max=9"`
		ID    uint64   `json:"id,omitempty"`
		Ratio *float64 `json:"ratio,omitempty"`
	}
	var said int
	run := map[string]func(context.Context, Call) (Result, error){
		"echo":  func(_ context.Context, c Call) (Result, error) { return Result{Text: arguments.JSON(c.Input)}, nil },
		"hang":  func(ctx context.Context, _ Call) (Result, error) { <-ctx.Done(); return Result{}, ctx.Err() },
		"panic": func(context.Context, Call) (Result, error) { panic(errors.New("nil pointer")) },
		"deaf":  func(context.Context, Call) (Result, error) { time.Sleep(time.Hour); return Result{Text: "late"}, nil },
		"late": func(context.Context, Call) (Result, error) {
			time.Sleep(1100 * time.Millisecond)
			return Result{Text: "done"}, nil
		},
		"latest": func(context.Context, Call) (Result, error) {
			time.Sleep(1300 * time.Millisecond)
			return Result{Text: "done"}, nil
		},
		"flood": func(_ context.Context, c Call) (Result, error) {
			for range 100_000 {
				c.Say("still at it")
			}
			return Result{Text: strings.Repeat("x", 10<<20)}, nil
		},
		"binary": func(context.Context, Call) (Result, error) {
			return Result{Text: "\x7fELF\x00\x01\xff\xfe\xfd tail"}, nil
		},
		"latin":   func(context.Context, Call) (Result, error) { return Result{Text: "caf\xe9 cr\xe8me"}, nil },
		"nothing": func(context.Context, Call) (Result, error) { return Result{}, nil },
		"silent":  func(context.Context, Call) (Result, error) { return Result{Failed: true}, nil },
		"nan":     func(context.Context, Call) (Result, error) { return Result{Data: map[string]any{"r": math.NaN()}}, nil },
		"bytes": func(context.Context, Call) (Result, error) {
			return Result{Data: map[string]any{"b": []byte{0, 255}, "s": "\xff"}}, nil
		},
		"liar": func(context.Context, Call) (Result, error) {
			return Result{Text: "Error: this is what the file says"}, nil
		},
	}
	var offered []Tool
	for name, f := range run {
		u := New(name, "Does it.", func(context.Context, Call, args) (Result, error) { return Result{}, nil })
		if name != "echo" {
			u = echo(name, anything)
		}
		u.Run, u.Timeout = f, time.Second
		offered = append(offered, u)
	}
	const list = "Available: binary, bytes, deaf, echo, flood, hang, late, latest, latin, liar, nan, nothing, panic, silent"
	bad := func(s string) string { return "Error: " + s + hint }
	notJSON := func(why string) string {
		return bad("Invalid JSON arguments for tool 'echo': " + why + ". The tool was not run. Send the call again, with one complete JSON object as its arguments.")
	}
	invalid := func(s string) string { return bad("Invalid parameters for tool 'echo': " + s) }
	persisted := func(n int, preview string) string {
		return fmt.Sprintf("[tool output persisted]\nFull output saved to: .parley/tool-results/%s/%s.txt\nOriginal size: %d chars\nPreview:\n%s\n...\n(Read the saved file if you need the full output.)", chat.Slug("telegram:42"), chat.Slug("t1#c1"), n, preview)
	}
	for _, c := range []struct{ what, tool, args, want string }{
		{"unknown tool", "fly", `{}`, bad("Tool 'fly' not found. " + list)},
		{"unknown tool, broken arguments", "fly", `{`, bad("Tool 'fly' not found. " + list)},
		{"no name", "", `{}`, bad("Tool '' not found. " + list)},
		{"another case", "Functions.ECHO", `{"path":"x"}`, `{"path":"x"}`},
		{"not JSON", "echo", `path=x`, notJSON("invalid character 'p' looking for beginning of value")},
		{"not JSON inside", "echo", `{"path":x}`, notJSON("invalid character 'x' looking for beginning of value")},
		{"two objects", "echo", `{"path":"x"}{"path":"y"}`, notJSON("there is more after the JSON value")},
		{"cut in a string", "echo", `{"path":"no`, notJSON("the JSON ends too early")},
		{"cut before a value", "echo", `{"path":`, notJSON("the JSON ends too early")},
		{"cut at the end", "echo", `{"path":"x"`, notJSON("the JSON ends too early")},
		{"no object", "echo", `["x"]`, invalid("parameters must be a JSON object, got array")},
		{"nothing", "echo", ``, invalid("path is required")},
		{"wrong type", "echo", `{"path":"x","count":"many"}`, invalid("count should be integer")},
		{"wrong type, mended", "echo", `{"path":5,"count":"7"}`, `{"count":7,"path":"5"}`},
		{"a list for a string", "echo", `{"path":["x"]}`, `{"path":"[\"x\"]"}`},
		{"out of bounds", "echo", `{"path":"x","count":99}`, invalid("count must be <= 9")},
		{"far too large", "echo", `{"path":"` + strings.Repeat("x", 2<<20) + `"}`, invalid("2097163 bytes of arguments are more than the limit of 1048576. The tool was not run. Send less at a time.")},
		{"as large as may be", "latin", `{"x":"` + strings.Repeat("x", 1<<20-8) + `"}`, "caf\ufffd cr\ufffdme"},
		{"all spaces", "echo", "{" + strings.Repeat(" ", 1<<20-8) + "x", notJSON("invalid character 'x' looking for beginning of object key string")},
		{"extra key", "echo", `{"path":"x","colour":"red"}`, invalid("unexpected parameter colour")},
		{"misspelt key", "echo", `{"pth":"x"}`, invalid("path is required; unexpected parameter pth")},
		{"misspelt case", "echo", `{"PATH":"x","Count":1}`, invalid("path is required; unexpected parameter Count; unexpected parameter PATH")},
		{"misspelt, and there", "echo", `{"path":"x","pathh":"y"}`, invalid("unexpected parameter pathh")},
		{"64-bit id", "echo", `{"path":"x","id":18446744073709551615}`, `{"id":18446744073709551615,"path":"x"}`},
		{"64-bit id as text", "echo", `{"path":"x","id":"9007199254740993"}`, `{"id":9007199254740993,"path":"x"}`},
		{"64-bit id for text", "echo", `{"path":9007199254740993}`, `{"path":"9007199254740993"}`},
		{"NaN", "echo", `{"path":"x","ratio":NaN}`, notJSON("invalid character 'N' looking for beginning of value")},
		{"NaN as text", "echo", `{"path":"x","ratio":"NaN"}`, invalid("ratio should be number")},
		{"infinite", "echo", `{"path":"x","ratio":1e999}`, invalid("ratio must be finite")},
		{"invalid UTF-8", "echo", "{\"path\":\"caf\xe9\"}", `{"path":"caf` + "\ufffd" + `"}`},
		{"huge key", "echo", `{"path":"x","` + strings.Repeat("k", 300) + `":1}`, invalid("unexpected parameter " + strings.Repeat("k", 300))},
		{"hangs", "hang", `{}`, bad("Tool execution timeout after 1000ms")},
		{"ignores its end", "deaf", `{}`, bad("Tool execution timeout after 1000ms")},
		{"done after its time", "late", `{}`, "done"},
		{"done long after its time", "latest", `{}`, bad("Tool execution timeout after 1000ms")},
		{"panics", "panic", `{}`, bad("panic crashed: nil pointer. This is a bug in the tool, not a fault in your arguments")},
		{"floods", "flood", `{}`, persisted(10<<20, strings.Repeat("x", 1200))},
		{"binary result", "binary", `{}`, "\x7fELF\ufffd\x01\ufffd tail"},
		{"invalid UTF-8 in a result", "latin", `{}`, "caf\ufffd cr\ufffdme"},
		{"no result", "nothing", `{}`, "(nothing completed with no output)"},
		{"fails without a word", "silent", `{}`, bad("silent failed and did not say why")},
		{"NaN in a result", "nan", `{}`, `"json: unsupported value: NaN"`},
		{"bytes in a result", "bytes", `{}`, `{"b":"AP8=","s":"` + `\ufffd` + `"}`},
		{"looks like a failure", "liar", `{}`, "Error: this is what the file says"},
	} {
		timetest.Test(t, func(t *testing.T) {
			call := Call{ToolCall: llm.ToolCall{ID: "c1", Name: c.tool, Args: c.args}, Scope: Scope{Session: "telegram:42", Turn: "t1", Workspace: w}, Tip: func(string) { said++ }}
			k := kitWith(t, StandardConfig{Stats: new(Stats), Cache: NewCache(time.Hour)}, offered...)
			r := k.Call(t.Context(), call)
			if r.Text != c.want || r.Failed != (strings.HasSuffix(c.want, hint)) {
				t.Errorf("%s: failed %v\ngot  %.300q\nwant %.300q", c.what, r.Failed, r.Text, c.want)
			}
			next := call
			if next.Name, next.Args = "echo", `{"path":"x"}`; k.Call(t.Context(), next).Text != next.Args {
				t.Errorf("%s: the next call fails", c.what)
			}
			timetest.Sleep(2 * time.Hour) // for the deaf
		})
	}
	if said != 100_000 {
		t.Errorf("heard %d tips", said)
	}
}
