package agent_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/store/mem"
	"parley/tools"
	speech "parley/tools/message"
	"parley/tools/oversight"
)

// auditing has every call go through the whole pipeline, and returns what the audit log is told.
func (h *house) auditing() *collected[string] {
	told := &collected[string]{}
	audit := oversight.Audit(func(_, _, what string) { told.add(what) })
	h.set = func(s *agent.Settings) {
		s.Rollback = true
		s.Kit = func(ctx context.Context, scope tools.Scope) (*tools.Kit, error) {
			stages := append([]tools.Middleware{audit}, tools.Standard(tools.StandardConfig{})...)
			return tools.NewKit(ctx, scope, []tools.Source{tools.Fixed(h.tools)}, stages...)
		}
	}
	return told
}

// TestWhy: /why tells which calls were made for an answer and what became of them, each with the receipt that the audit log
// has; of an answer without any it says so, whatever the answer claims.
func TestWhy(t *testing.T) {
	save := giving("save", tools.Hints{}, tools.Result{Text: "saved\n\nin two places"})
	fail := tool("mail", func(context.Context) (string, error) { return "", errors.New("no `such` server") })
	var ran collected[string]
	h := &house{tools: []tools.Tool{save, fail, search(&ran)}}
	for i := range h.tools {
		h.tools[i].Schema = []byte(`{"type":"object","properties":{"path":{"type":"string"},"q":{"type":"string"}}}`)
	}
	told := h.auditing()
	h.model = script(
		calls(with("s", "web_search", `{"q":"bad words"}`)),
		calls(with("a", "save", `{"path":"notes.txt"}`), with("b", "mail", "{}")),
		words("All is saved."),
		words("I have **sent** the report to Anna."),
		words("Sorry, I have not sent it."),
	)
	play(t, h, func(h *house) {
		h.say("1", "/why")
		h.want("I have not answered anything here yet.")
		h.say("2", "go")
		h.want("All is saved.")
		h.say("3", "tell Anna `now`")
		h.want("I have **sent** the report to Anna.")

		h.say("4", "/why")
		at := time.Now().UTC().Format("2006-01-02 15:04")
		h.want("For my answer to “tell Anna 'now'” (" + at + ") I used no tool: nothing was looked up, sent or changed, whatever it says.")

		m := message("5", "/why")
		m.Quote = &chat.Quote{ID: "9", From: "you", Text: "All is saved."}
		h.deliver(m)
		second := message("6", "/why 2")
		h.deliver(second)
		m = message("7", "/why")
		m.Quote = &chat.Quote{ID: "9", From: "you", Text: "Something that was never said"}
		h.deliver(m)
		timely := time.Now().UTC().Format("15:04:05")
		var receipts []string
		for i, entry := range told.values() {
			_, receipt, found := strings.Cut(entry, ", receipt ")
			if !found || len(receipt) != 16 {
				t.Errorf("entry %d of the audit log is %q", i, entry)
			}
			receipts = append(receipts, receipt)
		}
		if len(receipts) != 3 {
			t.Fatalf("audit log: %q", told.values())
		}
		want := "For my answer to “go” (" + at + ") I made 3 calls:\n\n" +
			"1. `web_search` `bad words`: done, found nothing of use, so I asked in other words, " + timely + ", receipt `" + receipts[0] + "`\n" +
			"2. `save` `notes.txt`: done, " + timely + ", receipt `" + receipts[1] + "`\n" +
			"3. `mail`: failed: no 'such' server, " + timely + ", receipt `" + receipts[2] + "`\n\n" +
			"A receipt stands for one call and its result. Whoever runs me finds it in the audit log: `parley audit`"
		h.want(want, want, "I do not find that answer among my last 100 here.")
		h.say("8", "/retry")
		h.want("Sorry, I have not sent it.")
		h.say("9", "/why")
		h.want("For my answer to “tell Anna 'now'” (" + at + ") I used no tool: nothing was looked up, sent or changed, whatever it says.")
	})
}

