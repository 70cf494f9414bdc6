package channeltest_test

import (
	"fmt"
	"testing"
	"time"

	"parley/channels/channeltest"
	"parley/chat"
)

func TestFake(t *testing.T) {
	at := chat.Address{Chat: "42"}
	for _, powers := range []channeltest.Power{0, channeltest.Splits | channeltest.Edits | channeltest.Types} {
		t.Run(fmt.Sprint(powers), func(t *testing.T) {
			channeltest.Run(t, func(t *testing.T) channeltest.Rig {
				f, n := &channeltest.Fake{Limit: 100}, 0
				return channeltest.Rig{Channel: f.As(powers), At: at, Keeps: true,
					Shown: func() []string { return f.Shown(at) },
					Say: func(text string) {
						n++
						m := chat.Message{ID: fmt.Sprint(n), At: at, From: chat.Sender{ID: "7"}, Text: text, Time: time.Now()}
						for f.Say(t.Context(), m) != nil && t.Context().Err() == nil {
						}
					},
				}
			})
		})
	}
}
