package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/llm"
	"parley/memory"
	"parley/store"
	"parley/store/bolt"
	"parley/store/mem"
	"parley/store/storetest"
	"parley/timetest"
	"parley/tools"
)

// instead returns a message that is said in the place of another.
func instead(of, id, text string) chat.Message {
	m := message(id, text)
	m.Branch = &chat.Branch{Instead: of}
	return m
}

// after returns a message that goes on after the answer to another.
func after(id, text string, of ...string) chat.Message {
	m := message(id, text)
	m.Branch = &chat.Branch{After: of}
	return m
}

// parrot answers with what was said to it, as it is shown: "hi, there" for "hi" and "there".
func parrot(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
	var heard []string
	for _, m := range r.Messages {
		if text := spoken(llm.Request{Messages: []llm.Message{m}}, 1); m.Role == llm.User {
			heard = append(heard, strings.TrimPrefix(text, "user "))
		}
	}
	return words(strings.Join(heard, ", ")), nil
}

// What was said is changed, the first version is gone on with, and the whole begins anew:
// each branch is as it was left.
func TestBranches(t *testing.T) {
	play(t, &house{model: parrot}, func(h *house) {
		h.say("1", "one")
		h.want("one")
		h.say("2", "two")
		h.want("one, two")
		h.deliver(instead("2", "3", "zwei"))
		h.want("one, zwei")
		h.say("4", "drei")
		h.want("one, zwei, drei")
		h.deliver(after("5", "three", "2", "1"))
		h.want("one, two, three")
		h.say("6", "four")
		h.want("one, two, three, four")
		h.deliver(instead("1", "7", "anew"))
		h.want("anew")
		h.deliver(after("8", "vier", "unknown", "4"))
		h.want("one, zwei, drei, vier")
		h.stop()
		h.start() // the log says the same
		h.say("9", "go on")
		h.want("one, zwei, drei, vier, go on")
		h.deliver(instead("nobody said that", "10", "what?"))
		h.want("I cannot go back there: a new conversation was begun since, that part was removed because it was old, " +
			"or an earlier message still waits for its answer. Please send it as a new message.")
		h.say("11", "well")
		h.want("one, zwei, drei, vier, go on, well")
		h.reruns(10, nil)
	})
}

// Another answer is asked for, also in the middle; both answers can be gone on with.
func TestRegenerate(t *testing.T) {
	n := 0
	count := func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		n++
		return words(fmt.Sprint(n)), nil
	}
	play(t, &house{model: count}, func(h *house) {
		h.say("a", "hi")
		h.want("1")
		h.say("b", "and?")
		h.want("2")
		h.deliver(after("c", "/regenerate", "a"))
		h.want("3")
		h.say("d", "so?")
		h.want("4")
		if got, want := spoken(h.asks[3], 9), "user hi | assistant 3 | user so?"; got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
		h.deliver(after("e", "or?", "a"))
		h.want("5")
		if got, want := spoken(h.asks[4], 9), "user hi | assistant 1 | user or?"; got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
		h.deliver(after("f", "well?", "c", "a"))
		h.want("6")
		if got, want := spoken(h.asks[5], 9), "user hi | assistant 3 | user well?"; got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
		h.say("g", "/retry")
		h.want("7")
		h.reruns(7, nil)
		var kinds []string
		for e, err := range h.pool.Sessions().Transcript(h.t.Context(), "test:1") {
			if err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, string(e.Kind)+" "+e.Text)
		}
		all := strings.Join(kinds, "|")
		for _, said := range []string{"said 1", "said 2", "said 3", "said 4", "said 5", "said 6", "said 7", "heard and?"} {
			if !strings.Contains(all, said) {
				t.Errorf("the transcript lacks %q: %s", said, all)
			}
		}
		if n := strings.Count(all, "branched [went back"); n != 3 {
			t.Errorf("the transcript goes back %d times, want 3: %s", n, all)
		}
		if finds, err := h.pool.Sessions().SearchIn(h.t.Context(), "", "and?", 9); err != nil || len(finds) != 1 {
			t.Errorf("what is in a branch that was left is found %d times: %v", len(finds), err)
		}
	})
}

