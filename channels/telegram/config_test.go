package telegram

import (
	"testing"

	"parley/channels/network"
	"parley/chat"
)

var _ network.ChatChecker = (*Config)(nil)

// TestCheckChat: people have positive numbers, groups negative ones, and their topics one more.
func TestCheckChat(t *testing.T) {
	for at, want := range map[chat.Address]bool{
		{Chat: "123456"}:                      true,
		{Chat: "-100987654"}:                  true,
		{Chat: "-100987654", Thread: "7"}:     true,
		{Chat: "-100987654", Thread: "1"}:     true, // the general topic
		{}:                                    false,
		{Chat: "ID"}:                          false,
		{Chat: "@anna"}:                       false,
		{Chat: "12 3"}:                        false,
		{Chat: "0"}:                           false,
		{Chat: "99999999999999999999"}:        false,
		{Chat: "-100987654", Thread: "topic"}: false,
		{Chat: "-100987654", Thread: "-7"}:    false,
	} {
		if err := new(Config).CheckChat(at); (err == nil) != want {
			t.Errorf("%+v: %v", at, err)
		}
	}
}
