package observe_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"

	"parley/chat"
	"parley/llm"
	"parley/llm/llmtest"
	"parley/store"
	"parley/timetest"
	"parley/tools"
	"parley/web/observe"
)

// page returns what the handler serves.
func page(t *testing.T, o *observe.Observer) string {
	t.Helper()
	w := httptest.NewRecorder()
	o.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// shows expects each of lines on the page.
func shows(t *testing.T, o *observe.Observer, lines ...string) {
	t.Helper()
	got := strings.Split(page(t, o), "\n")
	for _, l := range lines {
		if !slices.Contains(got, l) {
			t.Errorf("%q is not among\n%s", l, strings.Join(slices.DeleteFunc(slices.Clone(got), func(s string) bool {
				return !strings.HasPrefix(s, l[:strings.IndexAny(l, "{ ")])
			}), "\n"))
		}
	}
}

// A tracer records the spans that end.
type tracer struct {
	embedded.TracerProvider
	mu    sync.Mutex
	ended []*span
}

func (tr *tracer) Tracer(string, ...trace.TracerOption) trace.Tracer { return recorder{tr: tr} }

type recorder struct {
	embedded.Tracer
	tr *tracer
}

type span struct {
	noop.Span
	tr     *tracer
	name   string
	parent string
	kind   trace.SpanKind
	attrs  map[attribute.Key]string
	events []string
	status codes.Code
}

func (r recorder) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	c := trace.NewSpanStartConfig(opts...)
	s := &span{tr: r.tr, name: name, kind: c.SpanKind(), attrs: map[attribute.Key]string{}}
	if p, ok := trace.SpanFromContext(ctx).(*span); ok {
		s.parent = p.name
	}
	s.SetAttributes(c.Attributes()...)
	return trace.ContextWithSpan(ctx, s), s
}

func (s *span) SetAttributes(all ...attribute.KeyValue) {
	for _, a := range all {
		s.attrs[a.Key] = a.Value.String()
	}
}
func (s *span) AddEvent(name string, _ ...trace.EventOption) { s.events = append(s.events, name) }
func (s *span) SetStatus(c codes.Code, _ string)             { s.status = c }
func (s *span) End(...trace.SpanEndOption) {
	s.tr.mu.Lock()
	defer s.tr.mu.Unlock()
	s.tr.ended = append(s.tr.ended, s)
}

