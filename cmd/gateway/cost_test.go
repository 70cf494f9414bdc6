package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/llm/llmtest"
	"parley/store"
)

const (
	costTurns = 10
	// commitsOfATurn are those of an answer without tools, each of which waits for the
	// disk: the message comes into the inbox; the turn into its log, with the answer
	// into the outbox; the answer leaves the outbox. That the inbox is done shares the
	// last of these.
	commitsOfATurn = 3
)

// TestCommitsOfATurn counts the commits of an answer without tools.
func TestCommitsOfATurn(t *testing.T) {
	w := newTestGateway(t, repeatsAll)
	var last uint64
	wantCost(t, w, "commits", func() uint64 {
		n := commits(t, w.dir)
		more := n - last
		last = n
		return more
	})
}

func repeatsAll(_ context.Context, r llmtest.Request) llmtest.Reply {
	return llmtest.Reply{Text: "You said " + strings.Join(spoken(r), " ")}
}

// wantCost wants turns to cost at most commitsOfATurn each, without what starts and ends
// cost. count is called after each end, and returns what there was since the last time. On a
// slow machine what is deferred may need a commit of its own, each DeferLimit, and at the end.
func wantCost(t *testing.T, w *testGateway, what string, count func() uint64) {
	said := 0
	talk := func(messages int) uint64 { // with a start and an end
		w.start()
		for range messages {
			said++
			w.tg.Say(person, fmt.Sprint(said))
			w.says(person, fmt.Sprint("You said ", said))
		}
		if code := w.stop(); code != 0 {
			t.Fatalf("exit code %d", code)
		}
		return count()
	}
	talk(1)
	start := talk(1)
	began := time.Now()
	n := talk(1 + costTurns)
	slow := 1 + uint64(time.Since(began)/store.DeferLimit)
	if n < start+costTurns || n > start+costTurns*commitsOfATurn+slow {
		t.Errorf("%d turns made %d %s, want %d each at most", costTurns, n-start, what, commitsOfATurn)
	}
}
