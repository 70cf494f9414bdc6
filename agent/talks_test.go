package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/store/bolt"
	"parley/store/mem"
	"parley/timetest"
	"parley/tools"
)

// at is a message in another chat.
func at(chatID, id, text string) chat.Message {
	m := message(id, text)
	m.At.Chat = chatID
	m.From.Name = "Anna"
	return m
}

// echo answers with what was said.
func echo(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
	m := words("You said " + strings.TrimPrefix(spoken(r, 1), "user "))
	m.Model, m.Usage = "main", llm.Usage{In: 10, Out: 1}
	return m, nil
}

// transcript reads a session as "kind who text" lines.
func (h *house) transcript(id chat.SessionID) (lines []string) {
	h.t.Helper()
	for e, err := range h.pool.Sessions().Transcript(h.t.Context(), id) {
		if err != nil {
			h.t.Fatal(err)
		}
		if e.Time.IsZero() && e.Kind != chat.Lost {
			h.t.Errorf("%+v has no time", e)
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Kind, e.Who, e.Text)))
	}
	return lines
}

// TestTalks: every session is listed, the latest first, and a turn seldom
// costs a commit for it.
func TestTalks(t *testing.T) {
	play(t, &house{model: echo}, func(h *house) {
		for i, text := range []string{strings.Repeat("long words ", 20), "/new", "hi [there]\u202e\nyou"} {
			h.deliver(at(fmt.Sprint(i+1), "1", text))
			timetest.Sleep(time.Minute)
		}
		began := time.Now().Add(-time.Minute)
		h.deliver(at("2", "2", "now then"))
		synctest.Wait()
		_, before, _ := h.store.Bucket("sessions").Get(h.t.Context(), "test:3")
		for i := range 9 {
			h.deliver(at("3", fmt.Sprint("more", i), "more"))
			synctest.Wait()
			timetest.Sleep(time.Minute)
		}
		if _, after, _ := h.store.Bucket("sessions").Get(h.t.Context(), "test:3"); after != before {
			t.Errorf("written %d times in 9 minutes", after-before)
		}
		h.deliver(at("3", "at last", "more"))
		synctest.Wait()
		talks, err := h.pool.Sessions().Talks(h.t.Context(), "test:")
		if err != nil || len(talks) != 3 {
			t.Fatalf("%+v, %v", talks, err)
		}
		if a := talks[0]; a.Session != "test:3" || a.Title != "hi [there] you" || !a.Began.Equal(began) || a.Last.Sub(began) != 10*time.Minute {
			t.Errorf("%+v, began at %v", a, began)
		}
		if b := talks[1]; b.Session != "test:2" || b.Title != "now then" {
			t.Errorf("%+v", b)
		}
		if c := talks[2]; len([]rune(c.Title)) > 60 || !strings.HasPrefix(c.Title, "long words long") || !strings.HasSuffix(c.Title, "…") {
			t.Errorf("%+v", c)
		}
		if talks, err := h.pool.Sessions().Talks(h.t.Context(), "web:"); err != nil || talks != nil {
			t.Errorf("%+v, %v", talks, err)
		}
	})
}

// TestTranscript: all there was, over /new, with its tools, and without what is damaged (P21).
func TestTranscript(t *testing.T) {
	h := &house{tools: []tools.Tool{tool("look", func(context.Context) (string, error) { return "sun", nil })}}
	h.model = func(ctx context.Context, r llm.Request, s func(llm.Delta)) (llm.Message, error) {
		switch last := spoken(r, 1); last {
		case "user weather?":
			return llm.Message{Text: "Let me look.", Model: "main", Calls: []llm.ToolCall{call("1", "look")}}, nil
		case "user fail":
			return llm.Message{}, &llm.Error{Kind: llm.Auth, Err: errors.New("no key")}
		}
		return echo(ctx, r, s)
	}
	play(t, h, func(h *house) {
		m := at("1", "1", "weather?")
		h.deliver(m)
		synctest.Wait()
		m = at("1", "2", "")
		m.Media, m.Notice = "voice 3 s", "I could not listen."
		h.deliver(m)
		synctest.Wait()
		h.deliver(at("1", "3", "/new"))
		synctest.Wait()
		if _, err := h.store.Log("session/test:1#1").Append(h.t.Context(), store.Any, []byte("damaged")); err != nil {
			t.Fatal(err)
		}
		for i, text := range []string{"/new", "fail", "/retry"} {
			h.deliver(at("1", fmt.Sprint(4+i), text))
			synctest.Wait()
		}
		want := []string{
			"heard Anna weather?", "said main Let me look.", "called look {}", "gave look sun", "said main You said tool sun",
			"heard Anna (voice 3 s)", "said  I could not listen.",
			"began", "lost  [entry 1 could not be read]", "began", "heard Anna fail", "ended  failed: The model's provider does not accept my key; whoever runs me must set a valid one.",
			"heard Anna /retry", "ended  failed: The model's provider does not accept my key; whoever runs me must set a valid one.",
		}
		if got := h.transcript("test:1"); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("read\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if got := h.transcript("test:nobody"); got != nil {
			t.Errorf("read %q", got)
		}
	})
}

