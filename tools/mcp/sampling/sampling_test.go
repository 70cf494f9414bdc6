package sampling_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/store/mem"
	"parley/texts"
	"parley/tools"
	"parley/tools/mcp"
	"parley/tools/mcp/elicit"
	"parley/tools/mcp/mcptest"
	"parley/tools/mcp/sampling"
	"parley/tools/sandbox/none"
	"parley/workspace"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == mcptest.HostileCommand {
		mcptest.Hostile(os.Args[2])
		return
	}
	os.Exit(m.Run())
}

// A rig is a server that asks the model, and what calls its tools.
type rig struct {
	t       *testing.T
	servers *mcp.Servers
	asking  *mcptest.Asking
	scope   tools.Scope
	store   store.Store

	// The models "small" and "large" answer with answer, or "hello".
	answer func(ctx context.Context, r llm.Request) (llm.Message, error)

	consent func(ctx context.Context, prompt string) (bool, error) // nil: nobody can be asked
	most    atomic.Int64                                           // requests at once

	mu       sync.Mutex
	requests []llm.Request
	models   []string
	tips     []string
	now      int64 // requests under way
}

// newRig connects a server whose rule is that, with tools that ask the model: see mcptest.Sample.
func newRig(t *testing.T, rule tools.Rule, earlier bool) *rig {
	t.Helper()
	r := &rig{t: t, asking: mcptest.NewAsking(t, earlier)}
	r.connect(&mcp.Server{URL: r.asking.URL, Sampling: string(rule)})
	return r
}

func (r *rig) connect(s *mcp.Server) {
	ws, err := workspace.Open(r.t.TempDir())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { ws.Close() })
	s.EnabledTools = []string{"*"}
	s.ToolTimeout = 30 * time.Second
	s.Enabled = true
	s.For = []string{"everyone"}
	r.store = mem.New()
	all := map[string]*mcp.Server{"shop": s}
	r.servers = mcp.New(mcp.Config{Inputs: r.newInputs(all), Bare: none.Runner{}, Folder: r.t.TempDir()})
	r.servers.Use(all)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.servers.Run(ctx) })
	r.t.Cleanup(func() {
		stop()
		running.Wait()
	})
	at := chat.Address{Channel: "telegram", Chat: "1"}
	r.scope = tools.Scope{
		Session: at.Session(), At: at, From: chat.Sender{ID: "1", Role: chat.Owner}, Turn: "turn", Workspace: ws, Lend: r.lend,
	}
}

// newInputs returns what answers the servers, as after a start of Parley.
func (r *rig) newInputs(all map[string]*mcp.Server) *elicit.Inputs {
	say := &texts.English().Tools.Elicit
	sampler := sampling.New(sampling.Config{
		Log:        slog.New(slog.DiscardHandler),
		Texts:      say,
		QuestionID: func(c tools.Call) string { return "question " + c.Key() },
	})
	sampler.Use(all, func(ctx context.Context, s tools.Scope, one tools.Source) (*tools.Kit, error) {
		c := tools.StandardConfig{}
		if r.consent != nil {
			c.Approve = func(ctx context.Context, _ tools.Call, prompt string) (bool, string, error) {
				yes, err := r.consent(ctx, prompt)
				return yes, "telegram:1", err
			}
		}
		return tools.NewKit(ctx, s, []tools.Source{one}, tools.Standard(c)...)
	})
	return elicit.New(elicit.Config{
		Log:      slog.New(slog.DiscardHandler),
		Store:    r.store,
		Words:    elicit.Words{Elicit: say, Form: &texts.English().Channels.Form},
		Sampler:  sampler,
		Withdraw: func(context.Context, string) error { return nil },
		Patience: func() time.Duration { return time.Minute },
	})
}

// lend lends the models of the config.
func (r *rig) lend(name string) tools.LentModel {
	if name != "large" {
		name = "small"
	}
	model := llm.ModelFunc(func(ctx context.Context, q llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		r.mu.Lock()
		r.now++
		r.most.Store(max(r.most.Load(), r.now))
		r.requests = append(r.requests, q)
		r.models = append(r.models, name)
		r.mu.Unlock()
		defer func() {
			r.mu.Lock()
			r.now--
			r.mu.Unlock()
		}()
		if r.answer != nil {
			return r.answer(ctx, q)
		}
		return llm.Message{Text: "hello"}, nil
	})
	return tools.LentModel{Model: model, Name: name, MaxTokens: 500}
}

