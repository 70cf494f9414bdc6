package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/llm"
	"parley/store/storetest"
	"parley/timetest"
	"parley/tools"
	speech "parley/tools/message"
)

// An oracle is a person who is asked questions, and the Hub that remembers
// them: it outlives the houses of a test.
type oracle struct {
	mu        sync.Mutex
	asked     map[string]time.Time // by question
	after     time.Duration        // until it answers
	withdrawn []string
}

// ask is Hub.Ask.
func (o *oracle) ask(ctx context.Context, r chat.Reply) (int, string, chat.Sender, error) {
	o.mu.Lock()
	if o.asked == nil {
		o.asked = map[string]time.Time{}
	}
	began, again := o.asked[r.Ask.ID]
	if !again {
		began = time.Now()
		o.asked[r.Ask.ID] = began
	}
	o.mu.Unlock()
	select {
	case <-time.After(o.after - time.Since(began)):
		return 0, "", chat.Sender{Name: "Anna"}, nil
	case <-ctx.Done():
		return 0, "", chat.Sender{}, ctx.Err()
	}
}

func (o *oracle) tool() tools.Tool {
	return speech.NewAsk(o.ask, func(_ context.Context, id string) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.withdrawn = append(o.withdrawn, id)
		return nil
	})
}

func asking(id string) llm.Message {
	return calls(llm.ToolCall{ID: id, Name: "ask_user", Args: `{"question":"Really?","choices":["Yes","No"]}`})
}

// asks has the model ask when it is told to, and say what came of it.
func asks(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
	last := r.Messages[len(r.Messages)-1]
	if last.Role == llm.User && strings.HasSuffix(last.Text, "ask") {
		return asking(fmt.Sprint("c", len(r.Messages))), nil
	}
	return words(spoken(r, 1)), nil
}

// TestQuestion: a turn that waits for a person says so, holds no place, and
// goes on with the answer.
func TestQuestion(t *testing.T) {
	o := &oracle{after: 3 * time.Hour}
	h := &house{tools: []tools.Tool{o.tool()}, model: asks, conf: func(c *agent.Config) { c.Turns = 1 }}
	play(t, h, func(h *house) {
		h.say("1", "ask")
		timetest.Sleep(2 * time.Hour)
		h.say("2", "/status")
		h.want("I am waiting for your answer, for 2 hours now.\nModel: main\nUp for 2 hours. Answers under way, in all conversations: 1; messages not answered yet: 1.")
		m := message("1", "hi")
		m.At.Chat = "2"
		h.deliver(m)
		h.want("user hi")
		h.say("3", "meanwhile")
		timetest.Sleep(2 * time.Hour)
		h.want("user meanwhile") // it joins after the answer
		if got := spoken(h.asks[len(h.asks)-1], 3); got != `assistant  | tool Anna chose "Yes" | user meanwhile` {
			t.Errorf("asked %s", got)
		}
		if len(o.asked) != 1 || len(o.withdrawn) != 0 {
			t.Errorf("asked %v, withdrawn %v", o.asked, o.withdrawn)
		}
	})
}

// TestStopQuestion: /stop takes back the question and ends the turn.
func TestStopQuestion(t *testing.T) {
	o := &oracle{after: 3 * time.Hour}
	play(t, &house{tools: []tools.Tool{o.tool()}, model: asks}, func(h *house) {
		h.say("1", "ask")
		timetest.Sleep(time.Minute)
		h.say("2", "/stop")
		timetest.Sleep(time.Second)
		h.want("(Stopped.)")
		h.say("3", "hi")
		h.want("user hi")
		if len(o.withdrawn) != 1 {
			t.Errorf("withdrawn %v", o.withdrawn)
		}
	})
}

