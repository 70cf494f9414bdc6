package telegram_test

import (
	"fmt"
	"slices"
	"testing"

	"parley/channels/channeltest"
	"parley/channels/telegram"
	"parley/channels/telegram/telegramtest"
	"parley/chat"
)

func TestConformance(t *testing.T) {
	channeltest.Run(t, func(t *testing.T) channeltest.Rig {
		h := newHarness(t, telegramtest.Config{}, func(c *telegram.Config) { c.Rate = -1 })
		h.Chat(7) // begins to exist
		return channeltest.Rig{
			Channel: h.ch, At: chat.Address{Channel: "telegram", Chat: "7"}, Keeps: true,
			Say: func(text string) { h.Say(7, text) },
			Shown: func() (texts []string) {
				for _, m := range h.Chat(7) {
					if m.FromBot() {
						texts = append(texts, m.Text)
					}
				}
				return texts
			},
			Upload: func(name string, data []byte) {
				h.Post(7, telegramtest.File{Kind: "document", Name: name, Data: data}, "")
			},
			Press: func(question string, choice int) bool {
				for _, m := range h.Chat(7) {
					for n, b := range slices.Concat(m.Buttons...) {
						if b.Data == fmt.Sprintf("q:%s:%d", question, choice) {
							h.Press(7, m.ID, n)
							return true
						}
					}
				}
				return false
			},
		}
	})
}