// call calls a tool of the server until it has a result.
func (r *rig) call(ctx context.Context, name string, in any) tools.Result {
	r.t.Helper()
	kit, err := tools.NewKit(ctx, r.scope, []tools.Source{r.servers}, tools.Standard(tools.StandardConfig{})...)
	if err != nil {
		r.t.Fatal(err)
	}
	args, err := json.Marshal(in)
	if err != nil {
		r.t.Fatal(err)
	}
	c := tools.Call{ToolCall: llm.ToolCall{ID: "1", Name: "mcp_shop_" + name, Args: string(args)}, Scope: r.scope}
	c.Tip = func(text string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.tips = append(r.tips, text)
	}
	for {
		if got := kit.Call(ctx, c); got.Code != tools.CodeWaiting {
			r.mu.Lock() // what the goroutines of the call wrote can be read from here on
			defer r.mu.Unlock()
			return got
		}
	}
}

// sample has the server ask the model.
func (r *rig) sample(in mcptest.Sample) tools.Result { return r.call(r.t.Context(), "sample", in) }

func bothProtocols(t *testing.T, run func(t *testing.T, earlier bool)) {
	for _, earlier := range []bool{false, true} {
		t.Run(fmt.Sprint("earlier ", earlier), func(t *testing.T) {
			t.Parallel()
			run(t, earlier)
		})
	}
}

// R-S22: the model of the turn gets what the server says, and nothing else; the server gets its answer. It is
// seen in the step of the call.
func TestSampling(t *testing.T) {
	t.Parallel()
	bothProtocols(t, func(t *testing.T, earlier bool) {
		r := newRig(t, tools.Everyone, earlier)
		got := r.sample(mcptest.Sample{Prompts: []string{"Who?"}, System: "Be brief.", MaxTokens: 70, Context: "allServers"})
		const want = `answered: {"prompt0":{"content":{"type":"text","text":"hello"},"model":"small","role":"assistant","stopReason":"endTurn"}}`
		if got.Failed || got.Text != want || !r.asking.MaySample.Load() {
			t.Errorf("%+v", got)
		}
		q := r.requests[0]
		if len(r.requests) != 1 || q.System != "Be brief." || q.MaxTokens != 70 || len(q.Tools) != 0 ||
			len(q.Messages) != 1 || q.Messages[0].Role != llm.User || q.Messages[0].Text != "Who?" {
			t.Errorf("the model was asked %+v", r.requests)
		}
		if len(r.tips) != 1 || r.tips[0] != "shop asks the model" {
			t.Errorf("the step says %q", r.tips)
		}
	})
}

// Point by point what the server can ask for, and what it is told of the answer.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		in      mcptest.Sample
		answer  llm.Message
		most    int // tokens that the model is asked for
		want    string
		isLarge bool
	}{
		{"more tokens than may be", mcptest.Sample{MaxTokens: 100_000}, llm.Message{Text: "x"}, 500, `"endTurn"`, false},
		{"as many tokens as may be", mcptest.Sample{}, llm.Message{Text: "x"}, 500, `"endTurn"`, false},
		{"cut", mcptest.Sample{MaxTokens: 3}, llm.Message{Text: "x", Finish: llm.Length}, 3, `"maxTokens"`, false},
		{"filtered", mcptest.Sample{}, llm.Message{Finish: llm.Filtered}, 500, `"contentFilter"`, false},
		{"stop", mcptest.Sample{Stops: []string{"END", "#"}}, llm.Message{Text: "one # END"}, 500, `"text":"one "},"model":"small","role":"assistant","stopReason":"stopSequence"`, false},
		{"a model of the config", mcptest.Sample{Model: "large"}, llm.Message{Text: "x"}, 500, `"model":"large"`, true},
		{"an unknown model", mcptest.Sample{Model: "claude"}, llm.Message{Text: "x"}, 500, `"model":"small"`, false},
		{"another model answers", mcptest.Sample{}, llm.Message{Text: "x", Model: "fallback"}, 500, `"model":"fallback"`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, tools.Everyone, false)
			r.answer = func(context.Context, llm.Request) (llm.Message, error) { return c.answer, nil }
			in := c.in
			in.Prompts = []string{"Who?"}
			if got := r.sample(in); got.Failed || !strings.Contains(got.Text, c.want) {
				t.Errorf("%+v", got)
			}
			if r.requests[0].MaxTokens != c.most || (r.models[0] == "large") != c.isLarge {
				t.Errorf("the model %s was asked for %d tokens", r.models[0], r.requests[0].MaxTokens)
			}
		})
	}
}

