package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/store/mem"
	"parley/timetest"
	"parley/tools"
)

// A house is a Pool with everything around it within reach of a test.
type house struct {
	t     *testing.T
	store store.Store
	model func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error)
	tools []tools.Tool
	set   func(*agent.Settings)
	conf  func(*agent.Config)
	live  func(string)

	mu   sync.Mutex
	said map[string]string // replies by ID
	sent []string          // their texts, in order
	asks []llm.Request
	cut  map[string]bool // IDs of replies that are cut

	pool *agent.Pool
	stop func()
}

// start opens the house. stop ends it as SIGTERM does.
func (h *house) start() {
	if h.store == nil {
		h.store = mem.New()
	}
	if h.said == nil {
		h.said = map[string]string{}
	}
	if h.cut == nil {
		h.cut = map[string]bool{}
	}
	s := agent.Settings{
		Models: map[string]agent.Model{
			"main":  {Model: llm.ModelFunc(h.generate), Window: 8000, MaxTokens: 1000},
			"other": {Model: llm.ModelFunc(h.generate), Window: 8000, MaxTokens: 1000},
		},
		Model: "main", Rounds: 6, MaxAge: 24 * time.Hour,
		Kit: func(ctx context.Context, scope tools.Scope) (*tools.Kit, error) {
			return tools.NewKit(ctx, scope, []tools.Source{tools.Fixed(h.tools)}, tools.Standard(tools.StandardConfig{})...)
		},
	}
	if h.set != nil {
		h.set(&s)
	}
	c := agent.Config{Store: h.store, Send: h.send, Memory: prompt("be kind"), Log: slog.New(slog.DiscardHandler), Grace: 20 * time.Second}
	if h.live != nil {
		c.Live = func(context.Context, chat.Reply) chat.Live { return view(h.live) }
	}
	if h.conf != nil {
		h.conf(&c)
	}
	h.pool = agent.New(c, s)
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := h.pool.Run(ctx); err != nil {
			h.t.Error(err)
		}
	}()
	h.stop = func() { cancel(); <-ended }
}

// A collected has what callbacks were told, in order. The workers of several sessions
// and subagents may call a callback at once.
type collected[T any] struct {
	mu  sync.Mutex
	all []T
}

func (c *collected[T]) add(value T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, value)
}

func (c *collected[T]) values() []T {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all)
}

type prompt string

func (p prompt) System(context.Context, chat.SessionID, chat.Person, llm.Room) (string, error) {
	return string(p), nil
}

func (p prompt) SubagentSystem(_ context.Context, who chat.Person, instruction string, _ llm.Room) (string, error) {
	return fmt.Sprintf("%s to %s: %s", string(p), who, instruction), nil
}

type view func(string)

func (v view) Show(s string)  { v(s) }
func (v view) Step(chat.Step) {}
func (v view) Close()         {}

func (h *house) generate(ctx context.Context, r llm.Request, stream func(llm.Delta)) (llm.Message, error) {
	h.mu.Lock()
	h.asks = append(h.asks, r)
	h.mu.Unlock()
	return h.model(ctx, r, stream)
}

