package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/llm"
	"parley/llm/llmtest"
	"parley/memory"
	"parley/store/storetest"
	"parley/timetest"
	"parley/tools"
	"parley/workspace"
)

// A shelf is an Archive that outlives the house.
type shelf struct {
	sum  func(ctx context.Context, earlier, said string) (string, error)
	fail func() error
	deaf string       // nothing is kept of people whose names begin so
	die  func(string) // is told of what is about to be done, and was

	mu    sync.Mutex
	all   []memory.Entry
	told  int      // of them
	asked []string // "earlier / said"
}

func (s *shelf) Summarise(ctx context.Context, _ llm.Model, earlier, said string) (string, llm.Usage, error) {
	s.mu.Lock()
	s.asked = append(s.asked, earlier+" / "+said)
	s.mu.Unlock()
	text, err := s.sum(ctx, earlier, said)
	return text, llm.Usage{In: 100, Out: 10}, err
}

func (s *shelf) Append(_ context.Context, who chat.Person, e memory.Entry) (memory.Entry, error) {
	if s.die != nil {
		s.die("append")
		defer s.die("appended")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil && s.fail() != nil {
		return memory.Entry{}, s.fail()
	}
	if s.deaf != "" && strings.HasPrefix(string(who), s.deaf) {
		return memory.Entry{}, errBusy
	}
	if i := slices.IndexFunc(s.all, func(x memory.Entry) bool { return x.Key == e.Key }); i >= 0 {
		return s.all[i], nil
	}
	e.Who = who
	s.all = append(s.all, e)
	return e, nil
}

// read tells what came onto the shelf since it was read last.
func (s *shelf) read() (told []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.all[s.told:] {
		text := e.Text
		if e.Raw {
			text = "raw " + numbers(text)
		}
		if e.Tainted {
			text += " (tainted)"
		}
		told = append(told, fmt.Sprintf("%s %s: %s", e.Who, e.Key, text))
	}
	s.told = len(s.all)
	return told
}

var number = regexp.MustCompile(`\bw\d+\b`)

// numbers returns the numbers of long messages that text holds.
func numbers(text string) string { return strings.Join(number.FindAllString(text, -1), " ") }

// echoing sums up by those numbers.
func echoing(_ context.Context, _, said string) (string, error) { return numbers(said), nil }

// long is a message of about 300 tokens.
func long(n int) string { return fmt.Sprintf("w%d %s", n, strings.Repeat("x", 1150)) }

// small is a house whose conversations hold about three long messages.
func small(s *shelf) *house {
	return &house{
		set: func(set *agent.Settings) {
			set.Models["main"] = agent.Model{Model: set.Models["main"].Model, Window: 2200, MaxTokens: 1000}
		},
		conf:  func(c *agent.Config) { c.Archive = s },
		model: func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) { return words("ok"), nil },
	}
}

// tell says the long messages from … upto, one after the other.
func (h *house) tell(from, upto int) {
	for i := from; i <= upto; i++ {
		h.say(fmt.Sprint("m", i), long(i))
		timetest.Sleep(time.Minute)
		synctest.Wait()
	}
}

// shown returns what the last request told of the conversation: the first line
// of the summary, and the numbers.
func (h *house) shown() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	for _, m := range h.asks[len(h.asks)-1].Messages {
		if strings.HasPrefix(m.Text, "[What was said before, summed up by you:]\n") {
			b.WriteString("{" + m.Text[42:] + "} ")
		} else if n := numbers(m.Text); n != "" {
			b.WriteString(n + " ")
		}
	}
	return strings.TrimSpace(b.String())
}

func (h *house) shows(want string) {
	h.t.Helper()
	synctest.Wait()
	if got := h.shown(); got != want {
		h.t.Errorf("the model is shown %q\nwant %q", got, want)
	}
}

func (h *house) archived(s *shelf, want ...string) {
	h.t.Helper()
	synctest.Wait()
	if got := s.read(); !slices.Equal(got, want) {
		h.t.Errorf("archived %q\nwant %q", got, want)
	}
}