// What is refused is told plainly, to the server and by it to the model. No model is asked.
func TestRefusals(t *testing.T) {
	t.Parallel()
	owner := chat.Owner
	no := func(context.Context, string) (bool, error) { return false, nil }
	for _, c := range []struct {
		name    string
		rule    tools.Rule
		role    chat.Role
		consent func(context.Context, string) (bool, error)
		in      mcptest.Sample
		want    string
	}{
		{"no rule", "", owner, nil, mcptest.Sample{}, "does not let this server use its models"},
		{"off", tools.Off, owner, nil, mcptest.Sample{}, "does not let this server use its models"},
		{"owners only", tools.Owners, chat.User, nil, mcptest.Sample{}, "does not let this server use its models for this person"},
		{"the person refuses", tools.Ask, owner, no, mcptest.Sample{}, "refused by the person"},
		{"nobody can be asked", tools.Ask, owner, nil, mcptest.Sample{}, "nobody approved"},
		{"tools", tools.Everyone, owner, nil, mcptest.Sample{Tools: true}, "requests with tools are not supported"},
		{"too long", tools.Everyone, owner, nil, mcptest.Sample{System: strings.Repeat("x", 300<<10)}, "more than 262144 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bothProtocols(t, func(t *testing.T, earlier bool) {
				r := newRig(t, c.rule, earlier)
				r.scope.From.Role = c.role
				r.consent = c.consent
				in := c.in
				in.Prompts = []string{"Who?"}
				got := r.sample(in)
				mayAsk := c.rule != "" && c.rule != tools.Off
				if !got.Failed || !strings.Contains(got.Text, c.want) && (mayAsk || !earlier) { // else the SDK refuses it
					t.Errorf("%+v", got)
				}
				if len(r.requests) > 0 || r.asking.MaySample.Load() != mayAsk {
					t.Errorf("asked %d times; the server may: %v", len(r.requests), r.asking.MaySample.Load())
				}
			})
		})
	}
}

// R-S15: the server is told when the person has used up what they may use, and nothing of how much that is.
func TestModelFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("your 20 answers of today: %w", llm.ErrLimit), "has used as much of the models as they may use for now"},
		{&llm.Error{Kind: llm.TooLong, Err: errors.New("40,000 tokens")}, "too long for the model"},
		{&llm.Error{Kind: llm.Auth, Err: errors.New("the key sk-1")}, "the model did not answer"},
	} {
		bothProtocols(t, func(t *testing.T, earlier bool) {
			r := newRig(t, tools.Everyone, earlier)
			r.answer = func(context.Context, llm.Request) (llm.Message, error) { return llm.Message{}, c.err }
			got := r.sample(mcptest.Sample{Prompts: []string{"Who?"}})
			if !got.Failed || !strings.Contains(got.Text, c.want) ||
				strings.Contains(got.Text, "20 answers") || strings.Contains(got.Text, "sk-1") {
				t.Errorf("%v: %+v", c.err, got)
			}
		})
	}
}

// Whoever is asked sees what the server says; after a yes it is answered.
func TestAsk(t *testing.T) {
	t.Parallel()
	bothProtocols(t, func(t *testing.T, earlier bool) {
		r := newRig(t, tools.Ask, earlier)
		var prompts []string
		r.consent = func(_ context.Context, prompt string) (bool, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			prompts = append(prompts, prompt)
			return true, nil
		}
		got := r.sample(mcptest.Sample{Prompts: []string{"Who is Ada?"}, System: "Be brief."})
		if got.Failed || !strings.Contains(got.Text, "hello") || len(prompts) != 1 {
			t.Fatalf("%+v %q", got, prompts)
		}
		for _, want := range []string{"**shop**", "Who is Ada?", "Be brief."} {
			if !strings.Contains(prompts[0], want) {
				t.Errorf("no %s in %s", want, prompts[0])
			}
		}
	})
}

