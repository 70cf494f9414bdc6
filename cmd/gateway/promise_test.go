package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley/channels/telegram/telegramtest"
	"parley/chat"
	"parley/llm"
	"parley/llm/llmtest"
	"parley/store"
	"parley/store/bolt"
)

// echo is a model that says what it was told since it spoke last.
func echo(_ context.Context, r llmtest.Request) llmtest.Reply {
	return llmtest.Reply{Text: "heard " + strings.Join(spoken(r), ", ")}
}

// stuck is a model that echoes, but not to those who say "hang" before until is closed.
func stuck(until <-chan struct{}) llmtest.Handler {
	return func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		if slices.Contains(spoken(r), "hang") {
			select {
			case <-until:
			case <-ctx.Done():
			}
		}
		return echo(ctx, r)
	}
}

// askedFor waits until the model was asked n times.
func (w *testGateway) askedFor(n int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), waitTime)
	defer cancel()
	if err := w.llm.Wait(ctx, n); err != nil {
		w.t.Fatal(err)
	}
}

// signal sends one to the gateway.
func (w *testGateway) signal(s os.Signal) {
	w.t.Helper()
	if err := w.proc.cmd.Process.Signal(s); err != nil {
		w.t.Fatal(err)
	}
}

// ends waits for the end of the gateway and returns its exit code.
func (w *testGateway) ends() int {
	w.t.Helper()
	select {
	case <-w.proc.ended:
	case <-time.After(waitTime):
		w.t.Fatalf("it still runs after %s", waitTime)
	}
	return w.proc.cmd.ProcessState.ExitCode()
}

// TestP14OthersDoNotWait: while the model hangs for one person and Telegram
// hangs for another, a third is answered; and who is stuck gets out with /stop
// (the pain "stuck session, nothing answers").
func TestP14OthersDoNotWait(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, stuck(nil))
	w.start()
	w.tg.Say(person, "hang")
	w.askedFor(1)
	w.tg.Fail("sendMessage", telegramtest.Fault{Hang: true, Chat: person + 1})
	w.tg.Say(person+1, "anybody there?")
	w.askedFor(2)
	for i := range 5 {
		w.tg.Say(person+2, itoa(i))
		w.says(person+2, "heard "+itoa(i))
	}
	w.tg.Say(person, "/stop")
	w.says(person, "(Stopped.)")
	w.tg.Say(person, "again")
	w.told(person, "an answer", func(texts []string) bool { return strings.HasSuffix(texts[len(texts)-1], "again") })
}

// TestP16SigtermFinishesTheTurn: on SIGTERM nothing more comes in, the turn
// under way ends, its answer is sent, and what came too late is answered by
// the next process.
func TestP16SigtermFinishesTheTurn(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	w := newTestGateway(t, stuck(goOn))
	w.more = map[string]any{"log": map[string]any{"level": "debug"}}
	w.start()
	w.tg.Say(person, "hang")
	w.askedFor(1)
	w.signal(syscall.SIGTERM)
	w.logs("closing", 1)
	polls := w.tg.Count("getUpdates")
	w.tg.Say(person, "too late")
	close(goOn)
	if code := w.ends(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	w.says(person, "heard hang")
	w.tg.Look(func(v telegramtest.View) {
		if v.Pending() != 1 || v.Count("getUpdates") > polls+1 { // the poll under way may have been counted late
			t.Errorf("%d updates are not confirmed, %d polls after the signal", v.Pending(), v.Count("getUpdates")-polls)
		}
	})
	w.start()
	w.says(person, "heard too late")
}

// TestP16LongTurnIsResumed: a turn that outlasts the time to shut down is cut
// off in time, also while Telegram hangs, and taken up again by the next process.
func TestP16LongTurnIsResumed(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		if r.N == 1 {
			<-ctx.Done()
		}
		return echo(ctx, r)
	})
	w.start()
	w.tg.Say(person, "take your time")
	w.askedFor(1)
	w.tg.Fail("sendMessage", telegramtest.Fault{Hang: true, Chat: person + 1})
	w.tg.Say(person+1, "hi")
	w.askedFor(2)
	w.signal(syscall.SIGTERM)
	w.logs("finishing what is under way", 1)
	if code := w.ends(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	w.start()
	w.says(person, "heard take your time")
	if texts := botTexts(w.tg.Chat(person)); len(texts) != 1 {
		t.Errorf("the bot said %q", texts)
	}
}

// TestP16SecondSignal: the second SIGTERM ends it though the model hangs, before
// the time for that is over, and nothing is lost.
func TestP16SecondSignal(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	w := newTestGateway(t, stuck(goOn))
	w.more = map[string]any{"log": map[string]any{"level": "debug"}}
	w.start()
	w.tg.Say(person, "hang")
	w.askedFor(1)
	w.signal(syscall.SIGTERM)
	w.logs("closing", 1)
	w.signal(syscall.SIGTERM)
	if code := w.ends(); code != exitFailure {
		t.Errorf("exit code %d: it did not end at once", code)
	}
	close(goOn)
	w.start()
	w.says(person, "heard hang")
}