// TestWhyAnsweredByTool: the call that is the answer is no action, and /why finds the answer by what was said with it. A message
// to another chat is one.
func TestWhyAnsweredByTool(t *testing.T) {
	h := &house{}
	send := func(ctx context.Context, r chat.Reply) error { return h.send(ctx, r) }
	h.tools = []tools.Tool{giving("save", tools.Hints{}, tools.Result{Text: "saved"}), speech.New(send)}
	h.auditing()
	var steps collected[*chat.StepCounts]
	h.conf = func(c *agent.Config) {
		c.Send = func(ctx context.Context, r chat.Reply) error {
			if r.Taken != nil {
				steps.add(r.Taken)
			}
			return h.send(ctx, r)
		}
	}
	answer := with("m", "message", `{"text":"**notes.md** is saved."}`)
	h.model = script(
		calls(call("a", "save")), calls(answer), words(""),
		calls(with("m", "message", `{"text":"Hello."}`)), words(""),
		calls(with("o", "message", `{"text":"**Dinner**","chat":"other:7"}`), answer), words(""),
	)
	play(t, h, func(h *house) {
		h.deliver(message("1", "go"))
		h.want("**notes.md** is saved.", "")
		m := message("2", "/why")
		m.Quote = &chat.Quote{ID: "9", From: "you", Text: "notes.md is saved."}
		h.deliver(m)
		synctest.Wait()
		if got := strings.Join(h.sent, ""); !strings.Contains(got, "one call") || !strings.Contains(got, "1. `save`: done") || strings.Contains(got, "message") {
			t.Errorf("/why tells %q", got)
		}
		h.sent = nil
		h.deliver(message("3", "hello"))
		h.want("Hello.", "")
		h.deliver(message("4", "/why"))
		synctest.Wait()
		if got := strings.Join(h.sent, ""); !strings.Contains(got, "“hello”") || !strings.Contains(got, "no tool") {
			t.Errorf("/why tells %q", got)
		}
		h.sent = nil
		h.deliver(message("5", "tell them"))
		h.want("**Dinner**", "**notes.md** is saved.", "")
		h.deliver(message("6", "/why"))
		synctest.Wait()
		if got := strings.Join(h.sent, ""); !strings.Contains(got, "one call") || !strings.Contains(got, "1. `message` `Dinner`: done") {
			t.Errorf("/why tells %q", got)
		}
	})
	var all []int
	for _, n := range steps.values() {
		all = append(all, n.All)
	}
	if !slices.Equal(all, []int{1, 0, 1}) {
		t.Errorf("the answers count %v steps", all)
	}
}

// TestWhyInBranches: /why tells about the branch that the person sees, and of an answer that was asked for again what it answers.
func TestWhyInBranches(t *testing.T) {
	h := &house{tools: []tools.Tool{giving("save", tools.Hints{}, tools.Result{Text: "saved"})}}
	h.auditing()
	h.model = script(calls(call("a", "save")), words("Saved it."), words("Second."), words("Not saved."))
	play(t, h, func(h *house) {
		h.say("1", "first")
		h.want("Saved it.")
		h.say("2", "second")
		h.want("Second.")
		h.deliver(after("3", "/regenerate", "1"))
		h.want("Not saved.")
		for _, c := range []struct {
			m    chat.Message
			want []string
		}{
			{message("4", "/why"), []string{"“first”", "no tool"}},
			{after("5", "/why", "2", "1"), []string{"“second”", "no tool"}},
			{after("6", "/why 2", "2", "1"), []string{"“first”", "one call", "`save`: done"}},
			{after("7", "/why", "1"), []string{"“first”", "one call", "`save`: done"}},
			{after("8", "/why", "unheard", "3", "1"), []string{"“first”", "no tool"}},
		} {
			h.deliver(c.m)
			synctest.Wait()
			got := strings.Join(h.sent, "|")
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%s of %v tells %q, want %q", c.m.Text, c.m.Branch, got, want)
				}
			}
			h.sent = nil
		}
	})
}

