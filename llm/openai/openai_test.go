package openai_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/llm"
	"parley/llm/demo"
	"parley/llm/llmtest"
	"parley/llm/openai"
)

const key = "sk-secret-0123456789"

// serve starts a Server that answers everything with reply.
func serve(t *testing.T, reply llmtest.Reply) *llmtest.Server {
	t.Helper()
	return serveFunc(t, func(context.Context, llmtest.Request) llmtest.Reply { return reply })
}

func serveFunc(t *testing.T, h llmtest.Handler) *llmtest.Server {
	t.Helper()
	s := llmtest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func model(t testing.TB, url string, changes ...func(*openai.Config)) llm.Model {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	c := openai.Config{Name: "main", BaseURL: url, APIKey: key, Model: "gpt-4o", Transport: tr}
	for _, change := range changes {
		change(&c)
	}
	return openai.New(c)
}

// A recorder collects what is streamed.
type recorder struct{ text, reasoning strings.Builder }

func (r *recorder) record(d llm.Delta) {
	r.text.WriteString(d.Text)
	r.reasoning.WriteString(d.Reasoning)
}

func TestConformance(t *testing.T) {
	s := serveFunc(t, llmtest.Rehearse(demo.New("demo")))
	llmtest.Conformance(t, model(t, s.URL()))
	if why := s.Refused(); why != nil {
		t.Fatalf("the server refused: %q", why)
	}
}

func TestAnswer(t *testing.T) {
	s := serve(t, llmtest.Reply{Text: "Hello, world.", Reasoning: "hm", Usage: &llm.Usage{In: 100, Out: 7, Cached: 64}})
	var rec recorder
	m, err := model(t, s.URL()).Generate(t.Context(), llmtest.Say("hi", llmtest.Echo()), rec.record)
	want := llm.Message{Role: llm.Assistant, Text: "Hello, world.", Reasoning: "hm", Finish: llm.Stopped, Model: "main", Usage: llm.Usage{In: 100, Out: 7, Cached: 64}}
	if err != nil || fmt.Sprint(m) != fmt.Sprint(want) {
		t.Fatalf("got %+v, %v", m, err)
	}
	if rec.text.String() != m.Text || rec.reasoning.String() != m.Reasoning {
		t.Fatalf("streamed %q, %q", rec.text.String(), rec.reasoning.String())
	}
	r := s.Requests()[0]
	if r.Messages[0].Role != "system" || r.Messages[0].Content != "You are a test." || r.Last() != "hi" || r.Tools[0].Name != "echo" {
		t.Fatalf("asked %+v", r)
	}
}

// The body is read to its end, so that the connection can be used again.
func TestReadsToTheEnd(t *testing.T) {
	b := &tracked{parts: []string{word, stop, "data: [DONE]\n\n"}}
	if _, err := openai.New(openai.Config{Model: "x", Transport: b}).Generate(t.Context(), llmtest.Say("hi"), nil); err != nil {
		t.Fatal(err)
	}
	if !b.ended || !b.closed {
		t.Fatalf("got %+v", b)
	}
}

// A tracked body arrives in parts and notes whether it was read to its end.
type tracked struct {
	parts         []string
	ended, closed bool
}

func (b *tracked) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: b, Header: http.Header{}}, nil
}

func (b *tracked) Read(p []byte) (int, error) {
	if len(b.parts) == 0 {
		b.ended = !b.closed
		return 0, io.EOF
	}
	n := copy(p, b.parts[0])
	b.parts = b.parts[1:]
	return n, nil
}

func (b *tracked) Close() error {
	b.closed = true
	return nil
}

