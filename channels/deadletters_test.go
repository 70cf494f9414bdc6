package channels_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
	"parley/channels/admission"
	"parley/channels/channeltest"
	"parley/chat"
	"parley/store"
	"parley/timetest"
)

// park leaves replies with those texts parked in the room.
func park(t *testing.T, m *machine, h *testHub, texts ...string) []chat.DeadLetter {
	t.Helper()
	m.on(func(op channeltest.Op) error {
		if op.Reply.To == room {
			return &channels.Error{Permanent: true, Err: errors.New("403 `blocked`")}
		}
		return nil
	})
	for _, text := range texts {
		send(t, h, reply("id of "+text, text))
		timetest.Sleep(time.Minute)
	}
	m.on(nil)
	all, err := h.DeadLetters().List(t.Context())
	if err != nil || len(all) != len(texts) {
		t.Fatalf("parked: %+v, %v", all, err)
	}
	return all
}

// P10: a parked reply can be sent again, once, also after a restart.
func TestP10Resend(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(0)
		key := park(t, m, h, "one", "two", "three")[0].Key
		_, _ = m.store.Bucket("parked replies").Put(t.Context(), "0bad", []byte("{"), 0)
		h.stop()
		m.reboot(t.Context())
		h = m.start(0)
		all, err := h.DeadLetters().List(t.Context())
		if err != nil || len(all) != 3 || all[0].Key != key || all[0].Reply.Text != "one" {
			t.Errorf("parked: %+v, %v", all, err)
		}
		m.on(func(channeltest.Op) error { return &channels.Error{Permanent: true, Err: errors.New("still")} })
		if err := h.DeadLetters().Retry(t.Context(), key); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		all, _ = h.DeadLetters().List(t.Context())
		if len(all) != 3 || all[2].Reply.Text != "one" || all[2].Key == key {
			t.Errorf("parked again: %+v", all)
		}
		m.on(nil)
		if err := h.DeadLetters().Retry(t.Context(), all[2].Key); err != nil {
			t.Error(err)
		}
		if err := h.DeadLetters().Retry(t.Context(), all[2].Key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the second time: %v", err)
		}
		for range 2 {
			if err := h.DeadLetters().Dismiss(t.Context(), all[0].Key); err != nil {
				t.Error(err)
			}
		}
		h.drain()
		m.shows("one")
		if all, _ := h.DeadLetters().List(t.Context()); len(all) != 1 || all[0].Reply.Text != "three" {
			t.Errorf("left: %+v", all)
		}
	})
}

// P9: a crash in the middle of Resend sends nothing twice that a second one mends.
func TestP9ResendCrash(t *testing.T) {
	for crash := 1; crash <= 2; crash++ {
		for _, late := range []bool{false, true} {
			in(t, func(t *testing.T, m *machine) {
				h := m.start(0)
				key := park(t, m, h, "one")[0].Key
				h.stop()
				m.crash, m.late = m.ops+crash, late
				if h.DeadLetters().Retry(t.Context(), key) == nil {
					t.Fatal("no crash")
				}
				m.reboot(t.Context())
				h = m.start(0)
				if err := h.DeadLetters().Retry(t.Context(), key); err != nil && !errors.Is(err, store.ErrNotFound) {
					t.Error(err)
				}
				h.drain()
				m.shows("one")
			})
		}
	}
}