// TestSearch: all the words, whatever their case, the latest first, in the
// conversations asked for and no other.
func TestSearch(t *testing.T) {
	play(t, &house{model: echo}, func(h *house) {
		for i, text := range []string{"Der Löwe schläft", "a LÖWE and a zebra, " + strings.Repeat("schön ", 100), "/new", "Löwen?", "(a+)+$ [x] \\"} {
			for _, c := range []string{"1", "2"} {
				h.deliver(at(c, fmt.Sprint(i), text))
				synctest.Wait()
				timetest.Sleep(time.Minute)
			}
		}
		search := func(words string, most int) (found []string) {
			t.Helper()
			finds, err := h.pool.Sessions().Search(h.t.Context(), func(id chat.SessionID) bool { return id == "test:1" }, words, most)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range finds {
				if f.Session != "test:1" || i > 0 && f.Entry.Time.After(finds[i-1].Entry.Time) || len(f.Entry.Text) > 300 {
					t.Errorf("%q found %+v", words, f)
				}
				found = append(found, string(f.Entry.Kind)+" "+f.Entry.Text)
			}
			return found
		}
		for words, want := range map[string]int{"löwe": 6, "ZEBRA löwe": 2, "löwe elephant": 0, "": 0, "  ": 0, "(a+)+$": 2, "[x] \\": 2, "\xff": 0, "der SCHLÄFT": 2} {
			if got := search(words, 99); len(got) != want {
				t.Errorf("%q found %q, want %d", words, got, want)
			}
		}
		if got := search("löwe", 3); strings.Join(got[:2], "|") != "said You said Löwen?|heard Löwen?" || len(got) != 3 || !strings.HasSuffix(got[2], "…") {
			t.Errorf("found %q", got)
		}
		if all, err := h.pool.Sessions().Search(h.t.Context(), nil, "löwe", 99); err != nil || len(all) != 12 {
			t.Errorf("in all: %d, %v", len(all), err)
		}
		ctx, cancel := context.WithCancel(h.t.Context())
		cancel()
		if _, err := h.pool.Sessions().Search(ctx, nil, "löwe", 9); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		h.sent = nil
		h.deliver(at("1", "s1", "/search zebra"))
		synctest.Wait()
		if got := h.sent[0]; !strings.HasPrefix(got, "Said here, the latest first:\n\n- 2000-01-01 00:02, I: You said a LÖWE and a zebra") || strings.Count(got, "\n- ") != 2 {
			t.Errorf("/search says %q", got)
		}
		const names = "set OPENAI_API_KEY and pkg/__init__.py, a[1] * b < `c`"
		h.sent = nil
		h.deliver(at("1", "s1a", names))
		synctest.Wait()
		h.sent = nil
		h.deliver(at("1", "s1b", "/search OPENAI_API_KEY"))
		synctest.Wait()
		if got := h.sent[0]; !strings.Contains(got, ": "+names) {
			t.Errorf("/search says %q", got)
		}
		h.sent = nil
		h.deliver(at("1", "s2", "/search giraffe"))
		h.deliver(at("1", "s3", "/search"))
		h.want("I found nothing like that in what was said here.", "Write /search and the words that you look for.")
	})
}

