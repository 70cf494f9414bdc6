package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"parley/llm"
	"parley/timetest"
	"parley/tools/arguments"
)

// answering is a tool that always gives r and err.
func answering(hints Hints, r Result, err error) Tool {
	t := echo("a", anything)
	t.Hints = hints
	t.Run = func(context.Context, Call) (Result, error) { return r, err }
	return t
}

func TestShape(t *testing.T) {
	js, plain := Hints{JSON: true}, Hints{}
	const fail = `{"success":false,"data":null,"error":`
	for _, c := range []struct {
		id    string
		hints Hints
		r     Result
		err   error
		want  string
		fails bool
	}{
		{"A-006", js, Result{Data: 1}, nil, `{"success":true,"data":1,"error":null}`, false},
		{"A-006", js, Result{}, nil, `{"success":true,"data":null,"error":null}`, false},
		{"A-006", js, Failf("", "no luck"), nil, fail + `"no luck"}`, true},
		{"A-005", js, Result{}, errors.New("no luck"), fail + `"no luck"}`, true},
		{"A-005", js, Failf("", "Error: no%s", hint), nil, fail + `"no"}`, true},
		{"A-007", js, Result{Data: map[string]any{"n": 1}}, nil, `{"success":true,"data":{"n":1},"error":null}`, false},
		{"A-007", js, Result{Text: "plain"}, nil, `{"success":true,"data":"plain","error":null}`, false},
		{"A-007", js, Result{Text: `{"n":1}`}, nil, `{"success":true,"data":"{\"n\":1}","error":null}`, false},
		{"A-007", js, Result{Text: "for people", Data: []int{1}}, nil, `{"success":true,"data":[1],"error":null}`, false},
		{"A-008", js, Result{Data: map[string]any{"success": false, "error": "File not found: x"}}, nil, fail + `"File not found: x"}`, true},
		{"A-008", plain, Result{Data: map[string]any{"success": false, "error": "bad"}}, nil, "Error: bad" + hint, true},
		{"A-008", plain, Result{Text: "all went wrong", Data: map[string]any{"success": false}}, nil, "Error: all went wrong" + hint, true},
		{"A-008", js, Result{Data: map[string]any{"success": false}}, nil, fail + `"a failed and did not say why"}`, true},
		{"A-008", js, Result{Data: map[string]any{"success": false, "error": map[string]any{"at": 3}}}, nil, fail + `"{\"at\":3}"}`, true},
		{"A-008", js, Result{Data: map[string]any{"success": true, "error": "none"}}, nil, `{"success":true,"data":{"error":"none","success":true},"error":null}`, false},
		{"A-008", js, Result{Data: map[string]any{"success": "partly"}}, nil, `{"success":true,"data":{"success":"partly"},"error":null}`, false},
		{"A-034 E-040", js, Result{Data: map[string]any{"error": "HTTP 404", "url": "u"}}, nil, fail + `"HTTP 404 (u)"}`, true},
		{"E-040", plain, Result{Data: map[string]any{"error": nil, "url": "u"}}, nil, `{"error":null,"url":"u"}`, false},
		{"C-005", plain, Result{Data: []string{"a<b>&c"}}, nil, `["a<b>&c"]`, false},
		{"C-004", plain, Result{Text: "words", Data: 1}, nil, "words", false},
		{"A-092", js, Result{Data: map[string]any{"n": math.NaN(), "ok": 1.5}}, nil, `{"success":true,"data":"json: unsupported value: NaN","error":null}`, false},
		{"A-092", js, Result{Data: []float64{1, math.Inf(1)}}, nil, `{"success":true,"data":"json: unsupported value: +Inf","error":null}`, false},
		{"A-092", js, Result{Data: []byte("hi")}, nil, `{"success":true,"data":"aGk=","error":null}`, false},
		{"A-092", js, Result{Data: "caf\xe9 <b>"}, nil, `{"success":true,"data":"caf\ufffd <b>","error":null}`, false},
		{"A-092", js, Result{Data: map[int]any{1: struct{ C func() }{nil}, 2: "x"}}, nil, `{"success":true,"data":"json: unsupported type: func()","error":null}`, false},
		{"64-bit", js, Result{Data: map[string]any{"id": uint64(math.MaxUint64), "i": int64(math.MaxInt64)}}, nil, `{"success":true,"data":{"i":9223372036854775807,"id":18446744073709551615},"error":null}`, false},
	} {
		r := kitOf(t, answering(c.hints, c.r, c.err)).Call(t.Context(), callTo("a", ""))
		if r.Text != c.want || r.Failed != c.fails || r.JSON != c.hints.JSON || c.fails && r.Code != CodeError {
			t.Errorf("%s: %+v\ngot  %s\nwant %s", c.id, c.r, r.Text, c.want)
		}
	}
}