// Owners see what is parked, in private, and say what becomes of it; the names
// they use mean the same when a command comes again.
func TestParkedCommands(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		var audit []string
		m.cfg.Audit = func(kind, who, what string) { audit = append(audit, kind+" "+who+" "+what) }
		h := m.start(0)
		admit(t, h)
		park(t, m, h, "my *one*\nsecret", "two", "three", "four")
		office := chat.Address{Channel: "net", Chat: "office"}
		tell := func(who, text string, group bool) string {
			msg := from(who, text)
			msg.At, msg.Group = office, group
			say(t, m, msg)
			say(t, m, msg) // again
			synctest.Wait()
			shown := m.fake.Shown(office)
			return shown[len(shown)-1]
		}
		for _, command := range []string{"/parked", "/resend all", "/drop all"} {
			if got := tell("2", command, false); got != "Only my owner can ask me that." {
				t.Errorf("a user was told %q", got)
			}
			if got := tell("1", command, true); strings.Contains(got, "one") {
				t.Errorf("a group was told %q", got)
			}
		}
		list := tell("1", "/Parked@bot", false)
		names := regexp.MustCompile("(?m)^- `([0-9a-f]{8})` to `net:1`, (?:a minute|\\d minutes) ago: “(.*)” \\(403 blocked\\)$").FindAllStringSubmatch(list, -1)
		if len(names) != 4 || names[0][2] != "my one secret" {
			t.Fatalf("the owner was told %q", list)
		}
		for _, c := range []struct{ say, want string }{
			{"/resend " + names[1][1], "Sent again: 1."},
			{"/drop " + names[0][1], "Dropped: 1."},
			{"/drop 1", "There is no such reply. Send /parked to see them."},
			{"/drop", "Replies that could not be sent: 2."},
			{"/resend all", "Sent again: 2."},
			{"/parked", "There are no replies that could not be sent."},
		} {
			if got := tell("1", c.say, false); !strings.HasPrefix(got, c.want) {
				t.Errorf("%s: the owner was told %q, want %q", c.say, got, c.want)
			}
		}
		m.shows("two", "three", "four")
		if got := strings.Join(audit, "\n"); !strings.Contains(got, "refused net:2 /resend") || !strings.Contains(got, "access net:1 /resend all") {
			t.Errorf("audit: %s", got)
		}
		h.stop()
	})
}

// A command that comes again, as after a restart, does not do again what it
// did: what was parked meanwhile stays.
func TestCommandOnce(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(0)
		admit(t, h)
		park(t, m, h, "one")
		msg := from("1", "/resend all")
		msg.At = chat.Address{Channel: "net", Chat: "office"}
		say(t, m, msg)
		synctest.Wait()
		m.on(func(op channeltest.Op) error {
			if op.Reply.To == room {
				return &channels.Error{Permanent: true, Err: errors.New("403 blocked")}
			}
			return nil
		})
		send(t, h, reply("id of two", "two"))
		synctest.Wait()
		m.on(nil)
		h.stop()
		m.reboot(t.Context())
		h = m.start(0)
		admit(t, h)
		say(t, m, msg)
		synctest.Wait()
		if all, err := h.DeadLetters().List(t.Context()); err != nil || len(all) != 1 {
			t.Errorf("parked: %+v, %v", all, err)
		}
		m.shows("one")
		if got := m.fake.Shown(msg.At); slices.ContainsFunc(got, func(s string) bool { return s != "Sent again: 1." }) {
			t.Errorf("the owner was told %q", got)
		}
		timetest.Sleep(49 * time.Hour)
		msg.ID = "later"
		say(t, m, msg)
		synctest.Wait()
		if n := len(keys(m.store.Bucket("commands done"))); n != 1 {
			t.Errorf("%d commands are remembered", n)
		}
		h.stop()
	})
}

// P18: owners who can be spoken to are, once.
func TestP18TellOwners(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := channels.NewHub(channels.Config{Store: m.disk(), Log: discard})
		h.Add("net", m.fake.As(channeltest.All))
		h.Add("quiet", m.fake.As(0))
		a, err := admission.NewRules([]string{"net:1", "net:3", "net:spare:4", "quiet:1", "gone:1", "net"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		h.Access().SetRules(a)
		for range 2 {
			if err := h.TellOwners(t.Context(), "restored", "I am back."); err != nil {
				t.Error(err)
			}
		}
		if err := h.TellOwners(t.Context(), "other", "Something else."); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := h.Work(ctx); err != nil {
			t.Error(err)
		}
		for _, id := range []string{"1", "3"} {
			if got := fmt.Sprint(m.fake.Shown(chat.Address{Channel: "net", Chat: id})); got != "[I am back. Something else.]" {
				t.Errorf("%s was told %s", id, got)
			}
		}
		if n := len(m.fake.Ops()); n != 4 {
			t.Errorf("%d sent: %+v", n, m.fake.Ops())
		}
	})
}