// send is the outbox: an ID is sent once.
func (h *house) send(ctx context.Context, r chat.Reply) error {
	if m, ok := h.store.(*mortal); ok {
		if err := m.keep(ctx, r.ID); err != nil {
			return err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if old, ok := h.said[r.ID]; ok {
		if old != r.Text {
			h.t.Errorf("two different replies to %s: %q and %q", r.ID, old, r.Text)
		}
		return nil
	}
	h.said[r.ID] = r.Text
	h.cut[r.ID] = r.Cut
	h.sent = append(h.sent, r.Text)
	return nil
}

func message(id, text string) chat.Message {
	return chat.Message{ID: id, At: chat.Address{Channel: "test", Chat: "1"}, From: chat.Sender{ID: "7", Role: chat.Owner}, Text: text, Time: time.Now()}
}

func (h *house) say(id, text string) { h.deliver(message(id, text)) }

func (h *house) deliver(m chat.Message) {
	h.t.Helper()
	if err := h.pool.Deliver(h.t.Context(), m); err != nil {
		h.t.Fatal(err)
	}
}

// want checks what was sent since the last want, in order.
func (h *house) want(texts ...string) {
	h.t.Helper()
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	if fmt.Sprintf("%q", h.sent) != fmt.Sprintf("%q", texts) {
		h.t.Errorf("sent %q\nwant %q", h.sent, texts)
	}
	h.sent = nil
}

// script answers with one message after the other.
func script(answers ...llm.Message) func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
	var mu sync.Mutex
	return func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(answers) == 0 {
			return llm.Message{}, &llm.Error{Kind: llm.BadRequest, Err: errors.New("the script has ended")}
		}
		a := answers[0]
		answers = answers[1:]
		return a, nil
	}
}

func words(s string) llm.Message { return llm.Message{Text: s, Finish: llm.Stopped} }

func calls(cs ...llm.ToolCall) llm.Message { return llm.Message{Calls: cs, Finish: llm.CallsTools} }

func call(id, name string) llm.ToolCall { return llm.ToolCall{ID: id, Name: name, Args: "{}"} }

func with(id, name, args string) llm.ToolCall { return llm.ToolCall{ID: id, Name: name, Args: args} }

// tool makes a Tool that takes no arguments.
func tool(name string, run func(context.Context) (string, error)) tools.Tool {
	return tools.Tool{
		ToolSpec: llm.ToolSpec{Name: name, Description: name, Schema: json.RawMessage(`{"type":"object","properties":{}}`)},
		Run: func(ctx context.Context, _ tools.Call) (tools.Result, error) {
			s, err := run(ctx)
			return tools.Result{Text: s}, err
		},
	}
}

// spoken returns the last n messages of a request, as "role text".
func spoken(r llm.Request, n int) string {
	var parts []string
	for _, m := range r.Messages[max(0, len(r.Messages)-n):] {
		_, text, ok := strings.Cut(m.Text, "]\n")
		if !ok || m.Role != llm.User {
			text = m.Text
		}
		parts = append(parts, string(m.Role)+" "+text)
	}
	return strings.Join(parts, " | ")
}

// play runs f in a bubble with an open house, and closes it after.
func play(t *testing.T, h *house, f func(h *house)) {
	timetest.Test(t, func(t *testing.T) {
		h.t = t
		h.start()
		f(h)
		h.stop()
	})
}

func TestAnswer(t *testing.T) {
	play(t, &house{model: script(words("hello"), words("I said hello"))}, func(h *house) {
		h.say("1", "hi")
		h.want("hello")
		h.say("2", "what did you say?")
		h.want("I said hello")
		if got, want := spoken(h.asks[1], 9), "user hi | assistant hello | user what did you say?"; got != want {
			t.Errorf("asked %s\nwant  %s", got, want)
		}
	})
}

// TestPrefixStays: from turn to turn a request begins with the bytes of the one before.
func TestPrefixStays(t *testing.T) {
	play(t, &house{
		tools: []tools.Tool{tool("look", func(context.Context) (string, error) { return "sun", nil })},
		model: script(words("a"), calls(call("1", "look")), words("b"), words("c")),
	}, func(h *house) {
		for _, id := range []string{"1", "2", "3"} {
			h.say(id, "hi")
			synctest.Wait()
			timetest.Sleep(time.Hour)
		}
		for i := range h.asks[1:] {
			a, b := h.asks[i], h.asks[i+1]
			if a.System != b.System || fmt.Sprint(a.Tools) != fmt.Sprint(b.Tools) || fmt.Sprint(b.Messages[:len(a.Messages)]) != fmt.Sprint(a.Messages) {
				t.Errorf("request %d does not continue request %d", i+2, i+1)
			}
		}
	})
}