// A temperature of almost 0 is sent for 0. Model families get the parameters that they
// accept, also behind a router.
func TestParameters(t *testing.T) {
	zero, some := 0.0, 0.2
	for _, c := range []struct {
		model string
		temp  *float64
		tools bool
		want  string // of max_tokens max_completion_tokens temperature reasoning_effort
	}{
		{"gpt-4o", &zero, true, "max_tokens=100 temperature=1e-06"},
		{"gpt-4o", &some, false, "max_tokens=100 temperature=0.2"},
		{"gpt-4o", nil, false, "max_tokens=100"},
		{"o3-mini", &some, true, "max_completion_tokens=100"},
		{"gpt-5-mini", &zero, true, "max_completion_tokens=100"},
		{"openai/gpt-5-mini", &some, true, "max_completion_tokens=100"},
		{"openai/o4-mini:free", &some, true, "max_completion_tokens=100"},
		{"gpt-5.6-sol", &some, true, "max_completion_tokens=100"},
		{"gpt-6-sol", &some, true, "max_completion_tokens=100 reasoning_effort=none"},
		{"gpt-6-luna", &some, false, "max_completion_tokens=100"},
		{"openai/gpt-6-luna", &some, true, "max_completion_tokens=100 reasoning_effort=none"},
		{"gpt-6-astra", &some, false, "max_completion_tokens=100"},
		{"meta-llama/llama-3", &zero, true, "max_tokens=100 temperature=1e-06"},
	} {
		s := serve(t, llmtest.Reply{Text: "ok"})
		m := model(t, s.URL(), func(cfg *openai.Config) { cfg.Model, cfg.Temperature, cfg.MaxTokens = c.model, c.temp, 100 })
		req := llmtest.Say("hi")
		if c.tools {
			req.Tools = []llm.ToolSpec{llmtest.Echo()}
		}
		if _, err := m.Generate(t.Context(), req, nil); err != nil {
			t.Errorf("%s: %v", c.model, err)
			continue
		}
		if n := len(s.Requests()); n != 1 {
			t.Errorf("%s: %d requests", c.model, n)
		}
		if got := fields(s.Requests()[0].Body, "max_tokens", "max_completion_tokens", "temperature", "reasoning_effort"); got != c.want {
			t.Errorf("%s: sent %s, want %s", c.model, got, c.want)
		}
	}
}

