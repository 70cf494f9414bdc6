package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/agent/replay"
	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/store/mem"
	"parley/timetest"
	"parley/tools"
)

// recording returns what a recording of the session "test:1" holds, once it was
// written and read.
func (h *house) recording() *replay.Recording {
	h.t.Helper()
	var b bytes.Buffer
	for line, err := range h.pool.Recording(h.t.Context(), "test:1") {
		if err != nil {
			h.t.Fatal(err)
		}
		b.Write(line)
	}
	r, err := replay.Read(&b)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// requests returns those of the recording that are known.
func (h *house) requests() (all []llm.Request) {
	for t := range h.recording().Turns() {
		for _, e := range t.Events {
			if e.Request != nil {
				all = append(all, *e.Request)
			}
		}
	}
	return all
}

// rerun runs all turns again and returns what came of each.
func (h *house) rerun() (all []string) {
	r := h.recording()
	for t := range r.Turns() {
		switch differences, err := agent.Rerun(h.t.Context(), mem.New(), r, t); {
		case err != nil:
			all = append(all, err.Error())
		case len(differences) > 0:
			all = append(all, strings.Join(differences, "; "))
		default:
			all = append(all, "same")
		}
	}
	return all
}

// reruns checks what comes of the turns when they are run again; of those that
// are not named here they are to be the same.
func (h *house) reruns(n int, but map[int]string) {
	h.t.Helper()
	synctest.Wait()
	all := h.rerun()
	if len(all) != n {
		h.t.Errorf("%d turns, want %d", len(all), n)
	}
	for i, got := range all {
		want := but[i+1]
		if want == "" {
			want = "same"
		}
		if !strings.HasPrefix(got, want) {
			h.t.Errorf("turn %d: %s, want %s", i+1, got, want)
		}
	}
}

// Turns of all sorts are the same when they are run again: long conversations
// that were made to fit, taken back, joined, corrected, retried, cut and failed.
func TestRerun(t *testing.T) {
	var ran, rolled collected[string]
	h := &house{tools: []tools.Tool{
		search(&ran),
		giving("boom", tools.Hints{}, tools.Result{Text: "no", Failed: true}),
		giving("json", tools.Hints{JSON: true, ReadOnly: true}, tools.Result{Data: map[string]any{"b": 1, "a": "<x>"}}),
		giving("bad_json", tools.Hints{JSON: true}, tools.Result{Text: "not \"this\"", Failed: true}),
		giving("done", tools.Hints{Last: true, Hidden: true}, tools.Result{Text: "ok", End: "That was it."}),
		giving("danger", tools.Hints{Dangerous: true, ReadOnly: true}, tools.Result{Text: "done"}),
	}}
	h.set = func(s *agent.Settings) {
		rolling(&rolled)(s)
		s.Kit = func(ctx context.Context, scope tools.Scope) (*tools.Kit, error) {
			yes := func(_ context.Context, c tools.Call, _ string) (bool, string, error) { return c.ID != "2", "7", nil }
			return tools.NewKit(ctx, scope, []tools.Source{tools.Fixed(h.tools)}, tools.Standard(tools.StandardConfig{Approve: yes})...)
		}
	}
	play(t, h, func(h *house) {
		h.model = script(words("hello"))
		h.say("1", "hi")
		h.want("hello")
		h.model = script(calls(with("1", "web_search", `{"q":"bad"}`)), calls(
			with("1", "web_search", `{"q":"a"}`), with("2", "json", "{}"), with("3", "boom", "{}"),
			with("4", "Boom", "{"), with("5", "nothing", "{}"), with("6", "bad_json", "{}"), with("7", "json", "{}"), with("8", "web_search", `{"q":"bad"}`),
		), words("found"))
		h.say("2", "look")
		h.want("found")
		h.model = script(calls(with("1", "done", "{}"), with("2", "json", "{}")))
		h.say("3", "finish")
		h.want("That was it.")
		h.model = script(llm.Message{Text: "one", Finish: llm.Length}, words("two"))
		h.say("4", "count")
		h.want("onetwo")
		h.model = script()
		h.say("5", "fail")
		h.want("The model did not accept the request; whoever runs me finds the reason in the log.")
		h.model = script(words("better"))
		h.say("6", "/retry")
		h.want("better")
		h.say("7", "/new")
		h.want("A new conversation. What is on your mind?")
		h.model = func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
			h.model = script(words("both"))
			h.say("9", "and this")
			time.Sleep(time.Millisecond)
			return calls(with("1", "json", "{}")), nil
		}
		h.say("8", "this")
		timetest.Sleep(time.Second)
		h.want("both")
		m := message("10", "that")
		m.Edits = "9"
		h.model = script(words("I see"))
		h.deliver(m)
		h.want("I see")
		h.stop()
		h.start()
		h.model = script(words("again"))
		h.say("11", "after a restart")
		h.want("again")
		h.model = script(calls(with("1", "danger", "{}"), with("2", "danger", "{\"x\":1}"), with("3", "json", "{}")), words("approved"))
		h.say("12", "dare")
		h.want("approved")
		all, err := h.pool.Sessions().Calls(t.Context(), "test:1", h.pool.Tools(t.Context(), "test:1"))
		if err != nil || len(all) < 3 || !all[len(all)-3].Success || all[len(all)-2].Success || !strings.Contains(all[len(all)-2].Result, "refused") {
			t.Errorf("%+v, %v", all[max(0, len(all)-3):], err)
		}
		h.reruns(10, nil)
	})
}