// Issue 5.4: what does not fit any more is summed up, archived once and told by
// its summary, also after a restart; /context and /usage count it.
func TestSummedUp(t *testing.T) {
	s := &shelf{sum: echoing}
	var status string
	h := small(s)
	s.sum = func(_ context.Context, earlier, said string) (string, error) {
		if status == "" {
			time.Sleep(time.Second)
			h.deliver(message("s", "/status"))
			status, _, _ = strings.Cut(h.said["re:test//1/s"], "\n")
		}
		return numbers(said), nil
	}
	steps := watched(h)
	play(t, h, func(h *house) {
		h.tell(1, 3)
		h.shows("w1 w2 w3")
		h.archived(s)
		h.tell(4, 4)
		h.shows("{w1 w2} w3 w4")
		h.archived(s, "owner test:1#0@5: w1 w2")
		if want := "I am summing up, for a second now."; status != want {
			t.Errorf("/status says %q, want %q", status, want)
		}
		if got := steps.states("sum 9"); fmt.Sprint(got) != "[doing success]" {
			t.Errorf("the person is shown %q of %v", got, steps.steps)
		}
		h.tell(5, 6)
		h.shows("{w1 w2\n\nw3 w4} w5 w6")
		h.archived(s, "owner test:1#0@12: w3 w4")
		h.stop()
		h.start()
		h.tell(7, 7)
		h.shows("{w1 w2\n\nw3 w4} w5 w6 w7")
		if !strings.HasPrefix(s.asked[1], "w1 w2 / [") {
			t.Errorf("what was known before is not told: %.60q", s.asked[1])
		}
		h.sent = nil
		h.say("c", "/context")
		h.say("u", "/usage")
		synctest.Wait()
		slices.Sort(h.sent)
		if got := strings.Join(h.sent, "\n"); !strings.Contains(got, "Messages: 6. Results of tools left out: 0. Pictures: 0.\nWhat was said before them is summed up in about 17.\n") ||
			!strings.Contains(got, "main: 200 in (0 from cache), 20 out") {
			t.Errorf("told %s", got)
		}
	})
}

// The log is read from the summary on once it is long, and tells the same.
func TestSummedUpLongAgo(t *testing.T) {
	s := &shelf{sum: echoing}
	h := small(s)
	play(t, h, func(h *house) {
		h.tell(1, 90)
		b, _, _ := h.store.Bucket("sessions").Get(t.Context(), "test:1")
		var state struct{ From int }
		if err := json.Unmarshal(b, &state); err != nil || state.From < 200 {
			t.Fatalf("read from %d, %v", state.From, err)
		}
		h.tell(91, 91)
		before := h.shown()
		h.stop()
		h.start()
		h.say("again", "and?")
		h.shows(before)
		h.stop()
		h.conf = nil // from now on the oldest turns are only left out
		h.start()
		h.tell(101, 200)
		h.stop()
		h.start()
		h.say("once more", "and?")
		synctest.Wait()
		summary := func(s string) string { s, _, _ = strings.Cut(s, "}"); return s }
		if got := h.shown(); summary(got) != summary(before) {
			t.Errorf("the summary is %q, and was %q", got, before)
		}
	})
}

// Every request can be made again, to the byte, and turns be run again, also
// when conversations are summed up and models cannot.
func TestSummedRequestsCanBeMadeAgain(t *testing.T) {
	n := 0
	s := &shelf{}
	s.sum = func(context.Context, string, string) (string, error) {
		switch n++; {
		case n%5 == 0:
			return "", errors.New("no")
		case n%3 == 0:
			return "", nil
		}
		return strings.Repeat("known ", 30*n), nil
	}
	h := small(s)
	h.tools = []tools.Tool{giving("read", tools.Hints{ReadOnly: true}, tools.Result{Text: strings.Repeat("y", 700)})}
	asked := 0
	h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		if asked++; asked%4 == 0 {
			return calls(call("1", "read")), nil
		}
		return llm.Message{Text: strings.Repeat("well ", asked), Finish: llm.Stopped, Usage: llm.Usage{In: len(fmt.Sprint(r.Messages)) / 3}}, nil
	}
	play(t, h, func(h *house) {
		for i := range 40 {
			h.say(fmt.Sprint(i), strings.Repeat("say ", 30+i*5))
			timetest.Sleep(time.Minute)
			if i%7 == 6 {
				h.stop()
				h.start()
			}
		}
		synctest.Wait()
		made := h.requests()
		if len(made) != len(h.asks) || n < 10 {
			t.Fatalf("%d requests of %d, %d summed up", len(made), len(h.asks), n)
		}
		for i := range made {
			if !same(made[i], h.asks[i]) {
				t.Fatalf("request %d of %d is not the one that was made", i+1, len(made))
			}
		}
		again := 0
		for i, got := range h.rerun() {
			if got == "same" {
				again++
			} else if got != "cannot be re-run: what was said before it was summed up on the way" {
				t.Errorf("turn %d: %s", i+1, got)
			}
		}
		if again < 15 {
			t.Errorf("only %d turns could be run again", again)
		}
	})
}