// The form that an answer must have is told as it was asked for, schema and all.
func TestFormat(t *testing.T) {
	s := serve(t, llmtest.Reply{Text: "{}"})
	req := llmtest.Say("hi")
	const format = `{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","anyOf":[{}]},"strict":true}}`
	req.Format = json.RawMessage(format)
	if _, err := model(t, s.URL()).Generate(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	var sent struct {
		Format json.RawMessage `json:"response_format"`
	}
	if err := json.Unmarshal(s.Requests()[0].Body, &sent); err != nil || string(sent.Format) != format {
		t.Errorf("%s, %v", sent.Format, err)
	}
	req.Format = json.RawMessage(`[]`)
	_, err := model(t, s.URL()).Generate(t.Context(), req, nil)
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.BadRequest || len(s.Requests()) != 1 {
		t.Errorf("%v after %d requests", err, len(s.Requests()))
	}
}

func fields(body []byte, names ...string) string {
	var all map[string]any
	_ = json.Unmarshal(body, &all)
	var out []string
	for _, n := range names {
		if v, ok := all[n]; ok {
			out = append(out, fmt.Sprintf("%s=%v", n, v))
		}
	}
	return strings.Join(out, " ")
}

// A parameter that a provider refuses by name is left out, at once and from then on.
func TestLearnsParameters(t *testing.T) {
	zero := 0.0
	for _, c := range []struct{ field, says string }{
		{"stream_options", `{"error":{"message":"Unrecognized request argument supplied: stream_options"}}`},
		{"stream_options", `{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}`},
		{"max_tokens", `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}}`},
		{"temperature", `{"error":{"message":"Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported."}}`},
	} {
		s := serveFunc(t, func(_ context.Context, r llmtest.Request) llmtest.Reply {
			if fields(r.Body, c.field) != "" {
				return llmtest.Reply{Status: 400, Body: c.says}
			}
			return llmtest.Reply{Text: "ok"}
		})
		m := model(t, s.URL(), func(cfg *openai.Config) { cfg.Model, cfg.Temperature, cfg.MaxTokens = "some", &zero, 5 })
		for want := 2; want < 4; want++ {
			if _, err := m.Generate(t.Context(), llmtest.Say("hi"), nil); err != nil || len(s.Requests()) != want {
				t.Errorf("%s: got %v after %d requests, want %d", c.field, err, len(s.Requests()), want)
			}
		}
	}
	s := serve(t, llmtest.Reply{Status: 400, Body: `{"error":{"message":"Invalid 'temperature': decimal above maximum value."}}`})
	if _, err := model(t, s.URL(), func(cfg *openai.Config) { cfg.Temperature = &zero }).Generate(t.Context(), llmtest.Say("hi"), nil); err == nil || len(s.Requests()) != 1 {
		t.Errorf("a wrong value: got %v after %d requests", err, len(s.Requests()))
	}
}

// A-091, P11: each failure has its kind, and no error contains a secret (R-S26).
func TestFailures(t *testing.T) {
	page := "<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body>" + strings.Repeat("x", 5000)
	for _, c := range []struct {
		name   string
		status int
		body   string
		kind   llm.Kind
		text   string
	}{
		{"key", 401, `{"error":{"message":"Incorrect API key provided: ` + key + `.","code":"invalid_api_key"}}`, llm.Auth, "provided: [key]."},
		{"gemini key", 400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`, llm.Auth, "not valid"},
		{"forbidden", 403, `{"error":"no"}`, llm.Auth, "no"},
		{"credit", 402, `{"error":{"message":"Insufficient Balance"}}`, llm.Quota, "Insufficient"},
		{"quota", 429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, llm.Quota, "quota"},
		{"anthropic credit", 400, `{"error":{"message":"Your credit balance is too low to access the API"}}`, llm.Quota, "credit"},
		{"rate", 429, `{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}`, llm.RateLimited, "Rate limit reached"},
		{"too many tokens at once", 429, `{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 50000","code":"rate_limit_exceeded"}}`, llm.TooLong, "Request too large"},
		{"context", 400, `{"error":{"message":"This model's maximum context length is 8192 tokens.","code":"context_length_exceeded"}}`, llm.TooLong, "8192"},
		{"llama.cpp context", 500, `{"error":{"code":500,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, llm.TooLong, "exceeds"},
		{"body too large", 413, `<html>413</html>`, llm.TooLong, "a web page"},
		{"bad", 400, `{"error":{"message":"bad \n things","param":null}}`, llm.BadRequest, "bad things"},
		{"no model", 404, `{"error":{"message":"The model does not exist"}}`, llm.BadRequest, "does not exist"},
		{"unprocessable", 422, `{"detail":[{"msg":"field required"}]}`, llm.BadRequest, "field required"},
		{"vllm", 400, `{"object":"error","message":"vllm says no","type":"BadRequestError","code":400}`, llm.BadRequest, "vllm says no"},
		{"timeout", 408, ``, llm.Overloaded, "no reason given"},
		{"conflict", 409, `{}`, llm.Overloaded, "{}"},
		{"server", 500, `{"error":{"message":"The server had an error"}}`, llm.Overloaded, "had an error"},
		{"page", 502, page, llm.Overloaded, "a web page"},
		{"plain", 503, "upstream connect error", llm.Overloaded, "upstream connect error"},
		{"anthropic", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, llm.Overloaded, "Overloaded"},
		{"openrouter", 429, `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"slow down, please","provider_name":"X"}}}`, llm.RateLimited, "slow down"},
		{"long", 400, `{"error":{"message":"` + strings.Repeat("ü", 5000) + `"}}`, llm.BadRequest, "ü…"},
		{"not utf-8", 400, "\xff\xfe" + key, llm.BadRequest, "[key]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, llmtest.Reply{Status: c.status, Body: c.body})
			_, err := model(t, s.URL()).Generate(t.Context(), llmtest.Say("hi"), nil)
			e, ok := errors.AsType[*llm.Error](err)
			if !ok || e.Kind != c.kind || e.Status != c.status || !strings.Contains(e.Error(), c.text) {
				t.Fatalf("got %#v: %v\nwant %s with %q", e, err, c.kind, c.text)
			}
			if strings.Contains(err.Error(), key) || len([]rune(e.Err.Error())) > 320 || strings.Contains(err.Error(), "\n") {
				t.Fatalf("the text is secret or long: %v", err)
			}
			if len(s.Requests()) != 1 {
				t.Fatalf("%d requests", len(s.Requests()))
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		header, value string
		min, max      time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second, 7 * time.Second},
		{"Retry-After", "1.5", 1500 * time.Millisecond, 1500 * time.Millisecond},
		{"Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), 59 * time.Minute, time.Hour},
		{"Retry-After", "Mon, 01 Jan 2001 00:00:00 GMT", 0, 0},
		{"Retry-After", "-5", 0, 0}, {"Retry-After", "soon", 0, 0}, {"Retry-After", "NaN", 0, 0},
		{"Retry-After", "1e300", 0, 0},
	} {
		s := serve(t, llmtest.Reply{Status: 429, Body: "{}", Header: map[string]string{c.header: c.value}})
		_, err := model(t, s.URL()).Generate(t.Context(), llmtest.Say("hi"), nil)
		if e, _ := errors.AsType[*llm.Error](err); e == nil || e.After < c.min || e.After > c.max {
			t.Errorf("%s: %s: got %+v", c.header, c.value, e)
		}
	}
}

// An error within a stream is recognised in every vendor's spelling.
func TestMidStreamErrors(t *testing.T) {
	for name, raw := range llmtest.MidStreamErrors("it fell over: " + key) {
		for _, more := range []bool{false, true} { // some vendors end the stream after it, some do not
			t.Run(fmt.Sprint(name, more), func(t *testing.T) {
				s := serve(t, llmtest.Reply{Text: "half an answer", Chunks: 2, Raw: raw, End: !more, Hang: more})
				var rec recorder
				m, err := model(t, s.URL()).Generate(t.Context(), llmtest.Say("hi"), rec.record)
				e, ok := errors.AsType[*llm.Error](err)
				if !ok || !e.Temporary() || m.Text != "" || rec.text.String() == "" {
					t.Fatalf("got %+v, %v", m, err)
				}
				if !strings.Contains(err.Error(), "it fell over") && name != "late" || strings.Contains(err.Error(), key) {
					t.Fatalf("got %v", err)
				}
			})
		}
	}
	s := serve(t, llmtest.Reply{Raw: "data: {\"error\":{\"code\":429,\"message\":\"slow\"}}\n\n", End: true})
	_, err := model(t, s.URL()).Generate(t.Context(), llmtest.Say("hi"), nil)
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.RateLimited {
		t.Errorf("got %v", err)
	}
}

// P11: an incomplete answer is an error.
func TestBrokenOff(t *testing.T) {
	call := []llm.ToolCall{{ID: "a", Name: "write_file", Args: `{"path":"notes.txt","content":"long"}`}}
	for name, r := range map[string]llmtest.Reply{
		"ends":           {Text: "half an answer", Chunks: 2, End: true},
		"breaks":         {Text: "half an answer", Chunks: 2, Abort: true},
		"breaks at once": {Text: "half an answer", Abort: true},
		"call ends":      {Calls: call, Chunks: 3, End: true},
		"call is done":   {Calls: call, Chunks: 3, Raw: "data: [DONE]\n\n", End: true},
		"nothing":        {Status: 200, Body: " "},
		"only done":      {Status: 200, Body: "data: [DONE]\n\n"},
		"not JSON":       {Text: "half an answer", Chunks: 2, Raw: "data: {\"choices\n\n"},
		"nameless call":  {Calls: []llm.ToolCall{{ID: "a", Args: "{}"}}},
		"line too large": {Raw: "data: " + strings.Repeat("x", 9<<20), End: true},
		"too large":      {Raw: strings.Repeat(`data: {"choices":[{"delta":{"content":"`+strings.Repeat("x", 1<<20)+`"}}]}`+"\n\n", 5)},
		"says error":     {Text: "half an answer", Finish: "error"},
		"gives up":       {Text: "half an answer", Finish: "insufficient_system_resource"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := model(t, serve(t, r).URL()).Generate(t.Context(), llmtest.Say("hi"), nil)
			if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.Cut && !(name == "breaks at once" && e.Kind == llm.Unreachable) {
				t.Fatalf("got %+v, %v", m, err)
			}
		})
	}
}

// Errors after the answer is complete do not matter.
func TestWholeAllTheSame(t *testing.T) {
	whole := `data: {"choices":[{"index":0,"delta":{"content":"all of it"},"finish_reason":"stop"}]}` + "\n\n"
	for name, r := range map[string]llmtest.Reply{
		"no done":         {Text: "all of it", NoDone: true},
		"no finish":       {Text: "all of it", NoFinish: true},
		"breaks after":    {Raw: whole, Abort: true},
		"error after":     {Raw: whole + "data: {\"error\":{\"message\":\"x\"}}\n\n", End: true},
		"no last newline": {Status: 200, Body: strings.TrimSpace(whole)},
		"CRLF":            {Status: 200, Body: strings.ReplaceAll(whole, "\n", "\r\n")},
		"no space":        {Status: 200, Body: strings.Replace(whole, "data: ", "data:", 1)},
		"comments":        {Text: "all of it", Comments: 1000},
		"ids and events":  {Status: 200, Body: "retry: 3\nid: 7\nevent: message\n" + whole},
		"null error":      {Status: 200, Body: strings.Replace(whole, `{"choices"`, `{"error":null,"choices"`, 1)},
		"null fields":     {Status: 200, Body: `data: {"choices":null,"usage":null}` + "\n\n" + `data: {"choices":[{"delta":{"content":null,"tool_calls":null,"reasoning":null},"finish_reason":null}]}` + "\n\n" + whole},
		"parts":           {Status: 200, Body: strings.Replace(whole, `"all of it"`, `[{"type":"text","text":"all "},{"type":"text","text":"of it"}]`, 1)},
		"another choice":  {Status: 200, Body: `data: {"choices":[{"index":1,"delta":{"content":"or not"}}]}` + "\n\n" + whole},
		"a long line":     {Status: 200, Body: ": " + strings.Repeat("x", 1<<20) + "\n" + whole},
		"eos":             {Text: "all of it", Finish: "eos"},
	} {
		t.Run(name, func(t *testing.T) {
			var rec recorder
			m, err := model(t, serve(t, r).URL()).Generate(t.Context(), llmtest.Say("hi"), rec.record)
			if err != nil || m.Text != "all of it" || rec.text.String() != m.Text || m.Finish != llm.Stopped {
				t.Fatalf("got %+v, %v, streamed %q", m, err, rec.text.String())
			}
		})
	}
}

func TestFinish(t *testing.T) {
	call := []llm.ToolCall{{ID: "a", Name: "f", Args: "{}"}}
	for _, c := range []struct {
		reason string
		calls  []llm.ToolCall
		want   llm.Finish
	}{
		{"stop", nil, llm.Stopped}, {"eos", nil, llm.Stopped}, {"end_turn", nil, llm.Stopped}, {"tool_calls", nil, llm.Stopped},
		{"length", nil, llm.Length}, {"max_tokens", nil, llm.Length}, {"length", call, llm.Length},
		{"content_filter", nil, llm.Filtered}, {"SAFETY", nil, llm.Filtered},
		{"tool_calls", call, llm.CallsTools}, {"function_call", call, llm.CallsTools}, {"stop", call, llm.CallsTools},
	} {
		m, err := model(t, serve(t, llmtest.Reply{Text: "x", Calls: c.calls, Finish: c.reason}).URL()).Generate(t.Context(), llmtest.Say("hi"), nil)
		if err != nil || m.Finish != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.reason, m.Finish, err, c.want)
		}
	}
}

// Tool calls as vendors stream them.
// the pieces of calls are assembled by index, and streamed under the IDs that
// the calls have in the end.
func TestToolCalls(t *testing.T) {
	for _, c := range []struct {
		name   string
		deltas []string // the tool_calls of each chunk
		want   string
	}{
		{"openai", []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]`, `[{"index":0,"function":{"arguments":"{\"x\":"}}]`, `[{"index":0,"function":{"arguments":"1}"}}]`,
			`[{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}]`}, `a f {"x":1}; b g {}`},
		{"interleaved", []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}},{"index":1,"id":"b","function":{"name":"g","arguments":"{"}}]`,
			`[{"index":0,"function":{"arguments":"}"}},{"index":1,"function":{"arguments":"}"}}]`}, `a f {}; b g {}`},
		{"no index", []string{`[{"id":"a","function":{"name":"f","arguments":"{"}}]`, `[{"function":{"arguments":"}"}}]`, `[{"id":"b","function":{"name":"g","arguments":"{}"}}]`}, `a f {}; b g {}`},
		{"no index, same id again", []string{`[{"id":"a","function":{"name":"f","arguments":"{"}}]`, `[{"id":"a","function":{"name":"f","arguments":"}"}}]`}, `a f {}`},
		{"no index, no id", []string{`[{"function":{"name":"f","arguments":"{}"}}]`, `[{"function":{"name":"g","arguments":"{}"}}]`}, `call_1_0 f {}; call_1_1 g {}`},
		{"whole calls at index 0", []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`, `[{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}]`}, `a f {}; b f {}`},
		{"whole calls in one chunk", []string{`[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"g","arguments":"{}"}}]`}, `a f {}; b g {}`},
		{"same id twice", []string{`[{"id":"a","function":{"name":"f","arguments":"{}"}}]`, `[{"id":"a","function":{"name":"f","arguments":"{\"y\":2}"}}]`}, `a f {}; call_1_1 f {"y":2}`},
		{"empty ids", []string{`[{"index":0,"id":"","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"","function":{"name":"f","arguments":"{}"}}]`}, `call_1_0 f {}; call_1_1 f {}`},
		{"name in every chunk", []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]`, `[{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}]`, `[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]`}, `a f {}`},
		{"a new id in every chunk", []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]`, `[{"index":0,"id":"b","function":{"arguments":"}"}}]`}, `a f {}`},
		{"no arguments", []string{`[{"index":0,"id":"a","function":{"name":"f"}}]`}, `a f {}`},
		{"arguments are null", []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":null}}]`}, `a f {}`},
		{"a long id", []string{`[{"index":0,"id":"` + strings.Repeat("x", 41) + `","function":{"name":"f"}}]`}, `call_1_0 f {}`},
		{"nameless", []string{`[{"index":0,"id":"a","function":{"name":"f"}},{"index":1,"id":"b","function":{"arguments":"{}"}}]`}, `a f {}`},
		{"broken arguments", []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":"{oops"}}]`}, `a f {oops`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var body strings.Builder
			for _, d := range c.deltas {
				fmt.Fprintf(&body, "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":%s}}]}\n\n", d)
			}
			body.WriteString("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
			shown := map[string]string{}
			m, err := model(t, serve(t, llmtest.Reply{Status: 200, Body: body.String()}).URL()).Generate(t.Context(), llmtest.Say("hi"), func(d llm.Delta) {
				if d.Call != nil {
					shown[d.Call.ID] = d.Call.Name + " " + cmp.Or(d.Call.Args, "{}")
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range m.Calls {
				if len(shown) != len(m.Calls) || shown[call.ID] != call.Name+" "+call.Args {
					t.Errorf("showed %q, returned %+v", shown, m.Calls)
				}
			}
			if got := told(m.Calls); got != c.want || m.Finish != llm.CallsTools {
				t.Fatalf("got %s, want %s", got, c.want)
			}
		})
	}
}