// not even what holds itself.
func TestShapeOfCycle(t *testing.T) {
	cycle := map[string]any{}
	cycle["me"] = []any{cycle}
	if got := arguments.JSON(cycle); !json.Valid([]byte(got)) || !strings.Contains(got, "cycle") {
		t.Errorf("got %.200s", got)
	}
}

// a JSON tool's failures look alike whatever stage they are of; the hint is for others.
func TestEnvelopeOfEveryStage(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		tool := echo("a", `{"type":"object","properties":{"n":{"type":"integer","maximum":5}}}`)
		tool.Hints = Hints{JSON: true, ReadOnly: true, Timeout: time.Millisecond}
		tool.Query = func(args map[string]any) string { return fmt.Sprint(args["q"]) }
		tool.Run = func(ctx context.Context, c Call) (Result, error) {
			switch c.Input["n"] {
			case int64(1):
				panic("boom")
			case int64(2):
				<-ctx.Done()
				return Result{}, ctx.Err()
			}
			return Result{Data: c.Input}, nil
		}
		denied := tool
		denied.Name, denied.Dangerous = "b", true
		k := kitOf(t, tool, denied)
		stopped, stop := context.WithCancel(t.Context())
		stop()
		bad := func(s string) string { return `{"success":false,"data":null,"error":` + arguments.JSON(s) + `}` }
		for _, c := range []struct {
			id, name, args, want string
			ctx                  context.Context
		}{
			{"A-012", "a", `{`, bad("Invalid JSON arguments for tool 'a': the JSON ends too early. The tool was not run. Send the call again, with one complete JSON object as its arguments."), t.Context()},
			{"D-021", "a", `{"n":9}`, bad("Invalid parameters for tool 'a': n must be <= 5"), t.Context()},
			{"A-005", "a", `{"n":1}`, bad("a crashed: boom. This is a bug in the tool, not a fault in your arguments"), t.Context()},
			{"C-039", "a", `{"n":2}`, bad("Tool execution timeout after 1ms"), t.Context()},
			{"C-051", "b", `{}`, bad("b needs the approval of an owner, which cannot be asked for here: it was not run"), t.Context()},
			{"A-019", "a", `{}`, bad("cancelled by the user before it ran"), stopped},
			{"A-006", "a", `{"q":"x"}`, `{"success":true,"data":{"q":"x"},"error":null}`, t.Context()},
			{"A-078", "a", `{"q":"x"}`, `{"success":true,"data":{"q":"x"},"error":null,"cached":true}`, t.Context()},
			{"D-020", "c", `{}`, "Error: Tool 'c' not found. Available: a, b" + hint, t.Context()},
		} {
			if r := k.Together(c.ctx, []Call{callTo(c.name, c.args)})[0]; r.Text != c.want {
				t.Errorf("%s: %s(%s)\ngot  %s\nwant %s", c.id, c.name, c.args, r.Text, c.want)
			}
		}
	})
}

// the text of a twin says that it is one.
func TestEnvelopeOfTwin(t *testing.T) {
	for _, readOnly := range []bool{true, false} {
		k := kitOf(t, answering(Hints{JSON: true, ReadOnly: readOnly}, Result{Data: 1}, nil))
		first := callTo("a", "{}")
		twin := first
		twin.ID, twin.Twin = "c2", first.ID
		k.Call(t.Context(), first)
		want := `{"success":true,"data":1,"error":null,"duplicate":true}`
		if !readOnly {
			want = `{"success":true,"data":"` + wordsTwin + `","error":null,"duplicate":true}`
		}
		if r := k.Call(t.Context(), twin); r.Text != want || !r.Skipped || r.Took != 0 {
			t.Errorf("%s, want %s", r.Text, want)
		}
	}
}