func kit(t *testing.T, o *observe.Observer) *tools.Kit {
	t.Helper()
	type in struct {
		How string `json:"how"`
	}
	act := tools.New("act", "Acts.", func(ctx context.Context, c tools.Call, a in) (tools.Result, error) {
		switch a.How {
		case "err":
			return tools.Result{}, errors.New("secret words")
		case "odd":
			return tools.Failf("MY_OWN", "odd"), nil
		case "deny":
			return tools.Failf(tools.CodeDenied, "no"), nil
		}
		return tools.Result{Text: "done"}, nil
	})
	mw := append([]tools.Middleware{o.Tool()}, tools.Standard(tools.StandardConfig{})...)
	k, err := tools.NewKit(t.Context(), tools.Scope{}, []tools.Source{tools.Fixed{act}}, mw...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func call(name, args string) tools.Call {
	return tools.Call{ToolCall: llm.ToolCall{ID: "c1", Name: name, Args: args}}
}

// Spans nest as the work does: a turn asks a model and uses tools.
func TestSpans(t *testing.T) {
	tr := &tracer{}
	o := observe.New(observe.Config{Tracer: tr})
	m := o.Model("gpt", &llmtest.Script{Name: "gpt-5", Answers: []llmtest.Answer{
		{Text: "hi", Usage: llm.Usage{In: 10, Out: 3, Cached: 4}}, {Err: &llm.Error{Kind: llm.Auth, Err: errors.New("sk-secret")}}}})
	at := chat.Address{Channel: "telegram", Chat: "42"}
	ctx, end := o.Begun(t.Context(), at.Session(), chat.Message{At: at, Text: "secret words", From: chat.Sender{Name: "Ann"}})
	req := llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "secret words"}}}
	if _, err := m.Generate(ctx, req, nil); err != nil {
		t.Fatal(err)
	}
	kit(t, o).Call(ctx, call("act", `{"how":"err"}`))
	if _, err := m.Generate(ctx, req, nil); err == nil {
		t.Fatal("no error")
	}
	end("answered")
	var got []string
	for _, s := range tr.ended {
		got = append(got, fmt.Sprint(s.parent, ">", s.name, " ", s.status))
		for k, v := range s.attrs {
			if strings.Contains(v, "secret") || strings.Contains(v, "Ann") {
				t.Errorf("%s: %s = %q tells what was said", s.name, k, v)
			}
		}
	}
	if want := []string{"turn>chat gpt Unset", "turn>execute_tool act Error", "turn>chat gpt Error", ">turn Unset"}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	model, tool, turn := tr.ended[0], tr.ended[1], tr.ended[3]
	for _, c := range []struct {
		of        *span
		key, want string
	}{
		{model, "gen_ai.operation.name", "chat"}, {model, "gen_ai.request.model", "gpt"}, {model, "gen_ai.response.model", "gpt-5"},
		{model, "gen_ai.usage.input_tokens", "10"}, {model, "gen_ai.usage.output_tokens", "3"}, {model, "gen_ai.usage.cache_read.input_tokens", "4"},
		{tool, "gen_ai.operation.name", "execute_tool"}, {tool, "gen_ai.tool.name", "act"}, {tool, "gen_ai.tool.call.id", "c1"}, {tool, "error.type", "error"},
		{tr.ended[2], "error.type", "auth"}, {turn, "gen_ai.conversation.id", "telegram:42"},
	} {
		if got := c.of.attrs[attribute.Key(c.key)]; got != c.want {
			t.Errorf("%s: %s = %q, want %q", c.of.name, c.key, got, c.want)
		}
	}
	if model.kind != trace.SpanKindClient {
		t.Errorf("a model's span is %v", model.kind)
	}
}

// Without a tracer of its own, spans go to whoever takes OpenTelemetry's, also from later on.
func TestGlobalTracer(t *testing.T) {
	o, tr := observe.New(observe.Config{}), &tracer{}
	otel.SetTracerProvider(tr)
	defer otel.SetTracerProvider(noop.NewTracerProvider())
	_, end := o.Begun(t.Context(), "s", chat.Message{})
	end("answered")
	if len(tr.ended) != 1 || tr.ended[0].name != "turn" {
		t.Errorf("ended: %v", tr.ended)
	}
}

func TestModel(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		tr := &tracer{}
		o := observe.New(observe.Config{Tracer: tr})
		fail := func(k llm.Kind) llmtest.Answer {
			return llmtest.Answer{Err: &llm.Error{Kind: k, Err: errors.New("x")}}
		}
		s := &llmtest.Script{Answers: []llmtest.Answer{
			fail(llm.Overloaded), fail(llm.Cut), {Text: "hi", Delay: 2 * time.Second, Usage: llm.Usage{In: 100, Out: 5, Cached: 60}},
			fail(llm.Quota), fail("unheard of"), fail("unheard of"), fail("unheard of"), fail("unheard of"), {Err: errors.New("plain")}}}
		m := o.Model("gpt", llm.Retry(o.Try("gpt", s)))
		var heard strings.Builder
		msg, err := m.Generate(t.Context(), llm.Request{}, func(d llm.Delta) { heard.WriteString(d.Text) })
		if err != nil || msg.Text != "hi" || heard.String() != "hi" {
			t.Fatalf("%+v, %v, heard %q", msg, err, heard.String())
		}
		for range 3 {
			if _, err := m.Generate(t.Context(), llm.Request{}, nil); err == nil {
				t.Fatal("no error")
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, _ = m.Generate(ended, llm.Request{}, nil)
		shows(t, o,
			`parley_model_rounds_total{model="gpt"} 5`,
			`parley_model_retries_total{model="gpt"} 5`,
			`parley_model_tokens_total{direction="in",model="gpt"} 100`,
			`parley_model_tokens_total{direction="cached",model="gpt"} 60`,
			`parley_model_tokens_total{direction="out",model="gpt"} 5`,
			`parley_model_errors_total{kind="quota",model="gpt"} 1`,
			`parley_model_errors_total{kind="other",model="gpt"} 2`,
			`parley_model_errors_total{kind="cancelled",model="gpt"} 1`,
			`parley_model_seconds_count{model="gpt"} 5`,
			`parley_model_seconds_bucket{model="gpt",le="3"} 3`,
		)
		if got := tr.ended[0].events; !slices.Equal(got, []string{"retry", "retry"}) {
			t.Errorf("events of the first round: %q", got)
		}
	})
}