// C-015: a call's arguments are streamed as they arrive. If the stream breaks, they
// are reset.
func TestCallsStream(t *testing.T) {
	const args = `{"path":"notes.txt","content":"a long text of ten pieces"}`
	reply := llmtest.Reply{Text: "Look.", Calls: []llm.ToolCall{{ID: "a", Name: "write_file", Args: args}, {ID: "b", Name: "list_dir"}}, Piece: 6}
	s := serveFunc(t, func(_ context.Context, r llmtest.Request) llmtest.Reply {
		if r.N == 1 {
			broken := reply
			broken.Chunks, broken.Abort = 6, true
			return broken
		}
		return reply
	})
	var text string
	var parts []string
	resets, before := 0, 0
	m, err := llm.Retry(model(t, s.URL())).Generate(t.Context(), llmtest.Say("hi"), func(d llm.Delta) {
		if d.Reset {
			resets, before, text, parts = resets+1, len(parts), "", nil
		}
		text += d.Text
		if d.Call != nil {
			parts = append(parts, d.Call.ID+d.Call.Args)
		}
	})
	if err != nil || text != "Look." || len(m.Calls) != 2 || resets != 1 || before < 2 {
		t.Fatalf("got %+v, %v; %d resets after %d parts, text %q", m, err, resets, before, text)
	}
	last := len(parts) - 1
	if len(parts) < 10 || parts[0] != "a" || parts[last-1] != "a"+args || parts[last] != "b" {
		t.Fatalf("showed %q", parts)
	}
	for i, part := range parts[1:last] {
		if !strings.HasPrefix(part, parts[i]) || part == parts[i] {
			t.Errorf("%q came after %q", part, parts[i])
		}
	}
}