// TestForget: nothing is left of a conversation, its turn under way ends without
// a word, and what comes later begins anew.
func TestForget(t *testing.T) {
	h := &house{}
	h.model = func(ctx context.Context, r llm.Request, s func(llm.Delta)) (llm.Message, error) {
		if spoken(r, 1) == "user long" {
			<-ctx.Done()
			return llm.Message{}, ctx.Err()
		}
		return words(spoken(r, 9)), nil
	}
	play(t, h, func(h *house) {
		for i, text := range []string{"secret one", "/new", "secret two", "long"} {
			h.deliver(at("1", fmt.Sprint(i), text))
			h.deliver(at("2", fmt.Sprint(i), "other"))
			synctest.Wait()
		}
		h.sent = nil
		if err := h.pool.Forget(h.t.Context(), "test:1"); err != nil {
			t.Fatal(err)
		}
		h.want()
		if n, _ := h.store.Queue("inbox").Len(h.t.Context()); n != 0 {
			t.Errorf("%d messages left in the inbox", n)
		}
		if talks, _ := h.pool.Sessions().Talks(h.t.Context(), ""); len(talks) != 1 || talks[0].Session != "test:2" {
			t.Errorf("there are %+v", talks)
		}
		for _, name := range []string{"session/test:1", "session/test:1#1"} {
			for r, err := range h.store.Log(name).Since(h.t.Context(), 0) {
				t.Errorf("%s still holds %s, %v", name, r.Body, err)
			}
		}
		h.deliver(at("1", "later", "hi"))
		h.want("user hi")
		h.deliver(at("1", "later still", "and now?"))
		h.want("user hi | assistant user hi | user and now?")
		if err := h.pool.Forget(h.t.Context(), "test:1"); err != nil { // while it is idle
			t.Error(err)
		}
		h.deliver(at("1", "at last", "fresh"))
		h.want("user fresh")
		if err := h.pool.Forget(h.t.Context(), "test:nobody"); err != nil {
			t.Error(err)
		}
	})
}

// TestForgetDamaged: also what was said before the record of the session was damaged.
func TestForgetDamaged(t *testing.T) {
	play(t, &house{model: echo}, func(h *house) {
		h.say("1", "one")
		h.say("2", "/new")
		h.say("3", "two")
		synctest.Wait()
		if _, err := h.store.Bucket("sessions").Put(h.t.Context(), "test:1", []byte("{"), store.Any); err != nil {
			t.Fatal(err)
		}
		h.say("4", "three")
		h.say("5", "/new")
		h.say("6", "four")
		synctest.Wait()
		if got := strings.Join(h.transcript("test:1"), "|"); strings.Count(got, "began") != 3 || !strings.Contains(got, "two") || !strings.Contains(got, "four") {
			t.Errorf("read %s", got)
		}
		if err := h.pool.Forget(h.t.Context(), "test:1"); err != nil {
			t.Fatal(err)
		}
		h.say("7", "five")
		synctest.Wait()
		if got := strings.Join(h.transcript("test:1"), "|"); got != "heard 7 five|said main You said five" {
			t.Errorf("read %s", got)
		}
	})
}

