package discord_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/channels/discord"
	"parley/channels/discord/discordtest"
	"parley/chat"
	"parley/store"
)

// Whatever happens to the connection, the bot comes back and receives what was
// written before, meanwhile and after, once and in order. In most cases discordgo
// v0.29.0 by itself would hang for good, crash the process, or lose events.
func TestP3Faults(t *testing.T) {
	t.Parallel()
	ready := `{"op":0,"t":"READY","s":1,"d":{"session_id":"s","user":{"id":"101"}}}`
	for name, c := range map[string]struct {
		begun, asked int // sessions, and how often where the gateway is
		fault        func(h *harness)
	}{
		"no HELLO":              {1, 2, func(h *harness) { h.Gates(discordtest.Gate{NoHello: true}); h.Drop(0) }},
		"READY without HELLO":   {1, 2, func(h *harness) { h.Gates(discordtest.Gate{ReadyFirst: true}); h.Drop(0) }},
		"op 7 first":            {1, 2, func(h *harness) { h.Gates(discordtest.Gate{First: `{"op":7}`}); h.Drop(0) }},
		"op 7 as second packet": {1, 2, func(h *harness) { h.Gates(discordtest.Gate{Second: `{"op":7,"d":null}`}); h.Drop(0) }},
		"ACK as second packet":  {1, 2, func(h *harness) { h.Gates(discordtest.Gate{Second: `{"op":11}`}); h.Drop(0) }},
		"silence after HELLO":   {1, 2, func(h *harness) { h.Gates(discordtest.Gate{Second: `{"op":1}`}); h.Drop(0) }},
		"null first":            {1, 2, func(h *harness) { h.Gates(discordtest.Gate{First: `null`}); h.Drop(0) }},
		"null":                  {1, 1, func(h *harness) { h.Raw(false, `null`) }},
		"a guild that is null":  {1, 1, func(h *harness) { h.Push("GUILD_CREATE", `null`); h.Drop(0) }},
		"HELLO without beat":    {1, 2, func(h *harness) { h.Gates(discordtest.Gate{First: `{"op":10,"d":{}}`}); h.Drop(0) }},
		"READY of nobody": {1, 2, func(h *harness) {
			h.Gates(discordtest.Gate{Second: strings.Replace(ready, `:"s"`, `:""`, 1)})
			h.Drop(0)
		}},
		"op 7":                 {1, 1, func(h *harness) { h.Reconnect() }},
		"op 9":                 {2, 2, func(h *harness) { h.Raw(false, `{"op":9,"d":false}`) }},
		"op 9, resumable":      {1, 1, func(h *harness) { h.Raw(false, `{"op":9,"d":true}`) }},
		"op 9 to RESUME":       {2, 2, func(h *harness) { h.Gates(discordtest.Gate{Invalid: true}); h.Drop(4000) }},
		"session forgotten":    {2, 2, func(h *harness) { h.Forget() }},
		"garbage":              {1, 1, func(h *harness) { h.Raw(true, "\x78\x9cgarbage") }},
		"a packet of 33 MB":    {1, 1, func(h *harness) { h.Raw(false, strings.Repeat(" ", 33<<20)+`{"op":11}`) }},
		"no JSON":              {1, 1, func(h *harness) { h.Raw(false, `{"op":0,"t":"MESSAGE_CREATE","s":9,"d":{`) }},
		"close in mid-frame":   {1, 1, func(h *harness) { h.HalfFrame() }},
		"close 1000":           {1, 1, func(h *harness) { h.Drop(1000) }},
		"close 4000":           {1, 1, func(h *harness) { h.Drop(4000) }},
		"close 4009 to RESUME": {2, 2, func(h *harness) { h.Gates(discordtest.Gate{Close: 4009}); h.Drop(0) }},
		"close 4007 to RESUME": {2, 2, func(h *harness) { h.Gates(discordtest.Gate{Close: 4007}); h.Drop(0) }},
		"no websocket":         {1, 2, func(h *harness) { h.Gates(discordtest.Gate{Refuse: true}); h.Drop(0) }},
		"500 to where":         {2, 3, func(h *harness) { h.Fail("GET /gateway/bot", discordtest.Fault{Status: 500}); h.Forget() }},
		"429 to where": {2, 3, func(h *harness) {
			h.Fail("GET /gateway/bot", discordtest.Fault{Status: 429, RetryAfter: 0.3})
			h.Forget()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, discordtest.Config{}, nil)
			if slices.Contains([]string{"no HELLO", "silence after HELLO", "ACK as second packet"}, name) { // ends with the testTimeout
				h.ch.Hasten(2*time.Second, 10*time.Millisecond)
			}
			h.run()
			room := h.DM("7")
			h.Say(room, "7", "Ann", "before")
			h.wantReceived("before")
			c.fault(h)
			h.Say(room, "7", "Ann", "meanwhile")
			first := h.next()
			h.wait(discordtest.View.Online)
			h.Say(room, "7", "Ann", "after")
			var texts []string
			seen := map[string]bool{first.Key(): true} // the inbox drops what it knows
			for texts = append(texts, first.Text); texts[len(texts)-1] != "after"; {
				if m := h.next(); !seen[m.Key()] {
					seen[m.Key()] = true
					texts = append(texts, m.Text)
				}
			}
			if got := strings.Join(texts, " "); got != "meanwhile after" {
				t.Errorf("delivered %q", got)
			}
			h.Look(func(v discordtest.View) {
				begun, resumed := v.Sessions()
				asked := v.Count("GET /gateway/bot")
				if begun != c.begun || begun+resumed < 2 || asked < c.asked || c.asked == 1 && asked > 1 {
					t.Errorf("%d sessions begun, %d resumed, asked %d times where the gateway is", begun, resumed, asked)
				}
			})
		})
	}
}