// The golden record of merge.md 2.5, and what A-014…A-018 say of others.
func TestRecord(t *testing.T) {
	when := time.Date(2026, 4, 16, 21, 2, 33, 5e8, time.FixedZone("", 8*3600))
	call := func(args string) llm.ToolCall { return llm.ToolCall{ID: "call_1", Name: "web_search", Args: args} }
	const meta = `"meta":{"tool":"web_search","alias":"","server":"",`
	for _, c := range []struct {
		id   string
		args string
		read string
		r    Result
		want string
	}{
		{"A-014", `{"query":"…"}`, `{"success":true,"data":[],"error":null}`, Result{JSON: true, Time: when, Took: 412 * time.Millisecond},
			`{"id":"call_1","type":"function","function":{"name":"web_search","arguments":"{\"query\":\"…\"}"},"result":"{\"success\":true,\"data\":[],\"error\":null}","success":true,"skipped":false,"execution_time":0.412,` +
				meta + `"status":"success","cached":false,"duplicate_of":"","verdict":"ok","code":"","duration_ms":412,"call_time":"2026-04-16T21:02:33+08:00","agent":"main","turn":3,"requestId":"call_1","persisted":"","truncated":false}}`},
		{"A-015", ``, "two\nlines", Result{Verdict: Poor, File: ".parley/x.txt", Cut: true},
			`{"id":"call_1","type":"function","function":{"name":"web_search","arguments":"{}"},"result":"{\"success\":true,\"data\":\"two\\nlines\",\"error\":null}","success":true,"skipped":false,"execution_time":0,` +
				meta + `"status":"success","cached":false,"duplicate_of":"","verdict":"poor","code":"","duration_ms":0,"call_time":"","agent":"main","turn":3,"requestId":"call_1","persisted":".parley/x.txt","truncated":true}}`},
		{"A-016 E-023", `{"cut`, "Error: no luck" + hint, Result{Failed: true, Code: CodeError, Took: 3 * time.Millisecond},
			`{"id":"call_1","type":"function","function":{"name":"web_search","arguments":"\"{\\\"cut\""},"result":"{\"success\":false,\"data\":null,\"error\":\"no luck\"}","success":false,"skipped":false,"execution_time":0.003,` +
				meta + `"status":"error","cached":false,"duplicate_of":"","verdict":"ok","code":"TOOL_ERROR","duration_ms":3,"call_time":"","agent":"main","turn":3,"requestId":"call_1","persisted":"","truncated":false}}`},
		{"A-004 C-027", `{}`, "Error: Tool 'web_search' not found. Available: a" + hint, Result{Failed: true, Code: CodeNotFound},
			`{"id":"call_1","type":"function","function":{"name":"web_search","arguments":"{}"},"result":"{\"success\":false,\"data\":null,\"error\":\"Tool not found: web_search\"}","success":false,"skipped":false,"execution_time":0,` +
				meta + `"status":"error","cached":false,"duplicate_of":"","verdict":"ok","code":"TOOL_NOT_FOUND","duration_ms":0,"call_time":"","agent":"main","turn":3,"requestId":"call_1","persisted":"","truncated":false}}`},
		{"A-018", `{}`, "same", Result{Skipped: true, Cached: true, Twin: "call_0"},
			`{"id":"call_1","type":"function","function":{"name":"web_search","arguments":"{}"},"result":"{\"success\":true,\"data\":\"same\",\"error\":null,\"cached\":true,\"duplicate\":true}","success":true,"skipped":true,"execution_time":0,` +
				meta + `"status":"success","cached":true,"duplicate_of":"call_0","verdict":"ok","code":"","duration_ms":0,"call_time":"","agent":"main","turn":3,"requestId":"call_1","persisted":"","truncated":false}}`},
	} {
		rec := NewRecord(call(c.args), c.read, c.r, "main", 3)
		if got := arguments.JSON(rec); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.id, got, c.want)
		}
		if !json.Valid([]byte(rec.Function.Arguments)) || !json.Valid([]byte(rec.Result)) {
			t.Errorf("%s: not JSON in %+v", c.id, rec)
		}
	}
	if r := NewRecord(call(""), "Error: x", Result{}, "main", 1); r.Result != `{"success":true,"data":"Error: x","error":null}` { // D-040
		t.Errorf("D-040: %s", r.Result)
	}
}

// E-021, A-014: what a Kit gives is what a record is made of, also after a log kept all but the text.
func TestRecordOfCall(t *testing.T) {
	c := callTo("a", `{"x":1}`)
	r := kitOf(t, answering(Hints{JSON: true}, Result{Data: 1}, nil)).Call(t.Context(), c)
	var kept Result
	if err := json.Unmarshal([]byte(arguments.JSON(r)), &kept); err != nil {
		t.Fatal(err)
	}
	rec, again := NewRecord(c.ToolCall, r.Text, r, "main", 1), NewRecord(c.ToolCall, r.Text, kept, "main", 1)
	if rec != again || rec.ExecutionTime <= 0 || rec.Result != r.Text || rec.Meta.CallTime != r.Time.Format(time.RFC3339) {
		t.Errorf("%+v\nand after the log %+v", rec, again)
	}
}
