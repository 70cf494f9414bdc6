package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/store/bolt"
	"parley/store/storetest"
	"parley/timetest"
	"parley/tools"
)

// A subagentLife is what a conversation with subagents comes to, over as many deaths as there are.
type subagentLife struct {
	life
	mu   sync.Mutex
	paid map[string]int // by who paid
}

// run plays it on a store that dies after so many operations, and returns where
// that was, or "".
func (b *subagentLife) run(life int) string {
	m := newMortal(b.t, b.dir, life)
	h := &house{t: b.t, store: m, conf: func(c *agent.Config) {
		c.Send = func(ctx context.Context, r chat.Reply) error {
			body, _ := json.Marshal(r)
			return m.Queue("outbox").Push(ctx, r.ID, body)
		}
	}}
	pay := tool("exec", nil)
	pay.Run = func(_ context.Context, c tools.Call) (tools.Result, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.paid[string(c.Session)]++
		return tools.Result{Text: "paid"}, nil
	}
	h.tools = []tools.Tool{pay}
	h.model = byTask(func(r llm.Request) llm.Message {
		switch last := lastOf(r); {
		case last.Role == llm.ToolRole, strings.Contains(last.Text, "[Subagent"):
			return words(last.Text)
		case strings.HasSuffix(last.Text, "spawn"):
			return calls(with("c", "spawn", `{"task":"t","label":"it"}`))
		case strings.HasSuffix(last.Text, "multi"):
			return multi(2)
		}
		return calls(with("c", "new_task", `{"agentName":"researcher","taskName":"X","input":"x"}`))
	}, func(r llm.Request) llm.Message {
		if len(r.Messages) == 1 {
			return calls(call("c", "exec"))
		}
		return words("result")
	})
	withSubagents(h).start()
	for i, text := range []string{"spawn", "multi", "task"} {
		m := message(fmt.Sprint(i), text)
		m.At.Chat = m.ID
		b.say(h, m)
		synctest.Wait()
	}
	timetest.Sleep(2 * time.Minute)
	synctest.Wait()
	h.stop()
	if err := m.Close(); err != nil {
		b.t.Error(err)
	}
	where, _ := m.where.Load().(string)
	return where
}

// check reads what it came to: each subagent's work was done once, or is known to
// be interrupted; the report came once, and the tools that wait got their result once.
func (b *subagentLife) check(t *testing.T) {
	db, err := bolt.Open(t.Context(), bolt.Config{Dir: b.dir})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if n, _ := db.Queue("inbox").Len(t.Context()); n != 0 {
		t.Errorf("%d messages left unanswered", n)
	}
	all := ""
	n, _ := db.Queue("outbox").Len(t.Context())
	for range n {
		item, err := db.Queue("outbox").Pull(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var r chat.Reply
		if err := json.Unmarshal(item.Body, &r); err != nil {
			t.Fatal(err)
		}
		all += r.Text + "\n"
	}
	for _, want := range []string{"Subagent [it] started (id: ", "[Subagent 'it' completed successfully]", `"task_name":"n0","success":true,"response":"result"`,
		`"task_name":"n1","success":true,"response":"result"`, `{"success":true,"summary":"result","subtaskId":"sub_task_`} {
		if strings.Count(all, want) != 1 {
			t.Errorf("no %s, or several, in\n%s", want, all)
		}
	}
	children := 0
	for id, err := range db.Bucket("helpers").Keys(t.Context(), "") {
		c, _, bad := store.NewTable(db.Bucket("helpers"), store.Report[tools.Subagent]).Get(t.Context(), id)
		if children++; err != nil || bad != nil || c.State != tools.SubagentAnswered || c.Report || b.paid["agent:"+id] > 1 {
			t.Errorf("%v, %v: %+v, paid %d times", err, bad, c, b.paid["agent:"+id])
		}
	}
	if children != 4 || len(b.paid) > 4 {
		t.Errorf("%d subagents, who paid %v", children, b.paid)
	}
}

func newSubagentLife(t *testing.T) *subagentLife {
	return &subagentLife{life: life{t: t, dir: storetest.TempDir(t), taken: map[string]bool{}}, paid: map[string]int{}}
}

// P5 to P8, C-033: TestCrashOfSubagents kills the process before and after each
// operation of the store that a conversation with subagents of every kind makes,
// one in every so many of them each time it is run: with 1 it takes a minute.
func TestCrashOfSubagents(t *testing.T) {
	const every = 12
	var over atomic.Int64
	over.Store(1 << 40)
	for n := rand.IntN(every); int64(n) < over.Load(); n += every {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				b := newSubagentLife(t)
				where := b.run(n)
				if where == "" {
					over.Store(int64(n))
				} else {
					b.run(1 << 40)
				}
				if b.check(t); t.Failed() {
					t.Logf("died %s", where)
				}
			})
		})
	}
}

// TestCrashOfSubagentsTwice kills it at two random operations.
func TestCrashOfSubagentsTwice(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, uint64(time.Now().UnixNano())))
	for range 8 {
		first, second := rnd.IntN(250), rnd.IntN(250)
		t.Run(fmt.Sprint(first, "+", second), func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				b := newSubagentLife(t)
				one, two := b.run(first), b.run(second)
				b.run(1 << 40)
				if b.check(t); t.Failed() {
					t.Logf("died %s and %s", one, two)
				}
			})
		})
	}
}
