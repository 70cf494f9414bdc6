package agent_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/agent/conversation"
	"parley/agent/replay"
	"parley/chat"
	"parley/llm"
	"parley/retention/retentiontest"
	"parley/store"
	"parley/store/mem"
	"parley/texts"
	"parley/timetest"
	"parley/tools"
)

// trim removes what is older than period.
func (h *house) trim(period time.Duration) {
	h.t.Helper()
	pass := store.Trimming{Before: time.Now().Add(-period), Step: func(int) error { return nil }}
	if err := h.pool.TrimConversations(h.t.Context(), pass); err != nil {
		h.t.Error(err)
	}
}

// records counts the records of a log.
func records(t *testing.T, l store.Log) (n int) {
	t.Helper()
	for _, err := range l.Since(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// title returns the title of a session.
func (h *house) title(id chat.SessionID) string {
	h.t.Helper()
	st, _, err := h.pool.Sessions().Lookup(h.t.Context(), id)
	if err != nil {
		h.t.Error(err)
	}
	return st.Title
}

// P28: a conversation goes on over the edge: the model is shown the same, and search,
// transcripts and replay say plainly what they can no longer tell. Its title is one of what
// is left, and what was removed is not among what a search finds.
func TestTrimWhileTalking(t *testing.T) {
	const turns = 120
	s := &shelf{sum: echoing}
	play(t, small(s), func(h *house) {
		say := func(n int) {
			timetest.Sleep(6 * time.Hour)
			h.say(fmt.Sprint("m", n), long(n))
			synctest.Wait()
		}
		for n := range turns {
			say(n)
		}
		before := records(t, h.store.Log("session/test:1"))
		h.trim(10 * 24 * time.Hour)
		after := records(t, h.store.Log("session/test:1"))
		if after >= before/2 || after < 40*3 {
			t.Errorf("%d of %d records are left", after, before)
		}
		say(turns)
		shown := h.shown()
		h.stop()
		h.start()
		h.trim(10 * 24 * time.Hour)
		say(turns + 1)
		if again := h.shown(); len(again) < len(shown)/2 || !strings.Contains(again, fmt.Sprint(" w", turns)) {
			t.Errorf("the model was shown %s\nand now %s", shown, again)
		}

		finds, err := h.pool.Sessions().Search(t.Context(), nil, "nobody said that", 9)
		if err != nil || len(finds) > 0 {
			t.Errorf("what is removed is found: %v, %v", finds, err)
		}
		told := h.transcript("test:1")
		title, _, _ := strings.Cut(h.title("test:1"), " ")
		if title == "w0" || !strings.HasPrefix(told[1], "heard 7 "+title+" ") {
			t.Errorf("the title begins with %q", title)
		}
		if want := "removed  [what was said before 2000-01-21 was removed because it was old, but for what the model is still shown]"; told[0] != want {
			t.Errorf("the transcript begins with %q, want %q", told[0], want)
		}
		if !strings.HasPrefix(told[1], "heard 7 w") {
			t.Errorf("the next entry is %.40q", told[1])
		}
		for text, want := range map[string]string{
			"/search w2":                      "What was said here before 2000-01-21 is not kept any more, but for what I am still shown.",
			fmt.Sprintf("/search w%d", turns): "is not kept any more, but for what I am still shown.",
		} {
			h.mu.Lock()
			h.sent = nil
			h.mu.Unlock()
			h.say(text, text)
			synctest.Wait()
			h.mu.Lock()
			if len(h.sent) != 1 || !strings.Contains(h.sent[0], want) {
				t.Errorf("%s is answered %q", text, h.sent)
			}
			h.mu.Unlock()
		}

		var printed strings.Builder
		known, unknown := 0, 0
		for turn := range h.recording().Turns() {
			for _, e := range turn.Events {
				switch {
				case e.Asked != nil && e.Request == nil:
					unknown++
				case e.Asked != nil:
					known++
				}
			}
			if turn.N == 1 {
				p := replay.Printer{Out: &printed, Zone: time.UTC}
				p.Print(turn)
			}
		}
		if known < 30 || unknown == 0 || unknown > 10 {
			t.Errorf("%d requests are known and %d are not", known, unknown)
		}
		if text := printed.String(); !strings.HasPrefix(text, "What was said before 2000-01-21 was removed") || !strings.Contains(text, "asked, and what is not kept") {
			t.Errorf("a recording begins with\n%s", text)
		}
	})
}

// P28: a conversation in which nobody has spoken since is over, and nothing of it is
// left but what was chosen. One with a turn under way goes on.
func TestTrimEndsOldConversations(t *testing.T) {
	var wait chan struct{} // of the bubble
	h := &house{model: func(ctx context.Context, r llm.Request, s func(llm.Delta)) (llm.Message, error) {
		if strings.Contains(spoken(r, 1), "slow") {
			select {
			case <-wait:
			case <-ctx.Done():
				return llm.Message{}, ctx.Err()
			}
		}
		return echo(ctx, r, s)
	}}
	play(t, h, func(h *house) {
		wait = make(chan struct{})
		h.deliver(at("1", "1", "hello"))
		h.deliver(at("2", "1", "hello"))
		synctest.Wait()
		h.deliver(at("2", "2", "/model other"))
		h.deliver(at("3", "1", "hello"))
		synctest.Wait()
		timetest.Sleep(2 * time.Hour)
		h.deliver(at("3", "2", "slow"))
		synctest.Wait()
		h.trim(time.Hour)
		h.trim(time.Hour)
		var left []string
		for id, err := range h.pool.Sessions().IDs(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			left = append(left, string(id))
		}
		if want := []string{"test:2", "test:3"}; !slices.Equal(left, want) {
			t.Errorf("left are %q, want %q", left, want)
		}
		for _, name := range []string{"session/test:1", "session/test:2", "session/test:3"} {
			if n := records(t, h.store.Log(name)); (n > 0) != (name == "session/test:3") {
				t.Errorf("%s has %d records", name, n)
			}
		}
		close(wait)
		synctest.Wait()
		var recording bytes.Buffer
		for line, err := range h.pool.Recording(t.Context(), "test:2") {
			if err != nil {
				t.Fatal(err)
			}
			recording.Write(line)
		}
		r, err := replay.Read(&recording)
		if err != nil {
			t.Fatalf("the recording of a conversation of which nothing is left: %v", err)
		}
		var printed strings.Builder
		(&replay.Printer{Out: &printed, Zone: time.UTC}).PrintNone(r)
		if !strings.Contains(printed.String(), "was removed because it was old, but for what the model was still shown") {
			t.Errorf("replay prints %q", &printed)
		}
		if got := strings.Join(h.transcript("test:3"), ", "); got != "heard Anna hello, said main You said hello, heard Anna slow, said main You said slow" {
			t.Errorf("a turn that was under way is told as %s", got)
		}
		titleThen := h.title("test:2")
		h.deliver(at("2", "3", "and now?"))
		synctest.Wait()
		if got := spoken(h.asks[len(h.asks)-1], 9); got != "user and now?" {
			t.Errorf("the model is asked %q", got)
		}
		if got := titleThen; got != "" {
			t.Errorf("the title of a conversation of which nothing is left is %q", got)
		}
		if got := h.title("test:2"); got != "and now?" {
			t.Errorf("the title of what was begun then is %q", got)
		}
		if st, _, err := h.pool.Sessions().Lookup(t.Context(), "test:2"); st.Model != "other" || err != nil {
			t.Errorf("the session's model is %q, %v", st.Model, err)
		}
	})
}

// P28: what requests were made with goes with them.
func TestTrimTextsOfRequests(t *testing.T) {
	play(t, &house{model: echo}, func(h *house) {
		texts := func() (n int) {
			for _, err := range h.store.Bucket(store.BucketPrompts).Keys(t.Context(), "") {
				if n++; err != nil {
					t.Error(err)
				}
			}
			return n
		}
		h.say("1", "hello")
		synctest.Wait()
		timetest.Sleep(30 * 24 * time.Hour)
		h.trim(60 * 24 * time.Hour)
		if texts() == 0 {
			t.Error("they are removed early")
		}
		h.trim(7 * 24 * time.Hour)
		if n := texts(); n > 0 {
			t.Errorf("%d texts are left", n)
		}
	})
}

// P28: a subagent's session whose record was lost goes when it is old, and no other.
func TestTrimLostSubagents(t *testing.T) {
	h := &house{tools: []tools.Tool{slowExec(time.Hour)}, model: byTask(spawning, worker(1))}
	play(t, withSubagents(h), func(h *house) {
		h.say("1", "work")
		timetest.Sleep(2 * time.Minute)
		id := h.subagents()[0].ID
		h.say("2", "/agents stop all")
		timetest.Sleep(time.Hour)
		h.trim(time.Minute)
		name := "session/agent:" + id
		if records(t, h.store.Log(name)) == 0 {
			t.Error("a session with a record was trimmed")
		}
		if err := h.store.Bucket(store.BucketSubagents).Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		h.trim(time.Minute)
		h.trim(time.Minute)
		if n := records(t, h.store.Log(name)); n != 0 {
			t.Errorf("%d records are left of a session whose record was lost", n)
		}
		if _, rev, err := h.pool.Sessions().Lookup(t.Context(), chat.SessionID("agent:"+id)); rev != 0 || err != nil {
			t.Errorf("it has a state, %v", err)
		}
	})
}

// P28: conversations are trimmed with a crash anywhere: nothing young is lost, and the
// archive has each line once.
func TestTrimCrashAnywhere(t *testing.T) {
	now := time.Date(2024, 4, 1, 0, 0, 0, 0, time.UTC)
	quiet := slog.New(slog.DiscardHandler)
	turn := func(text string, days int) []conversation.Record {
		m := message("m"+text, text)
		m.Time = now.AddDate(0, 0, days)
		said := llm.Message{Role: llm.Assistant, Text: "re " + text}
		return []conversation.Record{{Heard: &m}, {Said: &said}, {Ended: &conversation.End{Outcome: conversation.Answered}}}
	}
	open := func() store.Store {
		s := mem.New()
		add := func(id, suffix string, st conversation.State, turns ...[]conversation.Record) {
			for _, r := range slices.Concat(turns...) {
				if _, err := s.Log("session/"+id+suffix).Append(t.Context(), store.Any, r.Encode()); err != nil {
					t.Fatal(err)
				}
			}
			sessions := conversation.NewSessions(s, quiet, time.UTC, texts.Speakers{})
			if err := sessions.Update(t.Context(), chat.SessionID(id), func(old *conversation.State) { *old = st }); err != nil {
				t.Fatal(err)
			}
		}
		young := conversation.State{Last: now.AddDate(0, 0, 1)}
		add("test:goes on", "", conversation.State{From: 7, Last: young.Last, Title: "a1"}, turn("a1", -9), turn("a2", -1), turn("a3", 0), turn("a4", 1))
		add("test:needs all", "", conversation.State{Last: young.Last, Title: "b1"}, turn("b1", -9), turn("b2", 1))
		add("test:within", "", conversation.State{From: 5, Last: young.Last}, turn("e1", -9), turn("e2", -8), turn("e3", 1))
		add("test:over", "", conversation.State{Last: now.AddDate(0, 0, -1)}, turn("c1", -40), turn("c2", -1))
		again := conversation.State{Epoch: 1, Last: young.Last, Title: "d1"}
		add("test:anew", "", again, turn("d1", -9), turn("d2", -8)[:2])
		add("test:anew", "#1", again, turn("d3", 1))
		return s
	}
	retentiontest.Run(t, retentiontest.Case{
		Open:   open,
		Before: now,
		Trim: func(s store.Store, pass store.Trimming) error {
			pool := agent.New(agent.Config{Store: s, Log: quiet, Zone: time.UTC}, agent.Settings{})
			return pool.TrimConversations(t.Context(), pass)
		},
		Archived: []string{
			`"text":"a1"}`, `"text":"re a1"}`, `"text":"a2"}`, `"text":"re a2"}`, `"text":"c1"}`, `"text":"re c1"}`,
			`"text":"c2"}`, `"text":"re c2"}`, `"text":"d1"}`, `"text":"re d1"}`, `"text":"d2"}`, `"text":"re d2"}`,
			`"text":"e1"}`, `"text":"re e1"}`,
		},
		Check: func(t *testing.T, s store.Store) {
			t.Helper()
			sessions := conversation.NewSessions(s, quiet, time.UTC, texts.Speakers{})
			for id, want := range map[chat.SessionID]string{
				"test:goes on": "removed a3 re a3 a4 re a4", "test:needs all": "b1 re b1 b2 re b2", "test:over": "",
				"test:anew": "removed d3 re d3", "test:within": "removed e2 re e2 e3 re e3",
			} {
				var told []string
				for e, err := range sessions.Transcript(t.Context(), id) {
					if err != nil {
						t.Fatal(err)
					}
					if e.Kind == chat.Removed {
						e.Text = "removed"
					}
					told = append(told, e.Text)
				}
				if got := strings.TrimSpace(strings.Join(told, " ")); got != want {
					t.Errorf("%s has %q, want %q", id, got, want)
				}
				titles := map[chat.SessionID]string{"test:goes on": "a3", "test:needs all": "b1", "test:anew": "d3", "test:within": "e2"}
				if st, _, err := sessions.Lookup(t.Context(), id); st.Title != titles[id] || err != nil {
					t.Errorf("%s has the title %q, %v; want %q", id, st.Title, err, titles[id])
				}
			}
			if _, rev, err := sessions.Lookup(t.Context(), "test:over"); rev != 0 || err != nil {
				t.Errorf("a conversation that is over has a state, %v", err)
			}
		},
	})
}