// The model is told in one line of what was done in the branch that is left, and not of
// what was only read there. What was done is not done again.
func TestLeftIsTold(t *testing.T) {
	paid := 0
	h := &house{model: script(calls(call("1", "pay"), call("2", "look")), words("paid"), words("hello"),
		calls(call("3", "look")), words("seen"), words("fine"), words("again"))}
	h.tools = []tools.Tool{
		tool("pay", func(context.Context) (string, error) { paid++; return "paid", nil }),
		giving("look", tools.Hints{ReadOnly: true}, tools.Result{Text: "sun"}),
	}
	play(t, h, func(h *house) {
		h.say("1", "pay him")
		h.want("paid")
		h.deliver(instead("1", "2", "greet him"))
		h.want("hello")
		const left = "[The person went back to this place and left what was said since. " +
			"What was done then stays done, with these tools: pay]"
		if got := h.asks[2].Messages[0].Text; got != left {
			t.Errorf("the model is told %q", got)
		}
		h.deliver(instead("2", "3", "look"))
		h.want("seen")
		h.deliver(instead("3", "4", "greet"))
		h.want("fine")
		if got := spoken(h.asks[5], 9); strings.Contains(got, "look") || !strings.Contains(got, "pay") {
			t.Errorf("the model is shown %s", got)
		}
		h.deliver(after("5", "/retry", "1"))
		h.want("again")
		if got := spoken(h.asks[6], 9); strings.Count(got, "tools: pay]") != 1 || strings.Contains(got, "hello") {
			t.Errorf("the model is shown %s", got)
		}
		if paid != 1 {
			t.Errorf("paid %d times", paid)
		}
	})
}

// Whoever changes what they said does not wait for the answer to the first version.
func TestGoingBackStops(t *testing.T) {
	model := func(ctx context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		if strings.Contains(spoken(r, 1), "slow") {
			<-ctx.Done()
			return llm.Message{}, ctx.Err()
		}
		return parrot(ctx, r, nil)
	}
	play(t, &house{model: model}, func(h *house) {
		h.conf = func(c *agent.Config) {
			send := c.Send
			c.Send = func(ctx context.Context, r chat.Reply) error {
				if len(r.Also) > 0 {
					h.t.Errorf("%q answers %q, too", r.Text, r.Also)
				}
				return send(ctx, r)
			}
		}
		h.stop()
		h.start()
		h.say("1", "slow")
		synctest.Wait()
		timetest.Sleep(time.Second)
		m := instead("1", "2", "quick")
		h.deliver(m)
		h.want("(Stopped.)", "quick")
		h.deliver(m) // the network brings it again
		h.want()
	})
}

// What leaves the conversation or a branch stops the answer under way there once. Delivered again, as by a page that did
// not hear that it was taken, it stops neither its own answer nor another (P2).
func TestResendStopsNothing(t *testing.T) {
	slow := func(ctx context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		select {
		case <-ctx.Done():
			return llm.Message{}, ctx.Err()
		case <-time.After(time.Minute):
			return parrot(ctx, r, nil)
		}
	}
	play(t, &house{model: slow}, func(h *house) {
		h.say("1", "one")
		timetest.Sleep(time.Hour)
		h.want("one")
		for _, c := range []struct {
			m    chat.Message
			want string
		}{
			{instead("1", "2", "eins"), "eins"},
			{after("3", "/regenerate", "2"), "eins"},
		} {
			for range 2 {
				c.m.Time = time.Now() // as on the page
				h.deliver(c.m)
				timetest.Sleep(30 * time.Second)
			}
			timetest.Sleep(time.Hour)
			h.want(c.want)
		}
		h.say("4", "/new")
		h.want("A new conversation. What is on your mind?")
		h.say("5", "two")
		timetest.Sleep(30 * time.Second)
		h.say("4", "/new")
		h.deliver(after("6", "/search zebra", "3")) // a command leaves no branch, wherever it is given
		h.deliver(after("7", "/undo", "3"))
		timetest.Sleep(time.Hour)
		h.want("I found nothing like that in what was said here.", "two", "I cannot undo anything here.")
	})
}

// Whoever goes back while a subagent listens says that to no subagent.
func TestGoingBackFromSubagent(t *testing.T) {
	h := &house{tools: []tools.Tool{slowExec(time.Hour)}}
	h.model = byTask(func(r llm.Request) llm.Message {
		if last := lastOf(r); strings.HasSuffix(last.Text, "go") {
			return calls(with("c", "new_task", `{"agentName":"researcher","taskName":"X","input":"find it"}`))
		}
		return words("parent: " + spoken(r, 9))
	}, func(r llm.Request) llm.Message {
		if strings.Contains(spoken(r, 9), "quick") {
			t.Errorf("the subagent is told %q", spoken(r, 9))
		}
		return calls(call("1", "exec"))
	})
	play(t, withSubagents(h), func(h *house) {
		h.say("1", "go")
		timetest.Sleep(30 * time.Second)
		h.deliver(instead("1", "2", "quick"))
		timetest.Sleep(time.Minute)
		const left = "[The person went back to this place and left what was said since. What was done then stays done, with these tools: new_task]"
		h.want("(Stopped.)", "parent: user "+left+" | user quick")
		for r, err := range h.pool.Sessions().Journal(t.Context(), "test:1") {
			if err != nil || r.Heard != nil && r.Heard.Account != "" {
				t.Errorf("heard by way of a subagent: %+v, %v", r.Heard, err)
			}
		}
	})
}

