package channels_test

import (
	"errors"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
	"parley/channels/channeltest"
	"parley/chat"
	"parley/texts/textstest"
	"parley/timetest"
)

// data is what the hub says that is in no language.
var data = regexp.MustCompile("`[^`]*`|“[^”]*”|\\b(ok|Eve.*x|net|blocked|Tea|Rum|look)\\b")

// TestAllFromCatalogue has people meet the hub in a language of full-width
// letters: nobody is told a word that is not in the catalogue.
func TestAllFromCatalogue(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		office := chat.Address{Channel: "net", Chat: "office"}
		m.cfg.Texts = &textstest.Wide().Channels
		h := m.start(0)
		admit(t, h)
		m.on(func(op channeltest.Op) error {
			if op.Reply.To == room {
				return &channels.Error{Permanent: true, Err: errors.New("blocked")}
			}
			return nil
		})
		send(t, h, reply("parked", "words"))
		timetest.Sleep(time.Minute)
		say(t, m, from("9", "who is there?"))
		synctest.Wait()
		asking, err := h.Access().Pairings(t.Context())
		if err != nil || len(asking) != 1 {
			t.Fatal(asking, err)
		}
		say(t, m, from("2", "/pair"))
		group := from("1", "/parked")
		group.At, group.Group = chat.Address{Channel: "net", Chat: "2"}, true
		say(t, m, group)
		for _, text := range []string{
			"/pair", "/pair x", "/pair " + asking[0].Code, "/pair", "/unpair", "/unpair net:7", "/unpair net:9",
			"/parked", "/drop x", "/resend all", "/parked", "/drop all", "/parked",
		} {
			msg := from("1", text)
			msg.At = office
			say(t, m, msg)
			timetest.Sleep(time.Minute)
		}
		for id, q := range map[string]chat.Question{
			"yes": {Choices: []string{"Ｙｅｓ", "Ｎｏ"}}, "free": {Choices: []string{"Ｙｅｓ", "Ｎｏ"}, Free: true},
			"tea": {Choices: []string{"Tea", "Rum"}}, "any": {Choices: []string{"Tea", "Rum"}, Free: true},
		} {
			q.ID = id
			go h.Questions().Ask(t.Context(), chat.Reply{ID: "q" + id, To: office, Ask: &q}) //nolint:errcheck // it is withdrawn
			timetest.Sleep(time.Minute)
			if err := h.Questions().Withdraw(t.Context(), id); err != nil {
				t.Error(err)
			}
		}
		timetest.Sleep(time.Minute)
		n := 0
		for _, who := range []string{"office", "2", "9"} {
			for _, text := range m.fake.Shown(chat.Address{Channel: "net", Chat: who}) {
				n++
				if rest := textstest.Foreign(text, data); rest != "" {
					t.Errorf("%q is not in the catalogue, of\n%s", rest, text)
				}
			}
		}
		if n < 17 {
			t.Errorf("only %d texts", n)
		}
		h.stop()
	})
}

// TestStepsFromCatalogue: the line on steps that ended is in the language of
// full-width letters, too, while an answer is on its way.
func TestStepsFromCatalogue(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.cfg.Texts = &textstest.Wide().Channels
		m.fake.Every = 100 * time.Millisecond
		h := m.start(channeltest.All)
		live := h.Live(t.Context(), reply("a", ""))
		live.Step(chat.Step{Call: "1", Tool: "look", State: chat.Running})
		live.Step(chat.Step{Call: "1", State: chat.Failed})
		live.Show("…")
		timetest.Sleep(time.Minute)
		m.shows("> 🔧 look, 1 ｆａｉｌｅｄ\n\n…")
		live.Close()
	})
}