// Each request begins with the bytes of the one before, so that prompt caches
// hit, but for those before which something was summed up: one in a good many.
func TestSummedRequestsBeginAlike(t *testing.T) {
	s := &shelf{sum: echoing}
	h := small(s)
	set := h.set
	h.set = func(c *agent.Settings) {
		set(c)
		c.Models["main"] = agent.Model{Model: c.Models["main"].Model, Window: 8000, MaxTokens: 1000}
	}
	play(t, h, func(h *house) {
		h.tell(1, 100)
		anew := 0
		for i, r := range h.asks[1:] {
			if was := h.asks[i]; r.System != was.System || !same(llm.Request{Messages: r.Messages[:min(len(r.Messages), len(was.Messages))]}, llm.Request{Messages: was.Messages}) {
				anew++
			}
		}
		if sums := len(s.asked); anew != sums || sums < 5 || sums > 10 {
			t.Errorf("of 100 requests %d begin anew, and %d times something was summed up", anew, sums)
		}
	})
}

// Issue 5.4: when the model cannot sum up, all is archived as it is, nobody
// waits for it twice in a turn, and what was summed up before stays. What is
// not worth keeping is not archived.
func TestNotSummedUp(t *testing.T) {
	s := &shelf{sum: echoing}
	h := small(s)
	play(t, h, func(h *house) {
		h.tell(1, 4)
		s.sum = func(context.Context, string, string) (string, error) { return "", errors.New("no") }
		h.tell(5, 6)
		const older = "[More was said before. What is not told here is found with memory_search.]"
		h.shows("{w1 w2\n\n" + older + "} w5 w6")
		h.archived(s, "owner test:1#0@5: w1 w2", "owner test:1#0@12: raw w3 w4")
		h.say("7", "w7 "+strings.Repeat("x", 4200)) // which leaves room for nothing else
		h.shows("{w1 w2\n\n" + older + "} w7")
		h.archived(s, "owner test:1#0@19: raw w5 w6")
		s.sum = func(context.Context, string, string) (string, error) { return "", nil }
		h.tell(8, 8)
		h.shows("{w1 w2\n\n" + older + "} w8")
		h.archived(s)
		s.sum, s.fail = echoing, func() error { return errors.New("the disk is full") }
		h.tell(9, 11)
		h.shows("{w1 w2\n\n" + older + "\n\nw8 w9} w10 w11")
		h.archived(s)
		s.fail = nil
		h.digest(time.Hour, 0) // somebody has just spoken
		h.archived(s, "owner test:1#0@30: w8 w9")
		timetest.Sleep(time.Hour)
		h.digest(time.Hour, 1)
		h.archived(s, "owner test:1#0@37: w10 w11")
	})
}

// Issue 5.4: where a model fails over more than one part can hold as it is,
// nothing of it is lost: there are several parts.
func TestNotSummedUpAtLength(t *testing.T) {
	s := &shelf{sum: func(context.Context, string, string) (string, error) { return "", errors.New("no") }}
	h := small(s)
	h.set = func(set *agent.Settings) {
		set.Models["main"] = agent.Model{Model: set.Models["main"].Model, Window: 61_000, MaxTokens: 1000}
	}
	play(t, h, func(h *house) {
		for i := range 18 {
			h.say(fmt.Sprint("m", i), fmt.Sprintf("w%d %s end%[1]d", i, strings.Repeat("x", 20_000)))
			timetest.Sleep(time.Minute)
			synctest.Wait()
		}
		all := ""
		for _, e := range s.all {
			all += e.Text
		}
		if len(s.all) < 2 || strings.Contains(all, "…") {
			t.Errorf("%d parts of %d bytes", len(s.all), len(all))
		}
		for i := range 6 {
			if !strings.Contains(all, fmt.Sprint("end", i)) {
				t.Errorf("the end of message %d is nowhere", i)
			}
		}
	})
}

