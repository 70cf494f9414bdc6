package channels_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/channels/channeltest"
	"parley/chat"
	"parley/timetest"
)

// C-008, C-017, §2.10: the steps are lines of the message that becomes the answer,
// and one line of it in the end.
func TestC008StepsAreOneMessage(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.fake.Every = 100 * time.Millisecond
		h := m.start(channeltest.All)
		live := h.Live(t.Context(), reply("a", ""))
		began := time.Now()
		shows := func(s chat.Step, want string) {
			t.Helper()
			live.Step(s)
			timetest.Sleep(time.Second)
			m.shows(want)
		}
		shows(chat.Step{Call: "1", Tool: "web_search", State: chat.Waiting}, "> ⏳ web\\_search\n\n")
		shows(chat.Step{Call: "1", State: chat.Running, Tip: "tides", Began: began}, "> 🔧 web\\_search tides\n\n")
		shows(chat.Step{Call: "2", Tool: "read_file", Name: "Read", State: chat.Running, Tip: "a.md"}, "> 🔧 web\\_search tides\n> 🔧 Read a.md\n\n")
		shows(chat.Step{Call: "1", State: chat.Done, Ended: began.Add(4 * time.Second)}, "> ✅ web\\_search tides\n> 🔧 Read a.md\n\n")
		live.Show("So far")
		shows(chat.Step{Call: "2", State: chat.Failed, Tip: "is gone"}, "> 🔧 web\\_search, Read – 4 s, 1 failed\n\nSo far")
		shows(chat.Step{Call: "2", State: chat.Running, Tip: "late news"}, "> 🔧 web\\_search, Read – 4 s, 1 failed\n\nSo far") // C-007
		shows(chat.Step{Call: "3", Tool: "clock", State: chat.Running}, "> ✅ web\\_search tides\n> ❌ Read is gone\n> 🔧 clock\n\nSo far")
		live.Close()
		r := reply("a", "So far, so good")
		r.Steps = "🔧 web_search, read_file, clock – 4 s"
		send(t, h, r)
		h.drain()
		m.shows("> 🔧 web\\_search, read\\_file, clock – 4 s\n\nSo far, so good")
		if ops := m.fake.Ops(channeltest.Send); len(ops) != 1 {
			t.Errorf("%d messages", len(ops))
		}
		m.clean()
	})
}

// A turn that is quick, with all its steps, is one message, and steps are
// edited in no more often than the channel likes.
func TestStepsKeepTheRate(t *testing.T) {
	for _, pause := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond} {
		in(t, func(t *testing.T, m *machine) {
			m.fake.Every = time.Second
			h := m.start(channeltest.All)
			live := h.Live(t.Context(), reply("a", ""))
			for i := range 50 {
				call := fmt.Sprint(i)
				live.Step(chat.Step{Call: call, Tool: "read_file", State: chat.Running})
				timetest.Sleep(pause)
				live.Step(chat.Step{Call: call, State: chat.Done})
			}
			live.Close()
			r := reply("a", "done")
			r.Steps = "🔧 read"
			send(t, h, r)
			h.drain()
			m.shows("> 🔧 read\n\ndone")
			ops := m.fake.Ops(channeltest.Send, channeltest.Edit)
			if pause < 20*time.Millisecond && len(ops) != 1 {
				t.Errorf("a quick turn took %d operations", len(ops))
			}
			for i := 1; i < len(ops)-1; i++ {
				if gap := ops[i].Time.Sub(ops[i-1].Time); gap < time.Second || ops[i].Kind != channeltest.Edit {
					t.Errorf("%s after %v", ops[i].Kind, gap)
				}
				if n := strings.Count(ops[i].Reply.Text, "\n> "); n != 7 {
					t.Errorf("%d lines: %q", n+1, ops[i].Reply.Text)
				}
			}
		})
	}
}

// What a tool or a page calls itself is no markup, and takes one line of 80 runes.
func TestStepsAreNoMarkup(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(channeltest.All)
		live := h.Live(t.Context(), reply("a", ""))
		live.Step(chat.Step{Call: "1", Tool: "`x`", State: chat.Running, Tip: "*b* _i_ [l](https://evil.example) <@1> ~s~ ||p|| \\ # &lt;\n> y\u202e\x1b[2J"})
		live.Step(chat.Step{Call: "2", Tool: "long", State: chat.Running, Tip: strings.Repeat("ä", 100)})
		timetest.Sleep(time.Second)
		m.shows("> 🔧 \\`x\\` \\*b\\* \\_i\\_ \\[l\\](https\\://evil.example) \\<@1\\> \\~s\\~ \\|\\|p\\|\\| \\\\ \\# &lt; \\> y \\[2J\n" +
			"> 🔧 long " + strings.Repeat("ä", 72) + "…\n\n")
		live.Close()
		h.stop()
	})
}

