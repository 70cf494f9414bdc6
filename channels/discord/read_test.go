package discord_test

import (
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/channels"
	"parley/channels/discord"
	"parley/channels/discord/discordtest"
	"parley/chat"
)

// Which messages in servers are delivered, and what of their text (R-S8).
func TestAddressed(t *testing.T) {
	t.Parallel()
	for groups, want := range map[string]string{
		"mention": "hello|hi there @parley|for the role|an answer|fourth|that is all",
		"all":     "not to you|hello|@person9 look|hi there @parley|for the role|an answer|fourth|that is all",
		"none":    "",
	} {
		t.Run(groups, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, discordtest.Config{}, func(c *discord.Config) { c.Groups = groups })
			h.run()
			room := h.Channel("900")
			rc, err := h.ch.Send(t.Context(), chat.Reply{ID: "r", To: chat.Address{Chat: room}, Text: "ours"})
			if err != nil {
				t.Fatal(err)
			}
			_, ours, _ := strings.Cut(string(rc), "/")
			theirs := h.Say(room, "7", "Ann", "not to you")
			h.Say(room, "7", "Ann", "<@101>, hello")
			h.Say(room, "7", "Ann", "<@9> look", discordtest.ReplyTo(theirs))
			h.Say(room, "7", "Ann", "hi there <@!101>")
			h.Say(room, "7", "Ann", "<@&555> for the role")
			h.Say(room, "7", "Ann", "an answer", discordtest.ReplyTo(ours))
			h.Say(room, "7", "Ann", "<@101> a bot", discordtest.With(map[string]any{"author": discordtest.User{ID: "3", Bot: true}}))
			h.Say(room, "7", "Ann", "<@101> a hook", discordtest.With(map[string]any{"webhook_id": "3"}))
			h.Say(room, "7", "Ann", "<@101> has joined", discordtest.With(map[string]any{"type": 7}))
			h.Say(room, "7", "Ann", "<@101> fourth")
			if groups == "none" {
				h.wantNothingReceived(h.DM("7"))
				return
			}
			h.Say(room, "7", "Ann", "<@101> that is all")
			h.wantReceived(strings.Split(want, "|")...)
		})
	}
}

func (h *harness) wantNothingReceived(channel string) { h.t.Helper(); h.wantOnlyReceived(channel) }

// Quotes, forwarded messages, files, edits and threads.
func TestMessages(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{}, nil)
	h.run()
	room := h.DM("7")
	first := h.Say(room, "7", "Ann", "first")
	h.wantReceived("first")
	h.Unfurl(room, first)
	h.Edit(room, first, "corrected")
	m := h.next()
	if m.Edits != first || m.ID == first || m.Text != "corrected" {
		t.Errorf("delivered %+v", m)
	}
	h.Unfurl(room, first) // the same correction once more
	if again := h.next(); again.Key() != m.Key() {
		t.Errorf("a correction told twice has two keys: %v", again)
	}
	h.Say(room, "7", "Ann", "second", discordtest.ReplyTo(first))
	if q := h.next().Quote; q == nil || *q != (chat.Quote{ID: first, From: "Ann", Text: "corrected"}) {
		t.Errorf("quotes %+v", q)
	}
	h.Say(room, "7", "Ann", "", discordtest.With(map[string]any{
		"message_reference": map[string]any{"type": 1, "message_id": "5"},
		"message_snapshots": []any{map[string]any{"message": map[string]any{"content": "/new", "attachments": []any{map[string]any{"id": "66", "filename": "a.png"}}}}},
	}))
	if m = h.next(); m.Text != "" || m.Quote == nil || !m.Quote.Forwarded || m.Quote.Text != "/new\n[a.png]" || len(m.Files) != 1 {
		t.Errorf("passed on: %+v", m)
	}
	h.Say(room, "7", "Ann", "", discordtest.With(map[string]any{"sticker_items": []any{map[string]any{"name": "wave"}}}))
	if m = h.next(); m.Media != "sticker wave" {
		t.Errorf("a sticker: %+v", m)
	}
	public := h.Channel("900")
	thread := h.Thread(public)
	h.Say(thread, "7", "Ann", "<@101> in a thread", discordtest.With(map[string]any{"member": map[string]any{"nick": "Annie"}}))
	if m = h.next(); m.At != (chat.Address{Channel: "discord", Chat: public, Thread: thread}) || m.From.Name != "Annie" || !m.Group {
		t.Errorf("in a thread: %+v", m)
	}
	rc, err := h.ch.Send(t.Context(), channels.Parts(h.ch, chat.Reply{ID: "re", To: m.At, Quote: m.ID, Group: true, Text: "yes"})[0])
	if err != nil || !strings.HasPrefix(string(rc), thread) || h.Messages(thread)[1].ReplyTo != m.ID {
		t.Error(rc, err, h.Messages(thread))
	}
}