// R-S22: a server asks ten times in a call at most, and the model is asked once at a time.
func TestLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t, tools.Everyone, false)
	got := r.sample(mcptest.Sample{Prompts: []string{"a", "b", "c"}, Times: 30})
	if !got.Failed || !strings.Contains(got.Text, "asked more than 10 times") || len(r.requests) != 9 {
		t.Errorf("asked %d times: %+v", len(r.requests), got)
	}
	r = newRig(t, tools.Everyone, true)
	r.answer = func(context.Context, llm.Request) (llm.Message, error) {
		time.Sleep(20 * time.Millisecond) // others could begin
		return llm.Message{Text: "hello"}, nil
	}
	if got := r.sample(mcptest.Sample{Prompts: []string{"a", "b", "c", "d", "e"}}); got.Failed || r.most.Load() != 1 || len(r.requests) != 5 {
		t.Errorf("%d of %d at once: %+v", r.most.Load(), len(r.requests), got)
	}
}

// R-S22: of a thousand requests in a call ten are answered, and none while no call is open.
func TestFlood(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t}
	r.connect(&mcp.Server{Command: self, Args: []string{mcptest.HostileCommand, "samples"}, Sampling: "everyone", Sandbox: "none"})
	if got := r.call(t.Context(), "ok", nil); got.Text != "accepted 10, refused 990" || len(r.requests) != 10 {
		t.Errorf("asked %d times: %+v", len(r.requests), got)
	}
}

// A call that is stopped stops the request.
func TestStop(t *testing.T) {
	t.Parallel()
	bothProtocols(t, func(t *testing.T, earlier bool) {
		r := newRig(t, tools.Everyone, earlier)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		r.answer = func(ctx context.Context, _ llm.Request) (llm.Message, error) {
			defer close(ended)
			stop()
			<-ctx.Done()
			return llm.Message{}, ctx.Err()
		}
		if got := r.call(ctx, "sample", mcptest.Sample{Prompts: []string{"Who?"}}); got.Code != tools.CodeCancelled {
			t.Errorf("%+v", got)
		}
		<-ended
	})
}

// P6: what a model has answered is kept: after a restart only the request that was under way is made again.
func TestRestart(t *testing.T) {
	t.Parallel()
	r := newRig(t, tools.Everyone, false)
	all := map[string]*mcp.Server{"shop": {Sampling: "everyone"}}
	asked := mcp.Questions{State: "state", Round: 2}
	text := `{"a":{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"a"}}],"maxTokens":9}},` +
		`"b":{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"b"}}],"maxTokens":9}}}`
	if err := json.Unmarshal([]byte(text), &asked.All); err != nil {
		t.Fatal(err)
	}
	c := tools.Call{ToolCall: llm.ToolCall{ID: "1", Name: "mcp_shop_sample"}, Scope: r.scope}
	inputs := r.newInputs(all)
	if err := inputs.Keep(t.Context(), "shop", c, asked); err != nil {
		t.Fatal(err)
	}
	ctx, shutDown := context.WithCancelCause(t.Context())
	r.answer = func(ctx context.Context, q llm.Request) (llm.Message, error) {
		if q.Messages[0].Text == "b" {
			shutDown(tools.ErrClosing)
			<-ctx.Done()
			return llm.Message{}, ctx.Err()
		}
		return llm.Message{Text: "hello"}, nil
	}
	if _, err := inputs.Answer(ctx, c); !errors.Is(err, tools.ErrClosing) {
		t.Fatal(err)
	}
	r.answer = nil
	inputs = r.newInputs(all)
	inputs.Begin(t.Context())
	if !inputs.Kept(c) {
		t.Fatal("the call does not wait any more")
	}
	given, err := inputs.Answer(t.Context(), c)
	if err != nil || len(given.All) != 2 || given.State != "state" || given.Round != 2 || inputs.Kept(c) {
		t.Errorf("%+v %v", given, err)
	}
	var prompts []string
	for _, q := range r.requests {
		prompts = append(prompts, q.Messages[0].Text)
	}
	if got := strings.Join(prompts, " "); got != "a b b" {
		t.Errorf("the model was asked %s", got)
	}
}