// A failingOnce is a store that fails once, after so many operations on a conversation.
type failingOnce struct {
	store.Store
	left atomic.Int64
}

func (f *failingOnce) fails() bool { return f.left.Add(-1) == 0 }

func (f *failingOnce) Bucket(name string) store.Bucket {
	if name == store.BucketSessions {
		return failingBucket{f.Store.Bucket(name), f}
	}
	return f.Store.Bucket(name)
}

func (f *failingOnce) Log(name string) store.Log { return failingLog{f.Store.Log(name), f} }

type failingBucket struct {
	store.Bucket
	of *failingOnce
}

func (b failingBucket) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if b.of.fails() {
		return nil, 0, errBusy
	}
	return b.Bucket.Get(ctx, key)
}

func (b failingBucket) Put(ctx context.Context, key string, val []byte, rev uint64) (uint64, error) {
	if b.of.fails() {
		return 0, errBusy
	}
	return b.Bucket.Put(ctx, key, val, rev)
}

type failingLog struct {
	store.Log
	of *failingOnce
}

func (l failingLog) Append(ctx context.Context, after uint64, recs ...[]byte) (uint64, error) {
	if l.of.fails() {
		return 0, errBusy
	}
	return l.Log.Append(ctx, after, recs...)
}

func (l failingLog) Since(ctx context.Context, seq uint64) iter.Seq2[store.Record, error] {
	if l.of.fails() {
		return func(yield func(store.Record, error) bool) { yield(store.Record{}, errBusy) }
	}
	return l.Log.Since(ctx, seq)
}

// Whatever the store fails to do when a conversation goes back, that is noted once.
func TestGoingBackDespiteErrors(t *testing.T) {
	for n := range 12 {
		s := &failingOnce{Store: mem.New()}
		h := &house{store: s, model: script(calls(call("1", "pay")), words("paid"), words("hello"))}
		h.tools = []tools.Tool{tool("pay", func(context.Context) (string, error) { return "paid", nil })}
		play(t, h, func(h *house) {
			h.say("1", "pay him")
			h.want("paid")
			s.left.Store(int64(n) + 1)
			h.deliver(instead("1", "2", "greet him"))
			timetest.Sleep(time.Minute)
			h.want("hello")
			s.left.Store(0)
			branched := 0
			for r, err := range h.pool.Sessions().Journal(t.Context(), "test:1") {
				if err != nil {
					t.Fatal(err)
				}
				if r.Branched != nil {
					branched++
				}
			}
			if got := spoken(h.asks[2], 9); branched != 1 || strings.Count(got, "tools: pay]") != 1 {
				t.Errorf("error %d: it went back %d times, and the model is shown %q", n, branched, got)
			}
		})
	}
}

// A conversation that was summed up can be gone back in to before the summary, and what
// branches have in common is archived once.
func TestBranchBeforeSummary(t *testing.T) {
	kept := archive{}
	h := &house{conf: func(c *agent.Config) { c.Archive = kept }}
	h.set = func(s *agent.Settings) {
		s.Models = map[string]agent.Model{"main": {Model: llm.ModelFunc(h.generate), Window: 2600, MaxTokens: 200}}
	}
	h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		return words(fmt.Sprint(len(r.Messages))), nil
	}
	play(t, h, func(h *house) {
		long := strings.Repeat("words and more words ", 60)
		for i := range 12 {
			h.say(fmt.Sprint(i), fmt.Sprintf("begin%d %s end%d", i, long, i))
			synctest.Wait()
		}
		if len(kept) == 0 {
			t.Fatal("nothing was summed up")
		}
		h.sent = nil
		h.deliver(instead("2", "x", "short"))
		synctest.Wait()
		last := spoken(h.asks[len(h.asks)-1], 9)
		for _, want := range []string{"begin0", "begin1", "user short"} {
			if !strings.Contains(last, want) {
				t.Errorf("the model is not shown %q: %.300s", want, last)
			}
		}
		if strings.Contains(last, "begin2") {
			t.Error("the model is shown what was left")
		}
		for i := range 12 {
			h.say(fmt.Sprint("y", i), fmt.Sprintf("newer%d %s", i, long))
			synctest.Wait()
		}
		all := ""
		for _, e := range kept {
			all += e.Text
		}
		for _, word := range []string{"begin0", "begin1", "begin2", "newer0"} {
			if n := strings.Count(all, word); n != 1 {
				t.Errorf("%s is archived %d times", word, n)
			}
		}
	})
}

// archive keeps what is archived, by its key.
type archive map[string]memory.Entry

func (archive) Summarise(_ context.Context, _ llm.Model, _, said string) (string, llm.Usage, error) {
	var names []string
	for w := range strings.FieldsSeq(said) {
		if strings.HasPrefix(w, "begin") || strings.HasPrefix(w, "newer") {
			names = append(names, w+".")
		}
	}
	return strings.Join(names, " "), llm.Usage{}, nil
}