// C-042: the model reads what its calls gave, and what went wrong with them.
func TestToolsAreUsed(t *testing.T) {
	play(t, &house{
		tools: []tools.Tool{
			tool("look", func(context.Context) (string, error) { return "sun", nil }),
			tool("fail", func(context.Context) (string, error) { return "", errors.New("no hands") }),
			tool("burst", func(context.Context) (string, error) { panic("oh") }),
		},
		model: script(
			llm.Message{Text: "Let me look.", Calls: []llm.ToolCall{call("1", "look"), call("2", "fail"), call("3", "burst"), call("4", "dance")}},
			words("It is sunny.")),
	}, func(h *house) {
		h.say("1", "weather?")
		h.want("Let me look.\n\nIt is sunny.")
		got := spoken(h.asks[1], 4)
		for _, want := range []string{"tool sun", "tool Error: no hands", "tool Error:", "Tool 'dance' not found"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in %s", want, got)
			}
		}
	})
}

// TestRepeatedCallIDs: vendors that number the calls of each answer from 1 do
// not make two calls one (P6).
func TestRepeatedCallIDs(t *testing.T) {
	n := 0
	play(t, &house{
		tools: []tools.Tool{tool("count", func(context.Context) (string, error) { n++; return fmt.Sprint(n), nil })},
		model: script(calls(call("1", "count"), with("1", "count", `{"n":2}`)), calls(call("1", "count"), with("", "count", `{"n":2}`)), words("4")),
	}, func(h *house) {
		h.say("1", "count")
		h.want("4")
		if n != 4 {
			t.Errorf("counted to %d", n)
		}
		if got, want := spoken(h.asks[2], 6), "assistant  | tool 1 | tool 2 | assistant  | tool 3 | tool 4"; got != want {
			t.Errorf("asked %s\nwant  %s", got, want)
		}
	})
}

// TestDeliveredTwice is P2.
func TestDeliveredTwice(t *testing.T) {
	play(t, &house{model: script(words("a"), words("b"))}, func(h *house) {
		h.say("1", "hi")
		h.say("1", "hi")
		h.want("a")
		timetest.Sleep(47 * time.Hour)
		h.say("1", "hi")
		h.want()
	})
}

