package channeltest_test

import (
	"fmt"
	"testing"
	"time"

	"parley/channels/channeltest"
	"parley/chat"
)

func TestFake(t *testing.T) {
	at := chat.Address{Chat: "7"}
	for _, powers := range []channeltest.Power{0, channeltest.All} {
		t.Run(fmt.Sprint(powers), func(t *testing.T) {
			channeltest.Run(t, func(t *testing.T) channeltest.Rig {
				f, n := &channeltest.Fake{Limit: 100, Files: map[string][]byte{}}, 0
				person := chat.Sender{ID: "7"}
				say := func(m chat.Message) {
					n++
					m.ID, m.At, m.From, m.Time = fmt.Sprint(n), at, person, time.Now()
					for f.Say(t.Context(), m) != nil && t.Context().Err() == nil {
					}
				}
				return channeltest.Rig{Channel: f.As(powers), At: at, Keeps: true,
					Shown: func() []string { return f.Shown(at) },
					Say:   func(text string) { say(chat.Message{Text: text}) },
					Upload: func(name string, data []byte) {
						f.Files["ref:"+name] = data
						say(chat.Message{Files: []chat.File{{Name: name, Ref: "ref:" + name}}})
					},
					Press: func(question string, choice int) bool {
						n++
						ok, err := f.Press(t.Context(), at, fmt.Sprint(n), question, choice, person)
						return ok && err == nil
					},
				}
			})
		})
	}
}