// R-S15: what a job has told for long does not cost a turn more than a few
// requests before the person is answered.
func TestFewSums(t *testing.T) {
	s := &shelf{sum: echoing}
	h := small(s)
	h.tools = []tools.Tool{tool("report", func(context.Context) (string, error) { return strings.Repeat("x", 2000), nil })}
	play(t, h, func(h *house) {
		for i := range 60 {
			h.deliver(errand(fmt.Sprint("j/", i), "", chat.RunOptions{Tool: "report"}))
			synctest.Wait()
		}
		h.say("1", "w1")
		synctest.Wait()
		if n := len(s.asked); n == 0 || n > 8 {
			t.Errorf("summed up %d times", n)
		}
	})
}

// A conversation in which only tools speak does not grow for ever: no model is
// asked, and of what a person said nothing is lost.
func TestToolsAlone(t *testing.T) {
	s := &shelf{sum: echoing}
	h := small(s)
	h.tools = []tools.Tool{tool("report", func(context.Context) (string, error) { return strings.Repeat("x", 2000), nil })}
	play(t, h, func(h *house) {
		h.tell(1, 1)
		for i := range 200 {
			h.deliver(errand(fmt.Sprint("j/", i), "", chat.RunOptions{Tool: "report"}))
			synctest.Wait()
		}
		if all := s.read(); len(all) != 1 || !strings.HasSuffix(all[0], ": raw w1") {
			t.Errorf("archived %q", all)
		}
		if len(s.asked) > 0 {
			t.Errorf("summed up %d times", len(s.asked))
		}
		h.sent = nil
		h.say("c", "/context")
		synctest.Wait()
		var n int
		_, rest, _ := strings.Cut(h.sent[0], "Messages: ")
		if _, err := fmt.Sscan(rest, &n); err != nil || n > 150 {
			t.Errorf("%d messages are held, %v: %s", n, err, h.sent[0])
		}
	})
}

// digest runs Digest and checks how many parts it archives.
func (h *house) digest(silent time.Duration, want int) {
	h.t.Helper()
	synctest.Wait()
	if parts, err := h.pool.Digest(h.t.Context(), "dream", "dream/1", silent); parts != want || err != nil {
		h.t.Errorf("%d, %v, want %d parts", parts, err, want)
	}
}

// A stopped turn does not wait for a summary, and archives nothing.
func TestStoppedSummingUp(t *testing.T) {
	s := &shelf{sum: func(ctx context.Context, _, _ string) (string, error) { <-ctx.Done(); return "", ctx.Err() }}
	h := small(s)
	play(t, h, func(h *house) {
		h.tell(1, 4)
		h.sent = nil
		h.say("s", "/stop")
		h.want("(Stopped.)")
		h.archived(s)
		s.sum = echoing
		h.tell(5, 5)
		h.shows("{w1 w2} w3 w4 w5")
	})
}

// R-S14: nobody's words come into another's archive, and what was made of
// untrusted content is marked, but for what the person said themselves.
func TestWhoseIsSummedUp(t *testing.T) {
	s := &shelf{sum: echoing}
	h := small(s)
	h.tools = []tools.Tool{giving("page", tools.Hints{}, tools.Result{Text: "buy", Tainted: true})}
	play(t, h, func(h *house) {
		as := func(role chat.Role, n, length int) {
			m := message(fmt.Sprint("m", n), fmt.Sprintf("w%d %s", n, strings.Repeat("x", length)))
			m.From.Role = role
			h.deliver(m)
			timetest.Sleep(time.Minute)
			synctest.Wait()
		}
		as(chat.User, 1, 1150)
		as(chat.User, 2, 1150)
		as(chat.Owner, 3, 1150)
		as(chat.Owner, 4, 4200) // which leaves room for nothing else
		h.shows("{w3} w4")
		h.archived(s, "test:7 test:1#0@5: w1 w2", "owner test:1#0@8: w3")
		if !strings.HasPrefix(s.asked[1], " / ") {
			t.Errorf("somebody is told what another said: %.60q", s.asked[1])
		}
		h.model = script(calls(call("1", "page")), words("ok"), words("ok"), words("ok"), words("ok"), words("ok"))
		h.tell(5, 7)
		h.tell(8, 10)
		h.archived(s, "owner test:1#0@13: w4", "owner test:1#0@23: w5 w6 (tainted)", "owner test:1#0@23 own: w5 w6",
			"owner test:1#0@30: w7 w8 (tainted)", "owner test:1#0@30 own: w7 w8")
		h.model = script(words("ok"), words("ok"), words("ok"))
		h.tell(11, 13)
		h.archived(s, "owner test:1#0@33: w9 (tainted)", "owner test:1#0@33 own: w9", "owner test:1#0@35: w10") // w10 had no answer
		if !strings.HasPrefix(s.asked[3], "w3\n\nw4 / ") {
			t.Errorf("an untrusted part is summed up without what was before it: %.60q", s.asked[3])
		}
		for i, of := range map[int]string{4: "w5", 6: "w7", 8: "w9", 9: "w10"} { // what people said themselves
			earlier, said, _ := strings.Cut(s.asked[i], " / ")
			if earlier != "" || !strings.Contains(said, of) || strings.Contains(said, "buy") || strings.Contains(said, "[you]") {
				t.Errorf("untrusted content comes into what is trusted: %.100q", s.asked[i])
			}
		}
	})
}