// A name that a model makes up is no label, and neither is an outcome a tool does.
func TestTool(t *testing.T) {
	o := observe.New(observe.Config{})
	k := kit(t, o)
	for args, n := range map[string]int{`{}`: 1, `{"how":"ok"}`: 2, `{"how":"err"}`: 1, `{"how":"odd"}`: 1, `{"how":"deny"}`: 1, `{"how":{}}`: 1} {
		for range n {
			k.Call(t.Context(), call("act", args))
		}
	}
	k.Call(t.Context(), call("my password is 1234", `{}`))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	k.Call(ended, call("act", `{"how":"err"}`))
	shows(t, o,
		`parley_tool_calls_total{outcome="ok",tool="act"} 3`,
		`parley_tool_calls_total{outcome="error",tool="act"} 1`,
		`parley_tool_calls_total{outcome="other",tool="act"} 1`,
		`parley_tool_calls_total{outcome="denied",tool="act"} 1`,
		`parley_tool_calls_total{outcome="invalid",tool="act"} 1`,
		`parley_tool_calls_total{outcome="cancelled",tool="act"} 1`,
		`parley_tool_calls_total{outcome="not_found",tool="other"} 1`,
		`parley_tool_seconds_count{tool="act"} 8`,
	)
	if strings.Contains(page(t, o), "password") {
		t.Error("what the model called is a label")
	}
}

// Tools that come and go with ever new names do not fill the memory.
func TestToolNamesAreBounded(t *testing.T) {
	o := observe.New(observe.Config{})
	mw := o.Tool()
	run := func(context.Context, tools.Call) (tools.Result, error) { return tools.Result{}, nil }
	for i := range 500 {
		w := mw(tools.Tool{ToolSpec: llm.ToolSpec{Name: fmt.Sprint("mcp_", i), Description: "x"}, Run: run})
		if _, err := w.Run(t.Context(), tools.Call{}); err != nil {
			t.Fatal(err)
		}
	}
	shows(t, o, `parley_tool_calls_total{outcome="ok",tool="other"} 300`, `parley_tool_calls_total{outcome="ok",tool="mcp_199"} 1`)
}

func TestTurnsAndDoors(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		o := observe.New(observe.Config{Build: "v1.2.3"})
		at := chat.Address{Channel: "telegram", Chat: "42"}
		var ends []func(string)
		for range 5 {
			_, end := o.Begun(t.Context(), at.Session(), chat.Message{At: at})
			ends = append(ends, end)
		}
		timetest.Sleep(20 * time.Second)
		ends[0]("answered")
		ends[1]("too old")
		ends[2]("said by somebody")
		ends[3]("over the limit")
		full := true
		d := o.Deliver(func(context.Context, chat.Message) error {
			if full {
				return store.ErrFull
			}
			return nil
		})
		if err := d(t.Context(), chat.Message{At: at}); !errors.Is(err, store.ErrFull) {
			t.Errorf("Deliver = %v", err)
		}
		full = false
		if err := d(t.Context(), chat.Message{At: at}); err != nil {
			t.Errorf("Deliver = %v", err)
		}
		r := chat.Reply{To: at, Text: "secret words"}
		o.Sent("telegram", r, 200*time.Millisecond, 1, nil)
		o.Sent("telegram", r, 20*time.Second, 4, nil)
		o.Sent("telegram", r, time.Hour, 3, errors.New("gone"))
		shows(t, o,
			`parley_turns_total{outcome="answered"} 1`, `parley_turns_total{outcome="too old"} 1`, `parley_turns_total{outcome="other"} 1`, `parley_turns_total{outcome="over the limit"} 1`,
			`parley_turn_seconds_count 4`, `parley_turn_seconds_sum 80`, `parley_turns_running 1`,
			`parley_messages_total{channel="telegram",outcome="refused"} 1`, `parley_messages_total{channel="telegram",outcome="taken"} 1`,
			`parley_delivery_seconds_count{channel="telegram"} 2`, `parley_delivery_seconds_bucket{channel="telegram",le="0.3"} 1`,
			`parley_delivery_retries_total{channel="telegram"} 5`, `parley_deliveries_parked_total{channel="telegram"} 1`,
		)
		if p := page(t, o); !strings.Contains(p, `version="v1.2.3"`) || !strings.Contains(p, "go_goroutines") || strings.Contains(p, "secret") {
			t.Error("no build, no Go metrics, or what was said")
		}
	})
}