// C-015: the size of an answer does not depend on the size of the pieces of a call's
// arguments: a long file that arrives letter by letter does not exceed the limit.
func TestCallInManyPieces(t *testing.T) {
	const pieces = 70_000
	stream := `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"write_file","arguments":""}}]}}]}` + "\n\n" +
		strings.Repeat(`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1"}}]}}]}`+"\n\n", pieces) +
		`data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	m, err := openai.New(openai.Config{Name: "x", BaseURL: "http://x.test/v1", Model: "m", Transport: body(stream)}).Generate(t.Context(), llmtest.Say("hi"), nil)
	if err != nil || len(m.Calls) != 1 || len(m.Calls[0].Args) != pieces {
		t.Errorf("got %d calls, %v", len(m.Calls), err)
	}
}

func told(calls []llm.ToolCall) string {
	var out []string
	for _, c := range calls {
		out = append(out, c.ID+" "+c.Name+" "+c.Args)
	}
	return strings.Join(out, "; ")
}

// E-038: reasoning is not part of the answer.
func TestReasoning(t *testing.T) {
	for _, c := range []struct{ name, deltas, text, reasoning string }{
		{"deepseek", `{"reasoning_content":"hm "};{"reasoning_content":"yes"};{"content":"Yes."}`, "Yes.", "hm yes"},
		{"openrouter", `{"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm"}]};{"content":"Yes."}`, "Yes.", "hm"},
		{"details only", `{"reasoning_details":[{"type":"reasoning.summary","summary":"hm"}]};{"content":"Yes."}`, "Yes.", "hm"},
		{"mistral", `{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]};{"content":"Yes."}`, "Yes.", "hm"},
		{"anthropic", `{"content":[{"type":"thinking","thinking":"hm"}]};{"content":"Yes."}`, "Yes.", "hm"},
		{"think", `{"content":"<think>hm"};{"content":" yes</think>\n\nYes."}`, "Yes.", "hm yes"},
		{"think in bits", `{"content":"\n<th"};{"content":"ink"};{"content":">h"};{"content":"m</"};{"content":"thin"};{"content":"k"};{"content":">"};{"content":"\n"};{"content":"\nYes."}`, "Yes.", "hm"},
		{"think without end", `{"content":"<think>hm </thin"}`, "", "hm </thin"},
		{"not at the start", `{"content":"a <think>b</think> c"}`, "a <think>b</think> c", ""},
		{"nearly", `{"content":" <thin"};{"content":"g>"}`, "<thing>", ""},
		{"only the beginning", `{"content":"<thi"}`, "<thi", ""},
		{"refusal", `{"refusal":"I will not."}`, "I will not.", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var body strings.Builder
			for d := range strings.SplitSeq(c.deltas, ";") {
				fmt.Fprintf(&body, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", d)
			}
			body.WriteString("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n")
			var rec recorder
			m, err := model(t, serve(t, llmtest.Reply{Status: 200, Body: body.String()}).URL()).Generate(t.Context(), llmtest.Say("hi"), rec.record)
			if err != nil || m.Text != c.text || m.Reasoning != c.reasoning || rec.text.String() != c.text || rec.reasoning.String() != c.reasoning {
				t.Fatalf("got %q, %q, %v; streamed %q, %q", m.Text, m.Reasoning, err, rec.text.String(), rec.reasoning.String())
			}
		})
	}
}

// Providers that want their reasoning back get it along with the calls; others do not.
func TestReasoningBack(t *testing.T) {
	said := []llm.Message{{Role: llm.User, Text: "x"},
		{Role: llm.Assistant, Model: "main", Reasoning: "hm", Calls: []llm.ToolCall{{ID: "a", Name: "f", Args: "{}"}}}, {Role: llm.ToolRole, Call: "a", Text: "y"}}
	for name, want := range map[string]string{"deepseek-reasoner": "hm", "moonshotai/kimi-k2": "hm", "gpt-4o": ""} {
		s := serve(t, llmtest.Reply{Text: "ok"})
		if _, err := model(t, s.URL(), func(c *openai.Config) { c.Model = name }).Generate(t.Context(), llm.Request{Messages: said}, nil); err != nil {
			t.Fatal(err)
		}
		if got := s.Requests()[0].Messages[1].Reasoning; got != want {
			t.Errorf("%s: sent %q, want %q", name, got, want)
		}
	}
}

func TestUsage(t *testing.T) {
	for usage, want := range map[string]llm.Usage{
		`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":8}}`:         {In: 10, Out: 5, Cached: 8},
		`{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":7,"prompt_cache_miss_tokens":3}`:              {In: 10, Out: 5, Cached: 7},
		`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":35,"completion_tokens_details":{"reasoning_tokens":20}}`: {In: 10, Out: 25},
		`{"prompt_tokens":-1,"completion_tokens":-1,"prompt_tokens_details":null}`:                                         {},
	} {
		body := `data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}` + "\n\n" + `data: {"choices":[],"usage":` + usage + "}\n\ndata: [DONE]\n\n"
		m, err := model(t, serve(t, llmtest.Reply{Status: 200, Body: body}).URL()).Generate(t.Context(), llmtest.Say("hi"), nil)
		if err != nil || m.Usage != want {
			t.Errorf("%s: got %+v, %v", usage, m.Usage, err)
		}
	}
}