// TestSessionsDoNotWait is P5 and P14: one at a time in a session, and
// sessions side by side.
func TestSessionsDoNotWait(t *testing.T) {
	busy := map[string]int{}
	var mu sync.Mutex
	h := &house{model: func(ctx context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		chat := spoken(r, 1)[len("user "):]
		mu.Lock()
		busy[chat]++
		if busy[chat] > 1 {
			t.Errorf("two turns at once in %s", chat)
		}
		mu.Unlock()
		time.Sleep(500 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		busy[chat]--
		return words("ok"), nil
	}}
	play(t, h, func(h *house) {
		began := time.Now()
		for i := range 1000 {
			m := message(fmt.Sprint(i), fmt.Sprintf("%03d", i%500))
			m.At.Chat = m.Text
			h.deliver(m)
			synctest.Wait()
		}
		timetest.Sleep(2 * time.Second)
		synctest.Wait()
		if len(h.sent) < 1000 {
			t.Errorf("%d answers", len(h.sent))
		}
		if d := time.Since(began); d > 3*time.Second {
			t.Errorf("took %v", d)
		}
	})
}

// TestJoin: what is said while tools run is heard before the next round.
func TestJoin(t *testing.T) {
	play(t, &house{
		tools: []tools.Tool{tool("slow", func(context.Context) (string, error) { time.Sleep(5 * time.Second); return "done", nil })},
		model: script(calls(call("1", "slow")), words("both")),
	}, func(h *house) {
		h.say("1", "do it")
		timetest.Sleep(time.Second)
		h.say("2", "and hurry")
		timetest.Sleep(10 * time.Second)
		h.want("both")
		if got, want := spoken(h.asks[1], 9), "user do it | assistant  | tool done | user and hurry"; got != want {
			t.Errorf("asked %s\nwant  %s", got, want)
		}
		if n, _ := h.store.Queue("inbox").Len(t.Context()); n != 0 {
			t.Errorf("%d messages left in the inbox", n)
		}
	})
}

// TestBacklog: what waited while nobody listened is one turn for each chat.
func TestBacklog(t *testing.T) {
	play(t, &house{model: script(words("one answer"))}, func(h *house) {
		for i := range 20 {
			m := message(fmt.Sprint(i), fmt.Sprint("message ", i))
			m.Time = m.Time.Add(-time.Hour)
			h.deliver(m)
			timetest.Sleep(10 * time.Millisecond)
		}
		timetest.Sleep(time.Second)
		h.want("one answer")
		if len(h.asks[0].Messages) != 20 {
			t.Errorf("%d of 20 messages were heard", len(h.asks[0].Messages))
		}
	})
}

func TestTooOld(t *testing.T) {
	play(t, &house{model: script(words("I know"))}, func(h *house) {
		for _, id := range []string{"1", "2"} {
			m := message(id, "old "+id)
			m.Time = m.Time.Add(-25 * time.Hour)
			h.deliver(m)
		}
		timetest.Sleep(time.Second)
		h.want("I was away, and your 2 messages are more than a day old. I have read them; say so if you still want an answer.")
		h.say("3", "yes")
		h.want("I know")
		if got, want := spoken(h.asks[0], 9), "user old 1 | user old 2 | user yes"; got != want {
			t.Errorf("asked %s\nwant  %s", got, want)
		}
	})
}

func TestLastRoundHasNoTools(t *testing.T) {
	h := &house{tools: []tools.Tool{tool("again", func(context.Context) (string, error) { return "more", nil })}}
	h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		if len(r.Tools) == 0 {
			return words("that is all I found"), nil
		}
		return calls(call("x", "again")), nil
	}
	play(t, h, func(h *house) {
		h.say("1", "dig")
		h.want("that is all I found")
		if len(h.asks) != 6 {
			t.Errorf("%d rounds, want 6", len(h.asks))
		}
	})
}

// TestRoundsUsedUp is D-048: with nothing to say in the last round the person is told why.
func TestRoundsUsedUp(t *testing.T) {
	h := &house{tools: []tools.Tool{tool("again", func(context.Context) (string, error) { return "more", nil })}}
	h.model = func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
		return calls(call("x", "again")), nil
	}
	play(t, h, func(h *house) {
		h.say("1", "dig")
		h.want("I reached the maximum number of tool call iterations (6) without completing the task. You can try breaking the task into smaller steps.")
	})
}

// TestCutAnswerGoesOn is P11: what was cut is continued, and a cut call is not run.
func TestCutAnswerGoesOn(t *testing.T) {
	ran := false
	play(t, &house{
		tools: []tools.Tool{tool("danger", func(context.Context) (string, error) { ran = true; return "", nil })},
		model: script(
			llm.Message{Text: "one, t", Finish: llm.Length},
			llm.Message{Text: "wo", Finish: llm.Length, Calls: []llm.ToolCall{call("1", "danger")}},
			words(", three")),
	}, func(h *house) {
		h.say("1", "count")
		h.want("one, two, three")
		if ran {
			t.Error("a call with cut arguments was run")
		}
	})
}

// the person is told why there is no answer, and the next one is asked for.
func TestModelFails(t *testing.T) {
	play(t, &house{model: func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
		return llm.Message{}, &llm.Error{Kind: llm.Auth, Status: 401, Err: errors.New("key sk-123 is wrong")}
	}}, func(h *house) {
		h.say("1", "hi")
		synctest.Wait()
		if len(h.sent) != 1 || strings.Contains(h.sent[0], "sk-") || !strings.Contains(h.sent[0], "key") {
			t.Errorf("sent %q", h.sent)
		}
		h.sent = nil
		h.model = script(words("better now"))
		h.say("2", "and now?")
		h.want("better now")
	})
}