// Whoever watches is told how long replies took, how often they were tried and
// what became of them, and how old the oldest is.
func TestSentAndOldest(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		var sent []string
		m.cfg.Sent = func(channel string, r chat.Reply, waited time.Duration, tries int, err error) {
			sent = append(sent, fmt.Sprintf("%s %s %v %d %v", channel, r.ID, waited.Round(time.Minute), tries, err))
		}
		_ = m.disk().Queue("outbox/net").Push(t.Context(), "old", []byte(`{"id":"old","to":{"channel":"net","chat":"1"},"text":"of a version before"}`))
		m.on(func(op channeltest.Op) error {
			switch {
			case op.Reply.ID == "b":
				return &channels.Error{Permanent: true, Err: errors.New("403")}
			case op.Reply.ID == "a" && len(m.fake.Ops()) < 4:
				return &channels.Error{After: 5 * time.Minute, Err: errors.New("429")}
			}
			return nil
		})
		h := m.start(0)
		synctest.Wait()
		send(t, h, reply("a", "one"), reply("b", "two"))
		timetest.Sleep(7 * time.Minute)
		if st, err := h.Status(t.Context()); err != nil || st[0].Oldest != 7*time.Minute || st[0].Pending != 2 {
			t.Errorf("%+v, %v", st, err)
		}
		timetest.Sleep(4 * time.Minute)
		h.drain()
		if got := fmt.Sprint(sent); got != "[net old 0s 1 <nil> net a 10m0s 3 <nil> net b 10m0s 1 403]" {
			t.Errorf("%s", got)
		}
		if st, _ := h.Status(t.Context()); st[0].Oldest != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// P24: Status shows what ails a channel that runs.
func TestP24Health(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := channels.NewHub(channels.Config{Store: m.disk(), Log: discard})
		h.Add("a", patient{m.fake.As(0), errors.New("another process polls this bot")})
		h.Add("b", patient{m.fake.As(0), nil})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := h.Receive(ctx, nil); err != nil {
			t.Error(err)
		}
		st, err := h.Status(t.Context())
		if err != nil || st[0].Err == nil || st[0].Err.Error() != "another process polls this bot" || st[1].Err != nil {
			t.Errorf("%+v, %v", st, err)
		}
	})
}

type patient struct {
	channels.Channel
	err error
}

func (p patient) Health() error { return p.err }

// A crash between parking a reply and the end of its place in the outbox parks
// it again: it is kept once, so that it is sent again once.
func TestP10ParkedOnce(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(0)
		for range 2 {
			r := reply("the same", "hello")
			r.To.Channel = "nowhere"
			if err := h.Send(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			timetest.Sleep(time.Minute)
		}
		all, err := h.DeadLetters().List(t.Context())
		if err != nil || len(all) != 1 || all[0].Reply.Text != "hello" {
			t.Errorf("parked: %+v, %v", all, err)
		}
	})
}

// TestRetryOfUnasked is P26: a reply that no person waits for is tried again by
// itself when its chat did not take it, a few times, and its fate is told each
// time; one that a person waited for is not.
func TestRetryOfUnasked(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		var fates []string
		m.cfg.Fate = func(_ context.Context, r chat.Reply, tries int, reason string) error {
			fates = append(fates, fmt.Sprintf("%s %s %d %q", r.Run, r.Text, tries, reason))
			if len(fates) == 1 {
				return errors.New("the disk is full") // it is told again
			}
			return nil
		}
		h := m.start(0)
		gone := &channels.Error{Permanent: true, Err: errors.New("gone")}
		m.on(func(channeltest.Op) error { return gone })
		told := reply("a", "news")
		told.Unasked, told.Run = true, "job/1"
		send(t, h, told)
		send(t, h, reply("b", "an answer"))
		timetest.Sleep(time.Hour)
		synctest.Wait()
		if got, want := fmt.Sprint(fates), `[job/1 news 0 "gone" job/1 news 0 "gone" job/1 news 1 "gone"]`; got != want {
			t.Errorf("told %s\nwant %s", got, want)
		}
		m.on(nil)
		timetest.Sleep(12 * time.Hour)
		synctest.Wait()
		if n := len(fates); n != 4 || fates[3] != `job/1 news 2 ""` {
			t.Errorf("told %q", fates)
		}
		m.shows("news")
		if all, err := h.DeadLetters().List(t.Context()); err != nil || len(all) != 1 || all[0].Reply.Text != "an answer" {
			t.Errorf("left: %+v, %v", all, err)
		}
	})
}