// Messages from while the bot was away are received (P3), even if Discord has
// forgotten the session: in private chats that were read before, and in all
// channels and threads, oldest first, however many they are.
func TestP3BackFill(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{}, nil)
	stop := h.run()
	private, public := h.DM("7"), h.Channel("900")
	thread, first := h.Thread(public), h.Channel("900")
	for _, room := range []string{private, public, thread} {
		h.Say(room, "7", "Ann", "<@101> hello")
		h.wantReceived("hello")
	}
	stop()
	h.Forget()
	for i := range 250 {
		h.Say(private, "7", "Ann", fmt.Sprint("m", i))
		h.Say(public, "8", "Bob", fmt.Sprint("not to you ", i))
	}
	h.Say(public, "8", "Bob", "<@101> p")
	h.Say(thread, "8", "Bob", "<@!101>, t")
	h.Say(first, "8", "Bob", "<@101> the first here")
	h.restart()
	h.run()
	got := map[string][]string{}
	for range 253 {
		m := h.next()
		got[m.At.Chat+"/"+m.At.Thread] = append(got[m.At.Chat+"/"+m.At.Thread], m.Text)
		if m.Group != (m.At.Chat == public || m.At.Chat == first) || m.Account != "101" {
			t.Errorf("delivered %+v", m)
		}
	}
	for i, text := range got["@7/"] {
		if text != fmt.Sprint("m", i) {
			t.Fatalf("message %d is %q", i, text)
		}
	}
	if len(got["@7/"]) != 250 || fmt.Sprint(got[public+"/"], got[public+"/"+thread], got[first+"/"]) != "[p] [t] [the first here]" {
		t.Errorf("delivered %d, %v", len(got["@7/"]), got)
	}
	h.wantOnlyReceived(private)
}

// A message that is not delivered is not noted as read; other chats do not wait (P19).
func TestP19Full(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{}, nil)
	stop := h.run()
	h.setDeliverError(func(m chat.Message) error {
		if m.From.ID == "7" {
			return errFull
		}
		return nil
	})
	a, b := h.DM("7"), h.DM("8")
	h.Say(a, "7", "", "one")
	h.Say(a, "7", "", "two")
	h.Say(b, "8", "", "three")
	h.wantReceived("three")
	h.setDeliverError(nil)
	h.wantReceived("one", "two")
	h.setDeliverError(func(chat.Message) error { return errFull })
	h.Say(a, "7", "", "four")
	stop()
	h.setDeliverError(nil)
	h.restart()
	h.run()
	h.wantReceived("four")
}

// Messages that wait for hours do not fill the memory: Discord is asked for the
// rest once earlier ones are delivered, also in a new chat.
func TestManyWait(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{}, nil)
	h.run()
	h.setDeliverError(func(m chat.Message) error {
		if m.From.ID == "7" {
			return errFull
		}
		return nil
	})
	const many = 350
	room := h.DM("7")
	for i := range many {
		h.Say(room, "7", "", fmt.Sprint(i))
	}
	h.Say(h.DM("8"), "8", "", "all was told")
	h.wantReceived("all was told")
	h.setDeliverError(func(m chat.Message) error {
		if m.From.ID == "7" && m.Text != "0" {
			return errFull
		}
		return nil
	})
	h.wantReceived("0")
	h.Say(room, "7", "", fmt.Sprint(many)) // will be among the rest
	h.Say(h.DM("8"), "8", "", "this, too")
	h.wantReceived("this, too")
	h.setDeliverError(nil)
	for i := range many {
		h.wantReceived(fmt.Sprint(i + 1))
	}
	h.wantOnlyReceived(room)
	if n := h.Count("GET /channels/{id}/messages"); n > 2+3 { // two chats that were never read, perhaps in the moment before, and the rest of one
		t.Errorf("discord was asked %d times", n)
	}
}