// TestTooLong: a request that a provider finds too long is made shorter, and asked again.
func TestTooLong(t *testing.T) {
	var sizes []int
	h := &house{}
	h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		n := 0
		for _, m := range r.Messages {
			n += len(m.Text)
		}
		if sizes = append(sizes, n); n > 12000 {
			return llm.Message{}, &llm.Error{Kind: llm.TooLong, Err: errors.New("too long")}
		}
		return words("ok"), nil
	}
	play(t, h, func(h *house) {
		h.say("1", strings.Repeat("word ", 4000))
		h.want("ok")
		if len(sizes) < 2 {
			t.Errorf("sizes %v", sizes)
		}
	})
}

// TestStop: the turn ends at once, what was done is kept, and what was said before /stop is heard.
func TestStop(t *testing.T) {
	h := &house{tools: []tools.Tool{tool("slow", func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})}}
	h.model = script(llm.Message{Text: "I begin.", Calls: []llm.ToolCall{call("1", "slow"), call("2", "slow")}}, words("fine"))
	play(t, h, func(h *house) {
		h.say("1", "do it")
		timetest.Sleep(time.Second)
		h.say("2", "and this")
		timetest.Sleep(time.Second)
		began := time.Now()
		h.say("3", "/stop")
		h.want("I begin.\n\n(Stopped.)")
		if time.Since(began) > 0 {
			t.Error("stopping took a while")
		}
		timetest.Sleep(time.Second)
		h.say("4", "what now?")
		h.want("fine")
		got := spoken(h.asks[1], 9)
		for _, want := range []string{"user do it | assistant I begin. | tool Error: ", " | user and this | ", " | user what now?"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in %s", want, got)
			}
		}
	})
}

// The reply that says that a turn was stopped answers /stop as well, which has none of its own: whoever
// sent it through a pipe waits for one.
func TestStoppedTurnAnswersStop(t *testing.T) {
	var sent collected[chat.Reply]
	h := &house{tools: []tools.Tool{tool("slow", func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})}}
	h.model = script(llm.Message{Calls: []llm.ToolCall{call("1", "slow")}})
	h.conf = func(c *agent.Config) {
		send := c.Send
		c.Send = func(ctx context.Context, r chat.Reply) error { sent.add(r); return send(ctx, r) }
	}
	play(t, h, func(h *house) {
		h.say("1", "do it")
		timetest.Sleep(time.Second)
		h.say("2", "/stop")
		h.want("(Stopped.)")
		if r := sent.values()[0]; r.Quote != "1" || fmt.Sprint(r.Also) != "[2]" {
			t.Errorf("it answers %q and %q", r.Quote, r.Also)
		}
	})
}

func TestStopWhileStreaming(t *testing.T) {
	h := &house{model: func(ctx context.Context, _ llm.Request, stream func(llm.Delta)) (llm.Message, error) {
		stream(llm.Delta{Text: "Once upon "})
		stream(llm.Delta{Text: "a time"})
		<-ctx.Done()
		return llm.Message{}, ctx.Err()
	}}
	play(t, h, func(h *house) {
		h.say("1", "tell me a story")
		timetest.Sleep(time.Second)
		h.say("2", "/stop")
		h.want("Once upon a time\n\n(Stopped.)")
		h.say("3", "/stop")
		h.want("There is nothing to stop.")
	})
}

func TestNew(t *testing.T) {
	play(t, &house{model: script(words("a"), words("b"))}, func(h *house) {
		h.say("1", "my name is Anna")
		h.want("a")
		h.say("2", "/new")
		h.want("A new conversation. What is on your mind?")
		h.say("3", "who am I?")
		h.want("b")
		if len(h.asks[1].Messages) != 1 {
			t.Errorf("asked %s", spoken(h.asks[1], 9))
		}
	})
}