// What was stopped or interrupted is not run again, and said to be so.
func TestNoRerun(t *testing.T) {
	hang := tool("hang", func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	h := &house{tools: []tools.Tool{hang, giving("quick", tools.Hints{ReadOnly: true}, tools.Result{Text: "x"})}}
	play(t, h, func(h *house) {
		h.model = func(ctx context.Context, _ llm.Request, stream func(llm.Delta)) (llm.Message, error) {
			stream(llm.Delta{Text: "It is "})
			<-ctx.Done()
			return llm.Message{}, ctx.Err()
		}
		stop := func(id string) {
			synctest.Wait()
			timetest.Sleep(time.Second)
			h.say(id, "/stop")
		}
		h.say("1", "tell")
		stop("s1")
		h.want("It is\n\n(Stopped.)")
		h.model = script(calls(call("1", "quick"), call("2", "hang"), call("3", "quick")))
		h.say("2", "hang")
		stop("s2")
		h.want("(Stopped.)")
		h.model = script(calls(call("1", "hang")), words("it was cut off"))
		h.say("3", "hang again")
		synctest.Wait()
		h.stop()
		h.start()
		timetest.Sleep(time.Second)
		h.reruns(3, map[int]string{1: "cannot be re-run: it was not answered: stopped", 2: "cannot be re-run: it was not answered: stopped", 3: "cannot be re-run: it was interrupted"})
	})
}

// A conversation that is made to fit again and again is the same when its turns
// are run again, one by one; and a request rebuilt is the one that was made,
// byte for byte.
func TestRerunOfLongConversations(t *testing.T) {
	var ran, rolled collected[string]
	h := &house{tools: []tools.Tool{search(&ran)}, set: rolling(&rolled)}
	n := 0
	h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		n++
		usage := llm.Usage{In: len(fmt.Sprint(r.Messages)) / 3, Out: 1} // not what we think
		switch size := len(fmt.Sprint(r.Messages)); {
		case n%17 == 0:
			return llm.Message{}, &llm.Error{Kind: llm.Quota, Err: errors.New("no")}
		case n%13 == 0 && size > 9000:
			return llm.Message{}, &llm.Error{Kind: llm.TooLong, Err: errors.New("too long")}
		case n%5 == 0:
			return llm.Message{Text: strings.Repeat("well ", n*10), Usage: usage}, nil
		case n%3 == 0:
			return llm.Message{Calls: []llm.ToolCall{asksFor(fmt.Sprint("bad", n))}, Usage: usage}, nil
		}
		return llm.Message{Calls: []llm.ToolCall{asksFor(strings.Repeat("good ", 100))}, Usage: usage}, nil
	}
	play(t, h, func(h *house) {
		for i := range 40 {
			h.say(fmt.Sprint(i), strings.Repeat("say ", 100+i*10))
			timetest.Sleep(time.Minute)
			if i%7 == 6 {
				h.stop()
				h.start()
			}
			if i == 30 {
				h.say("new", "/new")
				timetest.Sleep(time.Minute)
			}
		}
		h.reruns(40, nil)
		made := h.requests()
		i := 0
		for _, r := range h.asks {
			if i < len(made) && same(r, made[i]) {
				i++
			}
		}
		if i != len(made) || i < 60 {
			t.Errorf("only %d of %d requests are those that were made", i, len(made))
		}
	})
}