// A command that arrives when too much is waiting already causes no later message
// to be skipped.
func TestManyWaitBeforeACommand(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{}, nil)
	h.run()
	h.setDeliverError(func(m chat.Message) error {
		if m.From.ID == "7" {
			return errFull
		}
		return nil
	})
	room := h.DM("7")
	const many = 101
	for i := range many {
		h.Say(room, "7", "", fmt.Sprint(i))
	}
	h.Command(room, "7", "status", "")
	for i := range 5 {
		h.Say(room, "7", "", fmt.Sprint(many+i))
	}
	h.Say(h.DM("8"), "8", "", "all was told")
	h.wantReceived("all was told")
	h.setDeliverError(nil)
	for i := range many + 5 {
		h.wantReceived(fmt.Sprint(i))
	}
}

// A chat whose position is damaged is read from now on (P21).
func TestP21Seen(t *testing.T) {
	t.Parallel()
	for _, damaged := range []string{`{"last":"all"}`, `{}`, `{`} {
		h := newHarness(t, discordtest.Config{}, nil)
		room := h.DM("7")
		if _, err := h.seen.Put(t.Context(), room, []byte(damaged), store.Any); err != nil {
			t.Fatal(err)
		}
		h.run()
		h.wantOnlyReceived(room)
	}
}

// A message over which Parley panics is kept for inspection (P4), and so is nonsense.
func TestP4Nonsense(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{}, nil)
	h.run()
	h.setDeliverError(func(m chat.Message) error {
		if m.Text == "bomb" {
			panic("boom")
		}
		return nil
	})
	room := h.DM("7")
	for _, d := range []string{`null`, `[]`, `{"id":"x"}`, `{"id":"1","channel_id":"../2"}`, `"` + strings.Repeat("x", 200000) + `"`, `{"id":1,"channel_id":[]}`} {
		for _, kind := range []string{"MESSAGE_CREATE", "MESSAGE_UPDATE", "INTERACTION_CREATE", "READY_", "VOICE_SERVER_UPDATE", "GUILD_UPDATE"} {
			h.Push(kind, d)
		}
	}
	h.Say(room, "7", "", "bomb")
	h.wantOnlyReceived(room)
	kept := map[string]int{}
	for range 16 {
		select {
		case raw := <-h.deadLetters:
			kept[raw]++
		case <-time.After(testTimeout):
			t.Fatalf("kept only %v", kept)
		}
	}
	if kept["[]"] != 3 || kept["null"] != 2 {
		t.Errorf("kept %v", kept)
	}
}

// A connection whose heartbeats are not answered is dead, and the session is
// resumed on another: nothing is lost (P24).
func TestP24Zombie(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{Heartbeat: 500 * time.Millisecond}, nil)
	h.Gates(discordtest.Gate{NoAck: true})
	h.run()
	h.wait(func(v discordtest.View) bool { begun, resumed := v.Sessions(); return begun == 1 && resumed >= 1 })
	h.Say(h.DM("7"), "7", "", "still there?")
	h.wantReceived("still there?")
}

// An idle connection is kept alive by heartbeats, for longer than Discord would
// wait for one (P24).
func TestP24Heartbeats(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{Heartbeat: time.Second}, nil)
	h.run()
	h.wait(func(v discordtest.View) bool { return v.Beats() >= 6 })
	h.Look(func(v discordtest.View) {
		if begun, resumed := v.Sessions(); begun != 1 || resumed > 1 { // one, if the machine stood still
			t.Errorf("%d sessions, %d resumed", begun, resumed)
		}
	})
	h = newHarness(t, discordtest.Config{Heartbeat: time.Hour}, nil)
	h.run()
	h.Raw(false, `{"op":1,"d":null}`) // Discord asks for one
	h.wait(func(v discordtest.View) bool { return v.Beats() > 0 })
}

// Recovery is announced once Discord can be reached again (P10): that ends the
// pauses of the outbox.
func TestP10RecoveryIsAnnounced(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{}, nil)
	recovered := make(chan struct{}, 10)
	h.ch.OnRecovery(func() { recovered <- struct{}{} })
	h.run()
	if len(recovered) > 0 {
		t.Error("told of a recovery, though nothing had failed")
	}
	h.Gates(discordtest.Gate{Refuse: true}, discordtest.Gate{Refuse: true})
	h.Drop(4000)
	select {
	case <-recovered:
	case <-time.After(testTimeout):
		t.Fatal("nobody was told")
	}
}