// Digest archives what is new, once, person by person, and only what persons
// said; the conversation stays as it is.
func TestDigest(t *testing.T) {
	s := &shelf{sum: echoing}
	h := small(s)
	play(t, h, func(h *house) {
		h.tell(1, 1)
		h.digest(time.Hour, 0) // somebody spoke just now
		for id, m := range map[string]chat.Message{
			"cron:1":  {Origin: chat.FromSchedule, Options: &chat.RunOptions{}},
			"agent:1": {Origin: chat.FromParent},
			"":        {Origin: chat.FromSchedule, At: chat.Address{Channel: "test", Chat: "quiet"}},
		} {
			m.ID, m.In, m.Time, m.Text = "j"+id, chat.SessionID(id), time.Now(), "do w99"
			if m.At.Channel == "" {
				m.At = chat.Address{Channel: "test", Chat: "1"}
			}
			h.deliver(m)
		}
		group := message("g", "w50")
		group.At.Chat, group.Group = "-5", true
		h.deliver(group)
		user := message("u", "w60")
		user.At.Chat, user.From = "8", chat.Sender{ID: "8", Role: chat.User}
		h.deliver(user)
		timetest.Sleep(2 * time.Hour)
		h.digest(time.Hour, 3)
		h.archived(s, "test:-5 test:-5#0@2: w50", "owner test:1#0@2: w1", "test:8 test:8#0@2: w60")
		h.digest(time.Hour, 0)
		h.archived(s)

		h.tell(2, 4) // w1 is archived
		h.shows("{w1} w2 w3 w4")
		h.archived(s)
		h.tell(5, 5)
		h.shows("{w1\n\nw2 w3} w4 w5")
		h.archived(s, "owner test:1#0@8: w2 w3")
		h.say("new", "/new")
		h.tell(6, 6)
		h.say("r", "/retry")
		timetest.Sleep(2 * time.Hour)
		h.digest(time.Hour, 2)
		h.archived(s, "owner test:1#0@16: w4 w5", "owner test:1#1@5: w6")
		h.digest(time.Hour, 0)

		h.say("r2", "/retry")
		timetest.Sleep(time.Minute)
		h.tell(7, 7)
		timetest.Sleep(2 * time.Hour)
		h.digest(time.Hour, 1)
		h.archived(s, "owner test:1#1@11: w7")
		if err := h.pool.Forget(h.t.Context(), "test:1"); err != nil {
			t.Fatal(err)
		}
		h.digest(0, 0)
		h.tell(8, 8)
		h.digest(0, 1)
		h.archived(s, "owner test:1#0@19: w8")
	})
}