// Files are named by their message; their address is requested each time.
func TestFiles(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{}, nil)
	h.run()
	room := h.DM("7")
	name := "../\x00\u202egnp." + strings.Repeat("x", 5000)
	id := h.Say(room, "7", "Ann", "look", discordtest.Attach(discordtest.File{Name: name, Type: "image/png", Data: []byte("bytes")},
		discordtest.File{Name: "voice-message.ogg", Type: "audio/ogg", Data: []byte("sound"), Voice: true}))
	m := h.next()
	if len(m.Files) != 2 || m.Files[0].Name != name || m.Files[0].Size != 5 || m.Files[0].Type != "image/png" || !m.Files[1].Voice {
		t.Fatalf("delivered %+v", m.Files)
	}
	for i, want := range []string{"bytes", "sound"} {
		r, err := h.ch.Fetch(t.Context(), m, m.Files[i])
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); string(got) != want || err != nil {
			t.Errorf("fetched %q, %v", got, err)
		}
		r.Close()
	}
	h.Delete(room, id)
	for _, f := range []chat.File{m.Files[0], {Ref: "../1/2"}, {}} {
		if _, err := h.ch.Fetch(t.Context(), m, f); !permanent(err) {
			t.Errorf("%v: %v", f.Ref, err)
		}
	}
}

// Commands and buttons are acknowledged once they are stored, and within 3 seconds.
func TestInteractions(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{}, nil)
	h.run()
	room, public := h.DM("7"), h.Channel("900")
	thread := h.Thread(public)
	settled := func(id string) (i discordtest.Interaction) {
		h.wait(func(v discordtest.View) bool { i = v.Interaction(id); return i.Acked || i.Late })
		return i
	}
	id := h.Command(room, "7", "search", "old words")
	if m := h.next(); m.Text != "/search old words" || m.ID != id || m.At != dm("7") || m.Group || m.From.ID != "7" || time.Since(m.Time).Abs() > time.Minute {
		t.Errorf("delivered %+v", m)
	}
	if i := settled(id); !i.Acked || !i.Quiet || i.Preview || !strings.Contains(i.Says, "/search old words") { // R-S13
		t.Errorf("answered %+v", i)
	}
	id = h.Command(thread, "8", "stop", "")
	if m := h.next(); m.Text != "/stop" || m.At != (chat.Address{Channel: "discord", Chat: public, Thread: thread}) || !m.Group {
		t.Errorf("delivered %+v", m)
	}
	settled(id)

	rc, err := h.ch.Send(t.Context(), channels.Parts(h.ch, chat.Reply{ID: "q", To: dm("7"), Text: "Shall I?", Ask: &chat.Question{ID: "abc", Choices: []string{"Yes", strings.Repeat("no", 100)}}})[0])
	if err != nil {
		t.Fatal(err)
	}
	asked := h.Messages(room)[0]
	id = h.Press(room, "7", asked.ID, asked.Buttons[1].ID)
	m := h.next()
	if m.Answer == nil || !reflect.DeepEqual(*m.Answer, chat.Answer{Question: "abc", Choice: 1, Receipt: string(rc)}) || m.ID != id || m.Text != "" {
		t.Errorf("delivered %+v", m)
	}
	if i := settled(id); !i.Acked || i.Says != "" {
		t.Errorf("answered %+v", i)
	}
	h.Replay()
	if again := h.next(); again.Key() != m.Key() {
		t.Errorf("a replayed press has another key: %+v", again)
	}
	if err := h.ch.Edit(t.Context(), rc, chat.Reply{To: dm("7"), Text: "Shall I? No."}); err != nil || len(h.Messages(room)[0].Buttons) != 0 {
		t.Error("the buttons are still there", err)
	}
	for _, forged := range []string{"q:abc:-1", "q:abc", "x", "q::1", "q:" + strings.Repeat("a", 33) + ":1", "q:abc:1000"} {
		if i := settled(h.Press(room, "7", asked.ID, forged)); !i.Acked || i.Says != "" {
			t.Errorf("%s: %+v", forged, i)
		}
	}
	h.wantOnlyReceived(room)

	h.setDeliverError(func(chat.Message) error { return errFull })
	if i := settled(h.Command(room, "7", "new", "")); !i.Quiet || i.Preview || !strings.Contains(i.Says, "could not store that") {
		t.Errorf("answered %+v", i)
	}
}

// Marks are reactions, each in place of the one before.
func TestMarks(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{Limits: true}, nil) // of four a second
	room := h.DM("7")
	id := h.Say(room, "7", "", "hello")
	for _, mark := range []channels.Mark{channels.Seen, channels.Working, channels.Done, channels.Done} {
		if err := h.ch.React(t.Context(), dm("7"), id+"e17", mark); err != nil {
			t.Fatal(err)
		}
	}
	if got := h.Messages(room)[0].Reactions; !slices.Equal(got, []string{"✅"}) {
		t.Errorf("marked %v", got)
	}
	if err := h.ch.React(t.Context(), dm("7"), "12345", channels.Seen); !permanent(err) {
		t.Errorf("a message that is not there: %v", err)
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{}, nil)
	menu := []channels.Command{{Name: "new", Help: "begin a new conversation"}, {Name: "help", Help: strings.Repeat("long ", 50)}}
	for range 2 {
		if err := h.ch.SetCommands(t.Context(), menu); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(h.Commands(), "begin a new") || strings.Count(h.Commands(), `"name":"text"`) != 2 {
		t.Errorf("set %s", h.Commands())
	}
}