// TestNewKeepsOrder: what is said after /new belongs to the new conversation, also when a turn is under way.
func TestNewKeepsOrder(t *testing.T) {
	h := &house{}
	h.model = func(ctx context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		if spoken(r, 1) == "user long" {
			<-ctx.Done()
			return llm.Message{}, ctx.Err()
		}
		return words(spoken(r, 9)), nil
	}
	play(t, h, func(h *house) {
		h.say("1", "long")
		timetest.Sleep(time.Second)
		h.say("2", "/new")
		h.say("3", "short")
		h.want("(Stopped.)", "A new conversation. What is on your mind?", "user short")
	})
}

func TestRetry(t *testing.T) {
	play(t, &house{
		tools: []tools.Tool{tool("look", func(context.Context) (string, error) { return "sun", nil })},
		model: script(calls(call("1", "look")), words("bad"), words("good"), words("thanks")),
	}, func(h *house) {
		h.say("0", "/retry")
		h.want("There is nothing to answer again yet.")
		h.say("1", "hi")
		h.want("bad")
		h.say("2", "/retry")
		h.want("good")
		h.say("3", "better")
		h.want("thanks")
		const left = "user [The person went back to this place and left what was said since. " +
			"What was done then stays done, with these tools: look] | "
		if got, want := spoken(h.asks[3], 9), "user hi | "+left+"assistant good | user better"; got != want {
			t.Errorf("asked %s\nwant  %s", got, want)
		}
	})
}

// A mistyped command is answered at once, and no model is asked; a path is none.
func TestUnknownCommand(t *testing.T) {
	play(t, &house{model: script(words("a path"))}, func(h *house) {
		h.say("1", "/halt now")
		h.want("There is no command /halt. /help lists the commands there are.")
		h.say("other", "/new@otherbot")
		h.want("There is no command /new@otherbot. /help lists the commands there are.")
		for id, wrong := range map[string]string{"near": "/stauts", "short": "/stat now", "group": "/searcch@parley_bot bread"} {
			h.say(id, wrong)
			word, _, _ := strings.Cut(wrong, " ")
			meant := map[string]string{"near": "status", "short": "status", "group": "search"}[id]
			h.want("There is no command " + word + ". Did you mean /" + meant + "? /help lists the commands there are.")
		}
		if len(h.asks) > 0 {
			t.Errorf("a model was asked: %v", h.asks)
		}
		h.say("2", "/etc/hosts says what?")
		h.want("a path")
	})
}

func TestModelIsChosen(t *testing.T) {
	h := &house{}
	h.model = script(
		llm.Message{Text: "a", Model: "main", Usage: llm.Usage{In: 10, Out: 2}},
		llm.Message{Text: "b", Model: "other", Usage: llm.Usage{In: 20, Out: 3, Cached: 5}})
	play(t, h, func(h *house) {
		h.say("1", "/model")
		h.want("This conversation uses main. There are: main, other. Choose with /model NAME.")
		h.say("2", "/model nope")
		h.want("There is no model of that name. There are: main, other.")
		h.say("3", "hi")
		h.want("a")
		h.say("4", "/model other")
		h.want("From the next answer on this conversation uses other.")
		h.say("5", "hi")
		h.want("b")
		h.say("6", "/usage")
		h.want("Tokens used in this conversation:\nmain: 10 in (0 from cache), 2 out\nother: 20 in (5 from cache), 3 out")
	})
}

func TestStatus(t *testing.T) {
	h := &house{model: func(ctx context.Context, _ llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		<-ctx.Done()
		return llm.Message{}, ctx.Err()
	}}
	play(t, h, func(h *house) {
		h.say("1", "/status")
		h.want("I am idle.\nModel: main\nUp for a moment. Answers under way, in all conversations: 0; messages not answered yet: 0.")
		h.say("2", "hi")
		timetest.Sleep(3 * time.Second)
		h.say("3", "/status")
		h.want("I am thinking, for 3 seconds now.\nModel: main\nUp for 3 seconds. Answers under way, in all conversations: 1; messages not answered yet: 1.")
		h.say("4", "/stop")
	})
}