// What the model cannot sum up in three nights is archived as it is, and other
// sessions do not wait for it. Whose limit is reached waits, too (R-S15).
func TestDigestFails(t *testing.T) {
	s := &shelf{}
	s.sum = func(_ context.Context, _, said string) (string, error) {
		if strings.Contains(said, "w1 ") {
			return "", errors.New("no")
		}
		return numbers(said), nil
	}
	h := small(s)
	set := h.set
	h.set = func(c *agent.Settings) {
		set(c)
		c.Models["cheap"] = agent.Model{Model: c.Models["main"].Model, Window: 20000, MaxTokens: 1000}
		c.Sum = "cheap"
	}
	play(t, h, func(h *house) {
		h.tell(1, 1)
		other := message("o", "w2")
		other.At.Chat = "2"
		h.deliver(other)
		for night, want := range []int{1, 0, 0, 2} {
			timetest.Sleep(24 * time.Hour)
			parts, err := h.pool.Digest(h.t.Context(), "dream", "dream/1", time.Hour)
			if fails := err != nil && err.Error() == "digest session test:1: no"; parts != want || fails != (night < 3) {
				t.Errorf("night %d: %d, %v", night, parts, err)
			}
			h.tell(night*10+11, night*10+11) // the part that failed stays what it is
		}
		h.archived(s, "owner test:2#0@2: w2", "owner test:1#0@2: raw w1", "owner test:1#0@12: w11 w21 w31")
	})
}

// What one night takes is bounded, whatever there is to archive: in time, in
// money (R-S15), in parts of one session and in failures of the model. The next
// goes on, and nobody waits for those who are busy.
func TestDigestIsBounded(t *testing.T) {
	crowd := func(h *house, from, upto int) {
		for i := from; i < upto; i++ {
			m := message("m", fmt.Sprint("w", i, " hello"))
			m.At.Chat, m.From = fmt.Sprint(10+i), chat.Sender{ID: fmt.Sprint(10 + i), Role: chat.User}
			h.deliver(m)
		}
		synctest.Wait()
	}
	nights := func(h *house, want ...int) (errs []error) {
		h.t.Helper()
		var got []int
		for range want {
			timetest.Sleep(24 * time.Hour)
			parts, err := h.pool.Digest(h.t.Context(), "dream", "dream/1", time.Hour)
			got, errs = append(got, parts), append(errs, err)
		}
		if !slices.Equal(got, want) {
			h.t.Errorf("archived %v parts, want %v: %v", got, want, errs)
		}
		return errs
	}
	t.Run("time", func(t *testing.T) {
		s := &shelf{sum: func(ctx context.Context, _, said string) (string, error) {
			select {
			case <-time.After(25 * time.Minute):
			case <-ctx.Done():
			}
			return numbers(said), ctx.Err()
		}}
		play(t, small(s), func(h *house) {
			crowd(h, 0, 5)
			if errs := nights(h, 2, 2, 1, 0); errors.Join(errs...) != nil {
				t.Error(errs)
			}
			h.archived(s, "test:10 test:10#0@2: w0", "test:11 test:11#0@2: w1", "test:12 test:12#0@2: w2", "test:13 test:13#0@2: w3", "test:14 test:14#0@2: w4")
		})
	})
	t.Run("money", func(t *testing.T) {
		s := &shelf{sum: echoing}
		h := small(s)
		set := h.set
		h.set = func(c *agent.Settings) { set(c); c.Limits.Everybody.Requests = 3 }
		play(t, h, func(h *house) {
			crowd(h, 0, 3)
			timetest.Sleep(24 * time.Hour)
			crowd(h, 3, 6)
			h.digest(0, 0) // they have used it all
			if errs := nights(h, 3, 3, 0); errors.Join(errs...) != nil {
				t.Error(errs)
			}
		})
	})
	t.Run("failures", func(t *testing.T) {
		s := &shelf{sum: func(context.Context, string, string) (string, error) { return "", errors.New("no") }}
		play(t, small(s), func(h *house) {
			crowd(h, 0, 12)
			errs := nights(h, 0)
			if len(s.asked) != 5 || strings.Count(errs[0].Error(), "digest session") != 5 {
				t.Errorf("%d were asked: %v", len(s.asked), errs)
			}
			s.sum = echoing
			nights(h, 12)
		})
	})
	t.Run("archives that cannot be written", func(t *testing.T) {
		s := &shelf{sum: echoing, deaf: "test:1"}
		play(t, small(s), func(h *house) {
			crowd(h, 0, 20) // ten of which nobody can keep anything
			var errs []error
			for range 5 {
				timetest.Sleep(24 * time.Hour)
				_, err := h.pool.Digest(h.t.Context(), "dream", "dream/1", time.Hour)
				errs = append(errs, err)
			}
			if n := len(s.all); n != 10 || errs[4] == nil {
				t.Errorf("%d are archived: %v", n, errs)
			}
		})
	})
	t.Run("one session", func(t *testing.T) {
		s := &shelf{sum: echoing}
		h := small(s)
		conf := h.conf
		h.conf = nil // nothing is summed up on the way
		play(t, h, func(h *house) {
			h.tell(1, 100)
			h.stop()
			h.conf = conf
			h.start()
			crowd(h, 0, 3)
			nights(h, 43, 10, 0)
		})
	})
	t.Run("busy", func(t *testing.T) {
		s := &shelf{sum: echoing}
		play(t, small(s), func(h *house) {
			h.model = func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
				time.Sleep(time.Hour)
				return words("slow"), nil
			}
			crowd(h, 0, 20)
			began := time.Now()
			h.digest(0, 0)
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("it took %v", took)
			}
			timetest.Sleep(2 * time.Hour)
		})
	})
}