// No session is begun beyond Discord's daily limit, after which it would revoke the
// token. One may still be resumed, and Health says what is wrong.
func TestSessionsOfTheDay(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{Starts: 1}, nil)
	h.run()
	h.Gates(discordtest.Gate{Refuse: true}) // so that it is asked where the gateway is
	h.Drop(4000)
	h.wait(func(v discordtest.View) bool { _, resumed := v.Sessions(); return resumed == 1 && v.Online() })
	h.Forget()
	h.wait(func(v discordtest.View) bool { return v.Count("GET /gateway/bot") == 5 }) // once more than what is told of
	if err := h.ch.Health(); err == nil || !strings.Contains(err.Error(), "no more sessions today") {
		t.Errorf("it is well: %v", err)
	}
	h.Look(func(v discordtest.View) {
		if begun, _ := v.Sessions(); begun != 1 {
			t.Errorf("%d sessions", begun)
		}
	})
}

// A session is resumed where Discord says (op 6), also by the next process.
func TestResume(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{}, nil)
	stop := h.run()
	for i := range 2 {
		h.Drop(4000)
		h.wait(func(v discordtest.View) bool { _, resumed := v.Sessions(); return resumed == i+1 && v.Online() })
	}
	h.Look(func(v discordtest.View) {
		if begun, _ := v.Sessions(); begun != 1 || v.Count("GET /gateway/bot") != 1 {
			t.Errorf("%d sessions, asked %d times where the gateway is", begun, v.Count("GET /gateway/bot"))
		}
	})
	stop()
	room := h.DM("7")
	h.Say(room, "7", "", "while it was away")
	h.restart()
	h.run()
	h.wantReceived("while it was away")
	h.Look(func(v discordtest.View) {
		if begun, resumed := v.Sessions(); begun != 1 || resumed != 3 {
			t.Errorf("%d sessions begun, %d resumed", begun, resumed)
		}
	})
}

// A fatal error ends Run, with advice and without the token (R-S26).
func TestFatal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg   discordtest.Config
		setup func(h *harness, c *discord.Config)
		says  string
	}{
		"token":  {setup: func(_ *harness, c *discord.Config) { c.Token = "wrong.token.here" }, says: "refuses the token of channels.discord"},
		"intent": {cfg: discordtest.Config{Blind: true}, says: "switch on Message Content Intent at https://discord.com/developers"},
		"4004":   {setup: func(h *harness, _ *discord.Config) { h.Gates(discordtest.Gate{Close: 4004}) }, says: "refuses the token"},
		"4013":   {setup: func(h *harness, _ *discord.Config) { h.Gates(discordtest.Gate{Close: 4013}) }, says: "4013"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, c.cfg, nil)
			if c.setup != nil {
				h.setup = func(cfg *discord.Config) { c.setup(h, cfg) }
				h.restart()
			}
			ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
			defer cancel()
			err := h.ch.Run(ctx, h.deliver)
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "wrong.token") {
				t.Errorf("Run ended with %v", err)
			}
			if strings.HasPrefix(name, "4") {
				return
			}
			if _, err := h.ch.Check(ctx); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Check says %v", err)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		h := newHarness(t, discordtest.Config{}, nil)
		if name, err := h.ch.Check(t.Context()); name != "@parley" || err != nil {
			t.Error(name, err)
		}
	})
}

// Run ends when its context does, whatever Open waits for (P16).
func TestP16Hang(t *testing.T) {
	t.Parallel()
	for name, g := range map[string]discordtest.Gate{"no HELLO": {NoHello: true}, "no READY": {Second: `{"op":1}`}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, discordtest.Config{}, nil)
			h.ch.Hasten(time.Hour, time.Hour)
			h.Gates(g)
			stop := h.start()
			h.wait(func(v discordtest.View) bool { return v.Count("GET /gateway/bot") == 1 })
			stop()
		})
	}
	for limit, dials := range map[time.Duration]int{50 * time.Millisecond: 2, time.Hour: 1} { // P24: it is given up
		t.Run(fmt.Sprint("no answer to the upgrade in ", limit), func(t *testing.T) {
			t.Parallel()
			silent, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
			if err != nil {
				t.Fatal(err)
			}
			defer silent.Close()
			_ = silent.SetDeadline(time.Now().Add(testTimeout))
			h := newHarness(t, discordtest.Config{}, func(c *discord.Config) { c.GatewayURL = "ws://" + silent.Addr().String() })
			h.ch.Hasten(limit, 10*time.Millisecond)
			stop := h.start()
			for range dials {
				conn, err := silent.Accept()
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
			}
			stop()
		})
	}
	t.Run("no answer of the API", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, discordtest.Config{}, nil)
		h.Fail("GET /users/@me", discordtest.Fault{Hang: true})
		h.start()()
	})
}
