package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/channels/telegram/telegramtest"
	"parley/llm"
	"parley/llm/llmtest"
)

// A siege is a town whose gateway is killed with SIGKILL at chosen moments
// while people talk to it. The killer counts what the world sees of the
// gateway: calls to Telegram, before and after they are processed, requests to
// the model and the chunks of its answers.
type siege struct {
	*town
	mu    sync.Mutex
	kill  func(point string) bool // says whether to kill now
	died  chan string             // gets the point
	kills int
	asked map[int64]int // by chat: messages so far
	slow  time.Duration // between two chunks of a slow answer
}

func newSiege(t *testing.T) *siege {
	s := &siege{died: make(chan string, 1), asked: map[int64]int{}, slow: 100 * time.Millisecond}
	s.town = newTown(t, s.answer)
	s.tg.Watch(func(e telegramtest.Event) {
		when := "before "
		if e.Done {
			when = "after "
		}
		s.reach(when + e.Method)
	})
	return s
}

// answer is the model: it names each message it was told since it spoke last,
// and uses tools for those that say so.
func (s *siege) answer(ctx context.Context, r llmtest.Request) llmtest.Reply {
	s.reach("model asked")
	said := spoken(r)
	if len(said) == 0 {
		return llmtest.Reply{Text: "nothing was said"}
	}
	times, pause := 6, time.Duration(0)
	reply := llmtest.Reply{Piece: 10}
	for _, m := range said {
		switch {
		case strings.HasPrefix(m, "slow"):
			pause, times = s.slow, 20
		case strings.HasPrefix(m, "tool") && !used(r):
			reply.Calls = append(reply.Calls, llm.ToolCall{
				ID: fmt.Sprint("c", len(r.Messages), len(reply.Calls)), Name: "write_file",
				Args: fmt.Sprintf(`{"path": "log/%s.txt", "content": "done"}`, strings.ReplaceAll(m, " ", "-")),
			})
		case strings.HasPrefix(m, "tell") && !used(r):
			reply.Calls = append(reply.Calls, llm.ToolCall{
				ID: fmt.Sprint("c", len(r.Messages), len(reply.Calls)), Name: "message",
				Args: fmt.Sprintf(`{"text": "meanwhile of %s"}`, m),
			})
		}
	}
	if len(reply.Calls) == 0 {
		reply.Text = "answer to " + strings.Join(said, ", ") + ". " + strings.Repeat("And so on. ", times) + "The end."
	}
	reply.After = func(n int) {
		s.reach(fmt.Sprint("chunk ", n))
		if n <= len(reply.Text)/reply.Piece { // not after the last, when all is shown and the turn is not over
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
	}
	return reply
}

// used says whether tools were used since the model spoke last.
func used(r llmtest.Request) bool {
	for _, m := range slices.Backward(r.Messages) {
		switch {
		case m.Role == "tool":
			return true
		case m.Role == "assistant" && len(m.ToolCalls) == 0:
			return false
		}
	}
	return false
}

// reach kills the gateway if this is the moment.
func (s *siege) reach(point string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kill == nil || !s.kill(point) {
		return
	}
	s.kill = nil
	s.kills++
	_ = s.proc.cmd.Process.Kill() // it cannot have ended: nobody else kills it
	<-s.proc.ended
	s.died <- point
}

// revive starts the gateway that was killed.
func (s *siege) revive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start()
}

// say has a person write, such as "tool 3", and returns what they wrote.
func (s *siege) say(chat int64, kind string) {
	s.asked[chat]++
	s.tg.Say(chat, fmt.Sprintf("%s %d", kind, s.asked[chat]))
}

// killAt arms the killer and waits until it has struck.
func (s *siege) killAt(kill func(string) bool, provoke func()) string {
	s.t.Helper()
	s.mu.Lock()
	s.kill = kill
	s.mu.Unlock()
	provoke()
	select {
	case point := <-s.died:
		return point
	case <-time.After(30 * time.Second):
		s.t.Fatalf("the moment to kill did not come; the bot said %q", botTexts(s.tg.Chat(person)))
		return ""
	}
}

var numbered = regexp.MustCompile(`(?:plain|slow|tool|tell) (\d+)`)

// answers returns, in the order of the chat, the numbers of the messages that
// the bot's answers name, and the answers to each. In the order, an answer that
// was begun or sent more than once counts once.
func answers(ms []telegramtest.Message) (order []string, to map[string][]string) {
	to = map[string][]string{}
	texts := slices.DeleteFunc(botTexts(ms), func(text string) bool { return !strings.HasPrefix(text, "answer to ") })
	for i, text := range texts {
		again := i+1 < len(texts) && strings.HasPrefix(texts[i+1], text)
		for _, m := range numbered.FindAllStringSubmatch(text, -1) {
			to[m[1]] = append(to[m[1]], text)
			if !again {
				order = append(order, m[1])
			}
		}
	}
	return order, to
}

// answered waits until every message is answered in full, as final replies are.
func (s *siege) answered() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	for chat, n := range s.asked {
		err := s.tg.WaitChat(ctx, chat, func(ms []telegramtest.Message) bool {
			_, to := answers(ms)
			for i := range n {
				texts := to[fmt.Sprint(i+1)]
				if len(texts) == 0 || !strings.HasSuffix(texts[len(texts)-1], "The end.") {
					return false
				}
			}
			return true
		})
		if err != nil {
			s.t.Fatalf("chat %d: %d messages, and after a while only %q", chat, n, botTexts(s.tg.Chat(chat)))
		}
	}
}

