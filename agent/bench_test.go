package agent_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/store/mem"
	"parley/tools"
)

// From Deliver to Send, with a store and a model that take no time: the first
// message of a chat beside the 500th, also when the session has been idle for
// so long that it is read from its log.
func BenchmarkTurn(b *testing.B) {
	for _, c := range []struct {
		name   string
		before int // turns of the chat
		cold   bool
	}{{"1", 0, false}, {"500", 490, false}, {"500 from the log", 490, true}} {
		b.Run(c.name, func(b *testing.B) {
			o := office{store: mem.New(), sent: make(chan struct{})}
			o.open()
			for n := 0; b.Loop(); n++ {
				b.StopTimer()
				if n%200 == 0 || c.before == 0 {
					o.chat = fmt.Sprint("chat ", n)
					for range c.before {
						o.say(b)
					}
				}
				if c.cold {
					o.close()
					o.open()
				}
				b.StartTimer()
				o.say(b)
			}
			o.close()
		})
	}
}

// An office is a Pool in which all but the Pool takes no time.
type office struct {
	store store.Store
	pool  *agent.Pool
	close func()
	chat  string
	said  int
	sent  chan struct{}
}

func (o *office) open() {
	answer := llm.Message{Text: "Good day to you. What can I do for you on this fine morning?", Finish: llm.Stopped, Usage: llm.Usage{In: 100, Out: 10}}
	model := llm.ModelFunc(func(_ context.Context, _ llm.Request, stream func(llm.Delta)) (llm.Message, error) {
		stream(llm.Delta{Text: answer.Text})
		return answer, nil
	})
	o.pool = agent.New(agent.Config{
		Store: o.store, Memory: prompt("be kind"), Log: slog.New(slog.DiscardHandler), Grace: time.Second,
		Send: func(context.Context, chat.Reply) error { o.sent <- struct{}{}; return nil },
	}, agent.Settings{
		Models: map[string]agent.Model{"main": {Model: model, Window: 1 << 20, MaxTokens: 1000}}, Model: "main", Rounds: 6,
		Kit: func(ctx context.Context, scope tools.Scope) (*tools.Kit, error) { return tools.NewKit(ctx, scope, nil) },
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = o.pool.Run(ctx) // nil: ctx ends it
	}()
	o.close = func() { cancel(); <-ended }
}

// say has a person write, and returns when they have been answered.
func (o *office) say(b *testing.B) {
	o.said++
	m := message(fmt.Sprint(o.said), "Good morning, how do you do? This is what people write to each other.")
	m.At.Chat = o.chat
	if err := o.pool.Deliver(b.Context(), m); err != nil {
		b.Fatal(err)
	}
	<-o.sent
}
