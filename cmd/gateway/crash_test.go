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

	"parley/llm"
	"parley/llm/llmtest"
)

// A siege is a testGateway whose gateway is killed with SIGKILL at chosen moments
// while people talk to it at one venue. The killer counts what the world sees
// of the gateway: what it does at the venue, requests to the model and the
// chunks of its answers.
type siege struct {
	*testGateway
	venue
	mu    sync.Mutex
	kill  func(point string) bool // says whether to kill now
	died  chan string             // gets the point
	kills int
	model llmtest.Handler
	asked []int         // by chat: messages so far
	slow  time.Duration // between two chunks of a slow answer
}

// newSiege starts a testGateway, which change may change before, where chats are known
// to the gateway, so that what is said in them while it is dead is heard.
func newSiege(t *testing.T, at string, chats int, change ...func(*testGateway)) *siege {
	s := &siege{died: make(chan string, 1), slow: 100 * time.Millisecond, asked: make([]int, chats)}
	s.model = s.answer
	s.testGateway = newTestGateway(t, s.askModel)
	s.venue = venues[at](s.testGateway, s.reach)
	for _, f := range change {
		f(s.testGateway)
	}
	s.revive()
	s.open(chats)
	for chat := range chats {
		s.tell(chat, "plain")
	}
	s.answered()
	return s
}

// askModel has the model of the moment answer.
func (s *siege) askModel(ctx context.Context, r llmtest.Request) llmtest.Reply {
	s.mu.Lock()
	model := s.model
	s.mu.Unlock()
	return model(ctx, r)
}

// answer is the model, as a rule: it names each message it was told since it spoke last,
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
	return s.paced(ctx, reply, pause)
}

// paced has reply be reached at each of its chunks, with so long a pause between two.
func (s *siege) paced(ctx context.Context, reply llmtest.Reply, pause time.Duration) llmtest.Reply {
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

// tell has a person write, such as "tool 3".
func (s *siege) tell(chat int, kind string) {
	s.asked[chat]++
	s.say(chat, fmt.Sprintf("%s %d", kind, s.asked[chat]))
}

// talk has people write a little, in any chat.
func (s *siege) talk(rnd *rand.Rand) {
	for range 1 + rnd.IntN(3) {
		s.tell(rnd.IntN(len(s.asked)), []string{"plain", "plain", "tool", "tool", "tell", "slow"}[rnd.IntN(6)])
	}
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
	case <-time.After(waitTime):
		s.t.Fatalf("the moment to kill did not come; the agent said %q", s.texts(0))
		return ""
	}
}

// killUntil revives the gateway, and kills it at point, until the agent says text
// in the first chat. It returns how often it struck.
func (s *siege) killUntil(point, text string) (kills int) {
	s.t.Helper()
	for ; ; kills++ {
		ctx, cancel := context.WithTimeout(s.t.Context(), waitTime)
		s.mu.Lock()
		s.kill = nth(1, point)
		s.mu.Unlock()
		s.revive()
		struck := make(chan bool, 1)
		go func() {
			select {
			case <-s.died:
				cancel()
				struck <- true
			case <-ctx.Done():
				struck <- false
			}
		}()
		texts, err := s.wait(ctx, 0, func(texts []string) bool { return slices.Contains(texts, text) })
		cancel()
		if <-struck {
			continue
		}
		s.mu.Lock()
		s.kill = nil
		s.mu.Unlock()
		if err != nil {
			s.t.Fatalf("killed %d times, and the agent said only %q", kills, texts)
		}
		return kills
	}
}

var numbered = regexp.MustCompile(`(?:plain|slow|tool|tell|task|spawn) (\d+)`)

// answers returns, in the order of the chat, the numbers of the messages that
// the bot's answers name, and the answers to each. In the order, an answer that
// was begun or sent more than once counts once.
func answers(texts []string) (order []string, to map[string][]string) {
	to = map[string][]string{}
	texts = slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return !strings.HasPrefix(text, "answer to ") })
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
	ctx, cancel := context.WithTimeout(s.t.Context(), waitTime)
	defer cancel()
	for chat, n := range s.asked {
		texts, err := s.wait(ctx, chat, func(texts []string) bool {
			_, to := answers(texts)
			for i := range n {
				texts := to[fmt.Sprint(i+1)]
				if len(texts) == 0 || !strings.HasSuffix(texts[len(texts)-1], "The end.") {
					return false
				}
			}
			return true
		})
		if err != nil {
			s.t.Fatalf("chat %d: %d messages, and after a while only %q", chat, n, texts)
		}
	}
}