// TestHelp: owners are told how to let somebody in, and others are not.
func TestHelp(t *testing.T) {
	play(t, &house{}, func(h *house) {
		for _, role := range []chat.Role{chat.Owner, chat.User} {
			m := message(string(role), "/help")
			m.From.Role = role
			h.deliver(m)
			synctest.Wait()
			if text := h.sent[len(h.sent)-1]; !strings.Contains(text, "/retry") || strings.Contains(text, "/pair") != (role == chat.Owner) {
				t.Errorf("the role %s is told %q", role, text)
			}
			m.ID, m.Text = m.ID+" starts", "/start"
			h.deliver(m)
			synctest.Wait()
			if text := h.sent[len(h.sent)-1]; !strings.Contains(text, "/help") || strings.Contains(text, "/retry") || strings.Count(text, "\n") > 2 {
				t.Errorf("/start: the role %s is told %q", role, text)
			}
		}
	})
}

// TestUnchangedEdit: networks report an edit when they add the preview of a link.
func TestUnchangedEdit(t *testing.T) {
	play(t, &house{model: script(words("a"), words("b"))}, func(h *house) {
		h.say("1", "hi")
		h.want("a")
		m := message("1e5", "hi")
		m.Edits = "1"
		h.deliver(m)
		h.want()
		m.ID, m.Text = "1e6", "hello"
		h.deliver(m)
		h.want("b")
	})
}

func TestLiveView(t *testing.T) {
	var shown collected[string]
	h := &house{live: func(s string) { shown.add(s) }}
	first := true
	h.tools = []tools.Tool{tool("look", func(context.Context) (string, error) { return "sun", nil })}
	h.model = func(_ context.Context, _ llm.Request, stream func(llm.Delta)) (llm.Message, error) {
		if first {
			first = false
			stream(llm.Delta{Text: "Wrong"})
			stream(llm.Delta{Reset: true})
			stream(llm.Delta{Text: "Let me look."})
			return llm.Message{Text: "Let me look.", Calls: []llm.ToolCall{call("1", "look")}}, nil
		}
		stream(llm.Delta{Reasoning: "hm"})
		stream(llm.Delta{Text: "Sun"})
		stream(llm.Delta{Text: "ny."})
		return words("Sunny."), nil
	}
	play(t, h, func(h *house) {
		h.say("1", "weather?")
		h.want("Let me look.\n\nSunny.")
		if got, want := strings.Join(shown.values(), "|"), "Wrong|Let me look.|Let me look.\n\nSun|Let me look.\n\nSunny."; got != want {
			t.Errorf("shown %q\nwant  %q", got, want)
		}
	})
}

// TestSettingsChange: a turn keeps the settings it began with, the next has the others.
func TestSettingsChange(t *testing.T) {
	h := &house{model: script(words("a"))}
	play(t, h, func(h *house) {
		h.pool.Set(agent.Settings{Model: "new", Rounds: 3, Models: map[string]agent.Model{
			"new": {Model: llm.ModelFunc(script(words("from the new one"))), Window: 8000},
		}, Kit: func(ctx context.Context, s tools.Scope) (*tools.Kit, error) { return tools.NewKit(ctx, s, nil) }})
		h.say("1", "hi")
		h.want("from the new one")
	})
}

// TestPanic: a fault of ours costs one answer, not the process.
func TestPanic(t *testing.T) {
	h := &house{model: func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		if spoken(r, 1) == "user burst" {
			panic("oh")
		}
		return words(spoken(r, 9)), nil
	}}
	play(t, h, func(h *house) {
		h.say("1", "burst")
		h.want("Something went wrong inside me. The error is in my log. Please try again.")
		h.say("2", "hi")
		h.want("user burst | user hi")
	})
}