func TestWrongAddress(t *testing.T) {
	dead := llmtest.NewServer(nil)
	dead.Close()
	html := serve(t, llmtest.Reply{Status: 200, Body: "<html>welcome</html>"})
	moved := serve(t, llmtest.Reply{Status: 301, Header: map[string]string{"Location": "https://user:" + key + "@example.com/v2?key=" + key}})
	for name, c := range map[string]struct {
		url  string
		kind llm.Kind
	}{
		"dead": {dead.URL(), llm.Unreachable}, "page": {html.URL(), llm.Unreachable}, "moved": {moved.URL(), llm.BadRequest},
		"not a URL": {"http://127.0.0.1:" + key + "/", llm.BadRequest}, "no port": {"http://me:hidden@127.0.0.1:x/", llm.BadRequest},
	} {
		_, err := model(t, c.url).Generate(t.Context(), llmtest.Say("hi"), nil)
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != c.kind || strings.Contains(err.Error(), key) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// The context ends in the middle of a stream, as with /stop.
func TestStopsWithTheContext(t *testing.T) {
	for _, hang := range []llmtest.Reply{{Text: "half an answer", Chunks: 2, Hang: true}, {Chunks: 0, Hang: true}} {
		s := serve(t, hang)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_ = s.Wait(t.Context(), 1)
			cancel()
		}()
		if _, err := model(t, s.URL()).Generate(ctx, llmtest.Say("hi"), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}
