package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/channels/telegram/telegramtest"
	"parley/llm"
	"parley/llm/llmtest"
	"parley/tools/mcp/mcptest"
)

// samplingMark is in all that the servers of these tests ask the model.
const samplingMark = "the server wants to know"

// sampled answers as obedient does, and what servers ask with answer, which may be nil.
func sampled(answer func(context.Context, llmtest.Request) llmtest.Reply) llmtest.Handler {
	return func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		switch isServers := isSampling(r); {
		case isServers && answer != nil:
			return answer(ctx, r)
		case isServers:
			return llmtest.Reply{Text: "the model knows", Usage: &llm.Usage{In: 70, Out: 30}}
		}
		return obedient(ctx, r)
	}
}

// isSampling reports whether a server makes the request.
func isSampling(r llmtest.Request) bool {
	return len(r.Tools) == 0 && strings.Contains(r.Last(), samplingMark) && !strings.Contains(r.Last(), "call ")
}

// samplings returns the requests of servers that the model got.
func (w *testGateway) samplings() []llmtest.Request {
	return slices.DeleteFunc(w.asked(), func(r llmtest.Request) bool { return !isSampling(r) })
}

// sampling has the config name a server that asks the model under a rule, and starts Parley.
func (w *testGateway) sampling(rule string, earlier bool) *mcptest.Asking {
	w.t.Helper()
	remote := mcptest.NewAsking(w.t, earlier)
	w.mcpServers(map[string]any{
		"shop": map[string]any{"url": remote.URL, "for": []string{"everyone"}, "sampling": rule},
	})
	w.start()
	return remote
}

const sampleCall = `mcp_shop_sample {"prompts": ["` + samplingMark + `"], "system": "Be brief."}`