// Queues are looked at whenever somebody reads, with a deadline.
func TestQueues(t *testing.T) {
	o := observe.New(observe.Config{})
	n := 0
	o.Queues(func(ctx context.Context) []observe.Queue {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("no deadline")
		}
		n++
		return []observe.Queue{{Name: "inbox", Depth: n, Oldest: 2500 * time.Millisecond}, {Name: "parked", Depth: 7}}
	})
	shows(t, o, `parley_queue_depth{queue="inbox"} 1`, `parley_queue_oldest_seconds{queue="inbox"} 2.5`)
	shows(t, o, `parley_queue_depth{queue="inbox"} 2`, `parley_queue_depth{queue="parked"} 7`)
}

// Names, units and help are as Prometheus wants them.
func TestLint(t *testing.T) { timetest.Test(t, lint) }

func lint(t *testing.T) {
	o := observe.New(observe.Config{})
	_, end := o.Begun(t.Context(), "s", chat.Message{})
	end("answered")
	_, _ = o.Model("m", llm.Retry(o.Try("m", &llmtest.Script{Answers: []llmtest.Answer{llmtest.Fail(llm.Cut), llmtest.Text("hi")}}))).Generate(t.Context(), llm.Request{}, nil)
	_, _ = o.Model("m", &llmtest.Script{Answers: []llmtest.Answer{llmtest.Fail(llm.Quota)}}).Generate(t.Context(), llm.Request{}, nil)
	kit(t, o).Call(t.Context(), call("act", `{"how":"ok"}`))
	_ = o.Deliver(func(context.Context, chat.Message) error { return nil })(t.Context(), chat.Message{})
	o.Sent("c", chat.Reply{}, time.Second, 2, nil)
	o.Sent("c", chat.Reply{}, time.Second, 2, errors.New("gone"))
	o.Committed(3 * time.Millisecond)
	o.Queues(func(context.Context) []observe.Queue { return []observe.Queue{{Name: "q"}} })
	text := page(t, o)
	if n := strings.Count(text, "# TYPE parley_"); n != 18 {
		t.Errorf("%d families, want all 18", n)
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "parley_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// A label value with characters that the text format reserves does not break the page.
func TestLabelValuesAreEscaped(t *testing.T) {
	o := observe.New(observe.Config{})
	o.Sent("a\"b\\c\n{d}\xff", chat.Reply{}, 2*time.Second, 1, nil)
	shows(t, o,
		`parley_delivery_seconds_count{channel="a\"b\\c\n{d}`+"\uFFFD"+`"} 1`,
		`parley_delivery_seconds_bucket{channel="a\"b\\c\n{d}`+"\uFFFD"+`",le="3"} 1`)
	if _, err := promlint.New(strings.NewReader(page(t, o))).Lint(); err != nil {
		t.Error(err)
	}
}

// Labels of parts are in snake case, whatever people are told.
func TestLabelsOfParts(t *testing.T) {
	o := observe.New(observe.Config{})
	o.Measured("IDs that were seen", 7)
	o.Removed("dead-letters", 3)
	shows(t, o, `parley_disk_bytes{part="ids_that_were_seen"} 7`, `parley_retention_removed_total{part="dead_letters"} 3`)
}