// texts returns what the agent has said in a chat.
func (s *siege) texts(chat int) []string {
	texts, _ := s.wait(s.t.Context(), chat, func([]string) bool { return true })
	return texts
}

// lift looks at every chat when all is over: nothing lost, nothing answered
// in two ways, the order kept, and nothing repeated (P1, P2, P3, P5, P7, P9).
func (s *siege) lift() {
	s.t.Helper()
	for chat, n := range s.asked {
		repeated, all := 0, s.texts(chat)
		order, to := answers(all)
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
		for _, text := range all {
			if strings.HasPrefix(text, "meanwhile") {
				meanwhile[text]++
			}
		}
		for _, times := range meanwhile {
			repeated += times - 1
		}
		if repeated > 0 {
			s.t.Errorf("chat %d: %d messages repeated over %d kills: %q", chat, repeated, s.kills, all)
		}
	}
	s.check()
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

// A strike is a point at which to kill the gateway over a message of that kind.
type strike struct {
	name, kind string
	kill       func(string) bool
}

// strikes are those that matter: everywhere, and at each venue.
func strikes() (all []strike, at map[string][]strike) {
	all = []strike{
		{"before the model", "plain", nth(1, "model asked")},
		{"in mid-stream", "plain", nth(1, "chunk 3")},
		{"before a tool", "tool", nth(1, "chunk 1")},
		{"after a tool", "tool", nth(2, "model asked")},
		{"before the outbox", "plain", nth(1, "chunk 11")},
	}
	calls := func() []strike {
		return []strike{
			{"in mid-stream, part of it shown", "slow", nth(1, "after send")},
			{"in mid-stream, showing more", "slow", nth(1, "before edit")},
			{"in a tool", "tell", nth(1, "before send")},
			{"after the outbox, before the send", "plain", nth(1, "before send")},
			{"during the send", "plain", nth(1, "after send")},
			{"during the last edit", "slow", nth(2, "after edit")},
		}
	}
	return all, map[string][]strike{
		"telegram": append(calls(),
			strike{"updates handed out, not committed", "plain", nth(1, "after poll")},
			strike{"committed, before the confirmation", "plain", nth(1, "before poll")}),
		"discord": append(calls(), strike{"told of it", "plain", nth(1, "after say")}),
		"web": {
			{"before the post", "plain", nth(1, "before say")},
			{"in the log, not confirmed", "plain", nth(1, "message you")},
			{"confirmed", "plain", nth(1, "after say")},
			{"part of it shown", "slow", nth(1, "draft")},
			{"in a tool", "tell", nth(1, "message parley")},
			{"shown", "plain", nth(1, "message parley")},
		},
	}
}

// TestKillAtEachPoint kills the real program at each point that matters (the
// pains "messages lost on restart or crash" and "duplicate replies").
func TestKillAtEachPoint(t *testing.T) {
	for at := range venues {
		all, here := strikes()
		for _, m := range append(all, here[at]...) {
			t.Run(at+"/"+m.name, func(t *testing.T) {
				t.Parallel()
				s := newSiege(t, at, 2)
				s.killAt(m.kill, func() { s.tell(0, m.kind); s.tell(1, "plain") })
				s.tell(0, "plain")
				s.revive()
				s.answered()
				s.lift()
			})
		}
	}
}

// TestKillAtRandom kills it a hundred times at random moments, while
// three people talk to it.
func TestKillAtRandom(t *testing.T) {
	rounds := 10 // of two kills each: a message over which the program dies three times would be put aside (P8)
	if testing.Short() {
		rounds = 1
	}
	for at, gateways := range map[string]int{"telegram": 2, "discord": 2, "web": 1} {
		for n := range gateways {
			t.Run(fmt.Sprint(at, "/", n), func(t *testing.T) {
				t.Parallel()
				seed := uint64(time.Now().UnixNano())
				t.Logf("seed %d", seed)
				killAtRandom(t, at, rand.New(rand.NewPCG(seed, 0)), rounds)
			})
		}
	}
}

func killAtRandom(t *testing.T, at string, rnd *rand.Rand, rounds int) {
	s := newSiege(t, at, 3)
	s.slow = 50 * time.Millisecond
	talk := func() {
		for range 1 + rnd.IntN(3) {
			s.tell(rnd.IntN(3), []string{"plain", "plain", "plain", "plain", "tool", "tool", "tell", "tell", "slow"}[rnd.IntN(9)])
		}
	}
	for range rounds {
		s.killAt(sometime(rnd), talk)
		s.killAt(sometime(rnd), func() { talk(); s.revive() })
		s.revive()
		s.answered()
	}
	s.lift()
	t.Logf("%d kills, %v messages", s.kills, s.asked)
}
