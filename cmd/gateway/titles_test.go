package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"parley/agent/titles"
	"parley/llm/llmtest"
	"parley/tools/network/networktest"
)

// TestTitles: after the first answer the model of dreams names a conversation of the page, with one request without
// tools that counts for its person. If the program is killed while the model thinks, it is asked once more, and then
// never again. The owner can switch it off.
func TestTitles(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	thinks := make(chan llmtest.Request, 10)
	w := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		if r.Messages[0].Content != titles.Instructions {
			return echo(ctx, r)
		}
		thinks <- r
		if asked.Add(1) == 1 {
			<-ctx.Done() // it is killed meanwhile
		}
		return llmtest.Reply{Text: "\"Why tides **come**\"\nand more"}
	})
	w.more["http"] = map[string]any{"listen": networktest.FreeAddress(t)}
	cheap := map[string]any{"type": "openai", "baseUrl": w.llm.URL(), "apiKey": "${TOWN_MODEL_KEY}", "model": "gpt-cheap", "contextWindow": 8000}
	w.more["models"] = map[string]any{"main": w.model, "cheap": cheap}
	w.more["agent"] = map[string]any{"model": "main", "titles": true}
	w.more["dream"] = map[string]any{"cron": w.dreams, "model": "cheap"}
	w.start()
	v := w.visit()
	c := v.conversation()
	v.say(c, "message-1", "Why do the tides come twice a day?")
	v.reads(c, "the answer", func(lines []line) bool { return len(lines) == 2 })
	r := <-thinks
	if r.Model != "gpt-cheap" || len(r.Tools) > 0 || !strings.Contains(r.Last(), "> Why do the tides come twice a day?") {
		t.Errorf("the request for a title: %s", r.Body)
	}
	v.say(c, "message-2", "And meanwhile?")
	v.reads(c, "an answer while the model thinks", func(lines []line) bool { return len(lines) == 4 })
	if got := v.titles()[c]; got != "Why do the tides come twice a day?" {
		t.Errorf("until then it is called %q", got)
	}

	w.start()
	<-thinks
	v.changes(c, func() bool { return v.titles()[c] == "Why tides come" })
	if w.stop() != 0 { // what was used is on disk then
		t.Error("it did not end well")
	}
	w.start()
	v.say(c, "message-3", "And then?")
	v.reads(c, "the third answer", func(lines []line) bool { return len(lines) == 6 })
	if n := asked.Load(); n != 2 {
		t.Errorf("a title was asked for %d times, want 2", n)
	}
	if out, code := w.run("", "usage"); code != 0 || !strings.Contains(out, "cheap") {
		t.Errorf("usage: %d: %s", code, out)
	}

	w.more["agent"] = map[string]any{"model": "main", "titles": false}
	w.config()
	w.start()
	v.say("first", "message-4", "Bread")
	v.reads("first", "an answer", func(lines []line) bool { return len(lines) == 2 })
	if w.stop() != 0 {
		t.Error("it did not end well")
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("a title was asked for although that is off")
	}
	if why := w.llm.Refused(); why != nil {
		t.Errorf("the model refused %q", why)
	}
}

// titles returns what the page calls the conversations, by their IDs.
func (v *visitor) titles() map[string]string {
	v.t.Helper()
	status, body := v.do("GET", "/talks", nil)
	var list []struct{ ID, Title string }
	if err := json.Unmarshal([]byte(body), &list); status != http.StatusOK || err != nil {
		v.t.Fatalf("the list of conversations: %d %s, %v", status, body, err)
	}
	all := map[string]string{}
	for _, item := range list {
		all[item.ID] = item.Title
	}
	return all
}

// changes waits until ok is true, and looks again whenever a page with that conversation open is told of a change.
func (v *visitor) changes(conversation string, ok func() bool) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), waitTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", v.base+"/c/"+conversation+"/events?after=1000", nil)
	if err != nil {
		v.t.Fatal(err)
	}
	resp, err := v.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	for in := bufio.NewScanner(resp.Body); in.Scan(); {
		if slices.Contains([]string{"event: talks", "retry: 1000"}, in.Text()) && ok() {
			return
		}
	}
	v.t.Fatal("no change made it true")
}