// TestAside is P8: a message put aside can have another try, and gets an answer.
func TestAside(t *testing.T) {
	play(t, &house{model: echo}, func(h *house) {
		m := at("1", "5", "poison")
		m.Time = m.Time.Add(-48 * time.Hour)
		b, _ := json.Marshal(m)
		aside := h.store.Bucket("parked messages")
		for key, val := range map[string][]byte{m.Key(): b, "damaged": []byte("{")} {
			if _, err := aside.Put(h.t.Context(), key, val, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.store.Queue("inbox").Push(h.t.Context(), m.Key(), b); err != nil { // as it came, and was put aside
			t.Fatal(err)
		}
		timetest.Sleep(time.Second)
		synctest.Wait()
		h.sent = nil
		all, err := h.pool.DeadLetters().List(h.t.Context())
		if err != nil || len(all) != 2 || all[0].Key != "damaged" || all[0].Message.ID != "" || all[1].Message.Text != "poison" {
			t.Fatalf("%+v, %v", all, err)
		}
		if err := h.pool.DeadLetters().Retry(h.t.Context(), m.Key()); err != nil {
			t.Fatal(err)
		}
		h.want("You said poison")
		if err := h.pool.DeadLetters().Retry(h.t.Context(), m.Key()); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("tried twice: %v", err)
		}
		if err := h.pool.DeadLetters().Retry(h.t.Context(), "damaged"); err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("the damaged one: %v", err)
		}
		if err := h.pool.DeadLetters().Dismiss(h.t.Context(), "damaged"); err != nil {
			t.Error(err)
		}
		if all, err = h.pool.DeadLetters().List(h.t.Context()); err != nil || len(all) != 0 {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// TestPoolStatus is what metrics and pages show.
func TestPoolStatus(t *testing.T) {
	h := &house{model: func(ctx context.Context, _ llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		time.Sleep(time.Minute)
		return words("ok"), nil
	}}
	play(t, h, func(h *house) {
		h.deliver(at("1", "1", "hi"))
		timetest.Sleep(5 * time.Second)
		h.deliver(at("2", "1", "hi"))
		h.deliver(at("2", "2", "hi"))
		timetest.Sleep(time.Second)
		s, err := h.pool.Status(h.t.Context())
		if err != nil || s.Running != 2 || s.Waiting != 3 || s.Oldest != 6*time.Second || s.Up != 6*time.Second {
			t.Errorf("%+v, %v", s, err)
		}
		timetest.Sleep(5 * time.Minute)
		if s, err = h.pool.Status(h.t.Context()); err != nil || s.Running != 0 || s.Waiting != 0 || s.Oldest != 0 {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

// A search through 100 conversations of 200 messages each.
func BenchmarkSearch(b *testing.B) {
	db, err := bolt.Open(b.Context(), bolt.Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	o := office{store: db, sent: make(chan struct{})}
	for i := range 100 {
		id := fmt.Sprint("test:", i)
		var recs [][]byte
		for n := range 200 {
			m := message(fmt.Sprint(n), strings.Repeat(fmt.Sprint("Words that people write to each other, ", n, ". "), 10))
			r, _ := json.Marshal(map[string]any{"heard": m})
			recs = append(recs, r)
		}
		if _, err := db.Log("session/"+id).Append(b.Context(), store.Any, recs...); err != nil {
			b.Fatal(err)
		}
		if _, err := db.Bucket("sessions").Put(b.Context(), id, []byte("{}"), 0); err != nil {
			b.Fatal(err)
		}
	}
	o.open()
	defer o.close()
	for b.Loop() {
		finds, err := o.pool.Sessions().Search(b.Context(), nil, "PEOPLE 77", 20)
		if err != nil || len(finds) != 20 {
			b.Fatal(len(finds), err)
		}
	}
}

// A dawdling store takes its time to read a log.
type dawdling struct{ store.Store }

func (d dawdling) Log(name string) store.Log { return dawdlingLog{d.Store.Log(name)} }

type dawdlingLog struct{ store.Log }

func (l dawdlingLog) Since(ctx context.Context, seq uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for r, err := range l.Log.Since(ctx, seq) {
			if time.Sleep(time.Second); !yield(r, err) {
				return
			}
		}
	}
}

// TestForgetBesideCommand: what a command reads while it is forgotten is forgotten.
func TestForgetBesideCommand(t *testing.T) {
	h := &house{store: mem.New(), model: echo}
	play(t, h, func(h *house) {
		h.deliver(at("1", "1", "secret"))
		h.want("You said secret")
		h.stop()
		h.store = dawdling{h.store}
		h.start()
		h.deliver(at("1", "2", "/context"))
		timetest.Sleep(1500 * time.Millisecond)
		h.deliver(at("1", "3", "/stop"))
		h.want("There is nothing to stop.")
		if err := h.pool.Forget(h.t.Context(), "test:1"); err != nil {
			t.Fatal(err)
		}
		h.deliver(at("1", "4", "hi"))
		timetest.Sleep(time.Minute)
		synctest.Wait()
		if last := h.asks[len(h.asks)-1]; len(last.Messages) != 1 {
			t.Errorf("after all was forgotten the model was told %v", last.Messages)
		}
	})
}
