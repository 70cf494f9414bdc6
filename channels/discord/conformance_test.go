package discord_test

import (
	"testing"

	"parley/channels/channeltest"
	"parley/channels/discord/discordtest"
	"parley/chat"
)

func TestConformance(t *testing.T) {
	channeltest.Run(t, func(t *testing.T) channeltest.Rig {
		t.Parallel()
		h := build(t, discordtest.Config{}, nil)
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
		}
	})
}