// A person who speaks while their session is digested does not wait, and nothing
// is archived twice.
func TestDigestMakesWay(t *testing.T) {
	s := &shelf{sum: func(ctx context.Context, _, _ string) (string, error) { <-ctx.Done(); return "", ctx.Err() }}
	h := small(s)
	play(t, h, func(h *house) {
		h.tell(1, 1)
		timetest.Sleep(time.Hour)
		var parts int
		var err error
		go func() { parts, err = h.pool.Digest(h.t.Context(), "dream", "dream/1", time.Minute) }()
		synctest.Wait()
		h.sent = nil
		h.say("2", "are you there?")
		h.want("ok")
		if parts != 0 || err != nil {
			t.Errorf("%d, %v", parts, err)
		}
		h.model = func(ctx context.Context, _ llm.Request, _ func(llm.Delta)) (llm.Message, error) {
			time.Sleep(time.Hour)
			return words("slow"), nil
		}
		s.sum = echoing
		h.say("3", "work")
		h.digest(0, 0) // it does not wait for a turn
		timetest.Sleep(2 * time.Hour)
		h.digest(time.Minute, 1) // and the rest is not worth it
		h.archived(s, "owner test:1#0@2: w1")
	})
}

// Issue 5.4, P7: kill the process before and after every operation of the store and the
// archive: nothing that was said is archived twice, and nothing is lost. Each
// time it is run it looks at one operation in three.
func TestCrashSummedUp(t *testing.T) {
	for n, done := rand.IntN(3), false; !done; n += 3 {
		t.Run(fmt.Sprint(n), func(t *testing.T) { done = crashSummedUp(t, n) == "" })
	}
}

// crashSummedUp lives lives that end after so many operations, and one that does
// not, and checks what is archived in the end. It returns where the last one ended.
func crashSummedUp(t *testing.T, lives ...int) (where string) {
	timetest.Test(t, func(t *testing.T) {
		dir, s, taken := storetest.TempDir(t), &shelf{sum: echoing}, [5]atomic.Bool{}
		for _, n := range lives {
			where = summedLife(t, dir, s, &taken, n)
		}
		m := newMortal(t, dir, 1<<40)
		h := small(s)
		h.t, h.store, h.said = t, m, map[string]string{}
		s.die = nil
		h.start()
		timetest.Sleep(time.Minute)
		for i := range taken {
			if !taken[i].Load() {
				h.deliver(longer(i))
				timetest.Sleep(time.Minute)
			}
		}
		h.deliver(longer(5))
		timetest.Sleep(3 * time.Hour)
		for range 2 {
			if _, err := h.pool.Digest(t.Context(), "dream", "dream/1", time.Hour); err != nil {
				t.Error(err)
			}
		}
		times := map[string]int{}
		for _, e := range s.all {
			for _, w := range strings.Fields(e.Text) {
				times[w]++
			}
		}
		for i := range 6 {
			if w := fmt.Sprint("w", i); times[w] != 1 {
				t.Errorf("%s is archived %d times", w, times[w])
			}
		}
		if t.Failed() {
			t.Logf("died %s: %q", where, s.read())
		}
		h.stop()
		m.Close()
	})
	return where
}

// longer is a message of about 500 tokens.
func longer(n int) chat.Message {
	return message(fmt.Sprint("m", n), fmt.Sprintf("w%d %s", n, strings.Repeat("x", 2000)))
}

