package discord

import (
	"testing"

	"parley/channels/network"
	"parley/chat"
)

var _ network.ChatChecker = (*Config)(nil)

// TestCheckChat: channels have numbers, and people, whose private chats have others, an @ before theirs.
func TestCheckChat(t *testing.T) {
	for at, want := range map[chat.Address]bool{
		{Chat: "123456"}:                true,
		{Chat: "@123456"}:               true,
		{Chat: "123456", Thread: "789"}: true,
		{}:                              false,
		{Chat: "@"}:                     false,
		{Chat: "ID"}:                    false,
		{Chat: "-123456"}:               false,
		{Chat: "@anna"}:                 false,
		{Chat: "123456", Thread: "x"}:   false,
	} {
		if err := new(Config).CheckChat(at); (err == nil) != want {
			t.Errorf("%+v: %v", at, err)
		}
	}
}