// rewrite writes config.json anew while the gateway runs.
func (w *testGateway) rewrite(text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, "config.json"), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// TestP22ConfigOfARunningGateway: people and models change while it runs, and a
// broken file changes nothing (the pain "config edit bricks the gateway").
func TestP22ConfigOfARunningGateway(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: r.Model + " here"}
	})
	w.more = map[string]any{"channels": map[string]any{
		"telegram": map[string]any{"token": "${TOWN_BOT_TOKEN}", "apiUrl": w.tg.URL, "allow": []string{}},
	}}
	w.start()
	closed, err := os.ReadFile(filepath.Join(w.dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	open := strings.NewReplacer(`"allow":[]`, `"allow":["8001"]`, "gpt-test", "gpt-other").Replace(string(closed))
	w.tg.Say(person, "I am the owner")
	w.says(person, "gpt-test here")
	w.rewrite(open)
	w.logs("config reloaded", 1)
	w.tg.Say(8001, "hello")
	w.says(8001, "gpt-other here")
	w.rewrite(open[:len(open)/2])
	w.logs("config has faults: the running one stays", 1)
	for _, args := range [][]string{{"health"}, {"chat", "-m", "hello"}} { // else a service manager would end it
		if out, code := w.run("", args...); code != 0 {
			t.Errorf("%v with a broken file: exit code %d, %q", args, code, out)
		}
	}
	w.tg.Say(8001, "hello?")
	w.told(8001, "a second answer", func(texts []string) bool { return slices.Equal(texts, []string{"gpt-other here", "gpt-other here"}) })
	w.rewrite(string(closed))
	w.logs("config reloaded", 2)
	w.tg.Say(8001, "still there?")
	w.told(8001, "a code", func(texts []string) bool { return strings.Contains(texts[len(texts)-1], "/pair") })
}

// TestP24Conflict: another process that polls the same bot is told of in plain
// words (the pain "Telegram 409 conflict").
func TestP24Conflict(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	w.tg.Fail("getUpdates", telegramtest.Fault{Code: 409, Text: "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"})
	w.start()
	w.logs("another process polls this bot: stop it, or give it a bot of its own", 1)
}

// TestDeafTelegram: polls that fail in every way are made again (the pain "bot
// goes deaf: polling or gateway stops").
func TestDeafTelegram(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	w.tg.Fail("getUpdates", telegramtest.Fault{DropBefore: true})
	w.tg.Fail("getUpdates", telegramtest.Fault{Code: 502, Page: "<html>Bad Gateway</html>"})
	w.tg.Say(person, "do you hear me?")
	w.start()
	w.says(person, "heard do you hear me?")
}

// TestP8PutAside: a message over which the program dies three times, alone at
// work, is put aside for now. What joined its turn is answered, and the file
// that was written for it is not written again; the next message is answered.
func TestP8PutAside(t *testing.T) {
	t.Parallel()
	var s *siege
	var writes atomic.Int64
	s = besieged(t, func(*siege) llmtest.Handler {
		return func(ctx context.Context, r llmtest.Request) llmtest.Reply {
			all, done := fmt.Sprint(r.Messages), len(results(r))
			write := func(name string) llmtest.Reply {
				return llmtest.Reply{Calls: []llm.ToolCall{{ID: name, Name: "write_file", Args: fmt.Sprintf(`{"path": %q, "content": "x"}`, name)}}}
			}
			switch said := spokenLast(r); {
			case said == "poison" && done == 0:
				s.tg.Say(person, "hello") // it joins
				if err := s.tg.Wait(ctx, func(v telegramtest.View) bool { return v.Pending() == 0 }); err != nil {
					t.Error(err)
				}
				return write("first")
			case said == "hello" && done == 0:
				writes.Add(1)
				return write("second")
			case strings.Contains(all, "poison"):
				s.reach("model asked")
			case said == "hello":
				return llmtest.Reply{Text: "It is written."}
			}
			return llmtest.Reply{Text: "Well."}
		}
	})
	s.revive()
	s.killAt(nth(1, "model asked"), func() { s.tg.Say(person, "poison") })
	// Three deaths alone count, and one more with what joined it if both are pulled at once.
	if kills := s.killUntil("model asked", "It is written."); kills < 3 || kills > 4 {
		t.Errorf("killed %d times more", kills)
	}
	s.tg.Say(person, "and now?")
	s.says(person, "Well.")
	if n := writes.Load(); n != 1 {
		t.Errorf("written %d times", n)
	}
}

// TestP25PoisonedHistory: a history that no provider would take is healed (the
// pain "session poisoned by broken tool pairs").
func TestP25PoisonedHistory(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	s, err := bolt.Open(t.Context(), bolt.Config{Dir: w.dir})
	if err != nil {
		t.Fatal(err)
	}
	at := chat.Address{Channel: "telegram", Chat: itoa(person)}
	heard := func(id string) any {
		return map[string]any{"heard": chat.Message{ID: id, Account: "4242", At: at, From: chat.Sender{ID: itoa(person)}, Time: time.Now()}}
	}
	said := func(m llm.Message) any { return map[string]any{"said": m} }
	finished := func(m llm.Message) any { return map[string]any{"finished": m} }
	calls := []llm.ToolCall{{ID: "a", Name: "read_file", Args: `{"path": "x`}, {ID: "a", Name: "no such tool", Args: ""}, {Name: "", Args: "[1]"}}
	var recs [][]byte
	for _, r := range []any{
		finished(llm.Message{Role: llm.ToolRole, Call: "ghost", Text: "nobody asked"}),
		heard("900001"), said(llm.Message{Role: llm.Assistant}),
		said(llm.Message{Role: llm.Assistant, Calls: calls}),
		finished(llm.Message{Role: llm.ToolRole, Call: "a", Name: "read_file", Text: "\xff"}),
		heard("900002"), heard("900003"),
		map[string]any{"started": []string{"a", "never"}},
		said(llm.Message{Role: llm.Assistant, Text: "after", Calls: calls}),
		map[string]any{"ended": map[string]any{"outcome": "answered"}},
		map[string]any{"ended": map[string]any{"outcome": "answered"}},
		finished(llm.Message{Role: llm.ToolRole, Call: "a"}),
	} {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		recs = append(recs, b)
	}
	recs = append(recs, []byte(`{"said": {"role": "assist`), []byte("null"), nil)
	if _, err := s.Log("session/"+string(at.Session())).Append(t.Context(), store.Any, recs...); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	w.start()
	for _, text := range []string{"one", "two"} {
		w.tg.Say(person, text)
		w.told(person, "an answer to "+text, func(texts []string) bool { return len(texts) > 0 && strings.HasSuffix(texts[len(texts)-1], text) })
	}
	if why := w.llm.Refused(); len(why) > 0 {
		t.Errorf("the provider refused: %q", why)
	}
}

// TestStreamingRate: an answer in the making is edited at most once a second,
// and every three seconds in a group (the pain "Telegram 429 and rate limits").
func TestStreamingRate(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, func(context.Context, llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: strings.Repeat("word ", 80) + "end", Pause: 80 * time.Millisecond}
	})
	const group = -1001
	var mu sync.Mutex
	shown := map[int64][]time.Time{}
	w.tg.Watch(func(e telegramtest.Event) {
		if e.Done && (e.Method == "sendMessage" || e.Method == "editMessageText") {
			mu.Lock()
			defer mu.Unlock()
			shown[e.Chat] = append(shown[e.Chat], time.Now())
		}
	})
	w.start()
	w.tg.Say(person, "tell me")
	w.tg.Say(group, "@parleybot tell me")
	for chat, every := range map[int64]time.Duration{person: time.Second, group: 3 * time.Second} {
		w.told(chat, "the end", func(texts []string) bool { return len(texts) > 0 && strings.HasSuffix(texts[len(texts)-1], "end") })
		mu.Lock()
		times := shown[chat]
		mu.Unlock()
		if len(times) < 2 {
			t.Errorf("chat %d: %d messages and edits", chat, len(times))
		}
		for i := 1; i+1 < len(times); i++ { // the last edit comes with the end of the answer
			if gap := times[i].Sub(times[i-1]); gap < every*9/10 {
				t.Errorf("chat %d: edited after %s", chat, gap)
			}
		}
	}
}

// TestP24WrongToken: a token that Telegram refuses is told of in plain words,
// without the token, and the terminal works on.
func TestP24WrongToken(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	w.tg.Fail("getUpdates", telegramtest.Fault{Page: "<html>", Code: http.StatusBadGateway})
	w.tg.Fail("getUpdates", telegramtest.Fault{Times: -1, Code: http.StatusUnauthorized, Text: "Unauthorized"})
	w.start()
	w.logs("poll failed", 1)
	w.logs("@BotFather", 1)
	if log := w.log.String(); strings.Contains(log, "channel=telegram channel=telegram") {
		t.Errorf("a line names its channel twice:\n%s", log)
	}
	out, code := w.run("", "chat", "-m", "are you there?")
	if code != 0 || !strings.Contains(out, "heard are you there?") {
		t.Errorf("exit code %d, output %q", code, out)
	}
	_, secret, _ := strings.Cut(w.tg.Token(), ":")
	w.grep(secret)
}
