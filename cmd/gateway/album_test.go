package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"parley/channels/telegram/telegramtest"
	"parley/llm/llmtest"
)

// TestAlbum: ten pictures of an album, which Telegram brings one by one, get one answer.
func TestAlbum(t *testing.T) {
	shot := picture(t)
	w := newTestGateway(t, func(_ context.Context, r llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: fmt.Sprintf("an answer to %d", len(spoken(r)))}
	})
	w.start()
	w.tg.Say(person, "hello")
	w.says(person, "an answer to 1")
	for i := range 10 {
		w.tg.Post(person, telegramtest.File{Kind: "photo", Data: shot}, map[int]string{0: "compare"}[i], telegramtest.InAlbum("A"))
		time.Sleep(20 * time.Millisecond) // Telegram takes them in one by one
	}
	w.says(person, "an answer to 10")
	if n := len(w.llm.Requests()); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
}