// The reference server asks the model as long as the owner allows it: else it does not even have the tool for
// it. The request is in the audit log.
func TestMCPSamplingOfEverything(t *testing.T) {
	t.Parallel()
	index := mcptest.Package(t, "server-everything/dist/index.js")
	w := newTestGateway(t, sampled(nil))
	entry := map[string]any{"command": mcptest.Node(), "args": []string{index}, "sandbox": "none", "sampling": "owners"}
	w.mcpServers(map[string]any{"all": entry})
	w.start()
	const call = `mcp_all_trigger-sampling-request {"prompt": "` + samplingMark + `", "maxTokens": 77}`
	got := w.does(person, call)
	for _, want := range []string{`"text": "the model knows"`, `"model": "main"`, `"stopReason": "endTurn"`, `"role": "assistant"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	all := w.samplings()
	if len(all) != 1 {
		t.Fatalf("the model was asked %d times", len(all))
	}
	var body struct {
		MaxTokens int `json:"max_tokens"`
	}
	if err := json.Unmarshal(all[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	if all[0].Messages[0].Content != "You are a helpful test server." || len(all[0].Messages) != 2 || body.MaxTokens != 77 {
		t.Errorf("the model got %s", all[0].Body)
	}
	audit, _ := w.run("", "audit")
	if !strings.Contains(audit, "mcp_all_sampling done, call ") {
		t.Errorf("the audit log has\n%s", audit)
	}
	entry["sampling"] = "off"
	w.config()
	waitFor(t, "the end of the tool", func() bool { return strings.Contains(w.does(person, call), "not found") })
}

// R-S15: what a server asks the model counts for the person whose message had the call made, as /usage says,
// and their limit holds for it.
func TestMCPSamplingIsPaidFor(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, earlier bool) {
		w := newTestGateway(t, sampled(nil))
		w.more["limits"] = map[string]any{"person": map[string]any{"rounds": 5}}
		w.sampling("everyone", earlier)
		if got := w.does(person, sampleCall); !strings.Contains(got, "the model knows") {
			t.Errorf("%s", got)
		}
		w.tg.Say(person, "/usage")
		w.told(person, "what was used", func(texts []string) bool {
			return toldOf(texts, "main: 90 in (0 from cache), 40 out") && toldOf(texts, "3 of 5 requests")
		})
		w.tg.Say(person, "call "+sampleCall) // the fourth request, and the fifth is the server's
		w.told(person, "the limit", func(texts []string) bool { return toldOf(texts, "5 of 5 requests") })
		if n := len(w.samplings()); n != 2 {
			t.Errorf("servers asked the model %d times", n)
		}
		w.more["limits"] = map[string]any{"person": map[string]any{"rounds": 6}}
		w.config()
		w.logs("config reloaded", 1)
		w.tg.Say(person, "call "+sampleCall) // the sixth is the model's, and none is left for the server
		w.told(person, "the limit", func(texts []string) bool { return toldOf(texts, "6 of 6 requests") })
		if calls := w.calls(fmt.Sprint("telegram:", person)); !strings.Contains(calls[len(calls)-1].Result, "has used as much of the models") {
			t.Errorf("the call ended with %+v", calls[len(calls)-1])
		}
		if n := len(w.samplings()); n != 2 {
			t.Errorf("servers asked the model %d times", n)
		}
	})
}

func bothKinds(t *testing.T, run func(t *testing.T, earlier bool)) {
	for _, earlier := range []bool{false, true} {
		t.Run(fmt.Sprint("earlier ", earlier), func(t *testing.T) {
			t.Parallel()
			run(t, earlier)
		})
	}
}

// With the rule "ask" an owner is asked in the chat before the model is, and sees what the server says.
func TestMCPSamplingIsApproved(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, earlier bool) {
		w := newTestGateway(t, sampled(nil))
		remote := w.sampling("ask", earlier)
		for n, want := range []string{"the model knows", "the request was refused by the person who was asked"} {
			w.tg.Say(person, "call "+sampleCall)
			var q telegramtest.Message
			w.shows(person, "the question", func(m telegramtest.Message) bool {
				q = m
				return m.FromBot() && len(m.Buttons) > 0
			})
			for _, text := range []string{"Answer a request of the MCP server shop with a model?", samplingMark, "Be brief."} {
				if !strings.Contains(q.Text, text) {
					t.Errorf("no %s in %s", text, q.Text)
				}
			}
			if len(w.samplings()) != 0 && n == 0 {
				t.Error("the model was asked before the owner")
			}
			w.tg.PressData(person, q.ID, q.Buttons[0][n].Data, telegramtest.As(person, "Ada"))
			w.told(person, "the result", func(texts []string) bool { return toldOf(texts, want) })
		}
		if len(w.samplings()) != 1 || remote.Asked.Load() != 2 {
			t.Errorf("the model was asked %d times", len(w.samplings()))
		}
	})
}

// R-S24: in a group the rule goes by whoever had the call made.
func TestMCPSamplingInGroup(t *testing.T) {
	t.Parallel()
	const group = -1009
	w := newTestGateway(t, sampled(nil))
	w.allowing("telegram")
	w.sampling("owners", false)
	w.tg.Say(group, "@parleybot call "+sampleCall, telegramtest.As(asker, "Ada"))
	w.told(group, "the refusal", func(texts []string) bool {
		return toldOf(texts, "Parley does not let this server use its models for this person")
	})
	w.tg.Say(group, "@parleybot call "+sampleCall, telegramtest.As(person, "Ann"))
	w.told(group, "the result", func(texts []string) bool { return toldOf(texts, "the model knows") })
	if n := len(w.samplings()); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
}

// P6: Parley is killed while the model answers a server. A server of the latest protocol version gets its answer
// after the start: the model is asked anew, and the server called once more. Of an earlier one the call is lost, as
// the model of the turn is told.
func TestMCPSamplingOutlivesKill(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, earlier bool) {
		begun := make(chan struct{}, 10)
		isSecond := make(chan struct{})
		w := newTestGateway(t, sampled(func(ctx context.Context, _ llmtest.Request) llmtest.Reply {
			begun <- struct{}{}
			select {
			case <-isSecond:
				return llmtest.Reply{Text: "the model knows"}
			default:
				return llmtest.Reply{Hang: true}
			}
		}))
		remote := w.sampling("everyone", earlier)
		w.tg.Say(person, "call "+sampleCall)
		<-begun
		w.kill()
		close(isSecond)
		w.start()
		want := `"text":"the model knows"`
		if earlier {
			want = "the tools say: Error: interrupted while it ran."
		}
		w.told(person, "the result", func(texts []string) bool { return toldOf(texts, want) })
		if requests, asked := len(w.samplings()), remote.Asked.Load(); asked != 1 || requests != map[bool]int{false: 2, true: 1}[earlier] {
			t.Errorf("the model was asked %d times, by %d calls", requests, asked)
		}
	})
}

// /stop ends what a server asks the model.
func TestMCPSamplingIsStopped(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, earlier bool) {
		begun := make(chan struct{}, 1)
		ended := make(chan struct{})
		w := newTestGateway(t, sampled(func(ctx context.Context, _ llmtest.Request) llmtest.Reply {
			begun <- struct{}{}
			<-ctx.Done()
			close(ended)
			return llmtest.Reply{}
		}))
		w.sampling("everyone", earlier)
		w.tg.Say(person, "call "+sampleCall)
		<-begun
		w.tg.Say(person, "/stop")
		<-ended
		w.told(person, "that it was stopped", func(texts []string) bool { return toldOf(texts, "topped") })
	})
}

// A question whether a server may ask the model counts for nothing any more if the call was lost.
func TestMCPSamplingQuestionIsWithdrawn(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, sampled(nil))
	w.sampling("ask", true)
	w.tg.Say(person, "call "+sampleCall)
	q := w.asks(person, samplingMark)
	w.kill()
	w.start()
	w.told(person, "the result", func(texts []string) bool { return toldOf(texts, "interrupted while it ran.") })
	w.tg.PressData(person, q.ID, q.Buttons[0][0].Data, telegramtest.As(person, "Ada"))
	w.shows(person, "the question without buttons", func(m telegramtest.Message) bool { return m.ID == q.ID && len(m.Buttons) == 0 })
	if audit, _ := w.run("", "audit"); strings.Contains(audit, "approval") || len(w.samplings()) > 0 {
		t.Errorf("the audit log has\n%s", audit)
	}
}