func (a archive) Append(_ context.Context, _ chat.Person, e memory.Entry) (memory.Entry, error) {
	a[e.Key] = e
	return e, nil
}

// At night all branches are archived, each part once.
func TestDigestOfBranches(t *testing.T) {
	kept := archive{}
	play(t, &house{model: script(words("begina1"), words("begina2"), words("beginb2"), words("begina3"), words("beginr3")), conf: func(c *agent.Config) { c.Archive = kept }}, func(h *house) {
		h.say("1", "hi")
		h.want("begina1")
		h.say("2", "and")
		h.want("begina2")
		h.deliver(instead("2", "3", "or"))
		h.want("beginb2")
		h.deliver(after("4", "so", "2", "1"))
		h.want("begina3")
		h.deliver(after("5", "/retry", "4"))
		h.want("beginr3")
		timetest.Sleep(time.Hour)
		for range 2 {
			if _, err := h.pool.Digest(h.t.Context(), "", "", time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		all := ""
		for _, e := range kept {
			all += e.Text
		}
		for word, want := range map[string]int{"begina1": 1, "begina2": 1, "beginb2": 1, "beginr3": 1, "begina3": 0} {
			if n := strings.Count(all, word); n != want {
				t.Errorf("%s is archived %d times, want %d: %s", word, n, want, all)
			}
		}
	})
}

// TestCrashInBranches kills the process before and after every operation of the store while
// a person changes what they said, asks for another answer, and returns to what they left:
// every message is answered once, each in its branch, and no tool runs twice (P5, P6, P7).
func TestCrashInBranches(t *testing.T) {
	for n, done := 0, false; !done; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				l := &branchLife{life: life{t: t, dir: storetest.TempDir(t), taken: map[string]bool{}}}
				where := l.run(n)
				if done = where == ""; !done {
					l.run(1 << 40)
				}
				if l.check(); t.Failed() {
					t.Logf("died %s", where)
				}
			})
		})
	}
}

// A branchLife is a life with branches.
type branchLife struct{ life }

// run plays the conversation on a store that dies after so many operations, and returns
// where that was.
func (l *branchLife) run(life int) string {
	h, m := l.begin(life, func(ctx context.Context, r llm.Request, stream func(llm.Delta)) (llm.Message, error) {
		last := r.Messages[len(r.Messages)-1]
		switch {
		case last.Role == llm.ToolRole:
			return words("done"), nil
		case strings.HasSuffix(last.Text, "pay"):
			return calls(call(fmt.Sprint("c", len(r.Messages)), "pay")), nil
		}
		return parrot(ctx, r, stream)
	})
	timetest.Sleep(2 * time.Minute) // what was left is answered: going back would stop it
	synctest.Wait()
	for _, m := range []chat.Message{
		message("1", "one"), after("2", "pay", "1"), instead("2", "3", "three"), after("4", "/regenerate", "1"),
		after("5", "five", "3", "1"), after("6", "six", "4", "1"), after("7", "seven", "2", "1"),
	} {
		l.say(h, m)
		timetest.Sleep(2 * time.Minute)
		synctest.Wait()
	}
	return l.end(h, m)
}

// check reads what the conversation came to.
func (l *branchLife) check() {
	l.t.Helper()
	db, err := bolt.Open(l.t.Context(), bolt.Config{Dir: l.dir})
	if err != nil {
		l.t.Fatal(err)
	}
	defer db.Close()
	replies := map[string]string{}
	n, _ := db.Queue("outbox").Len(l.t.Context())
	for range n {
		item, err := db.Queue("outbox").Pull(l.t.Context())
		if err != nil {
			l.t.Fatal(err)
		}
		var r chat.Reply
		if err := json.Unmarshal(item.Body, &r); err != nil {
			l.t.Fatal(err)
		}
		replies[r.Quote] += r.Text
		for _, id := range r.Also {
			replies[id] += r.Text
		}
	}
	// A notice of what was paid may be among what the parrot heard.
	plain := func(s string) string {
		var kept []string
		for part := range strings.SplitSeq(s, ", ") {
			if !strings.Contains(part, "went back") && !strings.Contains(part, "with these tools") {
				kept = append(kept, part)
			}
		}
		return strings.Join(kept, ", ")
	}
	for id, want := range map[string]string{
		"1": "one", "3": "one, three", "4": "one", "5": "one, three, five", "6": "one, six", "7": "one, pay, seven",
	} {
		if got := plain(replies[id]); got != want {
			l.t.Errorf("message %s is answered %q, want %q", id, got, want)
		}
	}
	if replies["2"] != "done" || l.runs.Load() > 1 {
		l.t.Errorf("paid %d times, and said %q", l.runs.Load(), replies["2"])
	}
}