// TestShutdownQuestion is P16: a turn that waits for a person ends at once with
// the house, and waits on after the next start. However often that happens, and
// however the house ends, it is one question, and nothing is put aside (P8).
func TestShutdownQuestion(t *testing.T) {
	for _, kill := range []bool{false, true} {
		t.Run(fmt.Sprint("killed ", kill), func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				dir, said := storetest.TempDir(t), map[string]string{}
				o := &oracle{after: 12 * time.Hour}
				var h *house
				for run := range 8 {
					m := newMortal(t, dir, 1<<40)
					h = &house{t: t, store: m, said: said, model: asks, tools: []tools.Tool{o.tool()}}
					h.start()
					if run == 0 {
						h.say("1", "ask")
					}
					timetest.Sleep(2 * time.Hour)
					synctest.Wait()
					if kill {
						m.left.Store(0)
					}
					began := time.Now()
					h.stop()
					if d := time.Since(began); d > time.Second {
						t.Errorf("run %d: stopped after %v", run, d)
					}
					m.Close()
				}
				if got := said["re:test//1/1"]; got != `tool Anna chose "Yes"` || len(said) != 1 || len(o.asked) != 1 || len(o.withdrawn) != 0 {
					t.Errorf("said %q, asked %v, withdrawn %v", said, o.asked, o.withdrawn)
				}
			})
		})
	}
}

// TestJoinedQuestion: what joined a turn that then waits for a person is
// answered by it after the next start, not lost.
func TestJoinedQuestion(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		dir, said := storetest.TempDir(t), map[string]string{}
		o := &oracle{after: time.Hour}
		for run := range 2 {
			m := newMortal(t, dir, 1<<40)
			h := &house{t: t, store: m, said: said, tools: []tools.Tool{o.tool(), slow()}}
			h.model = func(ctx context.Context, r llm.Request, s func(llm.Delta)) (llm.Message, error) {
				if len(r.Messages) == 1 {
					return calls(call("1", "slow")), nil
				}
				return asks(ctx, r, s)
			}
			h.start()
			if run == 0 {
				h.say("1", "begin")
				timetest.Sleep(time.Second)
				h.say("2", "and ask")
			}
			timetest.Sleep(time.Minute)
			h.stop()
			h.start() // the same store, as it was left
			timetest.Sleep(time.Hour)
			h.stop()
			if n, _ := m.Queue("inbox").Len(t.Context()); n != 0 {
				t.Errorf("run %d: %d messages left in the inbox", run, n)
			}
			m.Close()
		}
		if got := said["re:test//1/1"]; got != `tool Anna chose "Yes"` || len(said) != 1 {
			t.Errorf("said %q", said)
		}
	})
}

// A dialogue is a conversation with a file and a question, over as many deaths as there are.
type dialogue struct {
	life
	oracle  oracle
	fetched int
}

// run plays it on a store that dies after so many operations, as life.run does.
func (d *dialogue) run(life int) string {
	m := newMortal(d.t, d.dir, life)
	h := &house{t: d.t, store: m, model: d.answer, tools: []tools.Tool{d.oracle.tool()}, conf: func(c *agent.Config) {
		c.Send = func(ctx context.Context, r chat.Reply) error {
			b, _ := json.Marshal(r)
			return m.Queue("outbox").Push(ctx, r.ID, b)
		}
		c.Fetch = func(_ context.Context, m chat.Message) chat.Message {
			time.Sleep(time.Second)
			d.mu.Lock()
			defer d.mu.Unlock()
			d.fetched++
			return fetched(m)
		}
	}}
	h.start()
	for _, msg := range []chat.Message{photo("1", "look", "a.pdf"), message("2", "ask"), message("3", "bye")} {
		d.say(h, msg)
		timetest.Sleep(2 * time.Second)
		synctest.Wait()
	}
	timetest.Sleep(2 * time.Minute)
	synctest.Wait()
	h.stop()
	if err := m.Close(); err != nil {
		d.t.Error(err)
	}
	where, _ := m.where.Load().(string)
	return where
}

// answer asks the question unless the conversation has its answer, and says what it has seen.
func (d *dialogue) answer(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
	all := fmt.Sprint(r.Messages)
	if strings.Contains(all, "]\nask") && !strings.Contains(all, "chose") {
		return asking("q"), nil
	}
	var seen []string
	for _, word := range []string{"with the file inbox/a.pdf", `Anna chose "Yes"`, "bye"} {
		seen = append(seen, fmt.Sprint(strings.Count(all, word)))
	}
	return words(strings.Join(seen, "")), nil
}

