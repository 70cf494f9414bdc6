package discord_test

import (
	"fmt"
	"testing"

	"parley/channels/channeltest"
	"parley/channels/discord/discordtest"
	"parley/chat"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	channeltest.Run(t, func(t *testing.T) channeltest.Rig {
		t.Parallel()
		h := newHarness(t, discordtest.Config{}, nil)
		room := h.DM("7")
		return channeltest.Rig{
			Channel: h.ch, At: chat.Address{Channel: "discord", Chat: "@7"}, Keeps: true,
			Say: func(text string) {
				h.wait(discordtest.View.Online)
				h.Say(room, "7", "Ann", text)
			},
			Shown: func() (texts []string) {
				for _, m := range h.Messages(room) {
					if m.FromBot() {
						texts = append(texts, m.Text)
					}
				}
				return texts
			},
			Upload: func(name string, data []byte) {
				h.wait(discordtest.View.Online)
				h.Say(room, "7", "Ann", "", discordtest.Attach(discordtest.File{Name: name, Type: "text/plain", Data: data}))
			},
			Press: func(question string, choice int) bool {
				h.wait(discordtest.View.Online)
				want := fmt.Sprintf("q:%s:%d", question, choice)
				for _, m := range h.Messages(room) {
					for _, b := range m.Buttons {
						if b.ID == want {
							h.Press(room, "7", m.ID, want)
							return true
						}
					}
				}
				return false
			},
		}
	})
}