// The line of steps is put where messages are edited and there is no place of
// its own for it, and nowhere that nothing is said.
func TestStepsOfReply(t *testing.T) {
	for _, c := range []struct {
		powers channeltest.Power
		text   string
		want   []string
	}{
		{channeltest.All, "hi", []string{"> 🔧 clock\n\nhi"}},
		{channeltest.All, " ", nil},
		{channeltest.Edits, "hi", []string{"> 🔧 clock\n\nhi"}},
		{channeltest.Splits, "hi", []string{"hi"}},
		{channeltest.Streams | channeltest.Steps, "hi", []string{"hi"}},
		{0, "hi", []string{"hi"}},
	} {
		in(t, func(t *testing.T, m *machine) {
			h := m.start(c.powers)
			r := reply("a", c.text)
			r.Steps = "🔧 clock"
			send(t, h, r)
			h.drain()
			m.shows(c.want...)
		})
	}
	in(t, func(t *testing.T, m *machine) {
		h := m.start(channeltest.All)
		r := reply("a", "")
		r.Steps, r.Files = "🔧 clock", []chat.File{{Path: "a.png"}}
		send(t, h, r)
		h.drain()
		m.shows("")
	})
}

// The view and the final reply are cut alike: nothing is sent twice and no part is left over.
func TestStepsAreCutAlike(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.fake.Limit = 16
		h := m.start(channeltest.All)
		live := h.Live(t.Context(), reply("a", ""))
		live.Step(chat.Step{Call: "1", Tool: "clock", State: chat.Done})
		live.Show("one two three four")
		timetest.Sleep(5 * time.Second)
		m.shows("> 🔧 clock\n\none", "two three four")
		live.Close()
		r := reply("a", "one two three four")
		r.Steps = "🔧 clock"
		send(t, h, r)
		h.drain()
		m.shows("> 🔧 clock\n\none", "two three four")
		if ops := m.fake.Ops(channeltest.Send, channeltest.Edit); len(ops) != 2 {
			t.Errorf("%d operations", len(ops))
		}
		m.clean()
	})
}

// P9: a crash in the middle of the steps leaves one message, which the reply becomes.
func TestP9StepsAcrossLives(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(channeltest.All)
		live := h.Live(t.Context(), reply("a", ""))
		live.Step(chat.Step{Call: "1", Tool: "clock", State: chat.Running})
		timetest.Sleep(time.Second)
		m.shows("> 🔧 clock\n\n")
		m.mu.Lock()
		m.crash = m.ops + 1
		m.mu.Unlock()
		live.Close()
		h.stop()
		m.reboot(t.Context())
		h = m.start(channeltest.All)
		send(t, h, reply("a", "It is noon."))
		h.drain()
		m.shows("It is noon.")
		m.clean()
	})
}

// C-010: a Stepper gets what is known of each step, after the text that came before.
func TestC010StepperGetsMergedSteps(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(channeltest.Streams | channeltest.Steps)
		live := h.Live(t.Context(), reply("a", ""))
		live.Show("Let me")
		live.Show("Let me see.")
		live.Step(chat.Step{Call: "1", Tool: "read_file", State: chat.Waiting, Params: map[string]any{"path": "a"}})
		live.Step(chat.Step{Call: "1", State: chat.Waiting, Params: map[string]any{"path": "a.md"}})
		live.Step(chat.Step{Call: "1", State: chat.Done, Result: "ok"})
		live.Step(chat.Step{Call: "1", State: chat.Running})
		live.Close()
		ops := m.fake.Ops(channeltest.Stream, channeltest.Step)
		for len(ops) > 0 && ops[0].Kind == channeltest.Stream {
			if ops = ops[1:]; len(ops) == 3 {
				break
			}
		}
		if len(ops) != 3 {
			t.Fatalf("%+v", m.fake.Ops())
		}
		if s := ops[1].Step; s.Tool != "read_file" || s.Name != "read_file" || s.Params["path"] != "a.md" || s.State != chat.Waiting {
			t.Errorf("%+v", s)
		}
		if s := ops[2].Step; s.Result != "ok" || s.Params["path"] != "a.md" || s.State != chat.Done {
			t.Errorf("%+v", s)
		}
		if texts := m.fake.Ops(channeltest.Stream); texts[len(texts)-1].Reply.Text != "Let me see." {
			t.Errorf("streamed %+v", texts)
		}
		h.stop()
	})
}