func (d *dialogue) check(t *testing.T, deaths int) {
	m := newMortal(t, d.dir, 1<<40)
	defer m.Close()
	if n, _ := m.Queue("inbox").Len(t.Context()); n != 0 {
		t.Errorf("%d messages left unanswered", n)
	}
	replies, last := map[string]int{}, ""
	n, _ := m.Queue("outbox").Len(t.Context())
	for range n {
		item, err := m.Queue("outbox").Pull(t.Context())
		var r chat.Reply
		if err == nil {
			err = json.Unmarshal(item.Body, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
		replies[r.Quote]++
		last = r.Text
	}
	if replies["1"] != 1 || replies["2"] > 1 || replies["3"] > 1 || last != "111" {
		t.Errorf("replies %v, the last %q", replies, last)
	}
	if len(d.oracle.asked) != 1 || d.fetched < 1 || d.fetched > 1+deaths {
		t.Errorf("asked %d questions, fetched %d times", len(d.oracle.asked), d.fetched)
	}
}

// TestCrashWithFilesAndQuestions kills the process before and after every
// operation of a conversation with a file and a question, and then again while
// it waits: one answer each, one question, and a file fetched again only if the
// crash was before it was noted (P1, P6, P7).
func TestCrashWithFilesAndQuestions(t *testing.T) {
	for _, after := range []time.Duration{10 * time.Second, 3 * time.Minute} { // a life is shorter than that
		for n, done := 0, false; !done; n++ {
			t.Run(fmt.Sprint(after, n), func(t *testing.T) {
				timetest.Test(t, func(t *testing.T) {
					d := &dialogue{life: life{t: t, dir: storetest.TempDir(t), taken: map[string]bool{}}}
					d.oracle.after = after
					first := d.run(n)
					done = first == ""
					second := d.run(n / 2)
					d.run(1 << 40)
					d.run(1 << 40)
					if d.check(t, 2); t.Failed() {
						t.Logf("died %s and %s", first, second)
					}
				})
			})
		}
	}
}

// TestSteps: the live view is told of each call, with a few words of its arguments.
func TestSteps(t *testing.T) {
	var steps collected[string]
	fail := tool("fail", func(context.Context) (string, error) { return "", fmt.Errorf("no") })
	h := &house{tools: []tools.Tool{slow(), fail}, model: script(
		llm.Message{Calls: []llm.ToolCall{{ID: "1", Name: "slow", Args: `{"n": 7, "path":"a\u202e]b.txt","x":"y"}`}, {ID: "2", Name: "fail", Args: `["x"]`}}},
		words("ok"))}
	h.conf = func(c *agent.Config) {
		c.Live = func(context.Context, chat.Reply) chat.Live {
			return stepping(func(s chat.Step) { steps.add(fmt.Sprintf("%s %s %s %q", s.Call, s.Tool, s.State, s.Tip)) })
		}
	}
	play(t, h, func(h *house) {
		h.say("1", "go")
		timetest.Sleep(time.Minute)
		h.want("ok")
		if got, want := strings.Join(steps.values(), "|"), `1 slow doing "a b.txt"|1 slow success "a b.txt"|2 fail doing ""|2 fail error ""`; got != want {
			t.Errorf("steps %s\nwant  %s", got, want)
		}
	})
}

type stepping func(chat.Step)

func (stepping) Show(string)        {}
func (s stepping) Step(x chat.Step) { s(x) }
func (stepping) Close()             {}

// TestToldAlready is D-091: what a tool said to the person in this chat is not
// said again at the end.
func TestToldAlready(t *testing.T) {
	say := func(text string) llm.Message {
		return calls(llm.ToolCall{ID: "m", Name: "message", Args: fmt.Sprintf(`{"text":%q}`, text)})
	}
	h := &house{}
	h.model = script(say("Here it is."), words("here  it is."), say("One."), words(""), say("A."), words("B."))
	send := func(ctx context.Context, r chat.Reply) error { return h.send(ctx, r) }
	h.tools = []tools.Tool{speech.New(send)}
	play(t, h, func(h *house) {
		h.say("1", "send it")
		h.want("Here it is.", "")
		h.say("2", "again")
		h.want("One.", "")
		h.say("3", "again")
		h.want("A.", "B.")
	})
}