// An answer of the model says whether tools were used for it; that of a command does not, nor one whose steps are hidden, nor an excuse.
func TestNoToolsUsed(t *testing.T) {
	var taken []string
	h := &house{tools: []tools.Tool{giving("save", tools.Hints{}, tools.Result{Text: "saved"})}}
	h.conf = func(c *agent.Config) {
		c.Send = func(_ context.Context, r chat.Reply) error {
			n := "unknown"
			if r.Taken != nil {
				n = strconv.Itoa(r.Taken.All)
			}
			taken = append(taken, n)
			return nil
		}
	}
	h.model = script(calls(call("a", "save")), words("Saved it."), words("I saved it."), words("Hidden."))
	play(t, h, func(h *house) {
		for i, text := range []string{"save", "save", "/status", "/verbose off", "go", "/verbose on", "fail"} {
			h.say(strconv.Itoa(i), text)
			synctest.Wait()
		}
		if got := strings.Join(taken, " "); got != "1 0 unknown unknown unknown unknown unknown" {
			t.Errorf("tools used: %s", got)
		}
	})
}

// With words /why is about what is remembered; with a number, or in reply to an answer, it is about answers.
func TestWhyWords(t *testing.T) {
	h := &house{model: script(words("hello, my friend")), conf: func(c *agent.Config) {
		c.Explain = func(_ context.Context, m chat.Message) (string, error) { return "explained: " + m.Text, nil }
	}}
	play(t, h, func(h *house) {
		h.say("1", "hi")
		h.want("hello, my friend")
		h.say("2", "/why the 2 dogs")
		h.want("explained: /why the 2 dogs")
		quoting := message("3", "/why the 2 dogs")
		quoting.Quote = &chat.Quote{ID: "9", From: "you", Text: "hello, my friend"}
		for _, m := range []chat.Message{quoting, message("4", "/why"), message("5", "/why 1")} {
			h.deliver(m)
			if synctest.Wait(); len(h.sent) != 1 || !strings.Contains(h.sent[0], "I used no tool") {
				t.Errorf("%s: %q", m.Text, h.sent)
			}
			h.sent = nil
		}
	})
}

// TestWhyAltered: /why notices that what is stored of a call is not what its receipt stands for.
func TestWhyAltered(t *testing.T) {
	for from, to := range map[string]string{
		`"text":"saved`: `"text":"paved`,
		`notes.txt`:     `files.txt`,
		`"result":{`:    `"result":{"failed":true,`,
		`"time":"20`:    `"time":"21`,
	} {
		save := giving("save", tools.Hints{}, tools.Result{Text: "saved"})
		save.Schema = []byte(`{"type":"object","properties":{"path":{"type":"string"}}}`)
		forged := &forgedStore{Store: mem.New(), from: from, to: to}
		h := &house{tools: []tools.Tool{save}, store: forged}
		h.auditing()
		h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
			if len(r.Messages) > 1 {
				return words("It is done."), nil
			}
			return calls(with("a", "save", `{"path":"notes.txt"}`)), nil
		}
		play(t, h, func(h *house) {
			h.say("1", "go")
			h.want("It is done.")
			h.say("2", "/why")
			synctest.Wait()
			got := strings.Join(h.sent, "")
			if !strings.Contains(got, "its stored result is not the one that the receipt stands for") || !forged.did {
				t.Errorf("%s changed to %s (%v): %s", from, to, forged.did, got)
			}
		})
	}
}

// A forgedStore has another text in the logs of conversations than what was written.
type forgedStore struct {
	store.Store
	from, to string
	did      bool
}

func (f *forgedStore) Log(name string) store.Log { return forgedLog{f.Store.Log(name), f} }

type forgedLog struct {
	store.Log
	by *forgedStore
}

func (l forgedLog) Since(ctx context.Context, seq uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for r, err := range l.Log.Since(ctx, seq) {
			forged := strings.Replace(string(r.Body), l.by.from, l.by.to, 1)
			l.by.did = l.by.did || forged != string(r.Body)
			r.Body = []byte(forged)
			if !yield(r, err) {
				return
			}
		}
	}
}
