package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"parley/llm/llmtest"
)

// TestCommitsOfATurn: an answer without tools costs five commits, each of which
// waits for the disk: the message comes into the inbox, the turn into its log,
// the answer into the outbox, and both queues are told that they are done.
func TestCommitsOfATurn(t *testing.T) {
	w := newTestGateway(t, func(_ context.Context, r llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: "You said " + strings.Join(spoken(r), " ")}
	})
	last, said := uint64(0), 0
	talk := func(messages int) (more uint64) { // with a start and an end
		w.start()
		for range messages {
			said++
			w.tg.Say(person, fmt.Sprint(said))
			w.says(person, fmt.Sprint("You said ", said))
		}
		if code := w.stop(); code != 0 {
			t.Fatalf("exit code %d", code)
		}
		n := commits(t, w.dir)
		more, last = n-last, n
		return more
	}
	talk(1)
	const turns, each = 10, 5
	start := talk(1)
	if n := talk(1 + turns); n < start+turns || n > start+turns*each {
		t.Errorf("%d turns made %d commits, want %d each at most", turns, n-start, each)
	}
}