// E-023: what became of each call, those taken back too,
// with the other name of a tool; D-036: each has one result.
func TestCalls(t *testing.T) {
	var ran, rolled collected[string]
	look := search(&ran)
	other := look
	other.Name, other.AliasOf = "google_search", "web_search"
	slow := tool("slow", func(context.Context) (string, error) {
		time.Sleep(2 * time.Second)
		return "", errors.New("too bad")
	})
	h := &house{tools: []tools.Tool{look, other, slow}, set: rolling(&rolled)}
	play(t, h, func(h *house) {
		h.model = script(calls(with("1", "google_search", `{"q":"bad"}`)), calls(with("1", "web_search", `{"q":"a"}`), with("2", "slow", "{}"), with("3", "none", "")), words("done"))
		h.say("1", "look")
		synctest.Wait()
		timetest.Sleep(time.Minute)
		h.say("2", "/new")
		h.model = script(calls(with("1", "slow", "{}")), words("done"))
		h.say("3", "once more")
		timetest.Sleep(time.Minute)
		all, err := h.pool.Sessions().Calls(t.Context(), "test:1", h.pool.Tools(t.Context(), "test:1"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range all {
			got = append(got, fmt.Sprint(r.Function.Name, r.Function.Arguments, " ", r.Meta.Tool, "/", r.Meta.Alias, " ", r.Success, r.Meta.Verdict, r.ExecutionTime, r.Meta.Turn))
			if _, err := time.Parse(time.RFC3339, r.Meta.CallTime); err != nil {
				t.Error(err)
			}
		}
		want := []string{
			`google_search{"q":"bad"} web_search/google_search truepoor1e-09 1`,
			`web_search{"q":"a"} web_search/ trueok1e-09 2`,
			`slow{} slow/ falseok2 2`,
			`none{} none/ falseok0 2`,
			`slow{} slow/ falseok2 1`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q\nwant %q", got, want)
		}
		for _, id := range []chat.SessionID{"test:2", ""} {
			if _, err := h.pool.Sessions().Calls(t.Context(), id, h.pool.Tools(t.Context(), id)); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("of no session: %v", err)
			}
		}
		for line, err := range h.pool.Recording(t.Context(), "test:2") {
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("a recording of no session: %s, %v", line, err)
			}
		}
	})
}

func same(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

// A turn of before requests were written down is not run again.
func TestNoRerunOfOldTurns(t *testing.T) {
	h := &house{store: mem.New()}
	play(t, h, func(h *house) {
		m := message("1", "hi")
		heard, _ := json.Marshal(m)
		for _, r := range []string{`{"heard":` + string(heard) + `}`, `{"said":{"role":"assistant","text":"hello"}}`, `{"ended":{"outcome":"answered"}}`} {
			if _, err := h.store.Log("session/test:1").Append(h.t.Context(), store.Any, []byte(r)); err != nil {
				t.Fatal(err)
			}
		}
		h.reruns(1, map[int]string{1: "cannot be re-run: what the model was told was not kept"})
	})
}

// Also the request that is told of no tools is made again as it was, when it is
// the one that makes a conversation fit.
func TestLastRequestMadeAgain(t *testing.T) {
	for size := 1000; size < 2000; size += 300 {
		h := &house{tools: []tools.Tool{giving("read", tools.Hints{ReadOnly: true}, tools.Result{Text: strings.Repeat("x", size)})}}
		n := 0
		h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
			if n++; len(r.Tools) == 0 {
				return words("ok"), nil
			}
			return calls(with("1", []string{"read", "Read"}[n%2], fmt.Sprintf(`{"n":%d}`, n))), nil
		}
		play(t, h, func(h *house) {
			for i := range 6 {
				h.say(fmt.Sprint(i), "go")
				timetest.Sleep(time.Minute)
			}
			h.reruns(6, nil)
			if made := h.requests(); len(made) != len(h.asks) {
				t.Errorf("size %d: %d requests, want %d", size, len(made), len(h.asks))
			} else {
				for i := range made {
					if !same(made[i], h.asks[i]) {
						t.Errorf("size %d: request %d of %d is not the one that was made", size, i+1, len(made))
						return
					}
				}
			}
		})
	}
}

// A told tells each session the same, and in a last paragraph its name.
type told string

func (p told) System(_ context.Context, id chat.SessionID, _ chat.Person, _ llm.Room) (string, error) {
	return string(p) + "\n\nThis is " + string(id), nil
}

func (p told) SubagentSystem(context.Context, chat.Person, string, llm.Room) (string, error) {
	return string(p), nil
}

// P15: what many sessions are told is kept once. A recording has all that one was told.
func TestPromptsOfManySessions(t *testing.T) {
	all := told("rules\n\n" + strings.Repeat("what everybody is told. ", 100))
	h := &house{model: func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) { return words("hello"), nil }}
	h.conf = func(c *agent.Config) { c.Memory = all }
	play(t, h, func(h *house) {
		for i := range 10 {
			m := message(fmt.Sprint(i), "hello")
			m.At.Chat = fmt.Sprint(i)
			h.deliver(m)
		}
		synctest.Wait()
		whole, _ := all.System(t.Context(), "test:1", "", llm.Room{})
		if rs := h.requests(); len(rs) != 1 || rs[0].System != whole {
			t.Errorf("recorded are %+v", rs)
		}
		size, b := 0, h.store.Bucket("prompts")
		for key, err := range b.Keys(t.Context(), "") {
			body, _, unread := b.Get(t.Context(), key)
			if size += len(body); err != nil || unread != nil {
				t.Error(err, unread)
			}
		}
		if size > 2*len(all) {
			t.Errorf("%d bytes are kept of ten prompts of %d", size, len(whole))
		}
	})
}