// TestDamagedSession is P21 and P25: whatever a session's log holds, it is answered in, and so are others.
func TestDamagedSession(t *testing.T) {
	for name, recs := range map[string][]string{
		"no JSON":         {"{", "\x00\xff", `{"heard":7}`},
		"nothing":         {"{}", "null"},
		"orphan started":  {`{"heard":{"id":"0","at":{"channel":"test","chat":"1"},"from":{"id":"7"},"time":"2026-01-01T00:00:00Z"}}`, `{"started":["a"]}`, `{"finished":{"role":"tool","call":"a","text":"x"}}`},
		"orphan finished": {`{"finished":{"role":"tool","call":"a","text":"x"}}`, `{"ended":{"outcome":"answered"}}`},
		"open, no job":    {`{"heard":{"id":"0","text":"lost","at":{"channel":"test","chat":"1"},"from":{"id":"7"},"time":"2026-01-01T00:00:00Z"}}`, `{"said":{"role":"assistant","calls":[{"id":"a","name":"x","args":"{"}]}}`},
		"retried":         {`{"retried":{"id":"0","at":{"channel":"test","chat":"1"},"from":{"id":"7"},"time":"2026-01-01T00:00:00Z"}}`},
		"words only":      {`{"said":{"role":"assistant","text":"I began"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			h := &house{store: mem.New()}
			h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
				if r.Messages[0].Role != llm.User {
					return llm.Message{}, &llm.Error{Kind: llm.BadRequest, Err: errors.New("400")}
				}
				return words("well"), nil
			}
			play(t, h, func(h *house) {
				for _, r := range recs {
					if _, err := h.store.Log("session/test:1").Append(t.Context(), store.Any, []byte(r)); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := h.store.Bucket("sessions").Put(t.Context(), "test:2", []byte("no JSON"), 0); err != nil {
					t.Fatal(err)
				}
				h.say("1", "hi")
				h.want("well")
				m := message("2", "hi")
				m.At.Chat = "2"
				h.deliver(m)
				h.want("well")
			})
		})
	}
}

// TestOldStop: a /stop or /new that a network brings again does not end the turn of what was said after it.
func TestOldStop(t *testing.T) {
	h := &house{model: func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
		time.Sleep(time.Minute)
		return words("done"), nil
	}}
	play(t, h, func(h *house) {
		stop, renew := message("1", "/stop"), message("2", "/new")
		h.deliver(renew)
		timetest.Sleep(time.Second)
		h.want("A new conversation. What is on your mind?")
		h.say("3", "work")
		timetest.Sleep(time.Second)
		h.deliver(stop)
		h.deliver(renew)
		timetest.Sleep(time.Minute)
		h.want("There is nothing to stop.", "done")
	})
}

// TestLeastRights: in a turn that an owner began, what others say in it does not run with the owner's rights.
func TestLeastRights(t *testing.T) {
	var roles collected[chat.Role]
	who := tool("who", nil)
	who.Run = func(_ context.Context, c tools.Call) (tools.Result, error) {
		roles.add(c.From.Role)
		time.Sleep(5 * time.Second)
		return tools.Result{Text: "ok"}, nil
	}
	play(t, &house{tools: []tools.Tool{who}, model: script(calls(call("1", "who")), calls(call("2", "who")), words("done"))}, func(h *house) {
		h.say("1", "do it")
		timetest.Sleep(time.Second)
		m := message("2", "and this")
		m.From = chat.Sender{ID: "8", Role: chat.User}
		h.deliver(m)
		timetest.Sleep(time.Minute)
		h.want("done")
		if fmt.Sprint(roles.values()) != "[owner user]" {
			t.Errorf("roles %v", roles.values())
		}
	})
}