// check looks at every chat when all is over: nothing lost, nothing answered
// in two ways, the order kept, and in no chat more repeated than there were
// kills (P1, P2, P5, P7, P9).
func (s *siege) check() {
	s.t.Helper()
	for chat, n := range s.asked {
		repeated := 0
		order, to := answers(s.tg.Chat(chat))
		for i := range n {
			texts := to[fmt.Sprint(i+1)]
			for _, text := range texts { // what was streamed, and not journalled when the gateway died, stays as it was
				if !strings.HasPrefix(texts[len(texts)-1], text) {
					s.t.Errorf("chat %d: two answers to message %d: %q", chat, i+1, texts)
				}
			}
			repeated += max(0, len(texts)-1)
		}
		if !slices.IsSortedFunc(order, func(a, b string) int { return number(a) - number(b) }) {
			s.t.Errorf("chat %d: answered in the order %v", chat, order)
		}
		meanwhile := map[string]int{}
		for _, text := range botTexts(s.tg.Chat(chat)) {
			if strings.HasPrefix(text, "meanwhile") {
				meanwhile[text]++
			}
		}
		for _, times := range meanwhile {
			repeated += times - 1
		}
		if repeated > s.kills {
			s.t.Errorf("chat %d: %d messages repeated over %d kills: %q", chat, repeated, s.kills, botTexts(s.tg.Chat(chat)))
		}
	}
	for _, why := range s.llm.Refused() {
		if !strings.Contains(why, "could not parse the JSON body") { // a request that a kill cut short
			s.t.Errorf("the provider refused: %q", why)
		}
	}
}

func number(s string) (n int) {
	_, _ = fmt.Sscan(s, &n) // what is no number sorts first
	return n
}

// nth returns a killer that strikes when a point was reached n times.
func nth(n int, point string) func(string) bool {
	return func(at string) bool {
		if strings.HasPrefix(at, point) {
			n--
		}
		return n == 0
	}
}

// sometime returns a killer that strikes at a random moment.
func sometime(rnd *rand.Rand) func(string) bool {
	left, late := 1+rnd.IntN(13), time.Duration(rnd.IntN(2000))*time.Microsecond
	return func(string) bool {
		if left--; left != 0 {
			return false
		}
		for began := time.Now(); time.Since(began) < late; { // the points are when the world hears of it; this is between
		}
		return true
	}
}

// TestKillAtEachPoint kills the real program at each point that matters (the
// pains "messages lost on restart or crash" and "duplicate replies").
func TestKillAtEachPoint(t *testing.T) {
	for _, tc := range []struct {
		name, kind string
		kill       func(string) bool
	}{
		{"updates handed out, not committed", "plain", nth(1, "after getUpdates")},
		{"committed, before the confirmation", "plain", nth(1, "before getUpdates")},
		{"before the model", "plain", nth(1, "model asked")},
		{"in mid-stream", "plain", nth(1, "chunk 3")},
		{"in mid-stream, part of it shown", "slow", nth(1, "after sendMessage")},
		{"in mid-stream, showing more", "slow", nth(1, "before editMessageText")},
		{"before a tool", "tool", nth(1, "chunk 1")},
		{"in a tool", "tell", nth(1, "before sendMessage")},
		{"after a tool", "tool", nth(2, "model asked")},
		{"before the outbox", "plain", nth(1, "chunk 11")},
		{"after the outbox, before the send", "plain", nth(1, "before sendMessage")},
		{"during the send", "plain", nth(1, "after sendMessage")},
		{"during the last edit", "slow", nth(2, "after editMessageText")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newSiege(t)
			s.revive()
			s.say(person, "plain") // so that it is up, and has polled
			s.answered()
			s.killAt(tc.kill, func() { s.say(person, tc.kind); s.say(person+1, "plain") })
			s.say(person, "plain")
			s.revive()
			s.answered()
			s.check()
		})
	}
}

// TestKillAtRandom kills it a hundred times at random moments, while three
// people talk to it.
func TestKillAtRandom(t *testing.T) {
	towns, rounds := 5, 10 // of two kills each: a message over which the program dies three times would be put aside (P8)
	if testing.Short() {
		rounds = 1
	}
	for n := range towns {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			killAtRandom(t, rand.New(rand.NewPCG(seed, 0)), rounds)
		})
	}
}

func killAtRandom(t *testing.T, rnd *rand.Rand, rounds int) {
	s := newSiege(t)
	s.slow = 50 * time.Millisecond
	talk := func() {
		for range 1 + rnd.IntN(3) {
			s.say(int64(person+rnd.IntN(3)), []string{"plain", "plain", "plain", "plain", "tool", "tool", "tell", "tell", "slow"}[rnd.IntN(9)])
		}
	}
	s.revive()
	for range rounds {
		s.killAt(sometime(rnd), talk)
		s.killAt(sometime(rnd), func() { talk(); s.revive() })
		s.revive()
		s.answered()
	}
	s.check()
	t.Logf("%d kills, %v messages", s.kills, s.asked)
}