// The same, at two moments.
func TestCrashSummedUpTwice(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, uint64(time.Now().UnixNano())))
	for range 20 {
		a, b := rnd.IntN(75), rnd.IntN(75)
		t.Run(fmt.Sprint(a, "+", b), func(t *testing.T) { crashSummedUp(t, a, b) })
	}
}

// summedLife talks and digests until the process dies after so many operations.
func summedLife(t *testing.T, dir string, s *shelf, taken *[5]atomic.Bool, life int) (where string) {
	m := newMortal(t, dir, life)
	s.die = func(op string) {
		if m.left.Add(-1) < 0 {
			if err := m.die(op); err != nil {
				t.Error(err)
			}
			runtime.Goexit()
		}
	}
	h := small(s)
	h.t, h.store = t, m
	h.start()
	timetest.Sleep(time.Minute)
	for i := range taken {
		if taken[i].Load() {
			continue
		}
		go func() {
			err := h.pool.Deliver(t.Context(), longer(i))
			taken[i].Store(err == nil) // else the network delivers it again
		}()
		timetest.Sleep(time.Minute)
		if i == 1 || i == 4 {
			timetest.Sleep(2 * time.Hour)
			go func() { _, _ = h.pool.Digest(h.t.Context(), "dream", "dream/1", time.Hour) }()
			synctest.Wait()
		}
	}
	h.stop()
	_ = m.Close()
	where, _ = m.where.Load().(string)
	return where
}

// bookcase is the Archive that the program has.
type bookcase struct{ *memory.History }

func (bookcase) Summarise(ctx context.Context, m llm.Model, earlier, said string) (string, llm.Usage, error) {
	return memory.Summarise(ctx, m, earlier, said)
}

// Issue 5.4: from a conversation that gets too long to a history that can be
// searched, with what the model is asked on the way.
func TestSummedUpAndFound(t *testing.T) {
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	past := memory.NewHistory(ws, slog.New(slog.DiscardHandler))
	model := &llmtest.Script{Answers: []llmtest.Answer{
		llmtest.Text("Noted."), llmtest.Text("Fine."), llmtest.Text("Good."),
		llmtest.Text("- Ann's dog is called Rex"), llmtest.Text("Rex."),
		llmtest.Text("- Ann likes tea"),
	}}
	h := small(nil)
	h.model = model.Generate
	h.conf = func(c *agent.Config) { c.Archive = bookcase{past} }
	play(t, h, func(h *house) {
		for i, text := range []string{"My dog is called Rex.", "I like tea.", "Hm.", "What is my dog called?"} {
			h.say(fmt.Sprint("m", i), text+strings.Repeat(" x", 560))
			timetest.Sleep(time.Minute)
		}
		h.want("Noted.", "Fine.", "Good.", "Rex.")
		asked := model.Seen()
		if got := asked[3].Messages[0].Text; !strings.Contains(got, "]\n>   My dog is called Rex.") || !strings.Contains(got, "\n> [you]\n>   Fine.") || len(asked[3].Tools) > 0 {
			t.Errorf("to sum up: %.100q", got)
		}
		if got := asked[4].Messages[0].Text; got != "[What was said before, summed up by you:]\n- Ann's dog is called Rex" {
			t.Errorf("told %q", got)
		}
		timetest.Sleep(time.Hour)
		h.digest(time.Minute, 1)
		hits, err := past.Search(t.Context(), chat.TheOwner, "dog called", 5)
		if err != nil || len(hits) != 1 || hits[0].Session != "test:1" || hits[0].Text != "- Ann's dog is called Rex" {
			t.Errorf("found %+v, %v", hits, err)
		}
		if hits, _ := past.Search(t.Context(), "test:8", "dog called", 5); len(hits) > 0 {
			t.Errorf("somebody else finds %+v", hits)
		}
	})
}

// Where instructions and tools leave no room for talk, nothing is gained by
// summing it up: the oldest of it is left out, as it would be anyway.
func TestNoRoomForSums(t *testing.T) {
	s := &shelf{sum: echoing}
	h := small(s)
	h.set = func(set *agent.Settings) {
		set.Models["main"] = agent.Model{Model: set.Models["main"].Model, Window: 1400, MaxTokens: 1000}
	}
	play(t, h, func(h *house) {
		h.tell(1, 5)
		if len(s.asked) > 0 {
			t.Errorf("summed up %d times", len(s.asked))
		}
		h.shows("w5")
	})
}
